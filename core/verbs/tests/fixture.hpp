// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides fixtures for the verbs suites: a software device that exists for one test, and objects
// on it.
#pragma once
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/kunit_fixture.hpp>
#include <kern/lock.hpp>
#include <kern/time.hpp>
#include <rdma/ib_cache.h>
#include <rdma/objects.hpp>
#include "../../../hw/soft/soft.h"

namespace fixture
{

using kern::kunit::Test;
using CqRef = kern::Ref<rdma::CompletionQueue>;
using PdRef = kern::Ref<rdma::Pd>;

inline bool devices_are_plain = false;

inline void on_plain_devices()
{
	devices_are_plain = true;
	soft_set_behaviour(SOFT_PLAIN);
}
inline void on_devices_like_a_card()
{
	devices_are_plain = false;
	soft_set_behaviour(SOFT_CARD_SENDS_FIRST);
}

/*
 * A suite whose cases run on plain software devices, and again on devices that behave like a card.
 */
#define SOFT_SUITES(name, ...)                                                                     \
	KUNIT_SUITE_BEFORE(name, ::fixture::on_plain_devices, __VA_ARGS__);                        \
	KUNIT_SUITE_BEFORE(name##_card, ::fixture::on_devices_like_a_card, __VA_ARGS__)
/* A suite that runs only on devices like a card, because its cases take too long to run twice. */
#define CARD_SUITE(name, ...)                                                                      \
	KUNIT_SUITE_BEFORE(name, ::fixture::on_devices_like_a_card, __VA_ARGS__)

class Device
{
public:
	explicit Device(const soft_options &options = {}) : device_(soft_create(&options)) {}
	~Device()
	{
		if (!rdma::is_err(device_))
			soft_destroy(device_);
	}
	Device(const Device &) = delete;
	Device &operator=(const Device &) = delete;

	bool ok() const { return !rdma::is_err(device_); }
	ib_device *get() const { return device_; }
	operator ib_device *() const { return device_; }

private:
	ib_device *device_;
};

/* The kernel looks for sleepers: it has every check, and runs on a machine, which is emulated. */
inline bool sleeping_is_watched()
{
	kern::NoSleepSection section;
	return !kern_may_sleep();
}

/*
 * True if a case of SOFT_SUITES that is slow on an emulated guest with every check, and needs only
 * one CPU, runs: there, devices like a card show effects of CPUs and preemption. The plain devices
 * are for User-Mode Linux guests, and for guests without checks.
 */
inline bool runs_on_these_devices(Test &test)
{
	if (!devices_are_plain || !sleeping_is_watched())
		return true;
	test.skip("where every check is made, several CPUs have devices like a card");
	return false;
}

using kern::kunit::eventually;

inline ib_qp_init_attr qp_attr(ib_qp_type type)
{
	return {
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 64},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = type,
		.port_num = 1,
	};
}

/* Takes a UD QP as far as RTS. */
inline int connect_datagram(ib_qp *qp, u32 qkey, u32 port_num = 1)
{
	ib_qp_attr attr = {};

	attr.qp_state = IB_QPS_INIT;
	attr.port_num = port_num;
	attr.qkey = qkey;
	int mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_QKEY;
	if (qp->qp_type == IB_QPT_UD)
		mask |= IB_QP_PORT;
	if (int error = ib_modify_qp(qp, &attr, mask))
		return error;
	attr.qp_state = IB_QPS_RTR;
	if (int error = ib_modify_qp(qp, &attr, IB_QP_STATE))
		return error;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

inline constexpr int all_access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				  IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;

/* Takes an RC, UC or XRC QP as far as RTS, towards a peer at a LID. */
inline int connect(ib_qp *qp, u32 peer_number, u32 peer_lid, u8 rnr_retry = 7)
{
	ib_qp_attr attr = {};
	const bool responds = qp->qp_type == IB_QPT_RC || qp->qp_type == IB_QPT_XRC_TGT;
	const bool requests = qp->qp_type == IB_QPT_RC || qp->qp_type == IB_QPT_XRC_INI;

	attr.qp_state = IB_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = all_access;
	if (int error = ib_modify_qp(
		    qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS))
		return error;
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = IB_MTU_2048;
	attr.dest_qp_num = peer_number;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = IB_RNR_TIMER_000_01;
	attr.ah_attr.port_num = 1;
	rdma_ah_set_dlid(&attr.ah_attr, peer_lid);
	int mask = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	if (responds)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	if (int error = ib_modify_qp(qp, &attr, mask))
		return error;
	attr.qp_state = IB_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 3;
	attr.rnr_retry = rnr_retry;
	attr.max_rd_atomic = 4;
	mask = IB_QP_STATE | IB_QP_SQ_PSN;
	if (requests)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
	else if (responds)
		mask |= IB_QP_TIMEOUT;
	return ib_modify_qp(qp, &attr, mask);
}

/* Two connected QPs on one device, their CQs polled directly. */
struct Pair {
	static constexpr int entries = 64;

	explicit Pair(ib_device *device, ib_qp_type type = IB_QPT_RC, u8 rnr_retry = 7)
	{
		auto attr = qp_attr(type);
		auto made = rdma::Pd::create(device);
		if (!made.ok())
			return;
		pd = made.take();
		for (auto *cq : {&cq_a, &cq_b}) {
			auto queue =
				rdma::CompletionQueue::create(device, nullptr, nullptr, entries);
			if (!queue.ok())
				return;
			*cq = queue.take();
		}
		auto a = rdma::QueuePair::create(pd, cq_a, cq_a, attr);
		auto b = rdma::QueuePair::create(pd, cq_b, cq_b, attr);
		if (!a.ok() || !b.ok())
			return;
		qp_a = a.take();
		qp_b = b.take();
		ok = connect(qp_a.get(), qp_b.number(), 1, rnr_retry) == 0 &&
		     connect(qp_b.get(), qp_a.number(), 1, rnr_retry) == 0;
	}

	bool ok = false;
	PdRef pd;
	CqRef cq_a, cq_b;
	rdma::QueuePair qp_a, qp_b;
};

/* Returns the next completion of a CQ that is polled directly, or false if none arrives. */
inline bool next(const CqRef &cq, ib_wc &wc)
{
	return eventually([&] { return cq->poll(1, &wc) == 1; });
}

inline ib_sge sge_of(const PdRef &pd, void *memory, u32 length)
{
	return {.addr = reinterpret_cast<u64>(memory),
		.length = length,
		.lkey = pd->local_dma_lkey()};
}

/* Memory that both sides use, and a key that gives the peer access. */
struct Memory {
	explicit Memory(const PdRef &pd)
	{
		auto made = rdma::MemoryRegion::all(pd, all_access | IB_ACCESS_MW_BIND);
		if (made.ok())
			region = made.take();
		auto page = kern::make_array<u8>(kern::Gfp::kernel, 4096);
		if (page.ok())
			bytes = page.take();
		ok = region && !bytes.empty();
	}
	u8 *at(size_t offset) const { return bytes.data() + offset; }
	u64 address(size_t offset) const { return reinterpret_cast<u64>(at(offset)); }

	bool ok = false;
	rdma::MemoryRegion region;
	kern::OwnedArray<u8> bytes;
};

inline ib_send_wr send_wr(ib_sge *sge, ib_wr_opcode opcode, u64 wr_id = 0)
{
	ib_send_wr wr = {};

	wr.wr_id = wr_id;
	wr.sg_list = sge;
	wr.num_sge = sge ? 1 : 0;
	wr.opcode = opcode;
	return wr;
}

/*
 * `body` calls the function under test, undoes it if it succeeded, and returns the error. Every
 * error must be ENOMEM, the first run without a failed allocation must succeed, and at least one
 * run must have failed.
 */
template<class Body>
void fail_each(Test &test, Body body)
{
	for (unsigned int nth = 1; nth < 100; nth++) {
		kern_fail_allocation(nth);
		const int error = body();
		const bool failed = kern_allocation_failed();
		kern_fail_allocation(0);
		if (!failed) {
			EXPECT_EQ(error, 0);
			EXPECT_GT(nth, 1u);
			return;
		}
		EXPECT_EQ(error, -ENOMEM);
	}
	EXPECT_TRUE(false);
}

/* Returns the error of a creation, and destroys the object if it was created. */
template<class T, class End>
int outcome(T *object, End end)
{
	if (rdma::is_err(object))
		return rdma::ptr_err(object);
	end(object);
	return 0;
}

} // namespace fixture
