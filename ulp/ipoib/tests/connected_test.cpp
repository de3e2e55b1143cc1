// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests connected mode: packets of all sizes arrive, and interfaces continue to work if no
// connection can be established.
#include "connected_fixture.hpp"

using namespace ipoib;
using namespace ipoib::fixture;

namespace
{

/* Packets of all sizes arrive in both directions, and large ones use one connection. */
void ipoib_01_packets_of_all_sizes_arrive_over_one_connection(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	EXPECT_EQ(kern_netdev_mtu(subnet.a.dev()), connected_mtu);
	for (const auto &[from, to] :
	     {std::pair{&subnet.a, &subnet.b}, std::pair{&subnet.b, &subnet.a}}) {
		EXPECT_TRUE(from->reaches(*to, 60'000));
		for (const unsigned length :
		     {60u, 250u, 2044u, 2045u, 8188u, 8189u, 30'000u, connected_mtu}) {
			const u64 before = to->stats().rx_bytes;
			constexpr unsigned count = 20;
			for (unsigned i = 0; i < count; i++)
				EXPECT_TRUE(from->send(*to, length));
			EXPECT_TRUE(eventually([&] {
				return to->stats().rx_bytes >= before + u64{count} * length;
			}));
		}
		EXPECT_EQ(from->counter("connections_made"), 1u);
		EXPECT_EQ(to->counter("connections_accepted"), 1u);
		EXPECT_EQ(from->counter("connected_tx_dropped"), 0u);
	}
}

/*
 * Messages whose completions arrive after the last poll and before the arm are all received, on
 * hardware that raises no event for them.
 */
void notify_09_connected_mode_packet_that_arrives_between_cq_poll_and_arm_is_received(Test &test)
{
	constexpr unsigned rounds = 30, length = 30'000;
	BothConnected subnet(SOFT_TASK, SOFT_NOTIFY_REPORTS);
	ASSERT_TRUE(subnet.ok());
	EXPECT_TRUE(subnet.a.reaches(subnet.b, length));
	InTheWindow window(subnet);
	kern::SeededRandom random(test.seed());
	for (unsigned round = 0; round < rounds; round++) {
		const u64 received = subnet.b.stats().rx_bytes;
		const unsigned count = 1 + random.below(8);
		for (unsigned i = 0; i < count; i++)
			EXPECT_TRUE(subnet.a.send(subnet.b, length));
		ASSERT_TRUE(eventually([&] {
			return subnet.b.stats().rx_bytes >= received + u64{count} * length;
		}));
	}
}

/*
 * If the CQ of the connections cannot be armed, there is no event to wait for: the interface
 * restarts, and its peer connects again.
 */
void notify_02_peer_reconnects_after_arming_the_connection_cq_failed(Test &test)
{
	constexpr unsigned length = 30'000;
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, length));
	const unsigned long before = soft_calls(subnet.b.device(), SOFT_CREATE_SRQ);
	soft_fail_arms(subnet.b.interface().connected().cq(), 1, -EIO);
	EXPECT_TRUE(subnet.a.send(subnet.b, length));
	EXPECT_TRUE(eventually(
		[&] { return soft_calls(subnet.b.device(), SOFT_CREATE_SRQ) > before; }));
	EXPECT_TRUE(subnet.b.runs());
	EXPECT_TRUE(subnet.a.reaches(subnet.b, length));
}

/* An interface is not opened in connected mode if the CQ of its connections cannot be armed. */
void notify_02_interface_open_in_connected_mode_fails_if_the_connection_cq_cannot_be_armed(
	Test &test)
{
	Subnet subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_EQ(set_mode(subnet.a, Mode::connected), 0);
	/*
	 * This CQ is the first one that the interface arms. The port's GSI may arm its CQ before.
	 */
	EXPECT_TRUE(eventually([&] {
		FailNth fault(subnet.a.device(), SOFT_REQ_NOTIFY_CQ, 1);
		const int status = subnet.a.up();
		if (status == 0)
			subnet.a.down();
		return status == -EIO;
	}));
	EXPECT_EQ(subnet.a.interface().state(), Interface::State::down);
	EXPECT_EQ(subnet.a.up(), 0);
	EXPECT_TRUE(subnet.a.runs());
}

/* A packet that ends within its header is dropped by a connection, too. */
void ipoib_09_packet_with_a_truncated_header_is_not_sent_over_a_connection(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	for (const unsigned length : {address_bytes, hard_header_bytes - 1}) {
		const u64 dropped = subnet.a.counter("connected_tx_dropped");
		EXPECT_EQ(kern_kunit_netdev_send_cut(subnet.a.dev(), subnet.b.address(), type_ipv4,
						     length),
			  0);
		EXPECT_EQ(subnet.a.counter("connected_tx_dropped"), dropped + 1);
	}
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/*
 * All packets to a peer in datagram mode are sent as datagrams; a longer packet is dropped, and its
 * sender notified.
 */
void ipoib_02_peer_in_datagram_mode_gets_only_datagrams(Test &test)
{
	Subnet subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.begin(Mode::connected, Mode::datagram));
	const u64 dropped = subnet.a.stats().tx_dropped;
	EXPECT_TRUE(subnet.a.send(subnet.b, 60'000));
	EXPECT_TRUE(eventually([&] { return subnet.a.stats().tx_dropped == dropped + 1; }));
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 2044));
	EXPECT_EQ(subnet.a.counter("connections_made") + subnet.a.counter("connections_failed"),
		  0u);
	EXPECT_EQ(subnet.b.counter("connected_rx"), 0u);

	/* An address that claims to support connected mode at a host that refuses connections. */
	HardwareAddress liar;
	__builtin_memcpy(&liar, subnet.b.address(), sizeof(liar));
	liar.flags = HardwareAddress::flag_rc;
	EXPECT_EQ(kern_kunit_netdev_send(subnet.a.dev(), &liar, type_ipv4, 60'000), 0);
	EXPECT_TRUE(eventually([&] { return subnet.a.stats().tx_dropped == dropped + 2; }));
	EXPECT_EQ(subnet.a.counter("connections_failed"), 1u);
	const u64 received = subnet.b.stats().rx_packets;
	EXPECT_EQ(kern_kunit_netdev_send(subnet.a.dev(), &liar, type_ipv4, 1'000), 0);
	EXPECT_TRUE(eventually([&] { return subnet.b.stats().rx_packets > received; }));
}

/* If the other end of a connection disappears, the next packet creates a new connection. */
void ipoib_03_lost_connection_is_reestablished(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	for (unsigned round = 0; round < 3; round++) {
		EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
		subnet.b.restart();
		EXPECT_TRUE(subnet.b.runs());
		EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
		/* The same happens to this host's end while packets are in flight. */
		for (unsigned i = 0; i < 10; i++)
			(void)subnet.a.send(subnet.b, 60'000);
		subnet.a.down();
		ASSERT_EQ(subnet.a.up(), 0);
		ASSERT_TRUE(subnet.a.runs());
	}
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	EXPECT_GE(subnet.a.counter("connections_made"), 4u);
}

/* Unused connections are closed, on the active side and on the passive side. */
void ipoib_04_idle_connections_are_closed(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	PassiveConnections &passive = subnet.b.interface().connected().passive();
	ASSERT_TRUE(eventually([&] { return passive.size() == 1; }));
	for (unsigned round = 0; round + 1 < PassiveConnections::idle_rounds_max; round++)
		TimePasses::on(subnet.b.interface());
	EXPECT_EQ(passive.size(), 1u);
	TimePasses::on(subnet.b.interface());
	TimePasses::on(subnet.b.interface());
	EXPECT_TRUE(eventually([&] { return passive.size() == 0; }));
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	ASSERT_TRUE(eventually([&] { return passive.size() == 1; }));
	/*
	 * A destination without packets is removed after four rounds, and with it the connection.
	 */
	for (unsigned round = 0; round < 6; round++)
		TimePasses::on(subnet.a.interface());
	EXPECT_TRUE(eventually([&] { return passive.size() == 0; }));
}

/*
 * The contents of a REQ are not trusted, and the number of REQs of one peer is bounded. Both cases
 * are rejected, and do not affect other peers.
 */
void ipoib_05_invalid_and_excess_connection_requests_are_rejected(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	const ConnectionData nobody{.qpn = 0u, .receive_bytes = connected_bytes},
		group{.qpn = ib::qpn_multicast, .receive_bytes = connected_bytes},
		narrow{.qpn = 0x123u, .receive_bytes = 71u},
		good{.qpn = 0x123u, .receive_bytes = connected_bytes};
	for (const ConnectionData *bad : {&nobody, &group, &narrow})
		EXPECT_EQ(Asker(subnet, bad, sizeof(*bad)).outcome(), IB_CM_REJ_CONSUMER_DEFINED);
	EXPECT_EQ(Asker(subnet, nullptr, 0).outcome(), IB_CM_REJ_CONSUMER_DEFINED);
	/* The byte above the QP number is reserved, so its value is ignored. */
	const ConnectionData reserved{.qpn = 0xff00'0123u, .receive_bytes = connected_bytes};
	EXPECT_EQ(Asker(subnet, &reserved, sizeof(reserved)).outcome(), Asker::agreed);
	EXPECT_TRUE(
		eventually([&] { return subnet.b.interface().connected().passive().size() == 1; }));

	/* The host's own connection is one of them. */
	kern::Owned<Asker> askers[PassiveConnections::of_peer_max - 1];
	for (kern::Owned<Asker> &asker : askers) {
		auto made = kern::make<Asker>(kern::Gfp::kernel, subnet, &good, u8{sizeof(good)});
		ASSERT_OK(made);
		asker = made.take();
		EXPECT_EQ(asker->outcome(), Asker::agreed);
	}
	for (unsigned i = 0; i < 200; i++)
		ASSERT_EQ(Asker(subnet, &good, sizeof(good)).outcome(), IB_CM_REJ_NO_RESOURCES);
	PassiveConnections &passive = subnet.b.interface().connected().passive();
	EXPECT_EQ(passive.size(), PassiveConnections::of_peer_max);
	EXPECT_TRUE(subnet.b.reaches(subnet.a, 60'000));
	for (kern::Owned<Asker> &asker : askers)
		asker.reset();
	EXPECT_TRUE(eventually([&] { return passive.size() == 1; }));
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/*
 * Between two weft hosts, a packet may be sent without its checksum if the receiver can locate it
 * from the headers. An impossible position is not trusted.
 */
void ipoib_07_checksums_are_omitted_between_weft_hosts(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	const auto send = [&](unsigned length, unsigned start, unsigned offset) {
		const u64 before = subnet.b.stats().rx_packets + subnet.b.stats().rx_errors;
		return kern_kunit_netdev_send_unsummed(subnet.a.dev(), subnet.b.address(),
						       type_ipv4, length, start, offset) == 0 &&
		       eventually([&] {
			       return subnet.b.stats().rx_packets + subnet.b.stats().rx_errors >
				      before;
		       });
	};
	const u64 errors = subnet.b.stats().rx_errors;
	for (const unsigned length : {250u, 30'000u, connected_mtu})
		EXPECT_TRUE(send(length, 20, 16));
	EXPECT_EQ(subnet.a.counter("connected_tx_unsummed"), 3u);
	EXPECT_EQ(subnet.b.counter("connected_rx_unsummed"), 3u);
	/* The checksum is not at TCP's offset, so it is computed before sending. */
	EXPECT_TRUE(send(30'000, 256, 16));
	EXPECT_TRUE(send(30'000, 20, 6));
	EXPECT_TRUE(send(30'000, 24, 16));
	EXPECT_EQ(subnet.a.counter("connected_tx_unsummed"), 3u);
	EXPECT_EQ(subnet.b.stats().rx_errors, errors);

	/* A peer that has agreed may also send a packet that has no valid place for a checksum. */
	soft_watch(
		subnet.a.device(),
		[](void *, const void *payload, size_t length) {
			auto *bytes = const_cast<u8 *>(static_cast<const u8 *>(payload));
			if (length == 400 + sizeof(Header))
				bytes[sizeof(Header) + 9] = 99;
			return false;
		},
		nullptr);
	EXPECT_TRUE(send(400, 20, 16));
	soft_watch(subnet.a.device(), nullptr, nullptr);
	EXPECT_EQ(subnet.b.stats().rx_errors, errors + 1);
	EXPECT_EQ(subnet.b.counter("connected_rx_unsummed"), 3u);
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/*
 * An interface that is set to verify checksums itself (`rx off`) ends agreements to omit them, and
 * makes no new ones; its peers reconnect and continue.
 */
void ipoib_07_checksums_are_sent_if_the_receiver_verifies_them(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	const auto send = [&] {
		return kern_kunit_netdev_send_unsummed(subnet.a.dev(), subnet.b.address(),
						       type_ipv4, 60'000, 20, 16) == 0;
	};
	const auto verify = [&](bool itself) {
		kern::RtnlGuard rtnl;
		netdev_ops.set_rx_checksum(&subnet.b.interface(), !itself);
	};
	ASSERT_TRUE(send());
	ASSERT_TRUE(eventually([&] { return subnet.b.counter("connected_rx_unsummed") == 1; }));

	/*
	 * A packet without a checksum that is in flight during that change is dropped, like a
	 * segment with a wrong checksum.
	 */
	soft_watch(
		subnet.a.device(),
		[](void *interface, const void *, size_t length) {
			if (length == 60'000 + sizeof(Header))
				static_cast<Interface *>(interface)
					->connected()
					.passive()
					.set_takes_unsummed(false);
			return false;
		},
		&subnet.b.interface());
	const u64 before = subnet.b.counter("connected_rx");
	ASSERT_TRUE(send());
	ASSERT_TRUE(
		eventually([&] { return subnet.b.counter("connected_rx_unsummed_lost") == 1; }));
	soft_watch(subnet.a.device(), nullptr, nullptr);
	EXPECT_EQ(subnet.b.counter("connected_rx"), before);
	verify(true);
	PassiveConnections &passive = subnet.b.interface().connected().passive();
	ASSERT_TRUE(eventually([&] { return passive.size() == 0; }));
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	EXPECT_EQ(passive.size(), 1u);
	const u64 left = subnet.a.counter("connected_tx_unsummed"),
		  received = subnet.b.stats().rx_packets;
	ASSERT_TRUE(send());
	ASSERT_TRUE(eventually([&] { return subnet.b.stats().rx_packets > received; }));
	EXPECT_EQ(subnet.a.counter("connected_tx_unsummed"), left);
	EXPECT_EQ(subnet.b.counter("connected_rx_unsummed"), 1u);

	/* A connection that verifies checksums stays in use; the next one omits them again. */
	verify(false);
	EXPECT_EQ(passive.size(), 1u);
	subnet.b.restart();
	EXPECT_TRUE(subnet.b.runs());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	ASSERT_TRUE(send());
	EXPECT_TRUE(eventually([&] { return subnet.b.counter("connected_rx_unsummed") == 2; }));
}

/* If a mode change fails at any step, the interface keeps its mode and works. */
void ipoib_06_interface_stays_in_its_mode_if_a_mode_change_fails(Test &test)
{
	Subnet subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.begin(Mode::datagram, Mode::connected));
	const unsigned mtu = kern_netdev_mtu(subnet.a.dev());
	for (const soft_method method :
	     {SOFT_CREATE_CQ, SOFT_CREATE_SRQ, SOFT_POST_SRQ_RECV, SOFT_MODIFY_QP}) {
		bool failed = true;
		for (unsigned nth = 1; failed && nth < 20; nth++) {
			int status;
			{
				FailNth fault(subnet.a.device(), method, nth);
				status = set_mode(subnet.a, Mode::connected);
				failed = fault.failed();
			}
			if (status)
				EXPECT_EQ(subnet.a.interface().mode(), Mode::datagram);
			EXPECT_TRUE(subnet.a.runs());
			EXPECT_TRUE(subnet.a.reaches(subnet.b));
			EXPECT_EQ(set_mode(subnet.a, Mode::datagram), 0);
			EXPECT_EQ(kern_netdev_mtu(subnet.a.dev()), mtu);
		}
	}
	EXPECT_EQ(set_mode(subnet.a, Mode::connected), 0);
	EXPECT_TRUE(subnet.a.runs());
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/* If a QP cannot be created or modified, on either side, packets are sent as datagrams. */
void ipoib_02_failed_connection_falls_back_to_datagrams(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	for (const Host *host : {&subnet.a, &subnet.b}) {
		/*
		 * On the active side, RTR and RTS follow the REP, and a failure there rejects the
		 * REP; the passive side rejects the REQ.
		 */
		for (const auto &[method, calls] :
		     {std::pair{SOFT_CREATE_QP, 1u}, std::pair{SOFT_MODIFY_QP, 3u}}) {
			for (unsigned nth = 1; nth <= calls; nth++) {
				/* The first packet creates a connection. */
				subnet.a.down();
				ASSERT_EQ(subnet.a.up(), 0);
				ASSERT_TRUE(subnet.a.runs());
				const u64 failed = subnet.a.counter("connections_failed");
				{
					FailNth fault(host->device(), method, nth);
					(void)subnet.a.send(subnet.b, 60'000);
					EXPECT_TRUE(eventually([&] {
						return subnet.a.counter("connections_failed") ==
						       failed + 1;
					}));
				}
				EXPECT_TRUE(subnet.a.reaches(subnet.b, 1'000));
			}
		}
	}
	subnet.a.down();
	ASSERT_EQ(subnet.a.up(), 0);
	ASSERT_TRUE(subnet.a.runs());
	EXPECT_TRUE(subnet.a.reaches(subnet.b, 60'000));
}

/* The device is removed while there are active and passive connections. */
void ipoib_06_device_removal_closes_all_connections(Test &test)
{
	BothConnected subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.a.reaches(subnet.b, 60'000));
	ASSERT_TRUE(subnet.b.reaches(subnet.a, 60'000));
	for (unsigned i = 0; i < 10; i++)
		(void)subnet.a.send(subnet.b, 60'000);
	subnet.b.remove();
	subnet.a.remove();
}

} // namespace

CARD_SUITE(
	ipoib_connected,
	KUNIT_CASE(ipoib_09_packet_with_a_truncated_header_is_not_sent_over_a_connection),
	KUNIT_CASE(ipoib_01_packets_of_all_sizes_arrive_over_one_connection),
	KUNIT_CASE(
		notify_09_connected_mode_packet_that_arrives_between_cq_poll_and_arm_is_received),
	KUNIT_CASE(notify_02_peer_reconnects_after_arming_the_connection_cq_failed),
	KUNIT_CASE(
		notify_02_interface_open_in_connected_mode_fails_if_the_connection_cq_cannot_be_armed),
	KUNIT_CASE(ipoib_02_peer_in_datagram_mode_gets_only_datagrams),
	KUNIT_CASE(ipoib_03_lost_connection_is_reestablished),
	KUNIT_CASE(ipoib_04_idle_connections_are_closed),
	KUNIT_CASE(ipoib_05_invalid_and_excess_connection_requests_are_rejected),
	KUNIT_CASE(ipoib_07_checksums_are_omitted_between_weft_hosts),
	KUNIT_CASE(ipoib_07_checksums_are_sent_if_the_receiver_verifies_them),
	KUNIT_CASE(ipoib_06_interface_stays_in_its_mode_if_a_mode_change_fails),
	KUNIT_CASE(ipoib_02_failed_connection_falls_back_to_datagrams),
	KUNIT_CASE(ipoib_06_device_removal_closes_all_connections));
