// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that an interface with the maximum number of connections changes its mode without waiting
// for its peers.
#include "connected_fixture.hpp"

using namespace ipoib;
using namespace ipoib::fixture;

namespace
{

constexpr u32 gids = ActiveConnections::connections_max / ActiveConnections::of_peer_max;
static_assert(gids >= PassiveConnections::connections_max / PassiveConnections::of_peer_max);

/* Two hosts whose ports have many GIDs. Each GID counts as a separate peer. */
struct Crowded : Subnet {
	Crowded() : Subnet(SOFT_HARD_INTERRUPT, SOFT_NOTIFY_FIRES, gids)
	{
		if (!ok())
			return;
		for (const Host *host : {&a, &b}) {
			ib_gid gid = gid_of(*host);
			for (unsigned int i = 1; i < gids; i++) {
				gid.raw[8] = 2;
				gid.raw[9] = static_cast<u8>(i);
				soft_set_gid(host->device(), 1, i, &gid);
			}
			ib_event event{};
			event.device = host->device();
			event.event = IB_EVENT_GID_CHANGE;
			event.element.port_num = 1;
			ib_dispatch_event(&event);
			(void)eventually([&] {
				u32 port;
				u16 index;
				return ib_find_cached_gid(host->device(), &gid, &port, &index) == 0;
			});
		}
	}
};

/*
 * Accepts every connection to the second host, and sends nothing afterwards, so a DREQ gets no
 * reply.
 */
class Silent
{
public:
	explicit Silent(const Host &host)
	    : listener_(ib_create_cm_id(host.device(), on_event, this))
	{
		constexpr u64 of_any_qp = u64{0xff} << 56;
		ok_ = !rdma::is_err(listener_) &&
		      ib_cm_listen(listener_, connection_service(0), of_any_qp) == 0;
	}
	~Silent()
	{
		if (!rdma::is_err(listener_))
			ib_destroy_cm_id(listener_);
		for (u32 i = 0; i < taken_; i++)
			ib_destroy_cm_id(ids_[i]);
	}
	Silent(const Silent &) = delete;
	Silent &operator=(const Silent &) = delete;
	bool ok() const { return ok_; }

private:
	int take(ib_cm_id *id)
	{
		if (taken_ == sizeof(ids_) / sizeof(ids_[0]))
			return -ENOMEM;
		const ConnectionData data{.qpn = 0x123u, .receive_bytes = connected_bytes};
		ib_cm_rep_param rep{};
		rep.qp_num = 0x80'0000 + taken_;
		rep.private_data = &data;
		rep.private_data_len = sizeof(data);
		if (ib_send_cm_rep(id, &rep))
			return -EIO;
		ids_[taken_++] = id;
		return 0;
	}
	static int on_event(ib_cm_id *id, const ib_cm_event *event)
	{
		return event->event == IB_CM_REQ_RECEIVED
			       ? static_cast<Silent *>(id->context)->take(id)
			       : 0;
	}

	ib_cm_id *const listener_;
	bool ok_ = false;
	/* Changed only by the listener's handler, which runs once at a time. */
	u32 taken_ = 0;
	ib_cm_id *ids_[ActiveConnections::connections_max];
};

/* The device calls that a change to datagram mode causes, and its total waiting time. */
struct Cost {
	unsigned long destroyed, moved, posted;
	u64 waited_ns;
};

Cost cost_of_leaving(const Host &host)
{
	const auto now = [&] {
		return Cost{soft_calls(host.device(), SOFT_DESTROY_QP),
			    soft_calls(host.device(), SOFT_MODIFY_QP),
			    soft_calls(host.device(), SOFT_POST_SEND), kern::now_ns()};
	};
	const Cost before = now();
	kern_assert(set_mode(host, Mode::datagram) == 0);
	const Cost after = now();
	return {after.destroyed - before.destroyed, after.moved - before.moved,
		after.posted - before.posted, after.waited_ns - before.waited_ns};
}

/*
 * The rtnl lock is held while the device handles each connection, but not while a peer may respond.
 * So silent peers cost nothing, however many there are. In this kernel, time passes only while a
 * task waits. RCU grace periods, which are also awaited without connections, end at a tick.
 */
void expect_no_waiting(Test &test, const Cost &cost, const Cost &without, u32 connections)
{
	constexpr u64 ticks_ns = 50'000'000;
	/* The SA gets requests for groups and paths at any time. */
	constexpr u32 messages = 16;
	EXPECT_EQ(cost.destroyed, without.destroyed + connections);
	EXPECT_LE(cost.posted, without.posted + connections + messages);
	EXPECT_LE(cost.waited_ns, without.waited_ns + ticks_ns);
}

/* The interface has the maximum number of connections, all to peers that do not respond. */
void ipoib_06_mode_change_does_not_wait_for_peers_of_outgoing_connections(Test &test)
{
	constexpr u32 count = ActiveConnections::connections_max;
	Crowded subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.begin(Mode::connected, Mode::datagram));
	const Cost without = cost_of_leaving(subnet.a);
	ASSERT_EQ(set_mode(subnet.a, Mode::connected), 0);
	ASSERT_TRUE(subnet.a.runs());
	auto silent = kern::make<Silent>(kern::Gfp::kernel, subnet.b);
	ASSERT_OK(silent);
	ASSERT_TRUE(silent.value()->ok());
	for (u32 i = 0; i < count; i++) {
		const ib_gid gid = gid_of(subnet.b, i % gids);
		HardwareAddress to;
		__builtin_memcpy(&to, subnet.b.address(), sizeof(to));
		to.flags = HardwareAddress::flag_rc;
		to.qpn_bytes[0] = 0x70;
		to.qpn_bytes[1] = 0;
		to.qpn_bytes[2] = static_cast<u8>(i / gids);
		__builtin_memcpy(to.gid.raw, gid.raw, sizeof(to.gid.raw));
		ASSERT_EQ(kern_kunit_netdev_send(subnet.a.dev(), &to, type_ipv4, 1'000), 0);
	}
	ASSERT_TRUE(eventually([&] { return subnet.a.counter("connections_made") == count; }));

	const Cost cost = cost_of_leaving(subnet.a);
	expect_no_waiting(test, cost, without, count);
	EXPECT_EQ(cost.moved, without.moved);
	EXPECT_TRUE(subnet.a.runs());
	EXPECT_TRUE(subnet.a.reaches(subnet.b));
}

/* The same holds for the maximum number of connections that peers have established. */
void ipoib_06_mode_change_does_not_wait_for_peers_of_incoming_connections(Test &test)
{
	constexpr u32 count = PassiveConnections::connections_max;
	Crowded subnet;
	ASSERT_TRUE(subnet.ok());
	ASSERT_TRUE(subnet.begin(Mode::datagram, Mode::connected));
	const Cost without = cost_of_leaving(subnet.b);
	ASSERT_EQ(set_mode(subnet.b, Mode::connected), 0);
	ASSERT_TRUE(subnet.b.runs());
	const ConnectionData good{.qpn = 0x123u, .receive_bytes = connected_bytes};
	auto askers = kern::make_array<kern::Owned<Asker>>(kern::Gfp::kernel, count);
	ASSERT_OK(askers);
	u32 number = 0;
	for (kern::Owned<Asker> &asker : askers.value()) {
		auto made = kern::make<Asker>(kern::Gfp::kernel, subnet, &good, u8{sizeof(good)},
					      number++ / PassiveConnections::of_peer_max);
		ASSERT_OK(made);
		asker = made.take();
		ASSERT_EQ(asker->outcome(), Asker::agreed);
	}
	const Cost cost = cost_of_leaving(subnet.b);
	expect_no_waiting(test, cost, without, count);
	/* The QP is moved to ERR before it is polled for the last time. */
	EXPECT_EQ(cost.moved, without.moved + count);
	EXPECT_TRUE(subnet.b.runs());
	EXPECT_TRUE(subnet.b.reaches(subnet.a));
}

} // namespace

CARD_SUITE(ipoib_connected_crowd,
	   KUNIT_CASE(ipoib_06_mode_change_does_not_wait_for_peers_of_outgoing_connections),
	   KUNIT_CASE(ipoib_06_mode_change_does_not_wait_for_peers_of_incoming_connections));
