// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the session of one guest: its requests, its two virtqueues, and the channel by which
// the server notifies it of used buffers (channel.hpp).
//
// A guest is disconnected if its queues are invalid, or if an error cannot be reported to it. If an
// error is detected between requests, the guest is disconnected at its next request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/loop.hpp"
#include "bus/pci/protocol.hpp"
#include "bus/vhost-user/channel.hpp"
#include "bus/vhost-user/commands.hpp"
#include "bus/vhost-user/interrupts.hpp"
#include "bus/vhost-user/protocol.hpp"
#include "bus/vhost-user/ring.hpp"

namespace weft::vhost_user
{

// Determines the length of a message from its header.
extern const pci::Framing kFraming;

using pci::Message;

class Session final : public pci::Session, private MessagePort
{
public:
	Session(pci::Endpoint &endpoint, Interrupts &interrupts,
		std::shared_ptr<spdlog::logger> log);
	~Session() override;

	std::span<const std::byte> handle(Message &message) override;

private:
	// Handlers return 0 or an errno value. Handlers of requests with a number as reply set
	// reply_.
	using Handler = int (Session::*)(Message &message);
	struct Entry;
	static const Entry kEntries[];

	int get_features(Message &message);
	int set_features(Message &message);
	int get_protocol_features(Message &message);
	int set_protocol_features(Message &message);
	int set_owner(Message &message);
	int set_mem_table(Message &message);
	int set_vring_num(Message &message);
	int set_vring_addr(Message &message);
	int set_vring_base(Message &message);
	int set_vring_enable(Message &message);
	int set_backend_request_fd(Message &message);
	int vring_kick(Message &message);

	int dispatch(Message &message);
	int map(const MemoryRegion &region, int fd);
	std::span<const std::byte> reply(const Header &request, std::uint64_t value);
	Ring *find_ring(std::uint32_t index);
	// Translates an address of the client to one of the guest.
	std::optional<std::uint64_t> guest_address(std::uint64_t client_address) const;
	// Returns the number of executed commands, which is limited so that other events are
	// handled in between.
	unsigned run_commands();
	void call(std::uint32_t queue);
	bool send_message(std::uint64_t address, std::uint32_t data) override;

	pci::Endpoint &endpoint_;
	Interrupts &interrupts_;
	const std::shared_ptr<spdlog::logger> log_;
	Commands commands_;
	Wakeup more_commands_;
	std::array<Ring, kQueues> rings_;
	std::vector<MemoryRegion> regions_;
	std::uint64_t protocol_features_ = 0;
	std::optional<Channel> channel_; // for requests to the guest
	std::optional<std::uint64_t> reply_;
	// Members, so that their memory is reused. Two are needed, because a message may be sent
	// while a command is executed.
	Ring::Chain chain_;
	Ring::Chain message_chain_;
	std::vector<std::byte> buffer_;
};

} // namespace weft::vhost_user
