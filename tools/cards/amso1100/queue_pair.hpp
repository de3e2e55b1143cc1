// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a queue pair: passes the driver's work requests to an iWARP stream, and performs the
// stream's accesses to the guest's memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>

#include <hw/amso1100/events.hpp>

#include "cards/amso1100/completion_queue.hpp"
#include "cards/amso1100/connections.hpp"
#include "cards/amso1100/event_messages.hpp"
#include "cards/amso1100/memory_regions.hpp"
#include "cards/amso1100/queue_window.hpp"
#include "cards/amso1100/work_request.hpp"
#include "net/tcp/stack.hpp"

namespace weft::amso1100
{

class QueuePair final : public SilentHost
{
public:
	static constexpr std::size_t kMost = 1024;
	static constexpr unsigned kMostDepth = 511 + 1;
	static constexpr std::uint32_t kMostReads = 128; // ORD, IRD
	// Index, in hints, of the send queue of QP 0; each receive queue follows its send queue.
	static constexpr std::uint32_t kFirstIndex = 2048;
	static_assert(CompletionQueue::kFirstIndex + CompletionQueue::kMost <= kFirstIndex &&
		      kFirstIndex + 2 * kMost <= hw::amso1100::most_queue_index);

	// The parts of its card that a queue pair uses.
	struct Card {
		MessageQueues &queues;
		MemoryRegions &regions;
		Connections &connections;
		std::uint64_t user_context; // the user context of RNIC_OPEN
		bool privileged;
	};
	struct Config {
		std::uint64_t user_context;
		CompletionQueue &sq_cq, &rq_cq;
		WorkRing sq, rq;
		unsigned send_sges, receive_sges, write_sges;
		std::uint32_t flags, pd, ord, ird;
	};

	QueuePair(std::uint32_t handle, std::uint16_t place, const Card &card,
		  const Config &config);
	// Resets the connection, if there is one, without an event.
	~QueuePair() override;

	const std::uint32_t handle;
	std::uint32_t sq_index() const { return kFirstIndex + 2u * place_; }
	std::uint32_t rq_index() const { return sq_index() + 1; }
	const Config &config() const { return config_; }
	hw::amso1100::QpState state() const { return state_; }
	// Returns the last event that refers to this queue pair.
	std::uint64_t last_event() const { return last_event_; }

	void set_reads(std::uint32_t ord, std::uint32_t ird);
	hw::amso1100::Status modify(hw::amso1100::QpState next);
	// Connects. An event reports the result.
	void connect(tcp::Stack &stack, const tcp::Endpoint &remote, iwarp::Bytes private_data);
	void refuse_to_connect(hw::amso1100::Status why);
	// Accepts a connection request. The state must be Idle.
	void accept(iwarp::Carrier &carrier, const iwarp::Bytes &private_data);
	// Prepares for destruction at the host's request: no requests complete any more. Returns
	// the last event that refers to this queue pair.
	std::uint64_t leave();
	// Must be called if there may be new requests in the queues.
	void serve();

private:
	// ID in the stream of the message that announces that this side is ready. It is not a
	// request of the host.
	static constexpr std::uint64_t kReady = UINT64_MAX;

	// A request that the card has taken and not completed.
	struct Outstanding {
		SendWork work;
		bool done = false;
	};

	// iwarp::Host.
	void requested(const iwarp::StartFrame &) override {}
	void established(const iwarp::StartFrame &reply) override;
	iwarp::Access place(iwarp::Stag stag, std::uint64_t offset, iwarp::View payload) override;
	iwarp::Access fetch(iwarp::Stag stag, std::uint64_t offset,
			    std::span<std::uint8_t> into) override;
	iwarp::Access invalidate(iwarp::Stag stag) override;
	iwarp::Access place_response(iwarp::Stag stag, std::uint64_t offset,
				     iwarp::View payload) override;
	std::optional<std::uint64_t> next_receive() override;
	bool place_message(std::uint64_t offset, iwarp::View payload) override;
	void received(std::uint64_t length, bool solicited,
		      std::optional<iwarp::Stag> invalidated) override;
	void completed(std::uint64_t id) override;
	void ended(const iwarp::End &end) override;

	void enter(hw::amso1100::QpState state);
	void report(hw::amso1100::EventId id);
	void report_connect(hw::amso1100::Status result, iwarp::View private_data = {});
	hw::amso1100::Status connect_failure(const iwarp::End &end) const;
	void finish(const iwarp::End &end);
	std::optional<hw::amso1100::EventId> protocol_event(const iwarp::Error &error) const;
	void abandon();
	void die(hw::amso1100::EventId why);
	void drop_connection();

	void take_requests();
	void submit(std::uint64_t sequence);
	hw::amso1100::Status examine(const SendWork &work) const;
	bool gather(std::uint64_t sequence, std::uint32_t offset, std::span<std::uint8_t> into);
	void retire();
	void flush();
	void discard();
	bool complete_send(const SendWork &work, hw::amso1100::Status result);
	bool complete_receive(const ReceiveWork &work, hw::amso1100::Status result,
			      std::uint32_t bytes = 0, bool solicited = false,
			      std::uint32_t invalidated = 0);
	CompletionQueue::Entry entry_of(const Posted &posted, hw::amso1100::Status result) const;
	bool add(CompletionQueue &cq, const CompletionQueue::Entry &entry, bool solicited);

	// Returns true while a request is neither completed nor flushed.
	bool is_outstanding(std::uint64_t sequence) const
	{
		return sequence - first_ < outstanding_.size();
	}
	Outstanding &outstanding(std::uint64_t sequence)
	{
		return outstanding_[static_cast<std::size_t>(sequence - first_)];
	}
	MemoryRegions::Who local() const { return {config_.pd, zero_stag_}; }
	MemoryRegions::Who remote() const { return {config_.pd}; }
	bool connected() const
	{
		return state_ == hw::amso1100::QpState::rts ||
		       state_ == hw::amso1100::QpState::closing;
	}

	const std::uint16_t place_;
	const Card card_;
	Config config_;
	const bool zero_stag_;
	hw::amso1100::QpState state_ = hw::amso1100::QpState::idle;
	iwarp::Carrier *carrier_ = nullptr;
	// Requests that were taken from the queue, in order.
	std::deque<Outstanding> outstanding_;
	std::uint64_t first_ = 0; // sequence number of the first one
	// sequence number of the first request that has failed
	std::optional<std::uint64_t> failed_;
	// number of requests that completed without an entry since the last entry
	std::uint32_t silent_ = 0;
	std::optional<ReceiveWork> receiving_;
	// The event that was reported to the host for the peer's last refused request.
	std::optional<hw::amso1100::EventId> refused_;
	std::uint64_t last_event_ = 0;
};

} // namespace weft::amso1100
