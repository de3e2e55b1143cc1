// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that sources of MADs get equal shares of the work, regardless of the type and number of
// their requests.
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "sm/fair_queue.hpp"

namespace weft::sm
{
namespace
{

// Each MAD is a job. Its cost is in the transaction ID, and its source is the SLID.
struct FairQueueTest : ::testing::Test {
	FairQueue queue{
		{.begin = [this](fabric::AddressedMad &&mad,
				 Work &work) { return begin(std::move(mad), work); },
		 .finish = [this](const Job &job,
				  Work &) { finished.push_back(job.request.address.slid); }}};
	std::vector<ib::Lid> finished;
	std::map<ib::Lid, std::int64_t> done;
	std::vector<ib::Lid> urgent;

	std::optional<Job> begin(fabric::AddressedMad &&mad, Work &)
	{
		const ib::Lid source = mad.address.slid;
		auto left = static_cast<std::int64_t>(mad.mad.header.tid.value());
		if (left == 0) {
			urgent.push_back(source);
			return std::nullopt;
		}
		return Job{std::move(mad), Query([this, source, left](RecordSet &, Work &) mutable {
				   done[source]++;
				   return --left == 0 ? Query::Step::done : Query::Step::more;
			   })};
	}
	bool push(ib::Lid source, std::int64_t units, bool is_urgent = false)
	{
		fabric::AddressedMad mad{};
		mad.address.slid = source;
		mad.mad.header.tid = static_cast<std::uint64_t>(units);
		return queue.push(source, is_urgent, std::move(mad));
	}
	void serve(std::int64_t budget)
	{
		Work work(budget);
		queue.serve(work);
	}
	void serve_all()
	{
		while (queue.waiting())
			serve(Work::kSlice);
	}
};

TEST_F(FairQueueTest, SourcesGetEqualSharesOfTheProcessingTime)
{
	for (int i = 0; i < 100; i++)
		ASSERT_TRUE(push(1, 100'000));
	ASSERT_TRUE(push(2, 100'000));
	for (int i = 0; i < 100; i++)
		ASSERT_TRUE(push(3, 50));
	serve(4000);
	for (ib::Lid source : {1, 2})
		EXPECT_NEAR(4000 / 3, static_cast<double>(done[source]), 2.0 * Work::kQuantum)
			<< source;
	// The MADs of this source are cheap, but each MAD has a minimum cost.
	EXPECT_GT(done[3], 4000 / 5);
}

TEST_F(FairQueueTest, NewSourceIsServedBeforeBackloggedSources)
{
	ASSERT_TRUE(push(1, 100'000));
	serve(1000);
	ASSERT_TRUE(push(2, 50));
	serve(Work::kQuantum);
	EXPECT_EQ(std::vector<ib::Lid>{2}, finished);
}

TEST_F(FairQueueTest, MadsQueuedAsUrgentOvertakeRequestsOfTheSameSource)
{
	ASSERT_TRUE(push(1, 100'000));
	serve(1000);
	ASSERT_TRUE(push(1, 0, true));
	serve(2 * Work::kQuantum);
	EXPECT_EQ(std::vector<ib::Lid>{1}, urgent);
	EXPECT_TRUE(finished.empty());
}

TEST_F(FairQueueTest, EachSourceLidHasReservedSpaceWhenTheQueueIsFull)
{
	std::size_t kept = 0;
	for (unsigned i = 0; i < 10'000; i++)
		kept += push(1, 10);
	EXPECT_EQ(FairQueue::kSourceMax, kept);
	for (ib::Lid source = 2; kept < FairQueue::kTotalMax; source++)
		for (unsigned i = 0; i < FairQueue::kSourceMax; i++)
			kept += push(source, 10);
	EXPECT_EQ(FairQueue::kTotalMax, kept);
	for (unsigned i = 0; i < 2 * FairQueue::kReserved; i++)
		EXPECT_EQ(i < FairQueue::kReserved, push(1000, 10));
	serve_all();
	EXPECT_EQ(FairQueue::kTotalMax + FairQueue::kReserved, finished.size());
	EXPECT_TRUE(push(1, 10));
}

TEST_F(FairQueueTest, NumberOfRequestsInProgressIsLimitedAndAllRequestsComplete)
{
	constexpr ib::Lid sources = 2 * FairQueue::kJobsMax;
	for (ib::Lid source = 1; source <= sources; source++)
		ASSERT_TRUE(push(source, 50'000));
	serve(std::int64_t{sources} * FairQueue::kSmallJob * 4);
	std::size_t large = 0;
	for (const auto &[source, units] : done)
		large += units > FairQueue::kSmallJob + Work::kQuantum;
	EXPECT_EQ(FairQueue::kJobsMax, large);
	// The waiting sources can still send acknowledgements.
	for (ib::Lid source = 1; source <= sources; source++)
		ASSERT_TRUE(push(source, 0, true));
	serve(Work::kSlice * 4);
	EXPECT_EQ(sources, urgent.size());
	serve_all();
	EXPECT_EQ(sources, finished.size());
}

} // namespace
} // namespace weft::sm
