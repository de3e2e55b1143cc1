// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests arithmetic with packet sequence numbers, and the decoding of the ACK timeout and the RNR
// NAK timer.
#include <gtest/gtest.h>

#include "cards/hca/transport/psn.hpp"
#include "cards/hca/transport/timing.hpp"

namespace weft::hca::transport
{

/* Sequence numbers are 24 bits wide and wrap. */
TEST(Psn, PsnWrapsAroundAt24Bits)
{
	EXPECT_EQ((Psn(0xffffff) + 1).value(), 0u);
	EXPECT_EQ((Psn(0) - 1).value(), 0xffffffu);
	EXPECT_EQ(Psn(0x1000005).value(), 5u);
}

/* A PSN that is less than half the circle behind another one is older. */
TEST(Psn, PsnComparisonIsModulo24Bits)
{
	EXPECT_TRUE(Psn(0xfffff0).before(Psn(3)));
	EXPECT_FALSE(Psn(3).before(Psn(0xfffff0)));
	EXPECT_EQ(Psn(3).distance_from(Psn(0xffffff)), 4);
	EXPECT_EQ(Psn(0xffffff).distance_from(Psn(3)), -4);
	EXPECT_EQ(Psn(0x7fffff).distance_from(Psn(0)), 0x7fffff);
	EXPECT_LT(Psn(0x800000).distance_from(Psn(0)), 0);
	EXPECT_FALSE(Psn(7).before(Psn(7)));
}

/* The ACK timeout doubles with each step, and 0 is none (IBA 9.7.6.1.3). */
TEST(Timing, LocalAckTimeoutIs4096NanosecondsTimesTwoToTheCode)
{
	EXPECT_FALSE(ack_timeout(0));
	EXPECT_EQ(*ack_timeout(14), std::chrono::nanoseconds(4096LL << 14));
	EXPECT_EQ(*ack_timeout(31), std::chrono::nanoseconds(4096LL << 31));
	EXPECT_FALSE(ack_timeout(32)) << "five bits count";
}

/* The RNR timer follows IBA table 45: values ascend, except that code 0 is the longest. */
TEST(Timing, RnrDelayIncreasesWithTheTimerCodeExceptThatCodeZeroIsTheLongest)
{
	for (unsigned code = 2; code < 32; code++)
		EXPECT_GT(rnr_delay(code), rnr_delay(code - 1)) << code;
	EXPECT_GT(rnr_delay(0), rnr_delay(31));
	EXPECT_EQ(rnr_delay(12), std::chrono::microseconds(640));
}

} // namespace weft::hca::transport
