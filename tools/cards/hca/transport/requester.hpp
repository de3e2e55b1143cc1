// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the requester of RC, XRC and UC (IBA 9.7.3 to 9.7.6 and 9.8.3): sends requests,
 * handles acknowledges and responses, retries, and completes requests in order.
 */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cards/hca/transport/data_mover.hpp"
#include "cards/hca/transport/qp.hpp"
#include "core/wire/headers.hpp"

namespace weft::hca::transport
{

class Engine;

class Requester
{
public:
	explicit Requester(Engine &engine);

	/* Called when the QP has entered RTS. Starts with the QP's PSN. */
	void start(Qp &qp);
	/*
	 * Called when the QP enters RTS after the send queue had stopped (SQE). Continues after the
	 * last fetched request.
	 */
	void restart(Qp &qp);
	/* Sends within a budget. Returns true if there is more to send at once. */
	bool advance(Qp &qp, unsigned budget);
	/* Handles a response: an ACK, a NAK, or the response to a read or atomic. */
	void response(Qp &qp, fabric::Packet &packet);
	/* Called when the deadline of the QP has passed. */
	void timed_out(Qp &qp);
	/* Completes outstanding and posted requests as flushed. Returns true if there are more. */
	bool flush(Qp &qp, unsigned budget);
	/* Returns true if no started request is outstanding. */
	static bool idle(const Qp &qp) { return qp.send.work.empty(); }

	/*
	 * Adds a fetched request to the QP's work, and returns it. held() is the number of fetched
	 * requests of all QPs, which limits prefetching.
	 */
	SendWork &hold(Qp &qp, std::unique_ptr<SendWork> work);
	/* Removes the oldest request of the QP, which must exist, for completion. */
	std::unique_ptr<SendWork> release(Qp &qp);
	/* Drops all requests of a QP. */
	void release_all(Qp &qp);
	std::size_t held() const { return held_; }

	/*
	 * Limit of prefetched requests of a QP, and the number in all QPs beyond which a QP may
	 * hold only one.
	 */
	static constexpr std::size_t kHeldMax = 512;
	static constexpr std::size_t kHeldAllMax = 16384;

	/*
	 * Limit of the copied bytes in flight. Data of UC is copied, because the request completes
	 * before the data arrives. Beyond this limit, data is sent packet by packet, so that the
	 * credits limit the copies.
	 */
	static constexpr std::size_t kCopiedMax = 4 << 20;
	/* Returns the number of copied bytes in flight. */
	std::size_t copied() const { return copied_->load(std::memory_order_relaxed); }

private:
	/* Result of an attempt to send a part of a request. */
	enum class Step : std::uint8_t { sent, wait, failed };

	bool fetch(Qp &qp);
	Syndrome prepare(Qp &qp, SendWork &work);
	Step step(Qp &qp, SendWork &work);
	Step do_locally(Qp &qp, SendWork &work);
	Step send_data(Qp &qp, SendWork &work);
	Step send_read(Qp &qp, SendWork &work);
	Step send_atomic(Qp &qp, SendWork &work);
	bool may_start(Qp &qp, const SendWork &work) const;
	bool window_open(const Qp &qp, const SendWork &work) const;
	packet::Headers headers_for(const Qp &qp, ib::Operation operation, Psn psn) const;
	void transmit(Qp &qp, const packet::Headers &headers, fabric::Payload payload,
		      unsigned packets = 1);
	void sent_up_to(Qp &qp, Psn psn);

	bool acknowledge_before(Qp &qp, Psn psn);
	SendWork *answered_by(Qp &qp, Psn psn);
	void progress(Qp &qp);
	void complete_front(Qp &qp, std::uint32_t byte_count = 0,
			    std::span<const std::byte> data = {});
	static bool answer_in_completion(const Qp &qp, const SendRequest &request);
	void retire(Qp &qp);
	void go_back(Qp &qp, Psn psn);
	void lost(Qp &qp);
	void retry(Qp &qp);
	void read_response(Qp &qp, const packet::Headers &headers, const fabric::Packet &packet);
	void atomic_response(Qp &qp, const packet::Headers &headers);
	void negative(Qp &qp, const packet::Headers &headers);
	void fail_front(Qp &qp, Syndrome syndrome);
	void restart_timer(Qp &qp);

	bool may_fetch(const Qp &qp) const;
	void flush_front(Qp &qp);
	std::unique_ptr<SendWork> new_work();
	void recycle(std::unique_ptr<SendWork> work);
	OwnedBytes allocate_copy(std::size_t size);

	Engine &engine_;
	DataMover mover_;
	/* Unused request objects, kept to reuse their memory. */
	std::vector<std::unique_ptr<SendWork>> spare_;
	std::size_t held_ = 0;
	/* Copies may be freed on any thread, and may outlive the card. */
	const std::shared_ptr<std::atomic<std::size_t>> copied_ =
		std::make_shared<std::atomic<std::size_t>>(0);
};

} // namespace weft::hca::transport
