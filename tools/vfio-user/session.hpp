// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// One client's conversation: takes messages, acts on the endpoint, makes replies. Knows no socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vfio-user/endpoint.hpp"
#include "vfio-user/message_reader.hpp"
#include "vfio-user/protocol.hpp"

namespace weft::vfio_user
{

class Session
{
public:
	Session(Endpoint &endpoint, std::shared_ptr<spdlog::logger> log);

	// Handles @message. Returns the whole reply, header first, or nothing if the message wants
	// none; valid until the next call. Every request but one that ends the session is answered;
	// one that cannot be met with an error.
	std::span<const std::byte> handle(Message &message);
	// The client cannot be served (why: end_reason()): the connection is to be closed.
	bool ended() const { return !end_reason_.empty(); }
	const std::string &end_reason() const { return end_reason_; }

private:
	// Handlers append their payload to reply_ and return 0, or return an errno value.
	using Handler = int (Session::*)(Message &message);
	struct Entry;
	static const Entry kEntries[];

	int version(Message &message);
	int dma_map(Message &message);
	int dma_unmap(Message &message);
	int get_info(Message &message);
	int get_region_info(Message &message);
	int get_region_io_fds(Message &message);
	int get_irq_info(Message &message);
	int set_irqs(Message &message);
	int region_read(Message &message);
	int region_write(Message &message);
	int region_write_multi(Message &message);
	int reset(Message &message);
	int device_feature(Message &message);
	int unsupported(Message &message);

	int dispatch(Message &message);
	template<typename T>
	static T request(const Message &message);
	template<typename T>
	void append(const T &value);
	void append_bytes(std::span<const std::byte> bytes);

	Endpoint &endpoint_;
	std::shared_ptr<spdlog::logger> log_;
	std::vector<std::byte> reply_;
	std::string end_reason_;
	bool greeted_ = false;
};

} // namespace weft::vfio_user
