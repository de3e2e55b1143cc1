// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Received MADs by source, until they are handled. Each source gets an equal share of the work
 * (deficit round robin, as in RFC 8290), regardless of the number and cost of its MADs. A source
 * that had no work for a round is served before sources with a backlog.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "net/fabric/mad_packet.hpp"
#include "sm/query.hpp"

namespace weft::sm
{

/* A request that takes more than one step to answer. */
struct Job {
	fabric::AddressedMad request;
	Query query;
	/* Work done so far. */
	std::int64_t done = 0;
	/* One of the jobs that may keep an unfinished answer. */
	bool admitted = false;
};

class FairQueue
{
public:
	/* A port, or whatever else sends MADs: see MadClient. There are only so many of them. */
	using Source = std::uint32_t;

	/* MADs of one source that may wait, and of all together. */
	static constexpr std::size_t kSourceMax = 256;
	static constexpr std::size_t kTotalMax = 8192;
	/*
	 * This many requests of each source may wait even if other sources have filled the queue.
	 */
	static constexpr std::size_t kReserved = 4;
	/* Answers that are unfinished at a time, because each takes memory. Others wait. */
	static constexpr std::size_t kJobsMax = 32;
	/* Work after which an answer counts as one of these, if it is not finished. */
	static constexpr std::int64_t kSmallJob = 2048;

	struct Handlers {
		/* Handles a MAD, or returns the job of answering it. */
		std::function<std::optional<Job>(fabric::AddressedMad &&mad, Work &work)> begin;
		/* The job's answer is complete. */
		std::function<void(const Job &job, Work &work)> finish;
	};
	explicit FairQueue(Handlers handlers) : handlers_(std::move(handlers)) {}

	/*
	 * Any thread. @urgent: to be handled before the requests of this source that wait. False if
	 * there is no space: MADs are unreliable, and honest senders repeat.
	 */
	bool push(Source source, bool urgent, fabric::AddressedMad &&mad);

	/* From here on: on the loop only. Serve until the budget is used or nothing waits. */
	void serve(Work &work) { serve(work, false); }
	/* Serve only sources that have had nothing to do. */
	void serve_fresh(Work &work) { serve(work, true); }
	/* Returns true if there is something to serve. */
	bool waiting();

private:
	struct Flow {
		std::deque<fabric::AddressedMad> urgent;
		std::deque<fabric::AddressedMad> requests;
		std::optional<Job> job;
		/* Its job waits until another one ends. */
		bool parked = false;
		/* In one of the lists of those to be served. */
		bool listed = false;
		/*
		 * Work that it may do before others have their turn; below zero after a large item.
		 */
		std::int64_t credit = Work::kQuantum;

		bool runnable() const
		{
			return !urgent.empty() || (!parked && (job || !requests.empty()));
		}
		bool empty() const { return urgent.empty() && requests.empty() && !job; }
	};
	struct Arrived {
		Source source;
		bool urgent;
		fabric::AddressedMad mad;
	};

	void serve(Work &work, bool only_fresh);
	void sort_arrived();
	void run(Source source, Flow &flow, Work &work);
	void run_job(Source source, Flow &flow, Work &work);
	std::optional<Job> begin(Source source, std::deque<fabric::AddressedMad> &from, Work &work);
	void unpark();

	const Handlers handlers_;

	Mutex mutex_;
	/* MADs of each source that have not been begun, and all of them. */
	std::vector<Arrived> arrived_ WEFT_GUARDED_BY(mutex_);
	std::unordered_map<Source, std::size_t> counts_ WEFT_GUARDED_BY(mutex_);
	std::size_t total_ WEFT_GUARDED_BY(mutex_) = 0;

	/* On the loop. */
	std::vector<Arrived> sorting_;
	std::unordered_map<Source, Flow> flows_;
	std::deque<Source> fresh_;
	std::deque<Source> backlogged_;
	std::deque<Source> parked_;
	std::size_t jobs_ = 0;
};

} // namespace weft::sm
