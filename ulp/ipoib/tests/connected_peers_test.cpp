// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests connected mode with misbehaving peers, which accept and do not receive, do not answer, or
// request too many resources; and with messages that arrive too early.
#include <rdma/driver.hpp>
#include "connected_fixture.hpp"

using namespace ipoib;
using namespace ipoib::fixture;

namespace
{

/* Accepts connections to a QP number at the second host, as a program with its own code may. */
class Taker
{
public:
	enum class Answer : u8 {
		none,   /* does not reply */
		nobody, /* accepts with a QP number that does not exist */
		/* accepts with a QP without receive buffers, and requests infinite RNR retries */
		deaf,
		later, /* requests more than a minute first, again and again */
	};

	Taker(const Subnet &subnet, u32 qpn, Answer answer) : subnet_(subnet), answer_(answer)
	{
		__builtin_memcpy(&address_, subnet.b.address(), sizeof(address_));
		address_.flags = HardwareAddress::flag_rc;
		address_.qpn_bytes[0] = static_cast<u8>(qpn >> 16);
		address_.qpn_bytes[1] = static_cast<u8>(qpn >> 8);
		address_.qpn_bytes[2] = static_cast<u8>(qpn);
		auto attr = ::fixture::qp_attr(IB_QPT_RC);
		pd_ = ib_alloc_pd(subnet.b.device(), 0);
		const ib_cq_init_attr queue{.cqe = 16};
		cq_ = ib_create_cq(subnet.b.device(), nullptr, nullptr, nullptr, &queue);
		if (rdma::is_err(pd_) || rdma::is_err(cq_))
			return;
		attr.send_cq = attr.recv_cq = cq_;
		qp_ = ib_create_qp(pd_, &attr);
		if (rdma::is_err(qp_))
			return;
		listener_ = ib_create_cm_id(subnet.b.device(), on_event, this);
		ok_ = !rdma::is_err(listener_) &&
		      ib_cm_listen(listener_, connection_service(qpn), 0) == 0;
	}
	~Taker()
	{
		if (listener_ && !rdma::is_err(listener_))
			ib_destroy_cm_id(listener_);
		if (taken_)
			ib_destroy_cm_id(taken_);
		if (qp_ && !rdma::is_err(qp_))
			(void)ib_destroy_qp(qp_);
		if (cq_ && !rdma::is_err(cq_))
			ib_destroy_cq(cq_);
		if (pd_ && !rdma::is_err(pd_))
			ib_dealloc_pd(pd_);
	}
	Taker(const Taker &) = delete;
	Taker &operator=(const Taker &) = delete;

	bool ok() const { return ok_; }
	/* Sends a packet from the first host. */
	bool send(unsigned length) const
	{
		return kern_kunit_netdev_send(subnet_.a.dev(), &address_, type_ipv4, length) == 0;
	}
	/* Sends a packet whose TCP checksum has not been computed. */
	bool send_unsummed(unsigned length) const
	{
		return kern_kunit_netdev_send_unsummed(subnet_.a.dev(), &address_, type_ipv4,
						       length, 20, 16) == 0;
	}

private:
	int accept(ib_cm_id *id, const ib_cm_req_event_param &req)
	{
		/* Accepts one connection at a time. */
		if (taken_)
			return -EBUSY;
		taken_ = id;
		if (answer_ == Answer::none)
			return 0;
		constexpr u8 a_minute = 24;
		if (answer_ == Answer::later)
			return ib_send_cm_mra(id, a_minute, nullptr, 0);
		if (answer_ == Answer::deaf && ::fixture::connect(qp_, req.remote_qpn, 2))
			return -EIO;
		const ConnectionData data{.qpn = 0x123u, .receive_bytes = connected_bytes};
		ib_cm_rep_param rep{};
		rep.qp_num = answer_ == Answer::deaf ? qp_->qp_num : 0xabcdef;
		rep.private_data = &data;
		rep.private_data_len = sizeof(data);
		rep.rnr_retry_count = 7;
		rep.failover_accepted = 1;
		(void)ib_send_cm_rep(id, &rep);
		return 0;
	}
	static int on_event(ib_cm_id *id, const ib_cm_event *event)
	{
		return event->event == IB_CM_REQ_RECEIVED
			       ? static_cast<Taker *>(id->context)
					 ->accept(id, event->param.req_rcvd)
			       : 0;
	}

	const Subnet &subnet_;
	const Answer answer_;
	HardwareAddress address_;
	ib_pd *pd_ = nullptr;
	ib_cq *cq_ = nullptr;
	ib_qp *qp_ = nullptr;
	ib_cm_id *listener_ = nullptr;
	ib_cm_id *taken_ = nullptr;
	bool ok_ = false;
};

/* Returns the number of packets of the first host that were lost. */
u64 lost(const Subnet &subnet)
{
	const kern_net_stats stats = subnet.a.stats();
	return stats.tx_errors + stats.tx_dropped;
}

/*
 * A peer that accepts but does not receive is not reconnected repeatedly. The path to it is queried
 * again.
 */
void ipoib_03_peer_that_accepts_connections_but_never_receives_is_connected_at_most_once(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	Taker taker(subnet, 0x777, Taker::Answer::nobody);
	ASSERT_TRUE(taker.ok());
	const u64 made = subnet.a.counter("connections_made"),
		  queries = subnet.a.counter("path_queries");
	for (unsigned round = 0; round < 20; round++) {
		const u64 before = lost(subnet);
		ASSERT_TRUE(taker.send(60'000));
		ASSERT_TRUE(eventually([&] { return lost(subnet) > before; }));
	}
	EXPECT_LE(subnet.a.counter("connections_made"), made + 1);
	EXPECT_TRUE(eventually([&] { return subnet.a.counter("path_queries") == queries + 2; }));
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/* A peer without a receive buffer that requests infinite retries gets only a limited number. */
void ipoib_05_rnr_retries_are_limited_even_if_the_peer_requests_infinite_retries(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	Taker taker(subnet, 0x777, Taker::Answer::deaf);
	ASSERT_TRUE(taker.ok());
	const u64 errors = subnet.a.stats().tx_errors;
	ASSERT_TRUE(taker.send(60'000));
	EXPECT_TRUE(eventually([&] { return subnet.a.stats().tx_errors > errors; }));
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/*
 * If a receive queue is in error, no connection can receive through it, so the interface creates
 * another one.
 */
void ipoib_03_srq_in_error_is_replaced(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	const unsigned long made = soft_calls(subnet.b.device(), SOFT_CREATE_SRQ);
	{
		kern::RtnlGuard rtnl;
		rdma::dispatch(IB_EVENT_SRQ_ERR, subnet.b.interface().connected().srq());
	}
	EXPECT_TRUE(
		eventually([&] { return soft_calls(subnet.b.device(), SOFT_CREATE_SRQ) > made; }));
	EXPECT_TRUE(subnet.b.runs());
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/*
 * A peer that requests more time does not get it, because packets wait for the connection, and
 * their number is bounded.
 */
void ipoib_05_connection_attempt_is_aborted_if_the_peer_sends_an_mra(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	Taker taker(subnet, 0x777, Taker::Answer::later);
	ASSERT_TRUE(taker.ok());
	const u64 before = lost(subnet);
	ASSERT_TRUE(taker.send(60'000));
	EXPECT_TRUE(eventually([&] { return lost(subnet) > before; }));
	EXPECT_EQ(subnet.a.counter("connections_failed"), 1u);
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/*
 * A peer that does not receive, with as many connections as it may have, leaves connections to
 * others.
 */
void ipoib_05_connections_to_one_peer_leave_send_requests_for_connections_to_other_peers(Test &test)
{
	using All = ActiveConnections;
	u32 left = All::requests_max;
	for (u32 connection = 0; connection < All::of_peer_max; connection++) {
		u32 taken = 0;
		for (; taken < All::requests_of_one(left); left--)
			taken++;
		EXPECT_LE(taken, All::requests_of_one_max);
	}
	EXPECT_GE(left, All::requests_max / 8);
	EXPECT_GE(All::requests_of_one(left), 32u);
	EXPECT_EQ(All::requests_of_one(1), 1u);
	EXPECT_EQ(All::requests_of_one(0), 0u);
	/*
	 * A peer whose connections accept less than a datagram can hold still gets datagrams of the
	 * full size.
	 */
	const All::Outcome narrow{.taken = false, .limit = 72},
		wide{.taken = false, .limit = 9'004}, none{};
	EXPECT_EQ(narrow.largest(2044), 2044u);
	EXPECT_EQ(wide.largest(2044), 9'000u);
	EXPECT_EQ(none.largest(2044), 2044u);
}

/*
 * If a peer establishes and ends connections all the time, their QPs are destroyed at most once per
 * interval, so that packets of other peers are received in between.
 */
void ipoib_05_at_most_one_closed_connection_is_destroyed_per_100_ms(Test &test)
{
	constexpr u32 rounds = 4;
	constexpr u64 interval_ns = 100'000'000;
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	struct Ends {
		kern::Atomic<u32> count{0};
		u64 last_ns = 0, least_ns = ~u64{0};
	} ends;
	soft_interpose(
		subnet.b.device(), SOFT_DESTROY_QP,
		[](void *context) {
			auto &self = *static_cast<Ends *>(context);
			const u64 now = kern::now_ns();
			if (self.last_ns && now - self.last_ns < self.least_ns)
				self.least_ns = now - self.last_ns;
			self.last_ns = now;
			self.count.fetch_add(1);
		},
		&ends);
	const ConnectionData good{.qpn = 0x123u, .receive_bytes = connected_bytes};
	for (u32 round = 1; round <= rounds; round++) {
		EXPECT_EQ(Asker(subnet, &good, sizeof(good)).outcome(), Asker::agreed);
		ASSERT_TRUE(eventually([&] { return ends.count.load_acquire() == round; }));
	}
	soft_interpose(subnet.b.device(), SOFT_DESTROY_QP, nullptr, nullptr);
	EXPECT_GE(ends.least_ns, interval_ns);
}

/* A peer that has not agreed to omit checksums gets no packet without one. */
void ipoib_07_checksums_are_omitted_only_for_peers_that_allow_omission(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	Taker taker(subnet, 0x777, Taker::Answer::deaf);
	ASSERT_TRUE(taker.ok());
	const u64 sent = subnet.a.counter("connected_tx");
	ASSERT_TRUE(taker.send_unsummed(60'000));
	EXPECT_TRUE(eventually([&] { return subnet.a.counter("connected_tx") > sent; }));
	EXPECT_EQ(subnet.a.counter("connected_tx_unsummed"), 0u);
}

/* Packets that wait for peers that never respond are bounded, for each peer and in total. */
void ipoib_05_number_of_packets_waiting_for_connections_is_limited(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	constexpr u32 peers = 5, each = ActiveConnections::waiting_max;
	static_assert((peers - 1) * each == ActiveConnections::waiting_of_all_max);
	kern::Owned<Taker> takers[peers];
	u32 qpn = 0x777;
	for (kern::Owned<Taker> &taker : takers) {
		auto made =
			kern::make<Taker>(kern::Gfp::kernel, subnet, qpn++, Taker::Answer::none);
		ASSERT_OK(made);
		taker = made.take();
		ASSERT_TRUE(taker->ok());
		/* A small packet is sent as a datagram, which also resolves the path. */
		const u64 sent = subnet.a.stats().tx_packets;
		ASSERT_TRUE(taker->send(1'000));
		ASSERT_TRUE(eventually([&] { return subnet.a.stats().tx_packets > sent; }));
	}
	const u64 dropped = subnet.a.counter("connected_tx_dropped");
	for (const kern::Owned<Taker> &taker : takers)
		for (u32 i = 0; i < each; i++)
			ASSERT_TRUE(taker->send(60'000));
	EXPECT_EQ(subnet.a.counter("connected_tx_dropped"), dropped + each);
	ASSERT_TRUE(takers[0]->send(60'000));
	EXPECT_EQ(subnet.a.counter("connected_tx_dropped"), dropped + each + 1);
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 1'000));
	/* Packets whose peer never answered are released. */
	EXPECT_TRUE(eventually([&] { return subnet.a.counter("connections_failed") == peers; }));
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/*
 * Connections to one GID are bounded, however many QP numbers it claims: the next peer gets
 * datagrams, and the sender of a longer packet is notified at once.
 */
void ipoib_08_number_of_connections_to_one_peer_is_limited(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	constexpr u32 peers = ActiveConnections::of_peer_max;
	kern::Owned<Taker> takers[peers + 1];
	u32 qpn = 0x777;
	for (kern::Owned<Taker> &taker : takers) {
		auto made =
			kern::make<Taker>(kern::Gfp::kernel, subnet, qpn++, Taker::Answer::none);
		ASSERT_OK(made);
		taker = made.take();
		ASSERT_TRUE(taker->ok());
		const u64 sent = subnet.a.stats().tx_packets;
		ASSERT_TRUE(taker->send(1'000));
		ASSERT_TRUE(eventually([&] { return subnet.a.stats().tx_packets > sent; }));
	}
	const u64 before = lost(subnet);
	/* The host's own connection is one of them. */
	for (u32 i = 0; i < peers - 1; i++)
		ASSERT_TRUE(takers[i]->send(60'000));
	EXPECT_EQ(lost(subnet), before);
	ASSERT_TRUE(takers[peers]->send(60'000));
	EXPECT_TRUE(eventually([&] { return lost(subnet) == before + 1; }));
	ASSERT_TRUE(takers[peers]->send(1'000));
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/*
 * A packet that was queued in connected mode and is too long for a datagram is dropped, and causes
 * no QP error.
 */
void ipoib_02_packet_longer_than_a_datagram_is_dropped_in_datagram_mode(Test &test)
{
	Subnet subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.begin(Mode::datagram, Mode::datagram));
	subnet.a.down();
	ASSERT_EQ(subnet.a.up(), 0);
	ASSERT_TRUE(subnet.a.runs());
	const kern_net_stats before = subnet.a.stats();
	ASSERT_TRUE(subnet.a.send(subnet.b, 60'000));
	EXPECT_TRUE(eventually(
		[&] { return lost(subnet) == before.tx_errors + before.tx_dropped + 1; }));
	EXPECT_EQ(subnet.a.stats().tx_errors, before.tx_errors);
	EXPECT_TRUE(subnet.a.reaches(subnet.b));
}

/* The path to a peer that is reached only by a connection is queried again, too. */
void ipoib_03_path_is_queried_again_after_an_sm_change(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	const u64 queries = subnet.a.counter("path_queries");
	subnet.a.interface().on_event(IB_EVENT_SM_CHANGE);
	for (unsigned round = 0; round < 100 && subnet.a.counter("path_queries") == queries;
	     round++)
		ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	EXPECT_EQ(subnet.a.counter("path_queries"), queries + 1);
	EXPECT_EQ(subnet.a.counter("connections_made"), 1u);
}

/*
 * A packet that is sent while the resources of connected mode are being created uses either none or
 * all of them.
 */
void ipoib_06_packet_sent_during_a_mode_change_uses_the_old_or_new_mode(Test &test)
{
	Subnet subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.begin(Mode::datagram, Mode::connected));
	soft_interpose(
		subnet.a.device(), SOFT_CREATE_SRQ,
		[](void *context) {
			const auto &during = *static_cast<const Subnet *>(context);
			const u64 before = lost(during);
			(void)during.a.send(during.b, 60'000);
			const auto deadline = kern::Deadline::in_ms(200);
			while (lost(during) == before && !deadline.passed())
				kern::sleep_us(50, 200);
		},
		&subnet);
	EXPECT_EQ(set_mode(subnet.a, Mode::connected), 0);
	soft_interpose(subnet.a.device(), SOFT_CREATE_SRQ, nullptr, nullptr);
	EXPECT_TRUE(subnet.a.runs());
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/*
 * While one peer's connection is being ended, which may take long, those of other peers continue.
 */
void ipoib_05_closing_one_connection_does_not_block_packets_of_other_connections(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	ASSERT_TRUE(subnet.b.reaches(subnet.a, 60'000));
	struct During {
		const Subnet &subnet;
		kern::Atomic<u32> arrived{0};
	} during{subnet};
	/* The other direction's connection closes at the second host. */
	soft_interpose(
		subnet.b.device(), SOFT_MODIFY_QP,
		[](void *context) {
			auto &self = *static_cast<During *>(context);
			const u64 before = self.subnet.b.stats().rx_packets;
			(void)self.subnet.a.send(self.subnet.b, 60'000);
			const auto deadline = kern::Deadline::in_ms(1'000);
			while (self.subnet.b.stats().rx_packets == before && !deadline.passed())
				kern::sleep_us(50, 200);
			self.arrived.fetch_add(self.subnet.b.stats().rx_packets > before);
		},
		&during);
	PassiveConnections &passive = subnet.b.interface().connected().passive();
	const ConnectionData good{.qpn = 0x123u, .receive_bytes = connected_bytes};
	{
		Asker asker(subnet, &good, sizeof(good));
		ASSERT_EQ(asker.outcome(), Asker::agreed);
		ASSERT_TRUE(eventually([&] { return passive.size() == 2; }));
		during.arrived.store_release(0);
	}
	EXPECT_TRUE(eventually([&] { return passive.size() == 1; }));
	soft_interpose(subnet.b.device(), SOFT_MODIFY_QP, nullptr, nullptr);
	EXPECT_EQ(during.arrived.load_acquire(), 1u);
}

/*
 * A connection may fail before the REP has been sent: its QP already receives, and the peer may
 * send a packet that is too long. The accepting side continues with the ID, which refuses the REP.
 */
void ipoib_05_rej_is_sent_if_an_accepted_connection_fails_before_its_rep_is_sent(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	PassiveConnections &passive = subnet.b.interface().connected().passive();
	struct During {
		PassiveConnections &passive;
		kern::Atomic<u32> calls{0};
		kern::Atomic<const Asker *> asker{nullptr};
	} during{passive};
	/* The second of three calls: INIT, RTR and RTS. */
	soft_interpose(
		subnet.b.device(), SOFT_MODIFY_QP,
		[](void *context) {
			auto &self = *static_cast<During *>(context);
			if (self.calls.fetch_add(1) != 1)
				return;
			self.passive.end_all();
			/*
			 * The connection is ended in two steps. The first one notifies the peer,
			 * and the second waits until this function returns.
			 */
			(void)eventually([&] { return self.asker.load_acquire() != nullptr; });
			(void)self.asker.load_acquire()->outcome();
		},
		&during);
	const ConnectionData good{.qpn = 0x123u, .receive_bytes = connected_bytes};
	Asker asker(subnet, &good, sizeof(good));
	during.asker.store_release(&asker);
	EXPECT_EQ(asker.outcome(), static_cast<int>(IB_CM_REJ_CONSUMER_DEFINED));
	EXPECT_TRUE(eventually([&] { return passive.size() == 0; }));
	soft_interpose(subnet.b.device(), SOFT_MODIFY_QP, nullptr, nullptr);
}

/* A change of the MTU by the interface does not replace the administrator's. */
void ipoib_06_requested_mtu_survives_mode_changes(Test &test)
{
	Subnet subnet;
	ASSERT_TRUE(subnet.ok());
	constexpr u32 exactly = 2 << 6;
	subnet.administrator.group_mtu.store_release(exactly | IB_MTU_2048);
	ASSERT_TRUE(subnet.begin(Mode::datagram, Mode::datagram));
	EXPECT_EQ(kern_netdev_mtu(subnet.a.dev()), 2044u);
	EXPECT_EQ(set_mode(subnet.a, Mode::connected), 0);
	EXPECT_TRUE(subnet.a.runs());
	EXPECT_EQ(set_mode(subnet.a, Mode::datagram), 0);
	EXPECT_TRUE(subnet.a.runs());
	EXPECT_EQ(kern_netdev_mtu(subnet.a.dev()), 2044u);
	/* The new broadcast domain has a larger MTU. */
	subnet.administrator.group_mtu.store_release(exactly | IB_MTU_4096);
	subnet.a.down();
	ASSERT_EQ(subnet.a.up(), 0);
	EXPECT_TRUE(eventually([&] { return kern_netdev_mtu(subnet.a.dev()) == 4092u; }));
}

} // namespace

CARD_SUITE(
	ipoib_connected_peers,
	KUNIT_CASE(
		ipoib_03_peer_that_accepts_connections_but_never_receives_is_connected_at_most_once),
	KUNIT_CASE(ipoib_07_checksums_are_omitted_only_for_peers_that_allow_omission),
	KUNIT_CASE(ipoib_05_rnr_retries_are_limited_even_if_the_peer_requests_infinite_retries),
	KUNIT_CASE(ipoib_03_srq_in_error_is_replaced),
	KUNIT_CASE(ipoib_05_connection_attempt_is_aborted_if_the_peer_sends_an_mra),
	KUNIT_CASE(
		ipoib_05_connections_to_one_peer_leave_send_requests_for_connections_to_other_peers),
	KUNIT_CASE(ipoib_05_at_most_one_closed_connection_is_destroyed_per_100_ms),
	KUNIT_CASE(ipoib_05_number_of_packets_waiting_for_connections_is_limited),
	KUNIT_CASE(ipoib_08_number_of_connections_to_one_peer_is_limited),
	KUNIT_CASE(ipoib_02_packet_longer_than_a_datagram_is_dropped_in_datagram_mode),
	KUNIT_CASE(ipoib_03_path_is_queried_again_after_an_sm_change),
	KUNIT_CASE(ipoib_06_packet_sent_during_a_mode_change_uses_the_old_or_new_mode),
	KUNIT_CASE(ipoib_05_closing_one_connection_does_not_block_packets_of_other_connections),
	KUNIT_CASE(ipoib_05_rej_is_sent_if_an_accepted_connection_fails_before_its_rep_is_sent),
	KUNIT_CASE(ipoib_06_requested_mtu_survives_mode_changes));
