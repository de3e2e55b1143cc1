// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// MGMT-03: the SA client, against an administrator of the test's own on another node.
#include "fixture.hpp"

#include <ib/sa.hpp>
#include <rdma/ib_sa.h>

using namespace mad_fixture;

namespace
{

/* Answers path and multicast records as told to. */
class Administrator {
public:
	kern::Atomic<unsigned int> gets{}, joins{}, leaves{};
	kern::Atomic<u32> refuse{}; /* answers with this status */
	kern::Atomic<u32> mlid{0xc001};

	explicit Administrator(const Node &node) : node_(node)
	{
		ib_mad_reg_req request{};
		request.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
		request.mgmt_class_version = IB_SA_CLASS_VERSION;
		request.method_mask[0] = 1ul << IB_MGMT_METHOD_GET | 1ul << IB_MGMT_METHOD_SET |
					 1ul << IB_SA_METHOD_DELETE;
		agent_ = ib_register_mad_agent(node.device(), 1, IB_QPT_GSI, &request, 0, on_sent, on_received, this, 0);
	}
	~Administrator()
	{
		if (ok())
			ib_unregister_mad_agent(agent_);
	}
	bool ok() const { return !rdma::is_err(agent_); }

private:
	static void on_sent(ib_mad_agent *, ib_mad_send_wc *wc)
	{
		rdma_destroy_ah(wc->send_buf->ah, 0);
		ib_free_send_mad(wc->send_buf);
	}
	static void on_received(ib_mad_agent *agent, ib_mad_send_buf *, ib_mad_recv_wc *wc)
	{
		static_cast<Administrator *>(agent->context)->answer(*wc);
		ib_free_recv_mad(wc);
	}
	void answer(const ib_mad_recv_wc &wc)
	{
		const auto &question = *reinterpret_cast<const ib::SaMad *>(wc.recv_buf.mad);
		auto *send = ib_create_send_mad(agent_, wc.wc->src_qp, 0, 0, IB_MGMT_SA_HDR, IB_MGMT_SA_DATA, gfp,
						IB_MGMT_BASE_VERSION);
		if (rdma::is_err(send))
			return;
		auto &mad = *static_cast<ib::SaMad *>(send->mad);
		mad = question;
		mad.header.status = static_cast<u16>(refuse.load_acquire());
		if (question.header.attr_id == ib::attr_mc_member_record) {
			reinterpret_cast<ib::McMemberRecord *>(mad.data)->mlid = static_cast<u16>(mlid.load_acquire());
			(question.header.method == IB_SA_METHOD_DELETE ? leaves : joins).fetch_add(1);
		} else {
			reinterpret_cast<ib::PathRecord *>(mad.data)->dlid = u16{77};
			gets.fetch_add(1);
		}
		/* Set is answered by GetResp, the others by the response of their own. */
		mad.header.method = question.header.is_method(ib::MadMethod::set)
					    ? static_cast<u8>(ib::MadMethod::get_resp)
					    : static_cast<u8>(question.header.method | IB_MGMT_METHOD_RESP);
		send->ah = ib_create_ah_from_wc(node_.pd(), wc.wc, wc.recv_buf.grh, 1);
		if (rdma::is_err(send->ah)) {
			ib_free_send_mad(send);
		} else if (ib_post_send_mad(send, nullptr)) {
			rdma_destroy_ah(send->ah, 0);
			ib_free_send_mad(send);
		}
	}

	const Node &node_;
	ib_mad_agent *agent_;
};

struct Client : ib_sa_client {
	Client() : ib_sa_client{} { ib_sa_register_client(this); }
	~Client() { ib_sa_unregister_client(this); }
};

/* One question for a path, and what came of it. */
struct Question {
	kern::Atomic<unsigned int> calls{};
	int status = 1;
	u32 dlid = 0;
	ib_sa_query *query = nullptr;
	int id = 0;

	int ask(Client &client, const Node &node, unsigned long timeout_ms, int retries)
	{
		sa_path_rec rec{};
		id = ib_sa_path_rec_get(&client, node.device(), 1, &rec, IB_SA_PATH_REC_DGID, timeout_ms, retries, gfp,
					[](int result, sa_path_rec *answer, void *context) {
						auto &self = *static_cast<Question *>(context);
						self.status = result;
						if (answer)
							self.dlid = answer->ib.dlid.value();
						self.calls.fetch_add(1);
					},
					this, &query);
		return id;
	}
	bool answered()
	{
		return eventually([&] { return calls.load_acquire() != 0; });
	}
};

void mgmt_03_sa_path(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Question found, refused;
	ASSERT_GT(found.ask(client, node, 5000, 0), 0);
	ASSERT_TRUE(found.answered());
	EXPECT_EQ(found.status, 0);
	EXPECT_EQ(found.dlid, 77u);
	sa.refuse.store_release(ib::sa_status_no_records);
	ASSERT_GT(refused.ask(client, node, 5000, 0), 0);
	ASSERT_TRUE(refused.answered());
	EXPECT_EQ(refused.status, -EINVAL);
	EXPECT_EQ(found.calls.load_acquire() + refused.calls.load_acquire(), 2u);
}

void mgmt_03_sa_time_out_and_cancel(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Question timed_out, cancelled;
	{
		Client client;
		Watch watch(node.device(), ~0ul);
		ASSERT_GT(timed_out.ask(client, node, 20, 1), 0);
		ASSERT_TRUE(timed_out.answered());
		EXPECT_EQ(timed_out.status, -ETIMEDOUT);
		EXPECT_EQ(watch.seen.load_acquire(), 2u);
		ASSERT_GT(cancelled.ask(client, node, 600'000, 0), 0);
		ib_sa_cancel_query(cancelled.id + 1, cancelled.query);
		EXPECT_EQ(cancelled.calls.load_acquire(), 0u);
		ib_sa_cancel_query(cancelled.id, cancelled.query);
		ASSERT_TRUE(cancelled.answered());
		EXPECT_EQ(cancelled.status, -EINTR);
		/* Once more: it has ended. */
		ib_sa_cancel_query(cancelled.id, cancelled.query);
	}
	EXPECT_EQ(timed_out.calls.load_acquire(), 1u);
	EXPECT_EQ(cancelled.calls.load_acquire(), 1u);
}

void report(const Node &node, ib_event_type type)
{
	ib_event event{};
	event.device = node.device();
	event.element.port_num = 1;
	event.event = type;
	ib_dispatch_event(&event);
}

/* The subnet manager moves: questions go where it is now. Without one there is nobody to ask. */
void mgmt_03_sa_manager_moves(Test &test)
{
	Node old_manager{1}, node{2}, new_manager{3};
	ASSERT_TRUE(old_manager.ok() && node.ok() && new_manager.ok());
	Administrator old_sa(old_manager), new_sa(new_manager);
	ASSERT_TRUE(old_sa.ok() && new_sa.ok());
	Client client;
	ib_port_attr attr;
	ASSERT_EQ(ib_query_port(node.device(), 1, &attr), 0);
	attr.sm_lid = 3;
	soft_set_port(node.device(), 1, &attr);
	report(node, IB_EVENT_SM_CHANGE);
	EXPECT_TRUE(eventually([&] {
		Question question;
		return question.ask(client, node, 1000, 0) > 0 && question.answered() && new_sa.gets.load_acquire() > 0;
	}));
	const unsigned int asked_before = old_sa.gets.load_acquire();
	Question question;
	ASSERT_GT(question.ask(client, node, 5000, 0), 0);
	ASSERT_TRUE(question.answered());
	EXPECT_EQ(question.status, 0);
	EXPECT_EQ(old_sa.gets.load_acquire(), asked_before);

	attr.sm_lid = 0;
	soft_set_port(node.device(), 1, &attr);
	report(node, IB_EVENT_SM_CHANGE);
	EXPECT_TRUE(eventually([&] {
		Question none;
		const int id = none.ask(client, node, 1000, 0);
		if (id > 0)
			none.answered();
		return id == -EAGAIN;
	}));
}

struct Membership {
	kern::Atomic<unsigned int> calls{};
	kern::Atomic<int> status{1};
	u32 mlid = 0;
	ib_sa_multicast *multicast = nullptr;

	int join(Client &client, const Node &node, u8 group = 1)
	{
		ib_sa_mcmember_rec rec{};
		rec.mgid.raw[0] = 0xff;
		rec.mgid.raw[1] = 0x12;
		rec.mgid.raw[15] = group;
		rec.port_gid.raw[15] = 2;
		rec.join_state = ib::McMemberRecord::full_member;
		multicast = ib_sa_join_multicast(&client, node.device(), 1, &rec,
						 IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |
							 IB_SA_MCMEMBER_REC_JOIN_STATE,
						 gfp, on_change, this);
		return rdma::is_err(multicast) ? rdma::ptr_err(multicast) : 0;
	}
	/* The status of the n-th call. */
	bool told(unsigned int n)
	{
		return eventually([&] { return calls.load_acquire() >= n; });
	}
	void leave() { ib_sa_free_multicast(std::exchange(multicast, nullptr)); }

private:
	static int on_change(int result, ib_sa_multicast *of)
	{
		auto &self = *static_cast<Membership *>(of->context);
		self.mlid = of->rec.mlid.value();
		self.status.store_release(result);
		self.calls.fetch_add(1);
		return 0;
	}
};

/* Two members share one join; the SA hears of the last one's leaving alone. */
void mgmt_03_sa_membership_is_shared(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Membership one, other;
	ASSERT_EQ(one.join(client, node), 0);
	ASSERT_TRUE(one.told(1));
	EXPECT_EQ(one.status.load_acquire(), 0);
	EXPECT_EQ(one.mlid, 0xc001u);
	ASSERT_EQ(other.join(client, node), 0);
	ASSERT_TRUE(other.told(1));
	EXPECT_EQ(other.status.load_acquire(), 0);
	EXPECT_EQ(sa.joins.load_acquire(), 1u);

	/* A join of another group is served after the first leave: had that been told to the SA, it would be by then. */
	Membership marker;
	one.leave();
	ASSERT_EQ(marker.join(client, node, 2), 0);
	ASSERT_TRUE(marker.told(1));
	EXPECT_EQ(sa.leaves.load_acquire(), 0u);
	other.leave();
	EXPECT_TRUE(eventually([&] { return sa.leaves.load_acquire() == 1; }));
	marker.leave();
	EXPECT_TRUE(eventually([&] { return sa.leaves.load_acquire() == 2; }));
}

/* After a client reregister the group is joined again, unheard by its members; one that comes back different is lost to them. */
void mgmt_03_sa_membership_is_renewed_or_lost(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Membership member;
	ASSERT_EQ(member.join(client, node), 0);
	ASSERT_TRUE(member.told(1));
	report(node, IB_EVENT_CLIENT_REREGISTER);
	EXPECT_TRUE(eventually([&] { return sa.joins.load_acquire() == 2; }));
	EXPECT_EQ(member.calls.load_acquire(), 1u);

	sa.mlid.store_release(0xc002);
	report(node, IB_EVENT_CLIENT_REREGISTER);
	ASSERT_TRUE(member.told(2));
	EXPECT_EQ(member.status.load_acquire(), -ENETRESET);
	member.leave();
}

void mgmt_03_sa_join_is_refused(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	sa.refuse.store_release(ib::sa_status_req_invalid);
	Client client;
	Membership member;
	ASSERT_EQ(member.join(client, node), 0);
	ASSERT_TRUE(member.told(1));
	EXPECT_EQ(member.status.load_acquire(), -EINVAL);
	EXPECT_EQ(member.calls.load_acquire(), 1u);
	member.leave();
	EXPECT_EQ(sa.leaves.load_acquire(), 0u);
}

} // namespace

KUNIT_SUITE(mad_sa, KUNIT_CASE(mgmt_03_sa_path), KUNIT_CASE(mgmt_03_sa_time_out_and_cancel),
	    KUNIT_CASE(mgmt_03_sa_manager_moves), KUNIT_CASE(mgmt_03_sa_membership_is_shared),
	    KUNIT_CASE(mgmt_03_sa_membership_is_renewed_or_lost), KUNIT_CASE(mgmt_03_sa_join_is_refused));
