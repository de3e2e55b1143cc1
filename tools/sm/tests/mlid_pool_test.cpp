// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the allocation of multicast LIDs.
#include "sm/mlid_pool.hpp"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace weft::sm
{
namespace
{

// The pool is compared with a linear search, while random MLIDs are allocated and freed.
TEST(MlidPool, AllocatesTheLowestFreeMlid)
{
	std::minstd_rand draw;
	std::set<ib::Lid> used;
	MlidPool pool;
	auto lowest = [&] {
		ib::Lid at = ib::lid_multicast_first;
		while (used.contains(at))
			at++;
		return at;
	};
	for (int i = 0; i < 4000; i++) {
		ASSERT_EQ(lowest(), pool.lowest()) << i;
		if (used.empty() || draw() % 5 < 3) {
			used.insert(pool.lowest());
			pool.take_lowest();
		} else {
			auto which =
				std::next(used.begin(), static_cast<int>(draw() % used.size()));
			pool.release(*which);
			used.erase(which);
		}
	}
	EXPECT_GT(used.size(), 600u);
}

// The last multicast LID is 0xfffe.
TEST(MlidPool, AllocationFailsAfterTheLastMlid)
{
	MlidPool pool;
	for (unsigned i = ib::lid_multicast_first; i <= ib::lid_multicast_last; i++) {
		ASSERT_TRUE(ib::lid_is_multicast(pool.lowest()));
		pool.take_lowest();
	}
	EXPECT_FALSE(ib::lid_is_multicast(pool.lowest()));
	pool.release(0xcafe);
	EXPECT_EQ(0xcafe, pool.lowest());
}

} // namespace
} // namespace weft::sm
