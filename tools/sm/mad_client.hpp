// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sends the subnet manager's requests through a MadPort, and receives the responses, on one event
 * loop. Several requests may be outstanding at the same time, and requests are repeated if they are
 * lost. Incoming requests are queued by sender (fair_queue.hpp), separately from responses to the
 * manager's own requests, and a bounded amount of work is done at a time.
 */
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "base/loop.hpp"
#include "net/fabric/mad_port.hpp"
#include "sm/config.hpp"
#include "sm/fair_queue.hpp"
#include "sm/source_log.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/* A directed-route request and, after perform(), its response. */
struct SmpRequest {
	SmpRequest() = default;
	SmpRequest(const Path &to, ib::MadMethod m, std::uint16_t attr, std::uint32_t mod = 0)
	    : path(to), method(m), attribute(attr), modifier(mod)
	{
	}
	template<class Attribute>
	SmpRequest &with(const Attribute &value)
	{
		static_assert(sizeof(Attribute) <= ib::smp_data_bytes);
		__builtin_memcpy(data, &value, sizeof(value));
		return *this;
	}

	Path path;
	ib::MadMethod method = ib::MadMethod::get;
	std::uint16_t attribute = 0;
	std::uint32_t modifier = 0;
	std::uint64_t mkey = 0;
	std::uint8_t data[ib::smp_data_bytes] = {};

	/* False if no response arrived. Otherwise see `status`. */
	bool answered = false;
	std::uint16_t status = 0;

	bool ok() const { return answered && status == 0; }
	template<class Attribute>
	const Attribute &answer() const
	{
		static_assert(sizeof(Attribute) <= ib::smp_data_bytes && alignof(Attribute) == 1);
		return *reinterpret_cast<const Attribute *>(data);
	}
};

class MadClient
{
public:
	struct Handlers {
		/* Handlers of MADs that are not responses to own requests. */
		FairQueue::Handlers requests;
		/*
		 * Handles requests of other nodes, including requests(), until the budget is used
		 * up or there is nothing to do. Called within perform(), so that other nodes do not
		 * wait for the end of a sweep.
		 */
		std::function<void(Work &work)> serve;
		/* Returns true if serve() has something to do. */
		std::function<bool()> busy;
		/* Called when a MAD has arrived, or wake() was called. */
		std::function<void()> arrived;
	};
	/* All handlers run on the loop. */
	MadClient(Loop &loop, fabric::Port &port, const Config &config, Handlers handlers);

	fabric::MadPort &mads() { return *mads_; }
	/*
	 * Stops all callbacks. Must be the last call, on the loop, and not within another function.
	 */
	void close();

	Clock::time_point now() const { return loop_.now(); }

	/*
	 * Sends the requests, and returns when each was answered or has timed out. Other tasks of
	 * the loop's reactor run meanwhile.
	 */
	void perform(std::vector<SmpRequest> &batch);
	void perform(SmpRequest &request);

	/* Handles the responses that have arrived, and returns their number. */
	std::size_t take_answers();
	/* Log lines about MADs from ports. */
	SourceLog &log() { return log_; }
	/* Requests from other nodes. */
	FairQueue &requests() { return requests_; }
	/* Thread-safe. */
	void wake() { arrived_->signal(); }
	/* Thread-safe. Makes perform() return early from now on. */
	void stop();
	bool stopped() const { return stopped_.load(std::memory_order_acquire); }

	/* Sends a MAD by LID to a QP1 (or QP0 for SMPs) without waiting. */
	void send(const fabric::MadAddress &address, const ib::Mad &mad)
	{
		mads_->send(address, mad);
	}

	/*
	 * Return the numbers of SMPs that were sent since the start, and of those that timed out.
	 */
	std::uint64_t smps() const { return smps_; }
	std::uint64_t timeouts() const { return timeouts_; }

private:
	struct Pending {
		std::uint64_t tid;
		SmpRequest *request;
		unsigned tries_left;
		Clock::time_point due;
	};

	void received(fabric::AddressedMad &&mad);
	FairQueue::Source source_of(const fabric::AddressedMad &mad) const;
	/* Thread-safe. Returns true if a request with that TID may be outstanding. */
	bool is_awaited(std::uint64_t tid) const;
	void transmit(const Pending &pending);
	void take_answer(const fabric::AddressedMad &mad);
	void expire();
	void wait_for_answer();
	void serve_others(std::size_t answered);

	Loop &loop_;
	const Config &config_;
	const Handlers handlers_;
	FairQueue requests_;
	SourceLog log_;
	Mutex mutex_;
	std::vector<fabric::AddressedMad> answers_ WEFT_GUARDED_BY(mutex_);
	/* The TIDs of the current batch: from the first one up to, but not including, the end. */
	std::atomic<std::uint64_t> first_tid_;
	std::atomic<std::uint64_t> end_tid_;
	std::optional<Wakeup> arrived_; /* until close() */
	std::atomic<bool> stopped_{false};

	/* Used on the loop only. */
	/* Has at most as many entries as the window. */
	std::vector<Pending> pending_;
	/* Buffer of take_answers(), a member so that its memory is reused. */
	std::vector<fabric::AddressedMad> taken_;
	std::uint64_t smps_ = 0;
	std::uint64_t timeouts_ = 0;
	/* Work that other requesters may cause during a sweep. Negative after an expensive item. */
	std::int64_t credit_ = 0;
	std::size_t answered_since_turn_ = 0;

	/* Declared last, because its callbacks use the members above. */
	std::optional<fabric::MadPort> mads_;
};

} // namespace weft::sm
