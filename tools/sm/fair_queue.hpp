// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Queues received MADs by source. Each source gets an equal share of the work (deficit round robin,
 * as in RFC 8290), regardless of the number and cost of its MADs. A source that had no work for a
 * round is served before sources with a backlog.
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
	/* Amount of work done so far. */
	std::int64_t done = 0;
	/* True if the job may keep partial results. */
	bool admitted = false;
};

class FairQueue
{
public:
	/* A port, or another sender of MADs; see MadClient. The number of sources is limited. */
	using Source = std::uint32_t;

	/* Maximum number of waiting MADs of one source, and of all sources. */
	static constexpr std::size_t kSourceMax = 256;
	static constexpr std::size_t kTotalMax = 8192;
	/*
	 * Number of requests of each source that may wait even if other sources have filled the
	 * queue.
	 */
	static constexpr std::size_t kReserved = 4;
	/* Maximum number of unfinished responses, because each uses memory. Other jobs wait. */
	static constexpr std::size_t kJobsMax = 32;
	/* Amount of work after which an unfinished response counts towards this limit. */
	static constexpr std::int64_t kSmallJob = 2048;

	struct Handlers {
		/* Handles a MAD, or returns a job that creates the response. */
		std::function<std::optional<Job>(fabric::AddressedMad &&mad, Work &work)> begin;
		/* Called when the response of the job is complete. */
		std::function<void(const Job &job, Work &work)> finish;
	};
	explicit FairQueue(Handlers handlers) : handlers_(std::move(handlers)) {}

	/*
	 * Thread-safe. An @urgent MAD is handled before waiting requests of the same source.
	 * Returns false if there is no space; MADs are unreliable, so well-behaved senders retry.
	 */
	bool push(Source source, bool urgent, fabric::AddressedMad &&mad);

	/*
	 * The following functions are called on the loop only. Serves sources until the budget is
	 * used up or no MAD waits.
	 */
	void serve(Work &work) { serve(work, false); }
	/* Serves only sources that had no work before. */
	void serve_fresh(Work &work) { serve(work, true); }
	/* Returns true if a MAD waits. */
	bool waiting();

private:
	struct Flow {
		std::deque<fabric::AddressedMad> urgent;
		std::deque<fabric::AddressedMad> requests;
		std::optional<Job> job;
		/* The job waits until another one ends. */
		bool parked = false;
		/* True if the source is in a list of sources to be served. */
		bool listed = false;
		/*
		 * Work that may be done before other sources are served. Negative after an
		 * expensive item.
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
	/* MADs that are not sorted by source yet, and the numbers of waiting MADs. */
	std::vector<Arrived> arrived_ WEFT_GUARDED_BY(mutex_);
	std::unordered_map<Source, std::size_t> counts_ WEFT_GUARDED_BY(mutex_);
	std::size_t total_ WEFT_GUARDED_BY(mutex_) = 0;

	/* Used on the loop. */
	std::vector<Arrived> sorting_;
	std::unordered_map<Source, Flow> flows_;
	std::deque<Source> fresh_;
	std::deque<Source> backlogged_;
	std::deque<Source> parked_;
	std::size_t jobs_ = 0;
};

} // namespace weft::sm
