// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the objects of the software device.
 *
 * Lock order: Fabric::lock, then a QP's or SRQ's lock, then a CQ's. Fabric::lock is a mutex. It
 * serializes the messages, which the engine's tasks process, with each other and with the creation
 * and destruction of everything that a message can reach.
 */
#pragma once
#include <kern/atomic.hpp>
#include <kern/irq_work.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/sequence_lock.hpp>
#include <kern/tasklet.hpp>
#include <kern/time.hpp>
#include <kern/work.hpp>
#include <kern/xarray.hpp>
#include <rdma/driver.hpp>
#include "soft.h"

namespace soft
{

inline constexpr unsigned int max_ports = 4;
inline constexpr unsigned int max_vectors = 16;
inline constexpr unsigned int max_sge = 8;
inline constexpr unsigned int max_inline = 128;
inline constexpr int max_wr = 16384;
inline constexpr int max_cqe = 65536;
inline constexpr unsigned int max_pages = 64;
inline constexpr u32 local_dma_lkey = 0x100;

/* A queue of fixed size. The caller must hold a lock that protects it. */
template<class T>
class Ring
{
public:
	Ring() = default;
	explicit Ring(kern::OwnedArray<T> &&entries) : entries_(std::move(entries)) {}
	static kern::Result<Ring> create(size_t size)
	{
		return Ring(KERN_TRY(kern::make_array<T>(kern::Gfp::kernel, size ? size : 1)));
	}

	size_t size() const { return entries_.size(); }
	size_t count() const { return count_; }
	bool empty() const { return count_ == 0; }
	bool full() const { return count_ == entries_.size(); }
	T &front() { return entries_[head_]; }
	T &at(size_t index) { return entries_[(head_ + index) % entries_.size()]; }
	/* Appends an element, and returns it with its old contents. The ring must not be full. */
	T &push() { return at(count_++); }
	void pop()
	{
		head_ = (head_ + 1) % entries_.size();
		count_--;
	}

private:
	kern::OwnedArray<T> entries_;
	size_t head_ = 0;
	size_t count_ = 0;
};

struct PortState {
	ib_port_attr attr;
	kern::OwnedArray<ib_gid> gids;
	kern::OwnedArray<u16> pkeys;
	/* QP0 and QP1. Protected by Fabric::lock. */
	ib_qp *special[2] = {};
	/*
	 * The port at the other end of the cable; nullptr without a cable. Protected by
	 * Fabric::lock.
	 */
	struct SoftDevice *peer = nullptr;
	u32 peer_port = 0;
};

struct Region {
	explicit Region(u32 pd_key) : pd(pd_key) {}

	u32 pd;
	u32 key = 0;
	int access = 0;
	bool valid = false;
	/*
	 * The region covers all memory (`all`), a contiguous range, or a list of pages (`pages`).
	 */
	bool all = false;
	/* The device for which addresses are mapped; nullptr if they are CPU addresses. */
	struct device *dma = nullptr;
	u64 start = 0;
	u64 length = 0;
	unsigned int max_pages = 0;
	unsigned int page_count = 0;
	u64 page_size = 0;
	u64 *pages = nullptr;
};

struct Faults {
	kern::Atomic<unsigned int> left{0};
	kern::Atomic<int> error{0};
	kern::Atomic<unsigned long> calls{0};
	kern::Atomic<void (*)(void *context)> interposed{nullptr};
	kern::Atomic<void *> interposed_context{nullptr};
};

struct SoftDevice {
	ib_device ib;
	soft_options options;
	PortState ports[max_ports + 1];
	/* Protects the attributes and tables of the ports. */
	kern::IrqSpinLock *ports_lock;
	kern::XArray<ib_qp> *qps;
	kern::XArray<Region> *regions;
	/* SRQs of type XRC, by number. */
	kern::XArray<ib_srq> *srqs;
	Faults faults[SOFT_METHOD_COUNT];
	/* Protected by Fabric::lock. */
	unsigned int lost;
	unsigned int reordered;
	u64 random;
	bool (*lose)(void *context, const void *payload, size_t length);
	void *lose_context;
	ib_list_head fabric_links;
	kern::Atomic<bool> completes_late;
	kern::Atomic<bool> holds_datagrams;
	kern::Atomic<unsigned long> addresses_lost;
	kern::Atomic<unsigned long> interrupts[max_vectors];

	bool is_rnic() const { return ib.node_type == RDMA_NODE_RNIC; }
	bool like_a_card() const { return options.behaviour != SOFT_PLAIN; }
	/* Returns the number of the port that has the QPs and tables of a port: 0 for a switch. */
	u32 home(u32 port_num) const { return ib.is_switch ? 0 : port_num; }

	/*
	 * Counts a call of a method. Returns 0, or the error with which the test makes this call
	 * fail.
	 */
	int fault(soft_method method)
	{
		Faults &fault = faults[method];

		fault.calls.add_relaxed(1);
		if (auto *function = fault.interposed.load_acquire())
			function(fault.interposed_context.load_relaxed());
		unsigned int left = fault.left.load_relaxed();
		while (left > 0)
			if (fault.left.compare_exchange(left, left - 1))
				return fault.error.load_relaxed();
		return 0;
	}
};

inline SoftDevice &of(ib_device *device)
{
	return *rdma::device_of<SoftDevice>(device);
}

/* All devices, and the lock that serializes the messages between them. */
struct Fabric {
	kern::Mutex lock{KERN_LOCK_CLASS("soft.fabric")};
	ib_list_head devices = {&devices, &devices};
	kern::Atomic<soft_behaviour> behaviour{SOFT_PLAIN};
	kern::WorkQueue engine;
};
extern kern::Static<Fabric> fabric;

/* cq.cpp */
class CqState
{
public:
	CqState(ib_cq *cq, u32 vector, Ring<ib_wc> &&ring);
	/* Waits for running completion handlers. */
	~CqState();

	bool push(const ib_wc &wc, bool solicited);
	int poll(int count, ib_wc *wcs);
	/*
	 * Makes the completions of a QP that is being destroyed independent of it
	 * (rdma::remaining_qp()). Returns their number.
	 */
	int detach_qp(ib_qp &qp);
	int arm(ib_cq_notify_flags flags);
	int peek(int limit);
	int resize(int cqe);
	/* Removes the entries of a QP. */
	void purge(const ib_qp &qp);
	unsigned long events() const { return event_count_.load_relaxed(); }
	unsigned long missed_event_checks() const { return missed_event_checks_.load_relaxed(); }
	/* Makes the next `count` calls of arm() fail with `error`. */
	void fail_arms(unsigned int count, int error);

private:
	void raise();
	void handle();
	void dispatch_overrun();
	/*
	 * Disarms the CQ, because an event is about to be raised for all entries. Caller holds
	 * lock_.
	 */
	void disarm();
	/* Returns the number of entries that can be polled. Caller holds lock_. */
	size_t visible();

	ib_cq *cq_;
	const u32 vector_;
	soft_context context_;
	soft_notify notify_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("soft.cq")};
	Ring<ib_wc> ring_;
	/* The number of entries up to and including the last solicited one; 0 if there is none. */
	size_t solicited_ = 0;
	/* The number of entries, from the oldest, for which an event has been raised. */
	size_t notified_ = 0;
	/*
	 * The number of newest entries that are hidden until the next arm (soft_complete_late()).
	 */
	size_t hidden_ = 0;
	int armed_ = 0;
	unsigned int failing_arms_ = 0;
	int arm_error_ = 0;
	bool overrun_ = false;
	kern::Atomic<unsigned int> due_{0};
	kern::Atomic<unsigned long> event_count_{0};
	kern::Atomic<unsigned long> missed_event_checks_{0};
	kern::IrqWork irq_work_{kern::method<&CqState::handle>, this};
	kern::Tasklet tasklet_{kern::method<&CqState::handle>, this};
	kern::Work work_{kern::method<&CqState::handle>, this};
	kern::Work overrun_work_{kern::method<&CqState::dispatch_overrun>, this};
};
using Cq = rdma::DriverObject<ib_cq, CqState>;

struct AhState {
	explicit AhState(const rdma_ah_attr &address) : attr_(address) {}

	void modify(const rdma_ah_attr &attr)
	{
		lock_.write([&] { attr_.store(attr); });
	}
	void query(rdma_ah_attr &to) const
	{
		lock_.read([&] { attr_.load(to); });
	}

	/* The number of uncompleted requests that use this address handle. */
	kern::Atomic<unsigned int> requests{0};

private:
	kern::SequenceLock lock_{KERN_LOCK_CLASS("soft.ah")};
	kern::SharedCopy<rdma_ah_attr> attr_;
};
using Ah = rdma::DriverObject<ib_ah, AhState>;

/* A send request in its queue. */
struct SendEntry {
	union {
		ib_send_wr wr;
		ib_rdma_wr rdma;
		ib_atomic_wr atomic;
		ib_ud_wr ud;
		ib_reg_wr reg;
		ib_bind_mw_wr bind;
		ib_xrc_wr xrc;
	};
	ib_sge sges[max_sge];
	u8 inline_data[max_inline];
	/*
	 * For a datagram: the address at the time when the request was posted, and the address
	 * handle.
	 */
	rdma_ah_attr address;
	AhState *handle;
	unsigned int tries;
};

struct RecvEntry {
	u64 wr_id;
	int num_sge;
	ib_sge sges[max_sge];
	/* The SRQ's CQ if the SRQ is of type XRC; nullptr for the QP's CQ. */
	ib_cq *cq;
};

struct RecvQueue {
	kern::IrqSpinLock lock{KERN_LOCK_CLASS("soft.recv")};
	Ring<RecvEntry> ring;
	u32 max_sge = 0;

	int post(const ib_recv_wr *wr, const ib_recv_wr **bad_wr);
	/* Removes the oldest entry. Returns false if there is none. */
	bool take(RecvEntry &entry);
};

struct SrqState {
	RecvQueue queue;
	u32 limit = 0;
};
using Srq = rdma::DriverObject<ib_srq, SrqState>;

struct McastGroup {
	ib_list_head links;
	ib_gid gid;
	u16 lid;
};

/* A datagram in flight. See datagram.cpp. */
struct Datagram;

class QpState
{
public:
	QpState(ib_qp *qp, const ib_qp_init_attr &init);
	~QpState();

	int post_send(const ib_send_wr *wr, const ib_send_wr **bad_wr);
	/* Removes the oldest send, which has completed. Caller holds send_lock. */
	void pop_send();
	/* Schedules the engine to process the QP. Context: any. */
	void kick();
	/*
	 * Dispatches an event of the QP from a task, not within this function (LOCK-05). Context:
	 * any.
	 */
	void raise(ib_event_type type);

	ib_qp *qp;
	ib_qp_init_attr init;
	/* The attributes. Protected by Fabric::lock, as are `held` and `stream`. */
	ib_qp_attr attr{};
	Datagram *held = nullptr;
	/* iWARP: the QP at the other end of the stream; nullptr without a stream. */
	QpState *stream = nullptr;
	ib_list_head groups;
	RecvQueue recv;
	kern::IrqSpinLock send_lock{KERN_LOCK_CLASS("soft.send")};
	Ring<SendEntry> send;
	/* The numbers of completions to lose (soft_lose_completions()). */
	kern::Atomic<unsigned int> lost_sends{0}, lost_receives{0};
	/* Writers hold both Fabric::lock and send_lock; readers hold either. */
	ib_qp_state state = IB_QPS_RESET;

private:
	void run();
	void dispatch_raised();

	kern::DelayedWork work_{kern::method<&QpState::run>, this};
	/* One bit for each event that has been raised and not yet dispatched. */
	kern::Atomic<u32> raised_{0};
	kern::Work event_work_{kern::method<&QpState::dispatch_raised>, this};
};
using Qp = rdma::DriverObject<ib_qp, QpState>;

struct MrState {
	explicit MrState(u32 pd_key) : region(pd_key) {}

	Region region;
	u32 index = 0;
	kern::OwnedArray<u64> pages;
};
using Mr = rdma::DriverObject<ib_mr, MrState>;
using Mw = rdma::DriverObject<ib_mw, MrState>;

/*
 * memory.cpp. Caller holds Fabric::lock. The functions that return bool return false if the keys do
 * not permit the access. A `pd` of nullptr skips the check of the PD.
 */
size_t total(const ib_sge *sges, int count);
bool copy_from_local(SoftDevice &device, const ib_pd &pd, const SendEntry &entry, void *to,
		     size_t length);
bool copy_to_local(SoftDevice &device, const ib_pd &pd, const ib_sge *sges, int count, size_t skip,
		   const void *from, size_t length, int access);
/*
 * Writes remote memory if `access` has IB_ACCESS_REMOTE_WRITE, reads it if it has
 * IB_ACCESS_REMOTE_READ.
 */
bool copy_remote(SoftDevice &device, const ib_pd *pd, u32 rkey, u64 address, void *data,
		 size_t length, int access);
u64 *atomic_target(SoftDevice &device, const ib_pd *pd, u32 rkey, u64 address);
bool invalidate(SoftDevice &device, u32 key);
bool register_region(const ib_pd &pd, const ib_reg_wr &wr);
bool bind_window(SoftDevice &device, const ib_pd &pd, const ib_bind_mw_wr &wr);

void set_memory_methods(ib_device_ops &ops);
void set_queue_methods(ib_device_ops &ops);
void set_qp_methods(ib_device_ops &ops, bool rnic);

/* engine.cpp. Caller holds Fabric::lock. */
/*
 * Executes the requests in the QP's send queue as far as possible. Returns true if it must be
 * called again after a millisecond.
 */
bool process(QpState &qp);
/* Completes all sends and receives with flush errors. */
void flush(QpState &qp);
void set_error(QpState &qp);
/*
 * iWARP: ends the stream of a QP, if there is one. The QP at the other end, if it is in RTS, moves
 * to the error state later, because it may be processing a request.
 */
void end_stream(QpState &qp);

/* card_states.cpp. Returns whether a card allows this transition (SOFT_CARD_…). */
bool card_allows(ib_qp_state from, ib_qp_state to);

/* datagram.cpp. Caller holds Fabric::lock. */
ib_wc_status send_datagram(QpState &qp, const SendEntry &entry);
void release_held(QpState &qp);

/* transport.cpp. Caller holds Fabric::lock. */
enum class Outcome { done, again };
/*
 * Executes a request of a connected QP. `status` and `byte_len` are those of its completion.
 * Returns `again` if the request must be tried again later.
 */
Outcome carry_out(QpState &qp, SendEntry &entry, ib_wc_status &status, u32 &byte_len);

/*
 * Returns true if the message must be lost (soft_disturb(), soft_watch()). Caller holds
 * Fabric::lock.
 */
bool disturbed(SoftDevice &device, const void *payload, size_t length);

} // namespace soft
