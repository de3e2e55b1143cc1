// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests datagrams: the peer's QP is resolved by SIDR, and multicast groups are joined.
#include "fixture.hpp"

using namespace rdma_cm_fixture;
using rdma_cm::State;

namespace
{

bool resolve_datagrams(Pair &pair, rdma_ucm_port_space space)
{
	pair.active.close();
	return pair.active.open(space, IB_QPT_UD) && pair.active.resolve(ipv4(2, Pair::port));
}

/*
 * Resolves the peer's QP, Q_Key and address; private data in both directions; a rejection, and a
 * missing peer.
 */
void rcm_09_sidr_resolves_the_peers_qp(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	ASSERT_TRUE(pair->listen(rdma_cm::any_of(RDMA_AF_INET), RDMA_PS_UDP, IB_QPT_UD));
	ASSERT_TRUE(resolve_datagrams(*pair, RDMA_PS_UDP));
	ASSERT_EQ(pair->active.connect(), 0);
	ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_CONNECT_REQUEST));
	EXPECT_EQ(pair->passive.last.param.ud.private_data_len, RDMA_CM_SIDR_REQ_PRIVATE_DATA_SIZE);
	EXPECT_EQ(__builtin_memcmp(pair->passive.data, "request", 8), 0);
	EXPECT_TRUE(rdma_cm::same_host(pair->passive.id->route.addr.dst_addr, ipv4(1)));
	ASSERT_EQ(pair->passive.accept(0x789), 0);
	ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_ESTABLISHED));
	const rdma_ud_param &ud = pair->active.last.param.ud;
	EXPECT_EQ(ud.qp_num, 0x789u);
	EXPECT_EQ(ud.qkey, RDMA_UDP_QKEY);
	EXPECT_EQ(rdma_ah_get_dlid(&ud.ah_attr), 2u);
	EXPECT_EQ(__builtin_memcmp(pair->active.data, "reply", 6), 0);
	/* There is no connection to end, and neither end gets an event. */
	EXPECT_EQ(rdma_disconnect(pair->active.id), 0);
	EXPECT_EQ(rdma_disconnect(pair->passive.id), 0);
	EXPECT_EQ(pair->active.delivered(RDMA_CM_EVENT_DISCONNECTED), 0u);
	EXPECT_EQ(pair->passive.all(), 1u);

	pair->passive.close();
	pair->listener.fresh = &pair->passive;
	ASSERT_TRUE(resolve_datagrams(*pair, RDMA_PS_UDP));
	ASSERT_EQ(pair->active.connect(), 0);
	ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_CONNECT_REQUEST));
	ASSERT_EQ(rdma_reject(pair->passive.id, nullptr, 0, 0), 0);
	ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_UNREACHABLE));
	EXPECT_EQ(pair->active.last.status, IB_SIDR_REJECT);

	pair->listener.close();
	ASSERT_TRUE(resolve_datagrams(*pair, RDMA_PS_UDP));
	ASSERT_EQ(pair->active.connect(), 0);
	ASSERT_TRUE(pair->active.receives(RDMA_CM_EVENT_UNREACHABLE));
	EXPECT_EQ(pair->active.last.status, IB_SIDR_UNSUPPORTED);
}

constexpr u8 broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0x80, 0x01, 0,    0,
			      0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};

bool is(const ib_gid &gid, std::initializer_list<u8> bytes)
{
	return __builtin_memcmp(gid.raw, bytes.begin(), 16) == 0;
}

/* Maps the address of a group to its MGID: RFC 4391, section 4, and its equivalent for UDP. */
void rcm_10_ip_multicast_addresses_map_to_mgids(Test &test)
{
	ib_gid base;
	__builtin_memcpy(base.raw, broadcast, sizeof(broadcast));
	Address four = ipv4(9), six = ipv6(9);
	four.in.addr[0] = 239;
	four.in.addr[1] = 1;
	six.in6.addr[0] = 0xff;
	six.in6.addr[1] = 0x0e;
	six.in6.addr[5] = 0x55;
	six.in6.addr[6] = 0x66;
	EXPECT_TRUE(is(rdma_cm::mgid_of(four, RDMA_PS_IPOIB, base),
		       {0xff, 0x12, 0x40, 0x1b, 0x80, 1, 0, 0, 0, 0, 0, 0, 0x0f, 1, 0, 9}));
	EXPECT_TRUE(is(rdma_cm::mgid_of(four, RDMA_PS_UDP, base),
		       {0xff, 0x12, 0x40, 0x01, 0x80, 1, 0, 0, 0, 0, 0, 0, 0x0f, 1, 0, 9}));
	EXPECT_TRUE(is(rdma_cm::mgid_of(six, RDMA_PS_IPOIB, base),
		       {0xff, 0x12, 0x60, 0x1b, 0x80, 1, 0x66, 0, 0, 0, 0, 0, 0, 0, 0, 9}));
	EXPECT_TRUE(is(rdma_cm::mgid_of(six, RDMA_PS_UDP, base),
		       {0xff, 0x12, 0x60, 0x01, 0x80, 1, 0x66, 0, 0, 0, 0, 0, 0, 0, 0, 9}));
	six.in6.addr[1] = 0x15;
	six.in6.addr[2] = 0xa0;
	six.in6.addr[3] = 0x1b;
	EXPECT_EQ(__builtin_memcmp(rdma_cm::mgid_of(six, RDMA_PS_UDP, base).raw, six.in6.addr, 16),
		  0);
	EXPECT_TRUE(rdma_is_zero_gid([&] {
		static ib_gid none;
		none = rdma_cm::mgid_of(rdma_cm::any_of(RDMA_AF_INET), RDMA_PS_UDP, base);
		return &none;
	}()));
}

/* Joining, which needs IPoIB's group; its event; the loss of the group; leaving. */
void rcm_10_multicast_join_requires_the_ipoib_broadcast_group(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	End &end = pair->active;
	end.close();
	Address own = ipv4(1), group = ipv4(9);
	group.in.addr[0] = 239;
	ASSERT_TRUE(end.open(RDMA_PS_UDP, IB_QPT_UD));
	ASSERT_EQ(rdma_bind_addr(end.id, &own), 0);
	EXPECT_EQ(rdma_join_multicast(end.id, &group, FULLMEMBER_JOIN, nullptr), -EADDRNOTAVAIL);

	{
		mad_fixture::Client ipoib;
		static constinit kern::Atomic<unsigned int> joined{};
		joined.store_release(0);
		ib_sa_mcmember_rec rec{};
		rec.mgid = rdma_cm::Id::of(end.id).interface.broadcast;
		rec.port_gid = end.id->route.addr.sgid;
		rec.join_state = 1;
		rec.pkey = u16{IB_DEFAULT_PKEY_FULL};
		rec.qkey = 0xb1bu;
		auto *membership = ib_sa_join_multicast(
			&ipoib, pair->a.device(), 1, &rec,
			IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |
				IB_SA_MCMEMBER_REC_JOIN_STATE | IB_SA_MCMEMBER_REC_PKEY |
				IB_SA_MCMEMBER_REC_QKEY,
			mad_fixture::gfp,
			[](int status, ib_sa_multicast *) {
				joined.fetch_add(status == 0);
				return 0;
			},
			nullptr);
		ASSERT_FALSE(rdma::is_err(membership));
		ASSERT_TRUE(eventually([] { return joined.load_acquire() == 1; }));

		int context, another;
		EXPECT_EQ(rdma_join_multicast(end.id, &group, NONMEMBER_JOIN, nullptr), -EINVAL);
		ASSERT_EQ(rdma_join_multicast(end.id, &group, FULLMEMBER_JOIN, &context), 0);
		ASSERT_TRUE(end.receives(RDMA_CM_EVENT_MULTICAST_JOIN));
		EXPECT_TRUE(end.last.join_context == &context);
		EXPECT_EQ(end.last.param.ud.qp_num, 0xffffffu);
		EXPECT_EQ(end.last.param.ud.qkey, RDMA_UDP_QKEY);
		EXPECT_EQ(rdma_ah_get_dlid(&end.last.param.ud.ah_attr), 0xc001u);

		/* A group of IPoIB's own, named by its MGID, is not for ids of other spaces. */
		Address of_ipoib{};
		of_ipoib.family = RDMA_AF_IB;
		of_ipoib.ib.addr = rec.mgid;
		EXPECT_EQ(rdma_join_multicast(end.id, &of_ipoib, FULLMEMBER_JOIN, &another),
			  -EINVAL);

		/*
		 * The same group with another address is a separate membership, which is left by
		 * that address.
		 */
		Address with_port = group;
		with_port.in.port = u16{1};
		ASSERT_EQ(rdma_join_multicast(end.id, &with_port, FULLMEMBER_JOIN, &another), 0);
		ASSERT_TRUE(end.receives(RDMA_CM_EVENT_MULTICAST_JOIN, 2));
		EXPECT_TRUE(end.last.join_context == &another);
		rdma_leave_multicast(end.id, &with_port);

		/* The subnet manager has forgotten all groups, and does not want this one again. */
		pair->sa.refuse.store_release(0x0300);
		mad_fixture::report(pair->a, IB_EVENT_CLIENT_REREGISTER);
		ASSERT_TRUE(end.receives(RDMA_CM_EVENT_MULTICAST_ERROR));
		EXPECT_EQ(end.last.status, -ENETRESET);
		pair->sa.refuse.store_release(0);
		EXPECT_TRUE(end.last.join_context == &context);
		EXPECT_EQ(end.delivered(RDMA_CM_EVENT_MULTICAST_ERROR), 1u);
		rdma_leave_multicast(end.id, &group);
		const unsigned int before = end.all();
		rdma_leave_multicast(end.id, &group);
		EXPECT_EQ(end.all(), before);

		/* The membership is left when the ID is destroyed. */
		ib_sa_free_multicast(membership);
		end.close();
	}
}

} // namespace

SOFT_SUITES(rdma_cm_datagram, KUNIT_CASE(rcm_09_sidr_resolves_the_peers_qp),
	    KUNIT_CASE(rcm_10_ip_multicast_addresses_map_to_mgids),
	    KUNIT_CASE(rcm_10_multicast_join_requires_the_ipoib_broadcast_group));
