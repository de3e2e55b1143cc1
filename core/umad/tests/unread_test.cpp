// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the MADs that a program has not read yet, and the limit on their number.
#include "fixture.hpp"

using namespace umad_fixture;
using umad::mads_max;

namespace
{

constexpr unsigned long get = 1ul << IB_MGMT_METHOD_GET, send = 1ul << IB_MGMT_METHOD_SEND;
constexpr u8 mark_class = 0x0a;

/* Sends unsolicited MADs from one node to the other. */
struct Flood {
	mad_fixture::Agent from, mark;
	kern::Owned<mad_fixture::Raw> raw;

	explicit Flood(Bench &bench) : from(bench.far), mark(bench.near)
	{
		if (from.open() || mark.open(mark_class, send))
			return;
		if (auto made = kern::make<mad_fixture::Raw>(kern::Gfp::kernel, from, u16{1}))
			raw = made.take();
	}
	bool one(u8 mgmt_class)
	{
		ib_mad_hdr &header = raw->mad().mad_hdr;
		header.base_version = IB_MGMT_BASE_VERSION;
		header.mgmt_class = mgmt_class;
		header.class_version = 1;
		header.method = IB_MGMT_METHOD_SEND;
		return raw->send(IB_MGMT_MAD_SIZE);
	}
	/* When this returns, all MADs have been delivered to their agents. */
	bool send_all(unsigned int count)
	{
		/* Below the length of the receive queue. */
		constexpr unsigned int at_once = 256;
		unsigned int marks = 0;
		for (unsigned int sent = 1; sent <= count; sent++) {
			if (!one(vendor_class))
				return false;
			if (sent % at_once && sent != count)
				continue;
			marks++;
			if (!one(mark_class) ||
			    !eventually([&] { return mark.received.load_acquire() == marks; }))
				return false;
		}
		return true;
	}
};

/*
 * Unsolicited messages beyond the limit are dropped. Outcomes of sends are always reported, be they
 * an answer or a time-out: a program may wait for them without limit. An answer of many segments
 * that does not fit counts as none.
 */
void umad_reports_send_status_even_if_too_many_mads_are_unread(Test &test)
{
	constexpr u8 get_multi = 0x14;
	Bench bench;
	ASSERT_TRUE(bench.ok());
	mad_fixture::Agent brief(bench.far), verbose(bench.far);
	brief.answering = verbose.answering = true;
	verbose.answer_bytes = 5000;
	ASSERT_EQ(brief.open(vendor_class, get), 0);
	ASSERT_EQ(verbose.open(vendor_rmpp_class, 1ul << get_multi, 1, IB_MGMT_RMPP_VERSION), 0);
	Flood flood(bench);
	Program program(bench);
	ASSERT_TRUE(flood.raw && program.ok());
	const u32 agent = program.add(vendor_class, IB_MGMT_METHOD_SEND),
		  asking = program.add(0, 0, IB_MGMT_RMPP_VERSION);
	const auto ask_for_much = [&](u32 tid) {
		return program.ask(asking, 2, tid, 60'000, vendor_rmpp_class, get_multi);
	};

	EXPECT_EQ(ask_for_much(3), 0);
	wait_ms(test, bench, 1000);
	EXPECT_EQ(program.read_all().received, 1u);

	ASSERT_TRUE(flood.send_all(mads_max + 64));
	EXPECT_EQ(program.ask(agent, 2, 1, 60'000), 0);
	EXPECT_EQ(program.ask(agent, unused_lid, 2, 20), 0);
	EXPECT_EQ(ask_for_much(4), 0);
	wait_ms(test, bench, 1000);
	const Program::Read read = program.read_all();
	EXPECT_EQ(read.received, mads_max + 1);
	EXPECT_EQ(read.timed_out, 2u);
}

/* A request counts as pending until the program has read its outcome. */
void umad_request_counts_towards_the_pending_limit_until_its_result_is_read(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	Program program(bench);
	ASSERT_TRUE(program.ok());
	const u32 agent = program.add();
	for (u32 tid = 0; tid < mads_max; tid++)
		ASSERT_EQ(program.ask(agent, unused_lid, tid, 20), 0);
	EXPECT_EQ(program.ask(agent, unused_lid, mads_max, 20), -ENOBUFS);
	wait_ms(test, bench, 60'000);
	EXPECT_EQ(program.ask(agent, unused_lid, mads_max, 20), -ENOBUFS);
	Record record;
	EXPECT_EQ(program.read(record, false, 23), -EINVAL);
	EXPECT_EQ(program.ask(agent, unused_lid, mads_max, 20), -ENOBUFS);
	EXPECT_EQ(program.read(record), unanswered);
	EXPECT_EQ(program.ask(agent, unused_lid, mads_max, 20), 0);
	wait_ms(test, bench, 1000);
	EXPECT_EQ(program.read_all().timed_out, mads_max);
}

} // namespace

CARD_SUITE(umad_unread, KUNIT_CASE(umad_reports_send_status_even_if_too_many_mads_are_unread),
	   KUNIT_CASE(umad_request_counts_towards_the_pending_limit_until_its_result_is_read));
