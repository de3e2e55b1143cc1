// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests connections whose peer's port changes its LID while they are established.
#include "../../mad/tests/sa_fixture.hpp"
#include "fixture.hpp"

using namespace cm_fixture;

namespace
{

/* The port has these LIDs from now on. */
bool set_lids(ib_device *device, u16 lid, u16 manager)
{
	ib_port_attr attr;
	if (ib_query_port(device, 1, &attr))
		return false;
	attr.lid = lid;
	attr.sm_lid = manager;
	soft_set_port(device, 1, &attr);
	for (ib_event_type type : {IB_EVENT_LID_CHANGE, IB_EVENT_SM_CHANGE}) {
		ib_event event{};
		event.device = device;
		event.element.port_num = 1;
		event.event = type;
		ib_dispatch_event(&event);
	}
	return true;
}

/* A node that is connected to a peer, and a subnet administration that knows where the peer is. */
struct Moving {
	static constexpr u16 before = 2, after = 9, manager_lid = 5;

	Node node{1};
	UnknownPeer peer{before}, other{3};
	mad_fixture::Node manager{manager_lid};
	mad_fixture::Administrator sa{manager};
	End active, listener, passive;
	kern::Atomic<u32> lid_of_peer{before};

	bool ok()
	{
		sa.describe_context = this;
		sa.describe = [](void *context, ib::PathRecord &path) {
			auto &self = *static_cast<Moving *>(context);
			path.slid = self.node.lid();
			path.dlid = static_cast<u16>(self.lid_of_peer.load_acquire());
		};
		listener.fresh = &passive;
		return node.ok() && manager.ok() && sa.ok() && peer.open() && other.open() &&
		       set_lids(node.device(), 1, manager_lid) && active.open(node) &&
		       listener.open(node) && ib_cm_listen(listener.id, service, 0) == 0 &&
		       connect();
	}
	ib::Mad to_active(ib::CmAttribute attribute)
	{
		return UnknownPeer::make(attribute, 0x77, active.id->local_id);
	}
	bool connect()
	{
		if (active.request(node, peer.node) != 0 || !peer.receives(ib::CmAttribute::req))
			return false;
		ib::Mad rep = to_active(ib::CmAttribute::rep);
		ib::cm_message<ib::CmRep>(rep).qpn = other_qpn;
		ib::cm_message<ib::CmRep>(rep).ca_guid = peer.node.guid();
		return peer.says(node, rep) && active.receives(IB_CM_REP_RECEIVED) &&
		       ib_send_cm_rtu(active.id, "rtu", 4) == 0;
	}
	ib::Mad dreq()
	{
		ib::Mad mad = to_active(ib::CmAttribute::dreq);
		ib::cm_message<ib::CmDreq>(mad).remote_qpn = some_qpn;
		return mad;
	}
	/* Changes the LID of the peer's port, and the SA's answers with it. */
	bool move()
	{
		lid_of_peer.store_release(after);
		return set_lids(peer.node.device(), after, manager_lid);
	}
	/* Repeats the message until the event arrives, as a real peer would. */
	bool says_until(UnknownPeer &who, const ib::Mad &mad, ib_cm_event_type type)
	{
		return eventually(
			[&] { return who.says(node, mad) && active.delivered(type) != 0; });
	}
};

/* A DREQ from the peer's new LID is accepted, and the reply goes to that LID. */
void cm_13_dreq_from_the_peers_new_lid_is_accepted(Test &test)
{
	Boxed<Moving> moving;
	ASSERT_TRUE(moving.ok() && moving->move());
	EXPECT_TRUE(moving->says_until(moving->peer, moving->dreq(), IB_CM_DREQ_RECEIVED));
	EXPECT_EQ(ib_send_cm_drep(moving->active.id, nullptr, 0), 0);
	EXPECT_TRUE(moving->peer.receives(ib::CmAttribute::drep));
}

/* A peer that connects again from its new LID with the same QP closes the old connection. */
void cm_13_req_from_the_peers_new_lid_closes_the_old_connection(Test &test)
{
	Boxed<Moving> moving;
	ASSERT_TRUE(moving.ok() && moving->move());
	ASSERT_TRUE(moving->peer.says(moving->node, moving->peer.make_req(moving->node, 0x1234)));
	EXPECT_TRUE(moving->peer.receives(ib::CmAttribute::rej));
	/* The DREQ uses the path to the peer's new LID. */
	EXPECT_TRUE(moving->peer.receives(ib::CmAttribute::dreq));
	ASSERT_TRUE(moving->peer.says(moving->node, moving->to_active(ib::CmAttribute::drep)));
	EXPECT_TRUE(moving->active.receives(IB_CM_DREP_RECEIVED));
	ASSERT_TRUE(moving->peer.says(moving->node, moving->peer.make_req(moving->node, 0x1235)));
	EXPECT_TRUE(moving->passive.receives(IB_CM_REQ_RECEIVED));
}

/* A node that does not have the LID of the peer's port cannot end the connection. */
void cm_13_dreq_and_req_from_a_node_other_than_the_peer_do_not_close_the_connection(Test &test)
{
	Boxed<Moving> moving;
	ASSERT_TRUE(moving.ok());
	const unsigned int asked = moving->sa.gets.load_acquire();
	ASSERT_TRUE(moving->other.says(moving->node, moving->dreq()));
	ASSERT_TRUE(eventually([&] { return moving->sa.gets.load_acquire() > asked; }));
	ib::Mad req = moving->other.make_req(moving->node, 0x1234);
	ib::cm_message<ib::CmReq>(req).ca_guid = moving->peer.node.guid();
	/*
	 * Repeats until the answer to the first query has been processed and another query was
	 * sent.
	 */
	ASSERT_TRUE(eventually([&] {
		return moving->other.says(moving->node, req) &&
		       moving->sa.gets.load_acquire() > asked + 1;
	}));
	ASSERT_TRUE(eventually([&] {
		return moving->other.says(moving->node, moving->dreq()) &&
		       moving->sa.gets.load_acquire() > asked + 2;
	}));
	EXPECT_EQ(moving->active.state(), IB_CM_ESTABLISHED);
	EXPECT_EQ(moving->active.delivered(IB_CM_DREQ_RECEIVED), 0u);
	EXPECT_EQ(moving->peer.received(ib::CmAttribute::dreq), 0u);
}

} // namespace

KUNIT_SUITE(
	cm_moved, KUNIT_CASE(cm_13_dreq_from_the_peers_new_lid_is_accepted),
	KUNIT_CASE(cm_13_req_from_the_peers_new_lid_closes_the_old_connection),
	KUNIT_CASE(cm_13_dreq_and_req_from_a_node_other_than_the_peer_do_not_close_the_connection));
