// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the errors that functions of rdma/ib_sa.h return for invalid arguments, and the address
// handles made from paths and groups.
#include "sa_fixture.hpp"

using namespace mad_fixture;

namespace
{

using PathCallback = void (*)(int status, sa_path_rec *resp, void *context);

/* A node with an SA, a node with a client, and a valid query. */
struct Bench {
	Node manager{1}, node{2};
	Device without_sa{{.lid = 3, .lacks = RDMA_CORE_CAP_IB_SA}};
	Administrator sa{manager};
	Client client;
	static inline constinit kern::Atomic<unsigned int> callbacks{};

	bool ok() const { return manager.ok() && node.ok() && without_sa.ok() && sa.ok(); }

	int path(u32 port, unsigned long timeout_ms, int retries, ib_device *device = nullptr,
		 bool listens = true, ib_sa_client *who = nullptr)
	{
		sa_path_rec rec{};
		ib_sa_query *query;
		const PathCallback callback = [](int, sa_path_rec *, void *) {
			callbacks.fetch_add(1);
		};
		return ib_sa_path_rec_get(who ? who : &client, device ? device : node.device(),
					  port, &rec, IB_SA_PATH_REC_DGID, timeout_ms, retries, gfp,
					  listens ? callback : nullptr, nullptr, &query);
	}
	int service(u32 port, u8 method, unsigned long timeout_ms, bool listens = true)
	{
		ib_sa_service_rec rec{};
		ib_sa_query *query;
		const auto callback = [](int, ib_sa_service_rec *, void *) {
			callbacks.fetch_add(1);
		};
		return ib_sa_service_rec_query(&client, node.device(), port, method, &rec, 0,
					       timeout_ms, 0, gfp, listens ? +callback : nullptr,
					       nullptr, &query);
	}
	int class_info(u32 port, unsigned long timeout_ms, int retries, bool listens = true)
	{
		ib_sa_query *query;
		const auto callback = [](int, ib_class_port_info *, void *) {
			callbacks.fetch_add(1);
		};
		return ib_sa_class_port_info_query(&client, node.device(), port, timeout_ms,
						   retries, gfp, listens ? +callback : nullptr,
						   nullptr, &query);
	}
	int inform(ib_device *device, u32 port, bool listens = true)
	{
		const auto callback = [](int, ib_inform_info *, ib_sa_notice *) { return 0; };
		auto *info = ib_sa_register_inform_info(&client, device, port, 64,
							listens ? +callback : nullptr, nullptr);
		if (rdma::is_err(info))
			return rdma::ptr_err(info);
		ib_sa_unregister_inform_info(info);
		return 0;
	}
	int join(u32 port, ib_sa_comp_mask mask, u8 states, u8 first_byte = 0xff,
		 ib_device *device = nullptr, bool listens = true)
	{
		ib_sa_mcmember_rec rec{};
		const auto callback = [](int, ib_sa_multicast *) { return 0; };
		rec.mgid.raw[0] = first_byte;
		rec.join_state = states;
		auto *member =
			ib_sa_join_multicast(&client, device ? device : node.device(), port, &rec,
					     mask, gfp, listens ? +callback : nullptr, nullptr);
		if (rdma::is_err(member))
			return rdma::ptr_err(member);
		ib_sa_free_multicast(member);
		return 0;
	}
};

constexpr u64 identity =
	IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID | IB_SA_MCMEMBER_REC_JOIN_STATE;

void mgmt_03_sa_queries_with_invalid_arguments_are_rejected(Test &test)
{
	struct {
		const char *what;
		int expected;
		int (*call)(Bench &bench);
	} static constexpr cases[] = {
		{"no timeout", -EINVAL, [](Bench &b) { return b.path(1, 0, 0); }},
		{"timeout above INT_MAX", -EINVAL,
		 [](Bench &b) { return b.path(1, 1ul << 31, 0); }},
		{"negative retries", -EINVAL, [](Bench &b) { return b.path(1, 10, -1); }},
		{"no callback", -EINVAL, [](Bench &b) { return b.path(1, 10, 0, nullptr, false); }},
		{"port 0", -ENODEV, [](Bench &b) { return b.path(0, 10, 0); }},
		{"port 2", -ENODEV, [](Bench &b) { return b.path(2, 10, 0); }},
		{"port without SA", -ENODEV,
		 [](Bench &b) { return b.path(1, 10, 0, b.without_sa); }},
		{"client that is not registered", -ENOMEM,
		 [](Bench &b) {
			 ib_sa_client none{};
			 return b.path(1, 10, 0, nullptr, true, &none);
		 }},
		{"service with an invalid method", -EINVAL,
		 [](Bench &b) { return b.service(1, IB_MGMT_METHOD_SEND, 10); }},
		{"service without timeout", -EINVAL,
		 [](Bench &b) { return b.service(1, IB_MGMT_METHOD_GET, 0); }},
		{"service at port 2", -ENODEV,
		 [](Bench &b) { return b.service(2, IB_MGMT_METHOD_SET, 10); }},
		{"service without callback", -EINVAL,
		 [](Bench &b) { return b.service(1, IB_SA_METHOD_DELETE, 10, false); }},
		{"capabilities without timeout", -EINVAL,
		 [](Bench &b) { return b.class_info(1, 0, 0); }},
		{"capabilities with negative retries", -EINVAL,
		 [](Bench &b) { return b.class_info(1, 10, -1); }},
		{"capabilities at port 2", -ENODEV,
		 [](Bench &b) { return b.class_info(2, 10, 0); }},
		{"capabilities without callback", -EINVAL,
		 [](Bench &b) { return b.class_info(1, 10, 0, false); }},
		{"traps at port 2", -ENODEV, [](Bench &b) { return b.inform(b.node.device(), 2); }},
		{"traps at a port without SA", -ENODEV,
		 [](Bench &b) { return b.inform(b.without_sa, 1); }},
		{"traps without callback", -EINVAL,
		 [](Bench &b) { return b.inform(b.node.device(), 1, false); }},
		{"group at port 2", -EINVAL, [](Bench &b) { return b.join(2, identity, 1); }},
		{"group at a port without SA", -EINVAL,
		 [](Bench &b) { return b.join(1, identity, 1, 0xff, b.without_sa); }},
		{"group without MGID", -EINVAL,
		 [](Bench &b) { return b.join(1, identity & ~u64{IB_SA_MCMEMBER_REC_MGID}, 1); }},
		{"group without port", -EINVAL,
		 [](Bench &b) {
			 return b.join(1, identity & ~u64{IB_SA_MCMEMBER_REC_PORT_GID}, 1);
		 }},
		{"group without state", -EINVAL,
		 [](Bench &b) {
			 return b.join(1, identity & ~u64{IB_SA_MCMEMBER_REC_JOIN_STATE}, 1);
		 }},
		{"group with an invalid join state", -EINVAL,
		 [](Bench &b) { return b.join(1, identity, 0x10); }},
		{"GID that is not multicast", -EINVAL,
		 [](Bench &b) { return b.join(1, identity, 1, 0xfe); }},
		{"group without callback", -EINVAL,
		 [](Bench &b) { return b.join(1, identity, 1, 0xff, nullptr, false); }},
		{"group unknown", -EADDRNOTAVAIL,
		 [](Bench &b) {
			 const ib_gid mgid = {.raw = {0xff}};
			 ib_sa_mcmember_rec rec;
			 return ib_sa_get_mcmember_rec(b.node.device(), 1, &mgid, &rec);
		 }},
		{"group unknown at port 2", -EADDRNOTAVAIL,
		 [](Bench &b) {
			 const ib_gid mgid = {.raw = {0xff}};
			 ib_sa_mcmember_rec rec;
			 return ib_sa_get_mcmember_rec(b.node.device(), 2, &mgid, &rec);
		 }},
		{"address of a group at port 2", -EINVAL,
		 [](Bench &b) {
			 ib_sa_mcmember_rec rec{};
			 rdma_ah_attr attr;
			 return ib_init_ah_from_mcmember(b.node.device(), 2, &rec, &attr);
		 }},
		{"address of a group joined by another", -ENOENT,
		 [](Bench &b) {
			 ib_sa_mcmember_rec rec{};
			 rdma_ah_attr attr;
			 rec.port_gid.raw[7] = 9;
			 return ib_init_ah_from_mcmember(b.node.device(), 1, &rec, &attr);
		 }},
		{"address of a path at port 0", -EINVAL,
		 [](Bench &b) {
			 sa_path_rec rec{};
			 rdma_ah_attr attr;
			 return ib_init_ah_attr_from_path(b.node.device(), 0, &rec, &attr);
		 }},
		{"address of a path of another", -ENOENT,
		 [](Bench &b) {
			 sa_path_rec rec{};
			 rdma_ah_attr attr;
			 rec.hop_limit = 2;
			 rec.sgid.raw[7] = 9;
			 return ib_init_ah_attr_from_path(b.node.device(), 1, &rec, &attr);
		 }},
	};
	auto made = kern::make<Bench>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	ASSERT_TRUE(bench.ok());
	Bench::callbacks.store_release(0);
	for (const auto &row : cases) {
		const int result = row.call(bench);
		if (!EXPECT_EQ(result, row.expected))
			kern_kunit_note(test.native(), "%s", row.what);
	}
	/* No callback runs for a call that was refused. */
	EXPECT_EQ(Bench::callbacks.load_acquire(), 0u);
	EXPECT_EQ(bench.sa.gets.load_acquire() + bench.sa.joins.load_acquire(), 0u);
}

/*
 * MGMT-05: the address of a path or a group has the rate of its record, or none if the record has
 * none. Creating an address handle with an undefined rate fails. The address of a response has no
 * rate. The source path bits are those of the path, or the requested ones.
 */
void mgmt_05_address_handle_has_the_rate_of_its_path_record(Test &test)
{
	Node node{8};
	ASSERT_TRUE(node.ok());
	ib_device *device = node.device();
	ib_port_attr port;
	ASSERT_EQ(ib_query_port(device, 1, &port), 0);
	port.lmc = 2;
	soft_set_port(device, 1, &port);
	report(node, IB_EVENT_LID_CHANGE);
	u8 lmc = 0;
	ASSERT_TRUE(
		eventually([&] { return ib_get_cached_lmc(device, 1, &lmc) == 0 && lmc == 2; }));

	struct {
		u8 rate;
		int expected;
	} constexpr rates[] = {
		{0, 0}, {IB_RATE_2_5_GBPS, 0}, {IB_RATE_40_GBPS, 0}, {1, -EINVAL}, {63, -EINVAL}};
	for (const auto &row : rates) {
		sa_path_rec path{};
		rdma_ah_attr attr;
		path.ib.dlid = u16{5};
		path.ib.slid = u16{8 + 3};
		path.sl = 4;
		path.rate = row.rate;
		path.hop_limit = 1;
		EXPECT_EQ(ib_init_ah_attr_from_path(device, 1, &path, &attr), 0);
		EXPECT_EQ(rdma_ah_get_dlid(&attr), 5u);
		EXPECT_EQ(rdma_ah_get_sl(&attr), 4);
		EXPECT_EQ(rdma_ah_get_path_bits(&attr), 3);
		EXPECT_EQ(rdma_ah_get_static_rate(&attr), row.rate);
		EXPECT_EQ(rdma_ah_get_ah_flags(&attr), 0);
		EXPECT_EQ(attr.port_num, 1u);
		ib_ah *ah = rdma_create_ah(node.pd(), &attr, 0);
		EXPECT_EQ(rdma::is_err(ah) ? rdma::ptr_err(ah) : 0, row.expected);
		if (!rdma::is_err(ah))
			rdma_destroy_ah(ah, 0);

		/* A path that leaves the subnet needs a GRH with the source GID of the path. */
		ASSERT_EQ(rdma_query_gid(device, 1, 0, &path.sgid), 0);
		path.dgid.raw[15] = 0x77;
		path.hop_limit = 64;
		path.traffic_class = 0x21;
		path.flow_label = 0x12345u;
		EXPECT_EQ(ib_init_ah_attr_from_path(device, 1, &path, &attr), 0);
		EXPECT_EQ(rdma_ah_get_ah_flags(&attr), IB_AH_GRH);
		EXPECT_EQ(attr.grh.dgid.raw[15], 0x77);
		EXPECT_EQ(attr.grh.hop_limit, 64);
		EXPECT_EQ(attr.grh.traffic_class, 0x21);
		EXPECT_EQ(attr.grh.flow_label, 0x12345u);
		EXPECT_EQ(attr.grh.sgid_index, 0);
		EXPECT_EQ(rdma_ah_get_static_rate(&attr), row.rate);

		ib_sa_mcmember_rec group{};
		group.mgid.raw[0] = 0xff;
		group.port_gid = path.sgid;
		group.mlid = u16{0xc007};
		group.rate = row.rate;
		group.sl = 2;
		EXPECT_EQ(ib_init_ah_from_mcmember(device, 1, &group, &attr), 0);
		EXPECT_EQ(rdma_ah_get_dlid(&attr), 0xc007u);
		EXPECT_EQ(rdma_ah_get_sl(&attr), 2);
		EXPECT_EQ(rdma_ah_get_ah_flags(&attr), IB_AH_GRH);
		EXPECT_EQ(attr.grh.dgid.raw[0], 0xff);
		EXPECT_EQ(rdma_ah_get_static_rate(&attr), row.rate);
	}
	const ib_wc wc = {.slid = 6, .sl = 7, .dlid_path_bits = 2};
	rdma_ah_attr back;
	EXPECT_EQ(ib_init_ah_attr_from_wc(device, 1, &wc, nullptr, &back), 0);
	EXPECT_EQ(rdma_ah_get_dlid(&back), 6u);
	EXPECT_EQ(rdma_ah_get_sl(&back), 7);
	EXPECT_EQ(rdma_ah_get_path_bits(&back), 2);
	EXPECT_EQ(rdma_ah_get_static_rate(&back), IB_RATE_PORT_CURRENT);
}

} // namespace

SOFT_SUITES(mad_sa_errno, KUNIT_CASE(mgmt_03_sa_queries_with_invalid_arguments_are_rejected),
	    KUNIT_CASE(mgmt_05_address_handle_has_the_rate_of_its_path_record));
