// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests connections between two nodes, from address resolution to disconnection.
#include <kern/completion.hpp>
#include "fixture.hpp"

using namespace rdma_cm_fixture;
using rdma_cm::State;

namespace
{

/* Addresses, path, REQ, REP, RTU, DREQ, DREP, and the events at each end; with IPv4 and IPv6. */
void rcm_01_both_ends_get_each_event_of_a_connection_once(Test &test)
{
	for (bool v6 : {false, true}) {
		Boxed<Pair> pair;
		ASSERT_TRUE(pair.there() && pair->stand());
		ASSERT_TRUE(pair->listen(rdma_cm::any_of(v6 ? RDMA_AF_INET6 : RDMA_AF_INET)));
		EXPECT_EQ(pair->listener.state(), State::listen);
		const Address to = v6 ? ipv6(2, Pair::port) : ipv4(2, Pair::port),
			      from = v6 ? ipv6(1) : ipv4(1);
		ASSERT_TRUE(pair->request(to));
		rdma_cm_id *active = pair->active.id, *passive = pair->passive.id;
		EXPECT_EQ(pair->active.state(), State::connect);
		EXPECT_EQ(pair->passive.state(), State::connect);
		EXPECT_TRUE(active->device == pair->a.device());
		EXPECT_TRUE(passive->device == pair->b.device());
		EXPECT_EQ(passive->port_num, 1u);

		/* Both IDs have both addresses, and they agree. */
		EXPECT_TRUE(rdma_cm::same_host(active->route.addr.src_addr, from));
		EXPECT_TRUE(rdma_cm::same_host(passive->route.addr.src_addr, to));
		EXPECT_TRUE(rdma_cm::same_host(passive->route.addr.dst_addr, from));
		EXPECT_EQ(rdma_cm::port_of(passive->route.addr.src_addr), Pair::port);
		EXPECT_EQ(rdma_cm::port_of(passive->route.addr.dst_addr),
			  rdma_cm::port_of(active->route.addr.src_addr));
		EXPECT_TRUE(passive->route.addr.sgid == active->route.addr.dgid);
		EXPECT_TRUE(passive->route.addr.dgid == active->route.addr.sgid);
		EXPECT_EQ(active->route.num_paths, 1);
		EXPECT_EQ(active->route.path_rec.ib.dlid, 2u);

		/* Limits of the local request are the peer's limits for its responses. */
		const rdma_conn_param &request = pair->passive.last.param.conn;
		EXPECT_EQ(request.responder_resources, 3);
		EXPECT_EQ(request.initiator_depth, 4);
		EXPECT_EQ(request.retry_count, 7);
		EXPECT_EQ(request.rnr_retry_count, 6);
		EXPECT_EQ(request.qp_num, 0x123u);
		EXPECT_EQ(request.private_data_len, RDMA_CM_REQ_PRIVATE_DATA_SIZE);
		EXPECT_EQ(__builtin_memcmp(pair->passive.data, "request", 8), 0);

		ASSERT_EQ(pair->passive.accept(), 0);
		ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_CONNECT_RESPONSE));
		EXPECT_EQ(__builtin_memcmp(pair->active.data, "reply", 6), 0);
		EXPECT_EQ(pair->active.last.param.conn.qp_num, 0x456u);
		rdma_lock_handler(active);
		EXPECT_EQ(rdma_accept(active, nullptr), 0);
		rdma_unlock_handler(active);
		ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_ESTABLISHED));

		ASSERT_EQ(rdma_disconnect(active), 0);
		ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_DISCONNECTED));
		EXPECT_EQ(pair->active.delivered(RDMA_CM_EVENT_DISCONNECTED), 0u);
		/* The answer is the consumer's. */
		ASSERT_EQ(rdma_disconnect(passive), 0);
		ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_DISCONNECTED));
		EXPECT_TRUE(pair->active.receives(RDMA_CM_EVENT_TIMEWAIT_EXIT));
		EXPECT_TRUE(pair->passive.receives(RDMA_CM_EVENT_TIMEWAIT_EXIT));
		EXPECT_EQ(pair->active.all(), 5u);
		EXPECT_EQ(pair->passive.all(), 4u);
		EXPECT_EQ(pair->listener.all(), 0u);
	}
}

/*
 * The same between GIDs, with a service ID of the TCP port space: in the partition that the
 * addresses specify, which must exist, or in the port's first.
 */
void rcm_01_ids_connect_by_gid_in_the_requested_partition(Test &test)
{
	for (u16 pkey : {u16{0}, u16{IB_DEFAULT_PKEY_FULL}}) {
		Boxed<Pair> pair;
		ASSERT_TRUE(pair.there() && pair->stand());
		End &active = pair->active, &passive = pair->passive, &listener = pair->listener;
		Address from = rdma_cm::any_of(RDMA_AF_IB), to = from, any = from;
		to.ib.pkey = from.ib.pkey = pkey;
		rdma_cm::set_port(to, RDMA_PS_TCP, Pair::port);
		rdma_cm::set_port(any, RDMA_PS_TCP, Pair::port);
		ASSERT_EQ(rdma_query_gid(pair->a.device(), 1, 0, &from.ib.addr), 0);
		ASSERT_EQ(rdma_query_gid(pair->b.device(), 1, 0, &to.ib.addr), 0);
		listener.fresh = &passive;
		ASSERT_TRUE(listener.open(RDMA_PS_IB));
		ASSERT_EQ(rdma_bind_addr(listener.id, &any), 0);
		ASSERT_EQ(rdma_listen(listener.id, 1), 0);

		active.close();
		ASSERT_TRUE(active.open(RDMA_PS_IB));
		from.ib.pkey = u16{0x1234};
		EXPECT_EQ(rdma_bind_addr(active.id, &from), -ENODEV);
		from.ib.pkey = pkey;
		ASSERT_TRUE(active.resolve(to, &from));
		EXPECT_EQ(active.id->route.addr.pkey, IB_DEFAULT_PKEY_FULL);
		ib_qp_attr attr{};
		int mask;
		attr.qp_state = IB_QPS_INIT;
		EXPECT_EQ(rdma_init_qp_attr(active.id, &attr, &mask), 0);
		ASSERT_EQ(active.connect(0x123, "a request"), 0);
		ASSERT_TRUE(passive.receives(RDMA_CM_EVENT_CONNECT_REQUEST));
		EXPECT_EQ(__builtin_memcmp(passive.data, "a request", 10), 0);
		EXPECT_TRUE(rdma_cm::same_host(passive.id->route.addr.dst_addr, from));
		EXPECT_EQ(passive.id->route.addr.src_addr.ib.pkey.value(), IB_DEFAULT_PKEY_FULL);
		ASSERT_EQ(passive.accept(), 0);
		ASSERT_TRUE(active.receives(RDMA_CM_EVENT_CONNECT_RESPONSE));
	}
}

/*
 * A connection whose request could not be sent has not started: there is nothing to close, the QP
 * is unchanged, and the call can be repeated.
 */
void rcm_01_failed_connect_call_can_be_repeated(Test &test)
{
	static constexpr u8 data[RDMA_CM_REQ_PRIVATE_DATA_SIZE + 1] = {};
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	End &end = pair->active;
	ASSERT_TRUE(end.resolve(ipv4(2, Pair::port)));
	rdma_conn_param param = End::param(0x123);
	param.private_data = data;
	param.private_data_len = sizeof(data);
	EXPECT_EQ(rdma_connect(end.id, &param), -EINVAL);
	EXPECT_EQ(end.state(), State::route_resolved);
	ib_qp_attr attr{};
	int mask = 0;
	attr.qp_state = IB_QPS_INIT;
	EXPECT_EQ(rdma_init_qp_attr(end.id, &attr, &mask), 0);
	EXPECT_EQ(mask, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	EXPECT_EQ(rdma_disconnect(end.id), -EINVAL);
	EXPECT_EQ(rdma_notify(end.id, IB_EVENT_COMM_EST), -EINVAL);
	ASSERT_EQ(end.connect(), 0);
	ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_CONNECT_REQUEST));
	EXPECT_EQ(rdma_init_qp_attr(end.id, &attr, &mask), 0);
}

/* Completion queues and domains for QPs that ids have. */
struct Verbs {
	explicit Verbs(ib_device *device)
	{
		auto domain = rdma::Pd::create(device);
		auto queue = rdma::CompletionQueue::create(device, nullptr, nullptr, 16);
		if (!domain.ok() || !queue.ok())
			return;
		pd = domain.take();
		cq = queue.take();
	}
	bool ok() const { return static_cast<bool>(cq); }
	int make_qp(rdma_cm_id *id)
	{
		auto attr = fixture::qp_attr(id->qp_type);
		attr.send_cq = attr.recv_cq = cq->get();
		return rdma_create_qp(id, pd->get(), &attr);
	}

	fixture::PdRef pd;
	fixture::CqRef cq;
};

ib_qp_state state_of(ib_qp *qp)
{
	ib_qp_attr attr{};
	ib_qp_init_attr init{};
	return ib_query_qp(qp, &attr, IB_QP_STATE, &init) ? IB_QPS_RESET : attr.qp_state;
}

/*
 * The ID's own QP changes its state with the connection at both ends, and data passes through it,
 * so the PSNs are right.
 */
void rcm_02_qp_reaches_rts_on_connect_and_the_error_state_on_disconnect(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	{
		Verbs here(pair->a.device()), there(pair->b.device());
		ASSERT_TRUE(here.ok() && there.ok());
		ASSERT_TRUE(pair->active.resolve(ipv4(2, Pair::port)));
		ASSERT_EQ(here.make_qp(pair->active.id), 0);
		EXPECT_EQ(state_of(pair->active.id->qp), IB_QPS_INIT);
		ASSERT_EQ(pair->active.connect(), 0);
		ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_CONNECT_REQUEST));
		EXPECT_EQ(pair->passive.last.param.conn.qp_num, pair->active.id->qp->qp_num);
		ASSERT_EQ(there.make_qp(pair->passive.id), 0);
		ASSERT_EQ(pair->passive.accept(), 0);
		ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_ESTABLISHED));
		ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_ESTABLISHED));
		EXPECT_EQ(state_of(pair->active.id->qp), IB_QPS_RTS);
		EXPECT_EQ(state_of(pair->passive.id->qp), IB_QPS_RTS);

		ib_qp_attr near{}, far{};
		ib_qp_init_attr init{};
		ASSERT_EQ(
			ib_query_qp(pair->active.id->qp, &near, IB_QP_SQ_PSN | IB_QP_RQ_PSN, &init),
			0);
		ASSERT_EQ(
			ib_query_qp(pair->passive.id->qp, &far, IB_QP_SQ_PSN | IB_QP_RQ_PSN, &init),
			0);
		EXPECT_EQ(near.sq_psn, far.rq_psn);
		EXPECT_EQ(far.sq_psn, near.rq_psn);

		ASSERT_EQ(rdma_disconnect(pair->active.id), 0);
		EXPECT_EQ(state_of(pair->active.id->qp), IB_QPS_ERR);
		ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_DISCONNECTED));
		pair->active.close();
		pair->passive.close();
	}
}

/*
 * The active side gets the reason if there is no listener, no such node, or the consumer rejects.
 */
void rcm_03_failed_connects_report_the_reason(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	ASSERT_TRUE(pair->request());
	ASSERT_EQ(rdma_reject(pair->passive.id, "no", 3, 0), 0);
	ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_REJECTED));
	EXPECT_EQ(pair->active.last.status, IB_CM_REJ_CONSUMER_DEFINED);
	EXPECT_EQ(__builtin_memcmp(pair->active.data, "no", 3), 0);

	for (u16 port : {u16{Pair::port + 1}, Pair::port}) {
		pair->active.close();
		pair->listener.on_event = [](End &, const rdma_cm_event &) { return -EPERM; };
		ASSERT_TRUE(pair->active.open() && pair->active.resolve(ipv4(2, port)));
		ASSERT_EQ(pair->active.connect(), 0);
		ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_REJECTED));
		EXPECT_EQ(pair->active.last.status, port == Pair::port
							    ? IB_CM_REJ_CONSUMER_DEFINED
							    : IB_CM_REJ_INVALID_SERVICE_ID);
	}
	EXPECT_EQ(pair->listener.delivered(RDMA_CM_EVENT_CONNECT_REQUEST), 1u);
	/* The address that was asked for is another interface's. */
	pair->active.close();
	ASSERT_TRUE(pair->active.open() && pair->active.resolve(ipv4(2, Pair::port)));
	pair->ground.addresses.move(2, pair->a);
	ASSERT_EQ(pair->active.connect(), 0);
	ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_REJECTED));
	EXPECT_EQ(pair->active.last.status, IB_CM_REJ_CONSUMER_DEFINED);
	EXPECT_EQ(pair->listener.delivered(RDMA_CM_EVENT_CONNECT_REQUEST), 1u);
}

/* An address that is resolved immediately, later, or never; a missing route. */
void rcm_04_address_resolution_is_retried_until_its_timeout(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	Addresses &addresses = pair->ground.addresses;
	End &end = pair->active;
	const Address to = ipv4(2, Pair::port), nowhere = ipv4(99), silent = ipv4(77),
		      other = ipv6(2);

	EXPECT_EQ(rdma_resolve_addr(end.id, nullptr, &nowhere, 1000), -ENETUNREACH);
	EXPECT_EQ(end.state(), State::addr_bound);
	EXPECT_EQ(rdma_resolve_addr(end.id, nullptr, &other, 1000), -EINVAL);
	EXPECT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 0), -EINVAL);

	addresses.answering.store_release(false);
	ASSERT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 60'000), 0);
	EXPECT_EQ(end.state(), State::addr_query);
	EXPECT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 1000), -EINVAL);
	/* It looks again when something has changed, and not before. */
	ASSERT_TRUE(eventually([&] { return addresses.asked.load_acquire() == 2; }));
	EXPECT_EQ(end.all(), 0u);
	addresses.answering.store_release(true);
	rdma_cm::retry_resolutions(0);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
	EXPECT_EQ(end.last.status, 0);
	EXPECT_EQ(addresses.asked.load_acquire(), 3u);
	EXPECT_EQ(end.state(), State::addr_resolved);

	/* An ID that starts to wait does not make the others look up their neighbour again. */
	constexpr unsigned int waiting = 8;
	auto ends = kern::make_array<End>(kern::Gfp::kernel, waiting).take();
	addresses.asked.store_release(0);
	for (unsigned int i = 0; i < waiting; i++) {
		ASSERT_TRUE(ends[i].open());
		ASSERT_EQ(rdma_resolve_addr(ends[i].id, nullptr, &silent, 60'000), 0);
		ASSERT_TRUE(
			eventually([&] { return addresses.asked.load_acquire() >= 2 * (i + 1); }));
	}
	EXPECT_EQ(addresses.asked.load_acquire(), 2 * waiting);
	for (End &waits : ends.span())
		waits.close();

	End late;
	ASSERT_TRUE(late.open());
	ASSERT_EQ(rdma_resolve_addr(late.id, nullptr, &silent, 100), 0);
	ASSERT_TRUE(late.receives(RDMA_CM_EVENT_ADDR_ERROR));
	EXPECT_EQ(late.last.status, -ETIMEDOUT);
	EXPECT_EQ(late.state(), State::addr_bound);
	/* A failed resolution leaves it unbound: the next route may use another device. */
	EXPECT_TRUE(late.id->device == nullptr);
	EXPECT_TRUE(rdma_cm::is_any(late.id->route.addr.src_addr));
	addresses.move(1, pair->b);
	ASSERT_EQ(rdma_resolve_addr(late.id, nullptr, &to, 1000), 0);
	ASSERT_TRUE(late.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
	EXPECT_TRUE(late.id->device == pair->b.device());
	addresses.move(1, pair->a);

	/* After a failed resolution, the loopback address can also be resolved. */
	Address self = rdma_cm::any_of(RDMA_AF_INET);
	rdma_cm::set_loopback(self);
	late.close();
	ASSERT_TRUE(late.open());
	ASSERT_EQ(rdma_resolve_addr(late.id, nullptr, &silent, 100), 0);
	ASSERT_TRUE(late.receives(RDMA_CM_EVENT_ADDR_ERROR));
	ASSERT_EQ(rdma_resolve_addr(late.id, nullptr, &self, 1000), 0);
	ASSERT_TRUE(late.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
	EXPECT_TRUE(rdma_cm::is_loopback(late.id->route.addr.src_addr));
	EXPECT_TRUE(late.id->route.addr.dgid == late.id->route.addr.sgid);

	/* The ID is destroyed while it waits, and no event is reported. */
	late.close();
	ASSERT_TRUE(late.open());
	ASSERT_EQ(rdma_resolve_addr(late.id, nullptr, &silent, 60'000), 0);
	late.close();
	EXPECT_EQ(late.all(), 0u);
}

/* If the SA refuses or does not respond, resolution fails and can be repeated. */
void rcm_05_failed_route_resolution_can_be_repeated(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	End &end = pair->active;
	const Address to = ipv4(2, Pair::port);
	ASSERT_EQ(rdma_resolve_route(end.id, 1000), -EINVAL);
	ASSERT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 1000), 0);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
	EXPECT_EQ(rdma_resolve_route(end.id, 0), -EINVAL);
	pair->sa.refuse.store_release(0x0300);
	ASSERT_EQ(rdma_resolve_route(end.id, 1000), 0);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_ROUTE_ERROR));
	EXPECT_EQ(end.last.status, -EINVAL);
	EXPECT_EQ(end.id->route.num_paths, 0);
	pair->sa.refuse.store_release(0);
	ASSERT_EQ(rdma_resolve_route(end.id, 1000), 0);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_ROUTE_RESOLVED));
	EXPECT_EQ(end.id->route.num_paths, 1);
}

/*
 * Code that excludes handlers, as queries do, never sees partial results: all of them appear with
 * their event.
 */
void rcm_05_id_has_no_address_or_route_before_the_resolved_event(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	End &end = pair->active;
	const Address to = ipv4(2, Pair::port);
	const ib_gid none{};
	kern::Completion never;

	rdma_lock_handler(end.id);
	EXPECT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 1000), 0);
	EXPECT_TRUE(end.id->route.addr.dgid == none && !end.id->device);
	rdma_unlock_handler(end.id);
	EXPECT_TRUE(end.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
	EXPECT_TRUE(end.id->route.addr.dgid != none && end.id->device == pair->a.device());

	rdma_lock_handler(end.id);
	EXPECT_EQ(rdma_resolve_route(end.id, 1000), 0);
	/* Long enough for the SA's answer. */
	EXPECT_FALSE(never.wait_for(200));
	EXPECT_EQ(end.id->route.num_paths, 0);
	EXPECT_EQ(end.id->route.path_rec.ib.dlid, 0u);
	rdma_unlock_handler(end.id);
	EXPECT_TRUE(end.receives(RDMA_CM_EVENT_ROUTE_RESOLVED));
	EXPECT_EQ(end.id->route.num_paths, 1);
	EXPECT_EQ(end.id->route.path_rec.ib.dlid, 2u);
}

/*
 * An interface moves to another port: IDs that are bound to it are notified, and their connections
 * are not affected.
 */
void rcm_14_address_change_is_reported_without_disconnecting(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	ASSERT_TRUE(pair->establish());
	const unsigned int before = pair->passive.all();
	rdma_cm::check_interfaces();
	pair->ground.addresses.move(1, pair->b);
	rdma_cm::check_interfaces();
	ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_ADDR_CHANGE));
	EXPECT_EQ(pair->active.state(), State::connect);
	EXPECT_EQ(rdma_disconnect(pair->active.id), 0);
	EXPECT_TRUE(pair->passive.receives(RDMA_CM_EVENT_DISCONNECTED));
	EXPECT_EQ(pair->passive.all(), before + 1);
}

/* A QP that cannot be destroyed yet stays with its ID. */
void rcm_02_qp_that_cannot_be_destroyed_remains_attached_to_its_id(Test &test)
{
	Boxed<Pair> pair;
	Boxed<Ends<1>> one;
	ASSERT_TRUE(pair.there() && pair->stand() && one.there());
	End &end = one->ends[0];
	const Address at = ipv4(1);
	ASSERT_TRUE(end.open(RDMA_PS_UDP, IB_QPT_UD));
	ASSERT_EQ(rdma_bind_addr(end.id, &at), 0);
	Verbs verbs(end.id->device);
	ASSERT_TRUE(verbs.ok());
	ASSERT_EQ(verbs.make_qp(end.id), 0);
	ib_gid group{};
	group.raw[0] = 0xff;
	group.raw[15] = 1;
	ASSERT_EQ(ib_attach_mcast(end.id->qp, &group, 0xc001), 0);
	rdma_destroy_qp(end.id);
	ASSERT_TRUE(end.id->qp != nullptr);
	EXPECT_EQ(ib_detach_mcast(end.id->qp, &group, 0xc001), 0);
	rdma_destroy_qp(end.id);
	EXPECT_TRUE(end.id->qp == nullptr);
}

} // namespace

SOFT_SUITES(rdma_cm_connect, KUNIT_CASE(rcm_01_both_ends_get_each_event_of_a_connection_once),
	    KUNIT_CASE(rcm_01_ids_connect_by_gid_in_the_requested_partition),
	    KUNIT_CASE(rcm_01_failed_connect_call_can_be_repeated),
	    KUNIT_CASE(rcm_02_qp_reaches_rts_on_connect_and_the_error_state_on_disconnect),
	    KUNIT_CASE(rcm_02_qp_that_cannot_be_destroyed_remains_attached_to_its_id),
	    KUNIT_CASE(rcm_03_failed_connects_report_the_reason),
	    KUNIT_CASE(rcm_04_address_resolution_is_retried_until_its_timeout),
	    KUNIT_CASE(rcm_05_failed_route_resolution_can_be_repeated),
	    KUNIT_CASE(rcm_05_id_has_no_address_or_route_before_the_resolved_event),
	    KUNIT_CASE(rcm_14_address_change_is_reported_without_disconnecting));
