// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/fair_queue.hpp"

#include <algorithm>

namespace weft::sm
{

bool FairQueue::push(Source source, bool urgent, fabric::AddressedMad &&mad)
{
	const MutexLock lock(mutex_);
	std::size_t &count = counts_[source];
	if (count >= kReserved && (count >= kSourceMax || total_ >= kTotalMax))
		return false;
	count++;
	total_++;
	arrived_.push_back({source, urgent, std::move(mad)});
	return true;
}

void FairQueue::sort_arrived()
{
	{
		const MutexLock lock(mutex_);
		sorting_.swap(arrived_);
	}
	for (Arrived &each : sorting_) {
		Flow &flow = flows_[each.source];
		(each.urgent ? flow.urgent : flow.requests).push_back(std::move(each.mad));
		if (!std::exchange(flow.listed, true))
			fresh_.push_back(each.source);
	}
	sorting_.clear();
}

bool FairQueue::waiting()
{
	sort_arrived();
	const auto runnable = [this](Source source) { return flows_.at(source).runnable(); };
	return std::ranges::any_of(fresh_, runnable) || std::ranges::any_of(backlogged_, runnable);
}

void FairQueue::serve(Work &work, bool only_fresh)
{
	for (;;) {
		sort_arrived();
		if (fresh_.empty() && (only_fresh || backlogged_.empty()))
			return;
		std::deque<Source> &list = fresh_.empty() ? backlogged_ : fresh_;
		const Source source = list.front();
		Flow &flow = flows_.at(source);
		if (!flow.runnable()) {
			list.pop_front();
			/*
			 * Serve only one round of the sources without a backlog, so that a source
			 * has no advantage from sending one MAD at a time.
			 */
			if (&list == &fresh_) {
				backlogged_.push_back(source);
				continue;
			}
			flow.listed = false;
			if (flow.empty())
				flows_.erase(source);
			continue;
		}
		if (!work.left())
			return;
		if (flow.credit <= 0) {
			flow.credit += Work::kQuantum;
			list.pop_front();
			backlogged_.push_back(source);
			continue;
		}
		Work part(std::min(flow.credit, work.remaining()));
		run(source, flow, part);
		flow.credit -= part.done();
		work.charge(part.done());
	}
}

std::optional<Job> FairQueue::begin(Source source, std::deque<fabric::AddressedMad> &from,
				    Work &work)
{
	fabric::AddressedMad mad = std::move(from.front());
	from.pop_front();
	{
		const MutexLock lock(mutex_);
		total_--;
		const auto count = counts_.find(source);
		if (--count->second == 0)
			counts_.erase(count);
	}
	work.charge(cost::kMadReceived);
	return handlers_.begin(std::move(mad), work);
}

void FairQueue::run(Source source, Flow &flow, Work &work)
{
	while (work.left() && flow.runnable()) {
		if (!flow.urgent.empty())
			begin(source, flow.urgent, work);
		else if (flow.job)
			run_job(source, flow, work);
		else
			flow.job = begin(source, flow.requests, work);
	}
}

void FairQueue::run_job(Source source, Flow &flow, Work &work)
{
	Job &job = *flow.job;
	const std::int64_t before = work.done();
	const bool complete = job.query.run(work);
	job.done += work.done() - before;
	if (complete) {
		handlers_.finish(job, work);
		const bool admitted = job.admitted;
		flow.job.reset();
		if (admitted)
			unpark();
		return;
	}
	if (job.admitted || job.done < kSmallJob)
		return;
	if (jobs_ < kJobsMax) {
		job.admitted = true;
		jobs_++;
		return;
	}
	/* The job keeps its partial results, which use little memory at this point. */
	flow.parked = true;
	parked_.push_back(source);
}

/* When an admitted job has ended, admits the one that has waited longest. */
void FairQueue::unpark()
{
	if (parked_.empty()) {
		jobs_--;
		return;
	}
	const Source source = parked_.front();
	parked_.pop_front();
	Flow &flow = flows_.at(source);
	flow.parked = false;
	flow.job->admitted = true;
	if (!std::exchange(flow.listed, true))
		backlogged_.push_back(source);
}

} // namespace weft::sm
