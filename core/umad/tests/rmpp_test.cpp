// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that programs that do RMPP themselves receive each segment of a message.
#include "fixture.hpp"

using namespace umad_fixture;

namespace
{

/*
 * Includes an agent that registered without RMPP: it gets every segment, and the first one counts
 * as the response.
 */
void umad_agent_without_rmpp_gets_all_segments(Test &test)
{
	constexpr u8 get_multi = 0x14;
	constexpr u32 segments = 20, window = 8;
	Bench bench;
	ASSERT_TRUE(bench.ok());
	mad_fixture::Agent server(bench.far);
	server.answering = true;
	server.answer_bytes = segments * IB_MGMT_VENDOR_DATA;
	ASSERT_EQ(server.open(vendor_rmpp_class, 1ul << get_multi, 1, IB_MGMT_RMPP_VERSION), 0);
	Program program(bench);
	ASSERT_TRUE(program.ok());
	ASSERT_EQ(program.ask(program.add(), 2, 1, 60'000, vendor_rmpp_class, get_multi), 0);
	Record record;
	for (u32 segment = 1; segment <= segments; segment++) {
		ASSERT_TRUE(eventually([&] { return program.read(record) == sizeof(record); }));
		ASSERT_EQ(record.header.status, 0u);
		ASSERT_EQ(record.mad.rmpp_hdr.seg_num, segment);
		record.header.timeout_ms = record.header.retries = 0;
		record.mad.mad_hdr.method = get_multi;
		record.mad.rmpp_hdr.rmpp_type = IB_MGMT_RMPP_TYPE_ACK;
		record.mad.rmpp_hdr.paylen_newwin = segment + window;
		ASSERT_EQ(program.write(record), 0);
	}
	EXPECT_TRUE(eventually([&] { return server.answers_sent.load_acquire() == 1; }));
	EXPECT_EQ(program.read(record), -EAGAIN);
}

} // namespace

SOFT_SUITES(umad_rmpp, KUNIT_CASE(umad_agent_without_rmpp_gets_all_segments));
