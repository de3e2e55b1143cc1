// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the session of one client: handles messages, operates the endpoint, and creates
// replies. It uses no socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bus/pci/endpoint.hpp"
#include "bus/pci/message_reader.hpp"
#include "bus/pci/protocol.hpp"
#include "bus/vfio-user/interrupts.hpp"
#include "bus/vfio-user/protocol.hpp"

namespace weft::vfio_user
{

// Determines the length of a message from its header.
extern const pci::Framing kFraming;

using pci::Message;

class Session final : public pci::Session
{
public:
	Session(pci::Endpoint &endpoint, Interrupts &interrupts,
		std::shared_ptr<spdlog::logger> log);

	// Every request gets a reply, and an error reply if it fails, except a request that ends
	// the session.
	std::span<const std::byte> handle(Message &message) override;
	int reply_descriptor() const override { return reply_fd_; }

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

	int dispatch(const Header &header, Message &message);
	template<typename T>
	static T request(const Message &message);
	template<typename T>
	void append(const T &value);
	void append_bytes(std::span<const std::byte> bytes);

	pci::Endpoint &endpoint_;
	Interrupts &interrupts_;
	std::shared_ptr<spdlog::logger> log_;
	std::vector<std::byte> reply_;
	int reply_fd_ = -1;
	bool greeted_ = false;
};

} // namespace weft::vfio_user
