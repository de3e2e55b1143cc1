// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface by which the transport engine passes completions and events to a card. Each
// card implements this interface, because each card has its own format of queue entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cards/hca/requests.hpp"
#include "cards/hca/types.hpp"

namespace weft::hca
{

struct QueuePair;

// ChecksumStatus - the kind of IP packet in a datagram, and which of its checksums are correct. All
// are false if the datagram is not IP over InfiniBand, or if its IP header checksum is wrong.
struct ChecksumStatus {
	bool ipv4 = false;
	bool ipv4_fragment = false;
	bool ipv4_options = false;
	bool ipv6 = false;
	bool ip_checksum_ok = false;
	// True if the packet has a checksum of this protocol and it is correct. At most one is
	// true.
	bool tcp = false;
	bool udp = false;

	bool l4_checksum_ok() const { return tcp || udp; }
	bool operator==(const ChecksumStatus &) const = default;
};

// Maximum number of data bytes in a completion, which then replaces the memory of the request
// (QueuePairAttributes::inline_receive).
constexpr std::size_t kCompletionDataMax = 64;

// SendDone - a completed send request. byte_count is valid only for reads and atomics.
struct SendDone {
	std::uint16_t index = 0;
	SendOpcode opcode = SendOpcode::nop;
	std::uint32_t byte_count = 0;
	// The data of a read or atomic, if it was not written to memory. Valid during the call.
	std::span<const std::byte> data{};
};

// ReceiveDone - everything that a completion reports about a received message.
struct ReceiveDone {
	std::uint16_t index = 0;
	std::uint32_t srqn = 0; // of an XRC receive, otherwise 0
	ReceiveOpcode opcode = ReceiveOpcode::send;
	// Immediate data, the invalidated key, or the P_Key index of a datagram without immediate
	// data.
	std::uint32_t immediate = 0;
	std::uint32_t byte_count = 0;
	std::uint32_t source_qpn = 0;
	std::uint16_t source_lid = 0;
	std::uint16_t pkey = 0; // P_Key of a datagram, as received
	std::uint8_t sl = 0;
	std::uint8_t path_bits = 0;
	bool grh = false;
	bool solicited = false;
	ChecksumStatus checksums;
	Steering steering; // set only for a steered queue pair
	// The message, if it was not written to memory. Valid during the call.
	std::span<const std::byte> data{};
};

// Failure - a request that has failed or was flushed.
struct Failure {
	std::uint16_t index = 0;
	std::uint32_t srqn = 0; // of an XRC receive, otherwise 0
	Syndrome syndrome = Syndrome::none;
	bool is_send = false;
};

// All data of a request is in guest memory before its completion is written. Functions return false
// if the queue does not exist or is in the error state.
class CompletionSink
{
public:
	virtual ~CompletionSink() = default;

	[[nodiscard]] virtual bool sent(const QueuePair &qp, const SendDone &done) = 0;
	[[nodiscard]] virtual bool received(const QueuePair &qp, std::uint32_t cqn,
					    const ReceiveDone &done) = 0;
	[[nodiscard]] virtual bool failed(const QueuePair &qp, std::uint32_t cqn,
					  const Failure &failure) = 0;
	// Raises an asynchronous event of the queue pair. Returns false if the guest's event queue
	// has no space now. Transport::events_wanted() is called when it has space again.
	[[nodiscard]] virtual bool raise(Event event, std::uint32_t qpn) = 0;
};

} // namespace weft::hca
