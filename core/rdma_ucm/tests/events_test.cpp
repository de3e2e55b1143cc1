// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the events that a program reads, and the limit of unread events.
#include "fixture.hpp"

using namespace ucm_fixture;
using fake::Call;
using rdma_ucm::Id;
using rdma_ucm::Source;

namespace
{

/*
 * The oldest event is reported first, with the program's number for the ID and the peer's data.
 * Destroying an ID returns the number of its events that have been read.
 */
void ucm_reports_the_oldest_event_first(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 one, other, read;
	fake::Cm *first, *second;
	ASSERT_EQ(program.create(one, 0x1111, &first), 0);
	ASSERT_EQ(program.create(other, 0x2222, &second, RDMA_PS_UDP), 0);
	abi::Event event{};
	EXPECT_EQ(program.read(event), -EAGAIN);

	static u8 data[148];
	__builtin_memset(data, 0x5a, sizeof(data));
	rdma_cm_event rejected{.event = RDMA_CM_EVENT_REJECTED,
			       .status = 28,
			       .param = {},
			       .join_context = nullptr};
	rejected.param.conn.private_data = data;
	rejected.param.conn.private_data_len = sizeof(data);
	rejected.param.conn.initiator_depth = 3;
	rejected.param.conn.qp_num = 0x123456;
	rdma_cm_event established{.event = RDMA_CM_EVENT_ESTABLISHED,
				  .status = 0,
				  .param = {},
				  .join_context = nullptr};
	established.param.ud.qp_num = 0x654321;
	established.param.ud.qkey = 0x01234567;
	rdma_ah_set_dlid(&established.param.ud.ah_attr, 5);
	EXPECT_EQ(first->deliver(rejected), 0);
	EXPECT_EQ(second->deliver(established), 0);
	EXPECT_EQ(first->deliver(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT), 0);

	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.uid, 0x1111u);
	EXPECT_EQ(event.id, one);
	EXPECT_EQ(event.event, u32{RDMA_CM_EVENT_REJECTED});
	EXPECT_EQ(event.status, 28);
	EXPECT_EQ(event.param.conn.private_data_len, 148);
	EXPECT_EQ(event.param.conn.private_data[147], 0x5a);
	EXPECT_EQ(event.param.conn.private_data[148], 0);
	EXPECT_EQ(event.param.conn.initiator_depth, 3);
	EXPECT_EQ(event.param.conn.qp_num, 0x123456u);
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.id, other);
	EXPECT_EQ(event.param.ud.qp_num, 0x654321u);
	EXPECT_EQ(event.param.ud.ah_attr.dlid, 5);
	/* An event that cannot be written to the program is reported again by the next read. */
	EXPECT_EQ(program.read(event, nowhere), -EFAULT);
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.event, u32{RDMA_CM_EVENT_ADDR_ERROR});
	EXPECT_EQ(event.status, -ETIMEDOUT);
	EXPECT_EQ(program.read(event), -EAGAIN);

	EXPECT_EQ(first->deliver(RDMA_CM_EVENT_TIMEWAIT_EXIT), 0);
	EXPECT_EQ(program.destroy(one, read), 0);
	EXPECT_EQ(read, 2u);
	EXPECT_EQ(program.read(event), -EAGAIN);
	EXPECT_EQ(program.destroy(other, read), 0);
	EXPECT_EQ(read, 1u);
	EXPECT_EQ(fake::alive(), 0u);
}

/*
 * A program that repeats calls without reading events is refused. Events that occur by themselves
 * have a limit beyond that.
 */
void ucm_refuses_resolve_and_set_path_calls_while_too_many_events_are_unread(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 id, read;
	fake::Cm *cm;
	ASSERT_EQ(program.create(id, 1, &cm), 0);
	const auto ask = [&] {
		return program.command(abi::resolve_route,
				       abi::ResolveRoute{.id = id, .timeout_ms = 1});
	};
	for (u32 i = 0; i < Source::requested_max; i++) {
		EXPECT_EQ(ask(), 0);
		EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT), 0);
	}
	EXPECT_EQ(ask(), -ENOBUFS);
	abi::ResolveAddr resolve{};
	resolve.id = id;
	resolve.dst_size = sizeof(rdma_sockaddr_in);
	resolve.dst_addr[0] = RDMA_AF_INET;
	EXPECT_EQ(program.command(abi::resolve_addr, resolve), -ENOBUFS);
	abi::PathData path{.flags = abi::path_all, .reserved = 0, .record = {}};
	ASSERT_OK(kern::copy_out(bench.answers(), &path, sizeof(path)));
	EXPECT_EQ(program.command(abi::set_option, abi::SetOption{.optval = bench.answers(),
								  .id = id,
								  .level = 1,
								  .optname = abi::option_path,
								  .optlen = sizeof(path)}),
		  -ENOBUFS);
	EXPECT_EQ(fake::calls(Call::resolve_addr) + fake::calls(Call::set_path), 0u);
	for (u32 i = 0; i < Source::unread_max; i++)
		EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_ADDR_CHANGE), 0);
	abi::Event event{};
	for (u32 i = 0; i < Source::unread_max; i++) {
		EXPECT_EQ(program.read(event), 0);
		EXPECT_EQ(event.event, u32{i < Source::requested_max ? RDMA_CM_EVENT_ROUTE_ERROR
								     : RDMA_CM_EVENT_ADDR_CHANGE});
	}
	EXPECT_EQ(program.read(event), -EAGAIN);
	EXPECT_EQ(ask(), 0);
	EXPECT_EQ(program.destroy(id, read), 0);
	EXPECT_EQ(read, Source::unread_max);
}

/*
 * A request is an event of the listener, with a new ID. Events of the new ID are reported after the
 * program has set its own number for it.
 */
void ucm_reports_connection_requests_with_a_new_id(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 listener, read;
	fake::Cm *cm;
	ASSERT_EQ(program.create(listener, 0x1111, &cm), 0);
	/* Without a listener there can be no request. */
	EXPECT_EQ(cm->request(), -ENOMEM);
	ASSERT_EQ(program.listen(listener, 10), 0);
	const u8 data[] = {1, 2, 3};
	EXPECT_EQ(cm->request(data, sizeof(data)), 0);
	fake::Cm *const fresh = fake::newest();
	abi::Event event{};
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.uid, 0x1111u);
	EXPECT_EQ(event.event, u32{RDMA_CM_EVENT_CONNECT_REQUEST});
	EXPECT_NE(event.id, listener);
	EXPECT_EQ(event.param.conn.private_data[2], 3);
	const u32 id = event.id;

	EXPECT_EQ(fresh->deliver(RDMA_CM_EVENT_UNREACHABLE), 0);
	EXPECT_EQ(program.read(event), -EAGAIN);
	fake::set_result(-EINVAL);
	EXPECT_EQ(program.accept(id, 0x3333), -EINVAL);
	fake::set_result(0);
	EXPECT_EQ(fresh->deliver(RDMA_CM_EVENT_UNREACHABLE), 0);
	EXPECT_EQ(program.read(event), -EAGAIN);
	EXPECT_EQ(program.accept(id, 0x3333), 0);
	EXPECT_EQ(fresh->deliver(RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.uid, 0x3333u);
	EXPECT_EQ(event.id, id);

	/* The listener is destroyed. New IDs that the program has read stay. */
	EXPECT_EQ(cm->request(), 0);
	EXPECT_EQ(fake::alive(), 3u);
	EXPECT_EQ(program.destroy(listener, read), 0);
	EXPECT_EQ(read, 1u);
	EXPECT_EQ(fake::alive(), 1u);
	EXPECT_EQ(program.read(event), -EAGAIN);
	EXPECT_EQ(program.destroy(id, read), 0);
	EXPECT_EQ(read, 1u);
}

/*
 * The number of unread requests is limited by the program's backlog, and by the documented maximum.
 * Listening again does not extend it.
 */
void ucm_limits_the_number_of_unread_connection_requests(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 listener, read;
	fake::Cm *cm;
	ASSERT_EQ(program.create(listener, 1, &cm), 0);
	ASSERT_EQ(program.listen(listener, 2), 0);
	EXPECT_EQ(cm->request(), 0);
	EXPECT_EQ(cm->request(), 0);
	EXPECT_EQ(cm->request(), -ENOMEM);
	EXPECT_EQ(fake::alive(), 3u);
	abi::Event event{};
	EXPECT_EQ(program.read(event, nowhere), -EFAULT);
	EXPECT_EQ(cm->request(), -ENOMEM);
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(cm->request(), 0);
	EXPECT_EQ(program.listen(listener, 2), 0);
	EXPECT_EQ(cm->request(), -ENOMEM);
	/* A listen that fails does not change the backlog. */
	fake::set_result(-EINVAL);
	EXPECT_EQ(program.listen(listener, 3), -EINVAL);
	fake::set_result(0);
	EXPECT_EQ(cm->request(), -ENOMEM);
	for (s32 backlog :
	     {0, -1, static_cast<s32>(Id::backlog_max) + 1, static_cast<s32>(Id::backlog_max)})
		ASSERT_EQ(program.listen(listener, backlog), 0);
	for (u32 i = 2; i < Id::backlog_max; i++)
		ASSERT_EQ(cm->request(), 0);
	EXPECT_EQ(cm->request(), -ENOMEM);
	EXPECT_EQ(rdma_ucm::table().ids(), 2 + Id::backlog_max);
	EXPECT_EQ(program.destroy(listener, read), 0);
	EXPECT_EQ(read, 1u);
	EXPECT_EQ(fake::alive(), 1u);
}

/*
 * Events of a membership have its number and the program's own. Unread events are dropped when it
 * ends. Events that have been read count for the membership and for its ID.
 */
void ucm_reports_multicast_events_with_the_id_and_uid_of_the_membership(Test &test)
{
	Bench bench;
	Program program(bench), outsider(bench);
	ASSERT_TRUE(bench.ok() && program.ok() && outsider.ok());
	u32 id, one, other, again, read;
	fake::Cm *cm;
	ASSERT_EQ(program.create(id, 1, &cm, RDMA_PS_UDP), 0);
	ASSERT_EQ(program.join(id, 0x1111, 1, one), 0);
	void *const first = cm->join_context;
	ASSERT_EQ(program.join(id, 0x2222, 2, other), 0);
	EXPECT_NE(one, other);
	EXPECT_EQ(program.join(id, 0x3333, 1, again), -EADDRINUSE);
	EXPECT_EQ(fake::calls(Call::join), 2u);
	fake::set_result(-EADDRNOTAVAIL);
	EXPECT_EQ(program.join(id, 0x3333, 3, again), -EADDRNOTAVAIL);
	fake::set_result(0);
	EXPECT_EQ(program.join(id, 0x3333, 3, again), 0);
	EXPECT_EQ(program.leave(again, read), 0);

	rdma_cm_event joined{.event = RDMA_CM_EVENT_MULTICAST_JOIN,
			     .status = 0,
			     .param = {},
			     .join_context = first};
	joined.param.ud.qp_num = IB_MULTICAST_QPN;
	EXPECT_EQ(cm->deliver(joined), 0);
	rdma_cm_event lost{.event = RDMA_CM_EVENT_MULTICAST_ERROR,
			   .status = -ENETRESET,
			   .param = {},
			   .join_context = first};
	EXPECT_EQ(cm->deliver(lost), 0);
	EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_ADDR_CHANGE), 0);
	abi::Event event{};
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.uid, 0x1111u);
	EXPECT_EQ(event.id, one);
	EXPECT_EQ(event.param.ud.qp_num, u32{IB_MULTICAST_QPN});
	EXPECT_EQ(program.read(event, nowhere), -EFAULT);
	EXPECT_EQ(outsider.leave(one, read), -EINVAL);
	EXPECT_EQ(program.leave(one, read), 0);
	EXPECT_EQ(read, 1u);
	EXPECT_EQ(program.leave(one, read), -ENOENT);
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.event, u32{RDMA_CM_EVENT_ADDR_CHANGE});
	EXPECT_EQ(program.read(event), -EAGAIN);
	/* Destroying the ID destroys its other membership, too. */
	EXPECT_EQ(program.destroy(id, read), 0);
	EXPECT_EQ(read, 2u);
	EXPECT_EQ(program.leave(other, read), -ENOENT);
}

} // namespace

KUNIT_SUITE(ucm_events, KUNIT_CASE(ucm_reports_the_oldest_event_first),
	    KUNIT_CASE(ucm_refuses_resolve_and_set_path_calls_while_too_many_events_are_unread),
	    KUNIT_CASE(ucm_reports_connection_requests_with_a_new_id),
	    KUNIT_CASE(ucm_limits_the_number_of_unread_connection_requests),
	    KUNIT_CASE(ucm_reports_multicast_events_with_the_id_and_uid_of_the_membership));
