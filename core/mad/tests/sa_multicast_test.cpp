// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests many multicast memberships of one port. The number of memberships and of concurrent
// requests to the SA is limited, and no membership is lost.
#include "sa_fixture.hpp"

using namespace mad_fixture;

namespace
{

/* The same as Groups::members_max and asking_max in core/mad/sa/multicast.hpp. */
constexpr u32 members_max = 32768, asking_max = 128;

struct Memberships {
	explicit Memberships(u32 most)
	{
		auto made = kern::make_array<ib_sa_multicast *>(kern::Gfp::kernel, most);
		if (made.ok())
			all_ = made.take();
	}
	~Memberships()
	{
		while (count_ > 0)
			leave();
	}
	Memberships(const Memberships &) = delete;
	Memberships &operator=(const Memberships &) = delete;

	/* Joins one more group, or the group of that number. */
	int join(Client &client, const Node &node) { return join(client, node, count_); }
	int join(Client &client, const Node &node, u32 number)
	{
		ib_sa_mcmember_rec rec{};
		rec.mgid.raw[0] = 0xff;
		rec.mgid.raw[1] = 0x12;
		rec.mgid.raw[13] = static_cast<u8>(number >> 16);
		rec.mgid.raw[14] = static_cast<u8>(number >> 8);
		rec.mgid.raw[15] = static_cast<u8>(number);
		rec.port_gid.raw[15] = 2;
		rec.join_state = ib::McMemberRecord::full_member;
		ib_sa_multicast *joined =
			ib_sa_join_multicast(&client, node.device(), 1, &rec,
					     IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |
						     IB_SA_MCMEMBER_REC_JOIN_STATE,
					     gfp, on_change, this);
		if (rdma::is_err(joined))
			return rdma::ptr_err(joined);
		all_[count_++] = joined;
		return 0;
	}
	void leave() { ib_sa_free_multicast(all_[--count_]); }
	u32 count() const { return count_; }
	bool become(kern::Atomic<u32> &what, u32 count) const
	{
		return eventually([&] { return what.load_acquire() == count; });
	}

	kern::Atomic<u32> joined{}, refused{}, lost{};

private:
	static int on_change(int result, ib_sa_multicast *of)
	{
		auto &self = *static_cast<Memberships *>(of->context);
		(result == 0            ? self.joined
		 : result == -ENETRESET ? self.lost
					: self.refused)
			.fetch_add(1);
		return 0;
	}

	kern::OwnedArray<ib_sa_multicast *> all_;
	u32 count_ = 0;
};

/* Counts new SA requests and repeated ones, by their increasing transaction IDs. */
struct Requests {
	explicit Requests(ib_device *of) : device(of)
	{
		soft_watch(
			device,
			[](void *context, const void *payload, size_t length) {
				auto &self = *static_cast<Requests *>(context);
				const auto &mad = *static_cast<const ib::SaMad *>(payload);
				if (length != IB_MGMT_MAD_SIZE ||
				    mad.header.mgmt_class != IB_MGMT_CLASS_SUBN_ADM ||
				    mad.header.attr_id != ib::attr_mc_member_record)
					return false;
				const u64 tid = mad.header.tid.value();
				if (tid > self.last) {
					self.last = tid;
					self.fresh.fetch_add(1);
				} else {
					self.repeated.fetch_add(1);
				}
				return self.lose.load_acquire();
			},
			this);
	}
	~Requests() { soft_watch(device, nullptr, nullptr); }
	Requests(const Requests &) = delete;
	Requests &operator=(const Requests &) = delete;

	ib_device *const device;
	u64 last = 0;
	kern::Atomic<u32> fresh{}, repeated{};
	kern::Atomic<bool> lose{true};
};

/*
 * The number of outstanding joins at the SA is bounded, however many groups are wanted. While the
 * SA does not respond, only these are retried. All groups are joined once it responds.
 */
void mgmt_03_sa_client_limits_the_number_of_concurrent_joins(Test &test)
{
	constexpr u32 count = 3 * asking_max;
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	client.timeout_ms = 500;
	client.retries = 100;
	Memberships members(count);
	Requests requests(node.device());
	for (u32 i = 0; i < count; i++)
		ASSERT_EQ(members.join(client, node), 0);
	/* The last request of the window is sent before the first one is repeated. */
	EXPECT_TRUE(eventually([&] { return requests.repeated.load_acquire() >= asking_max; }));
	EXPECT_EQ(requests.fresh.load_acquire(), asking_max);
	requests.lose.store_release(false);
	EXPECT_TRUE(members.become(members.joined, count));
	EXPECT_EQ(requests.fresh.load_acquire(), count);
}

/*
 * The number of memberships of a port is bounded. A further one is refused with ENOBUFS, and
 * succeeds when another one has been left. An SM that returns gets joins for all of them.
 */
void mgmt_03_sa_number_of_multicast_memberships_of_a_port_is_limited(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Memberships members(members_max + 1);
	for (u32 i = 0; i < members_max; i++)
		ASSERT_EQ(members.join(client, node), 0);
	EXPECT_EQ(members.join(client, node), -ENOBUFS);
	/* A further membership of a group that is already joined is refused as well. */
	EXPECT_EQ(members.join(client, node, 0), -ENOBUFS);
	ASSERT_TRUE(members.become(members.joined, members_max));
	EXPECT_EQ(members.refused.load_acquire(), 0u);

	const u32 joins = sa.joins.load_acquire();
	report(node, IB_EVENT_CLIENT_REREGISTER);
	EXPECT_TRUE(eventually([&] { return sa.joins.load_acquire() >= joins + members_max; }));
	EXPECT_EQ(members.lost.load_acquire(), 0u);

	members.leave();
	EXPECT_TRUE(eventually([&] { return members.join(client, node) == 0; }));
	EXPECT_TRUE(members.become(members.joined, members_max + 1));
	while (members.count() > 0)
		members.leave();
	EXPECT_TRUE(eventually([&] { return sa.leaves.load_acquire() >= members_max; }));
}

/*
 * Many members of one group cause one join and one leave. Each is visited when it is added and when
 * the SA has responded.
 */
void mgmt_03_sa_4096_members_of_one_group_share_one_join_request(Test &test)
{
	constexpr u32 count = 4096;
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Memberships members(count);
	for (u32 i = 0; i < count; i++)
		ASSERT_EQ(members.join(client, node, 0), 0);
	EXPECT_TRUE(members.become(members.joined, count));
	EXPECT_EQ(sa.joins.load_acquire(), 1u);
	/* If a group has other attributes after a rejoin, all its members lose it. */
	sa.mlid.store_release(0xc002);
	report(node, IB_EVENT_CLIENT_REREGISTER);
	EXPECT_TRUE(members.become(members.lost, count));
	while (members.count() > 0)
		members.leave();
	EXPECT_TRUE(eventually([&] { return sa.leaves.load_acquire() == 1; }));
}

} // namespace

KUNIT_SUITE_BEFORE(mad_sa_multicast, ::fixture::on_plain_devices,
		   KUNIT_CASE(mgmt_03_sa_client_limits_the_number_of_concurrent_joins),
		   KUNIT_CASE(mgmt_03_sa_number_of_multicast_memberships_of_a_port_is_limited),
		   KUNIT_CASE(mgmt_03_sa_4096_members_of_one_group_share_one_join_request));
