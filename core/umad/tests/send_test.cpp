// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the MADs that a program writes, and the status of each send.
#include "fixture.hpp"

using namespace umad_fixture;

namespace
{

/*
 * Invalid sends are refused, or returned if an answer was expected; sends that are pending when an
 * agent is unregistered are not returned.
 */
void umad_failed_send_can_be_read_back_only_if_a_response_was_expected(Test &test)
{
	constexpr u32 long_time = 600'000;
	Bench bench;
	ASSERT_TRUE(bench.ok());
	Program program(bench);
	ASSERT_TRUE(program.ok());
	const u32 agent = program.add();
	Record record = question(agent, 2, 1, long_time);
	record.header.pkey_index =
		static_cast<u16>(bench.near.device()->port_immutable[1].pkey_tbl_len);
	EXPECT_EQ(program.write(record), -EINVAL);

	for (u32 timeout_ms : {long_time, 0u}) {
		soft_fail(bench.near.device(), SOFT_POST_SEND, 1, -EINVAL);
		EXPECT_EQ(program.ask(agent, unused_lid, 2, timeout_ms), 0);
		wait_ms(test, bench, 100);
		EXPECT_EQ(program.read(record), timeout_ms ? unanswered : long{-EAGAIN});
	}
	EXPECT_EQ(program.ask(agent, unused_lid, 3, long_time), 0);
	EXPECT_EQ(program.remove(agent), 0);
	EXPECT_EQ(program.read(record), -EAGAIN);
}

} // namespace

SOFT_SUITES(umad_send,
	    KUNIT_CASE(umad_failed_send_can_be_read_back_only_if_a_response_was_expected));
