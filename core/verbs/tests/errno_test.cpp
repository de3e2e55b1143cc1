// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that invalid arguments of each function of rdma/ib_verbs.h return the errno that the
// function's comment documents. QP states and attributes are tested in qp_test.cpp, completions in
// error in traffic_test.cpp, CQs in poller_test.cpp, and the cache in cache_test.cpp.
#include "fixture.hpp"

using namespace fixture;

namespace
{

/* One object of each kind, and two of another device. */
struct Bench {
	Device device{{.lid = 1}}, other{{.lid = 2}};
	ib_pd *pd = nullptr, *other_pd = nullptr;
	ib_xrcd *xrcd = nullptr, *other_xrcd = nullptr;
	ib_cq *cq = nullptr, *other_cq = nullptr;
	ib_srq *srq = nullptr;
	ib_qp *ud = nullptr, *rc = nullptr;
	ib_mr *mr = nullptr, *all = nullptr;
	ib_ah *ah = nullptr;

	bool create()
	{
		if (!device.ok() || !other.ok())
			return false;
		pd = ib_alloc_pd(device, 0);
		other_pd = ib_alloc_pd(other, 0);
		xrcd = ib_alloc_xrcd(device);
		other_xrcd = ib_alloc_xrcd(other);
		cq = ib_alloc_cq(device, nullptr, 64, 0, IB_POLL_DIRECT);
		other_cq = ib_alloc_cq(other, nullptr, 64, 0, IB_POLL_DIRECT);
		ib_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
		srq = ib_create_srq(pd, &srq_attr);
		auto attr = qp_attr(IB_QPT_UD);
		attr.send_cq = attr.recv_cq = cq;
		ud = ib_create_qp(pd, &attr);
		attr.qp_type = IB_QPT_RC;
		rc = ib_create_qp(pd, &attr);
		mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4);
		all = ib_get_dma_mr(pd, 0);
		rdma_ah_attr address = good_address();
		ah = rdma_create_ah(pd, &address, 0);
		return !(rdma::is_err(srq) || rdma::is_err(ud) || rdma::is_err(rc) ||
			 rdma::is_err(mr) || rdma::is_err(all) || rdma::is_err(ah));
	}
	~Bench()
	{
		rdma_destroy_ah(ah, 0);
		(void)ib_dereg_mr(all);
		(void)ib_dereg_mr(mr);
		(void)ib_destroy_qp(rc);
		(void)ib_destroy_qp(ud);
		ib_destroy_srq(srq);
		ib_free_cq(other_cq);
		ib_free_cq(cq);
		(void)ib_dealloc_xrcd(other_xrcd);
		(void)ib_dealloc_xrcd(xrcd);
		ib_dealloc_pd(other_pd);
		ib_dealloc_pd(pd);
	}
	static rdma_ah_attr good_address()
	{
		rdma_ah_attr address = {.port_num = 1};
		rdma_ah_set_dlid(&address, 1);
		return address;
	}
};

/* A call that must fail, and the error that it must return. */
struct Case {
	const char *what;
	int expected;
	int (*call)(Bench &bench);
};

template<class T>
int error_of(T *object)
{
	return rdma::is_err(object) ? rdma::ptr_err(object) : 0;
}

template<unsigned int count>
void expect_each(Test &test, const Case (&cases)[count])
{
	auto made = kern::make<Bench>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	ASSERT_TRUE(bench.create());
	for (const Case &row : cases) {
		const int result = row.call(bench);
		if (!EXPECT_EQ(result, row.expected))
			kern_kunit_note(test.native(), "%s", row.what);
	}
}

/* Returns what a failed creation returns. */
ib_pd *failed_pd()
{
	return rdma::err_ptr<ib_pd>(-ENOMEM);
}

void invalid_port_arguments_are_rejected(Test &test)
{
	// clang-format off
	static constexpr Case cases[] = {
		{"port 0", -EINVAL, [](Bench &b) { ib_port_attr attr; return ib_query_port(b.device, 0, &attr); }},
		{"port 2", -EINVAL, [](Bench &b) { ib_port_attr attr; return ib_query_port(b.device, 2, &attr); }},
		{"P_Key of port 2", -EINVAL, [](Bench &b) { u16 pkey; return ib_query_pkey(b.device, 2, 0, &pkey); }},
		{"P_Key index beyond the table", -EINVAL, [](Bench &b) { u16 pkey; return ib_query_pkey(b.device, 1, 8, &pkey); }},
		{"unknown GID", -ENOENT, [](Bench &b) {
			const ib_gid gid = {.raw = {1, 2, 3}};
			u32 port;
			return ib_find_gid(b.device, &gid, &port, nullptr);
		}},
		{"unknown P_Key", -ENOENT, [](Bench &b) { u16 index; return ib_find_pkey(b.device, 1, 0x1234, &index); }},
		{"P_Key at port 0", -EINVAL, [](Bench &b) { u16 index; return ib_find_pkey(b.device, 0, 0xffff, &index); }},
		{"device is not modified", -EOPNOTSUPP, [](Bench &b) {
			ib_device_modify modify = {};
			return ib_modify_device(b.device, IB_DEVICE_MODIFY_NODE_DESC, &modify);
		}},
		{"unknown part of a device", -EINVAL, [](Bench &b) {
			ib_device_modify modify = {};
			b.device.get()->ops.modify_device = [](ib_device *, int, ib_device_modify *) { return 0; };
			return ib_modify_device(b.device, 1 << 7, &modify);
		}},
		{"port is not modified", -EOPNOTSUPP, [](Bench &b) {
			ib_port_modify modify = {};
			return ib_modify_port(b.device, 1, 0, &modify);
		}},
		{"unknown part of a port", -EINVAL, [](Bench &b) {
			ib_port_modify modify = {};
			b.device.get()->ops.modify_port = [](ib_device *, u32, int, ib_port_modify *) { return 0; };
			return ib_modify_port(b.device, 1, 1 << 9, &modify);
		}},
		{"part of port 2", -EINVAL, [](Bench &b) {
			ib_port_modify modify = {};
			return ib_modify_port(b.device, 2, IB_PORT_RESET_QKEY_CNTR, &modify);
		}},
	};
	// clang-format on
	expect_each(test, cases);
}

/* Each kind of invalid address, in every function that takes one. */
void invalid_ah_attributes_are_rejected(Test &test)
{
	constexpr void (*spoil[])(rdma_ah_attr &) = {
		[](rdma_ah_attr &a) { a.port_num = 0; },
		[](rdma_ah_attr &a) { a.port_num = 2; },
		[](rdma_ah_attr &a) { a.sl = 16; },
		[](rdma_ah_attr &a) { a.type = RDMA_AH_ATTR_TYPE_ROCE; },
		[](rdma_ah_attr &a) { a.ah_flags = 2; },
		[](rdma_ah_attr &a) { a.static_rate = 1; },
		[](rdma_ah_attr &a) { rdma_ah_set_dlid(&a, 0); },
		[](rdma_ah_attr &a) { rdma_ah_set_dlid(&a, 0xc001); },
		[](rdma_ah_attr &a) { rdma_ah_set_grh(&a, nullptr, 0, 8, 1, 0); },
		[](rdma_ah_attr &a) { rdma_ah_set_grh(&a, nullptr, 1 << 20, 0, 1, 0); },
	};
	auto made = kern::make<Bench>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	ASSERT_TRUE(bench.create());
	const unsigned long calls = soft_calls(bench.device, SOFT_CREATE_AH);
	for (const auto &wrong : spoil) {
		rdma_ah_attr address = Bench::good_address();
		wrong(address);
		EXPECT_EQ(error_of(rdma_create_ah(bench.pd, &address, 0)), -EINVAL);
		EXPECT_EQ(error_of(rdma_create_ah(bench.pd, &address, RDMA_CREATE_AH_SLEEPABLE)),
			  -EINVAL);
		EXPECT_EQ(rdma_modify_ah(bench.ah, &address), -EINVAL);
	}
	rdma_ah_attr address = Bench::good_address();
	EXPECT_EQ(error_of(rdma_create_ah(bench.pd, &address, 1 << 5)), -EINVAL);
	EXPECT_EQ(error_of(rdma_create_ah(nullptr, &address, 0)), -EINVAL);
	EXPECT_EQ(error_of(rdma_create_ah(failed_pd(), &address, 0)), -EINVAL);
	EXPECT_EQ(soft_calls(bench.device, SOFT_CREATE_AH), calls);
	/* The existing address handle is unchanged. */
	EXPECT_EQ(rdma_query_ah(bench.ah, &address), 0);
	EXPECT_EQ(rdma_ah_get_dlid(&address), 1u);
}

/* Senders to which no response can be sent: LIDs and GIDs of groups, and a missing LID. */
void ib_create_ah_from_wc_rejects_invalid_arguments_and_multicast_senders(Test &test)
{
	// clang-format off
	static constexpr Case cases[] = {
		{"port 2", -EINVAL, [](Bench &b) { const ib_wc wc = {.slid = 1}; return error_of(ib_create_ah_from_wc(b.pd, &wc, nullptr, 2)); }},
		{"no LID", -EINVAL, [](Bench &b) { const ib_wc wc = {}; return error_of(ib_create_ah_from_wc(b.pd, &wc, nullptr, 1)); }},
		{"LID of a group", -EPROTO, [](Bench &b) {
			const ib_wc wc = {.slid = 0xc001};
			return error_of(ib_create_ah_from_wc(b.pd, &wc, nullptr, 1));
		}},
		{"GID of a group", -EPROTO, [](Bench &b) {
			const ib_wc wc = {.slid = 1, .wc_flags = IB_WC_GRH};
			ib_grh grh = {};
			grh.version_tclass_flow = 6u << 28;
			grh.next_hdr = 0x1b;
			grh.sgid.raw[0] = 0xff;
			(void)rdma_query_gid(b.device, 1, 0, &grh.dgid);
			return error_of(ib_create_ah_from_wc(b.pd, &wc, &grh, 1));
		}},
		{"service level 16", -EINVAL, [](Bench &b) {
			const ib_wc wc = {.slid = 1, .sl = 16};
			return error_of(ib_create_ah_from_wc(b.pd, &wc, nullptr, 1));
		}},
		{"no domain", -EINVAL, [](Bench &) { const ib_wc wc = {.slid = 1}; return error_of(ib_create_ah_from_wc(nullptr, &wc, nullptr, 1)); }},
	};
	// clang-format on
	expect_each(test, cases);
}

int create_srq(ib_pd *pd, void (*spoil)(ib_srq_init_attr &, Bench &), Bench &bench)
{
	ib_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};

	spoil(attr, bench);
	return error_of(ib_create_srq(pd, &attr));
}

int modify_srq(Bench &bench, u32 max_wr, u32 limit, int mask)
{
	ib_srq_attr attr = {.max_wr = max_wr, .srq_limit = limit};

	return ib_modify_srq(bench.srq, &attr, static_cast<ib_srq_attr_mask>(mask));
}

void invalid_queue_arguments_are_rejected(Test &test)
{
	using Attr = ib_srq_init_attr;
	// clang-format off
	static constexpr Case cases[] = {
		{"CQ of no entries", -EINVAL, [](Bench &b) { return ib_resize_cq(b.cq, 0); }},
		{"CQ of negative size", -EINVAL, [](Bench &b) { return ib_resize_cq(b.cq, -1); }},
		{"CQ too large", -EINVAL, [](Bench &b) { return ib_resize_cq(b.cq, b.device.get()->attrs.max_cqe + 1); }},
		{"too many completions", -EINVAL, [](Bench &b) { return rdma_set_cq_moderation(b.cq, 1001, 1); }},
		{"too long a time", -EINVAL, [](Bench &b) { return rdma_set_cq_moderation(b.cq, 1, 1001); }},
		{"any vector, no entries", -EINVAL, [](Bench &b) { return error_of(ib_alloc_cq_any(b.device, nullptr, 0, IB_POLL_DIRECT)); }},
		{"any vector, no context", -EINVAL,
		 [](Bench &b) { return error_of(ib_alloc_cq_any(b.device, nullptr, 4, static_cast<ib_poll_context>(9))); }},
		{"SRQ nowhere", -EINVAL, [](Bench &b) { return create_srq(nullptr, [](Attr &, Bench &) {}, b); }},
		{"SRQ in an error", -EINVAL, [](Bench &b) { return create_srq(failed_pd(), [](Attr &, Bench &) {}, b); }},
		{"SRQ of no requests", -EINVAL, [](Bench &b) { return create_srq(b.pd, [](Attr &a, Bench &) { a.attr.max_wr = 0; }, b); }},
		{"SRQ too large", -EINVAL, [](Bench &b) { return create_srq(b.pd, [](Attr &a, Bench &) { a.attr.max_wr = 1 << 20; }, b); }},
		{"SRQ of too many pieces", -EINVAL, [](Bench &b) { return create_srq(b.pd, [](Attr &a, Bench &) { a.attr.max_sge = 99; }, b); }},
		{"limit above the size", -EINVAL, [](Bench &b) { return create_srq(b.pd, [](Attr &a, Bench &) { a.attr.srq_limit = 5; }, b); }},
		{"SRQ of matching tags", -EINVAL, [](Bench &b) { return create_srq(b.pd, [](Attr &a, Bench &) { a.srq_type = IB_SRQT_TM; }, b); }},
		{"XRC without CQ", -EINVAL, [](Bench &b) {
			return create_srq(b.pd, [](Attr &a, Bench &c) { a.srq_type = IB_SRQT_XRC; a.ext.xrc.xrcd = c.xrcd; }, b);
		}},
		{"XRC without domain", -EINVAL,
		 [](Bench &b) { return create_srq(b.pd, [](Attr &a, Bench &c) { a.srq_type = IB_SRQT_XRC; a.ext.cq = c.cq; }, b); }},
		{"XRC with another's CQ", -EINVAL, [](Bench &b) {
			return create_srq(b.pd, [](Attr &a, Bench &c) {
				a.srq_type = IB_SRQT_XRC;
				a.ext.cq = c.other_cq;
				a.ext.xrc.xrcd = c.xrcd;
			}, b);
		}},
		{"XRC in another's domain", -EINVAL, [](Bench &b) {
			return create_srq(b.pd, [](Attr &a, Bench &c) {
				a.srq_type = IB_SRQT_XRC;
				a.ext.cq = c.cq;
				a.ext.xrc.xrcd = c.other_xrcd;
			}, b);
		}},
		{"unknown part of an SRQ", -EINVAL, [](Bench &b) { return modify_srq(b, 4, 1, 1 << 4); }},
		{"SRQ made of no requests", -EINVAL, [](Bench &b) { return modify_srq(b, 0, 1, IB_SRQ_MAX_WR); }},
		{"SRQ made too large", -EINVAL, [](Bench &b) { return modify_srq(b, 1 << 20, 1, IB_SRQ_MAX_WR); }},
		{"limit too large", -EINVAL, [](Bench &b) { return modify_srq(b, 4, 1 << 20, IB_SRQ_LIMIT); }},
	};
	// clang-format on
	expect_each(test, cases);
}

int create_qp(ib_pd *pd, Bench &bench, void (*spoil)(ib_qp_init_attr &, Bench &))
{
	auto attr = qp_attr(IB_QPT_RC);

	attr.send_cq = attr.recv_cq = bench.cq;
	spoil(attr, bench);
	return error_of(ib_create_qp(pd, &attr));
}

int open_qp(ib_xrcd *xrcd)
{
	ib_qp_open_attr attr = {.event_handler = nullptr, .qp_num = 2, .qp_type = IB_QPT_XRC_TGT};

	return error_of(ib_open_qp(xrcd, &attr));
}

int attach(ib_qp *qp, u8 first_byte, u16 lid,
	   int (*function)(ib_qp *, const ib_gid *, u16) = ib_attach_mcast)
{
	const ib_gid gid = {.raw = {first_byte, 0x12}};

	return function(qp, &gid, lid);
}

void invalid_qp_arguments_are_rejected(Test &test)
{
	using Attr = ib_qp_init_attr;
	// clang-format off
	static constexpr Case cases[] = {
		{"QP nowhere", -EINVAL, [](Bench &b) { return create_qp(nullptr, b, [](Attr &, Bench &) {}); }},
		{"QP in an error", -EINVAL, [](Bench &b) { return create_qp(failed_pd(), b, [](Attr &, Bench &) {}); }},
		{"QP in another's domain", -EINVAL, [](Bench &b) { return create_qp(b.other_pd, b, [](Attr &, Bench &) {}); }},
		{"CQ that is an error", -EINVAL,
		 [](Bench &b) { return create_qp(b.pd, b, [](Attr &a, Bench &) { a.send_cq = rdma::err_ptr<ib_cq>(-ENOMEM); }); }},
		{"SRQ that is an error", -EINVAL,
		 [](Bench &b) { return create_qp(b.pd, b, [](Attr &a, Bench &) { a.srq = rdma::err_ptr<ib_srq>(-ENOMEM); }); }},
		{"another's SRQ", -EINVAL, [](Bench &b) {
			return create_qp(b.other_pd, b, [](Attr &a, Bench &c) {
				a.send_cq = a.recv_cq = c.other_cq;
				a.srq = c.srq;
			});
		}},
		{"SRQ for XRC", -EINVAL,
		 [](Bench &b) { return create_qp(b.pd, b, [](Attr &a, Bench &c) { a.qp_type = IB_QPT_XRC_INI; a.srq = c.srq; }); }},
		{"another's XRC domain", -EINVAL,
		 [](Bench &b) { return create_qp(b.pd, b, [](Attr &a, Bench &c) { a.qp_type = IB_QPT_XRC_TGT; a.xrcd = c.other_xrcd; }); }},
		{"opened nowhere", -EINVAL, [](Bench &) { return open_qp(nullptr); }},
		{"opened in an error", -EINVAL, [](Bench &) { return open_qp(rdma::err_ptr<ib_xrcd>(-ENOMEM)); }},
		{"not there to be opened", -EINVAL, [](Bench &b) { return open_qp(b.xrcd); }},
		{"not opened", -EINVAL, [](Bench &b) { return ib_close_qp(b.ud); }},
		{"RC in a group", -EINVAL, [](Bench &b) { return attach(b.rc, 0xff, 0xc001); }},
		{"group of no GID", -EINVAL, [](Bench &b) { return attach(b.ud, 0xfe, 0xc001); }},
		{"group of no LID", -EINVAL, [](Bench &b) { return attach(b.ud, 0xff, 1); }},
		{"group of the permissive LID", -EINVAL, [](Bench &b) { return attach(b.ud, 0xff, 0xffff); }},
		{"RC leaves a group", -EINVAL, [](Bench &b) { return attach(b.rc, 0xff, 0xc001, ib_detach_mcast); }},
		{"leaves what is no group", -EINVAL, [](Bench &b) { return attach(b.ud, 0xfe, 0xc001, ib_detach_mcast); }},
		{"leaves what it is not in", -EINVAL, [](Bench &b) { return attach(b.ud, 0xff, 0xc001, ib_detach_mcast); }},
		{"sends in RESET", -EINVAL, [](Bench &b) {
			ib_send_wr wr = {.opcode = IB_WR_SEND};
			const ib_send_wr *bad = nullptr;
			const int error = ib_post_send(b.rc, &wr, &bad);
			return bad == &wr ? error : 0;
		}},
		{"receives in RESET", -EINVAL, [](Bench &b) {
			ib_recv_wr wr = {};
			const ib_recv_wr *bad = nullptr;
			const int error = ib_post_recv(b.rc, &wr, &bad);
			return bad == &wr ? error : 0;
		}},
		{"too many pieces", -EINVAL, [](Bench &b) {
			ib_sge sges[2] = {};
			ib_recv_wr wr = {.sg_list = sges, .num_sge = 2};
			return ib_post_srq_recv(b.srq, &wr, nullptr);
		}},
	};
	// clang-format on
	expect_each(test, cases);
}

int map(ib_mr *mr, int pieces, unsigned int page_size, unsigned int offset = 0)
{
	const ib_dma_segment segment = {.addr = 0x1000, .length = 4096};

	return ib_map_mr_sg(mr, &segment, pieces, &offset, page_size);
}

int take_user_mr(ib_mr *, u64, u64, u64, int, ib_udata *)
{
	return -ENXIO;
}

int reg_user(Bench &bench, u64 start, u64 length, u64 iova, int access)
{
	bench.device.get()->ops.reg_user_mr = take_user_mr;
	return error_of(ib_reg_user_mr(bench.pd, start, length, iova, access));
}

void invalid_memory_registration_arguments_are_rejected(Test &test)
{
	// clang-format off
	static constexpr Case cases[] = {
		{"unknown access", -EINVAL, [](Bench &b) { return ib_check_mr_access(b.device, 1 << 15); }},
		{"remote write alone", -EINVAL, [](Bench &b) { return ib_check_mr_access(b.device, IB_ACCESS_REMOTE_WRITE); }},
		{"remote atomic alone", -EINVAL, [](Bench &b) { return ib_check_mr_access(b.device, IB_ACCESS_REMOTE_ATOMIC); }},
		{"paged on demand", -EINVAL, [](Bench &b) { return ib_check_mr_access(b.device, IB_ACCESS_ON_DEMAND); }},
		{"all memory, remote write alone", -EINVAL, [](Bench &b) { return error_of(ib_get_dma_mr(b.pd, IB_ACCESS_REMOTE_WRITE)); }},
		{"all memory nowhere", -EINVAL, [](Bench &) { return error_of(ib_get_dma_mr(nullptr, 0)); }},
		{"no memory of processes", -EOPNOTSUPP, [](Bench &b) { return error_of(ib_reg_user_mr(b.pd, 0x1000, 1, 0x1000, 0)); }},
		{"zero bytes within a page", -ENXIO, [](Bench &b) { return reg_user(b, 0x1008, 0, 0x1008, 0); }},
		{"zero bytes at a page border", -EINVAL, [](Bench &b) { return reg_user(b, 0x1000, 0, 0x1000, 0); }},
		{"memory that wraps", -EINVAL, [](Bench &b) { return reg_user(b, ~u64{0} - 0xfff, 0x2000, 0x1000, 0); }},
		{"iova that wraps", -EINVAL, [](Bench &b) { return reg_user(b, 0x1000, 0x2000, ~u64{0} - 0xfff, 0); }},
		{"iova up to the last address", -ENXIO, [](Bench &b) { return reg_user(b, 0x1000, 0x1000, ~u64{0} - 0xfff, 0); }},
		{"iova one byte beyond the last address", -EINVAL, [](Bench &b) { return reg_user(b, 0x1000, 0x1001, ~u64{0} - 0xfff, 0); }},
		{"iova elsewhere in its page", -EINVAL, [](Bench &b) { return reg_user(b, 0x1000, 0x1000, 0x1001, 0); }},
		{"memory with unknown access", -EINVAL, [](Bench &b) { return reg_user(b, 0x1000, 0x1000, 0x1000, 1 << 15); }},
		{"memory as it should be", -ENXIO, [](Bench &b) { return reg_user(b, 0x1000, 0x1000, 0x5000, 0); }},
		{"memory nowhere", -EINVAL, [](Bench &) { return error_of(ib_reg_user_mr(nullptr, 0x1000, 1, 0x1000, 0)); }},
		{"region of a bad type", -EINVAL, [](Bench &b) { return error_of(ib_alloc_mr(b.pd, IB_MR_TYPE_DMA, 4)); }},
		{"region of no pages", -EINVAL, [](Bench &b) { return error_of(ib_alloc_mr(b.pd, IB_MR_TYPE_MEM_REG, 0)); }},
		{"region of too many pages", -EINVAL, [](Bench &b) { return error_of(ib_alloc_mr(b.pd, IB_MR_TYPE_MEM_REG, 1 << 20)); }},
		{"region nowhere", -EINVAL, [](Bench &) { return error_of(ib_alloc_mr(failed_pd(), IB_MR_TYPE_MEM_REG, 4)); }},
		{"no pieces", -EINVAL, [](Bench &b) { return map(b.mr, 0, 4096); }},
		{"pages of odd size", -EINVAL, [](Bench &b) { return map(b.mr, 1, 12288); }},
		{"pages that the device has not", -EINVAL, [](Bench &b) { return map(b.mr, 1, 2048); }},
		{"pages of no size", -EINVAL, [](Bench &b) { return map(b.mr, 1, 0); }},
		{"region of all memory", -EINVAL, [](Bench &b) { return map(b.all, 1, 4096); }},
		{"offset behind the first piece", -EINVAL, [](Bench &b) { return map(b.mr, 1, 4096, 4097); }},
		{"window of no type", -EINVAL, [](Bench &b) { return error_of(ib_alloc_mw(b.pd, static_cast<ib_mw_type>(0))); }},
		{"window nowhere", -EINVAL, [](Bench &) { return error_of(ib_alloc_mw(nullptr, IB_MW_TYPE_1)); }},
		{"domain of unknown flags", -EINVAL, [](Bench &b) { return error_of(ib_alloc_pd(b.device, 1 << 8)); }},
	};
	// clang-format on
	expect_each(test, cases);
}

/* If a driver does not have a method, EOPNOTSUPP is returned before any other check. */
template<class Method, class Call>
int without(Method &method, Call call)
{
	const Method saved = std::exchange(method, nullptr);
	const int error = call();

	method = saved;
	return error;
}

void missing_optional_methods_return_eopnotsupp(Test &test)
{
	// clang-format off
	static constexpr Case cases[] = {
		{"create_ah", -EOPNOTSUPP, [](Bench &b) {
			return without(b.device.get()->ops.create_ah, [&] {
				rdma_ah_attr address = Bench::good_address();
				return error_of(rdma_create_ah(b.pd, &address, 0));
			});
		}},
		{"modify_ah", -EOPNOTSUPP, [](Bench &b) {
			return without(b.device.get()->ops.modify_ah, [&] {
				rdma_ah_attr address = Bench::good_address();
				return rdma_modify_ah(b.ah, &address);
			});
		}},
		{"query_ah", -EOPNOTSUPP, [](Bench &b) {
			return without(b.device.get()->ops.query_ah, [&] { rdma_ah_attr address; return rdma_query_ah(b.ah, &address); });
		}},
		{"resize_cq", -EOPNOTSUPP, [](Bench &b) { return without(b.device.get()->ops.resize_cq, [&] { return ib_resize_cq(b.cq, 8); }); }},
		{"modify_cq", -EOPNOTSUPP,
		 [](Bench &b) { return without(b.device.get()->ops.modify_cq, [&] { return rdma_set_cq_moderation(b.cq, 1, 1); }); }},
		{"peek_cq", -EOPNOTSUPP, [](Bench &b) { return without(b.device.get()->ops.peek_cq, [&] { return ib_peek_cq(b.cq, 1); }); }},
		{"create_srq", -EOPNOTSUPP, [](Bench &b) {
			return without(b.device.get()->ops.create_srq, [&] { return create_srq(b.pd, [](ib_srq_init_attr &, Bench &) {}, b); });
		}},
		{"modify_srq", -EOPNOTSUPP,
		 [](Bench &b) { return without(b.device.get()->ops.modify_srq, [&] { return modify_srq(b, 4, 1, IB_SRQ_LIMIT); }); }},
		{"query_srq", -EOPNOTSUPP, [](Bench &b) {
			return without(b.device.get()->ops.query_srq, [&] { ib_srq_attr attr; return ib_query_srq(b.srq, &attr); });
		}},
		{"query_qp", -EOPNOTSUPP, [](Bench &b) {
			return without(b.device.get()->ops.query_qp, [&] {
				ib_qp_attr attr;
				ib_qp_init_attr init;
				return ib_query_qp(b.ud, &attr, 0, &init);
			});
		}},
		{"attach_mcast", -EOPNOTSUPP,
		 [](Bench &b) { return without(b.device.get()->ops.attach_mcast, [&] { return attach(b.ud, 0xff, 0xc001); }); }},
		{"detach_mcast", -EOPNOTSUPP, [](Bench &b) {
			return without(b.device.get()->ops.detach_mcast, [&] { return attach(b.ud, 0xff, 0xc001, ib_detach_mcast); });
		}},
		{"get_dma_mr", -EOPNOTSUPP,
		 [](Bench &b) { return without(b.device.get()->ops.get_dma_mr, [&] { return error_of(ib_get_dma_mr(b.pd, 0)); }); }},
		{"alloc_mr", -EOPNOTSUPP, [](Bench &b) {
			return without(b.device.get()->ops.alloc_mr, [&] { return error_of(ib_alloc_mr(b.pd, IB_MR_TYPE_MEM_REG, 4)); });
		}},
		{"map_mr_sg", -EOPNOTSUPP, [](Bench &b) { return without(b.device.get()->ops.map_mr_sg, [&] { return map(b.mr, 1, 4096); }); }},
		{"alloc_mw", -EOPNOTSUPP,
		 [](Bench &b) { return without(b.device.get()->ops.alloc_mw, [&] { return error_of(ib_alloc_mw(b.pd, IB_MW_TYPE_1)); }); }},
		{"alloc_xrcd", -EOPNOTSUPP,
		 [](Bench &b) { return without(b.device.get()->ops.alloc_xrcd, [&] { return error_of(ib_alloc_xrcd(b.device)); }); }},
	};
	// clang-format on
	expect_each(test, cases);
}

} // namespace

SOFT_SUITES(verbs_errno, KUNIT_CASE(invalid_port_arguments_are_rejected),
	    KUNIT_CASE(invalid_ah_attributes_are_rejected),
	    KUNIT_CASE(ib_create_ah_from_wc_rejects_invalid_arguments_and_multicast_senders),
	    KUNIT_CASE(invalid_queue_arguments_are_rejected),
	    KUNIT_CASE(invalid_qp_arguments_are_rejected),
	    KUNIT_CASE(invalid_memory_registration_arguments_are_rejected),
	    KUNIT_CASE(missing_optional_methods_return_eopnotsupp));
