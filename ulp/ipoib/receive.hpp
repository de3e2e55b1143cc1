/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Implements the receive queue of an interface's UD QP: a ring of half pages. Packets are passed to
 * the stack in their pages, and only the headers are copied. A page is reused when the stack has
 * released it. A buffer is passed to the stack only if a new one replaces it, so the ring does not
 * run empty when memory is short (MGMT-12).
 */
#pragma once

#include "counters.hpp"
#include "fault.hpp"
#include "moderation.hpp"
#include "wire.hpp"

#include <kern/dma.hpp>
#include <kern/memory.hpp>
#include <kern/netdev.hpp>
#include <rdma/ib_verbs.h>

namespace ipoib
{

/* Maximum number of transmit queues of an interface; with more CPUs, several share a queue. */
constexpr u32 max_transmit_queues = 16;

/*
 * The link-layer header that the stack sees in front of received packets: an empty address, and the
 * encapsulation header.
 */
struct LinkHeader {
	u8 to[address_bytes];
	Header header;
};

/*
 * Returns how many bytes of a packet of `length` bytes, including the encapsulation header, belong
 * into the linear part of the skb. These are all bytes of a small packet. For a TCP packet, they
 * are exactly the headers, so that the stack can coalesce payloads of one flow as pages.
 */
u32 linear_length(const u8 *datagram, u32 length);

class ReceiveQueue : public kern::Napi<ReceiveQueue>
{
public:
	static constexpr u32 default_depth = 512;
	static constexpr u32 max_depth = 8192;
	static constexpr u32 min_depth = 64;

	ReceiveQueue() = default;
	~ReceiveQueue();
	/*
	 * Sets the network device, and the object to which the queue reports faults that it cannot
	 * fix. Called once.
	 */
	void init(net_device *dev, Faults &faults);
	/*
	 * Allocates the ring. entries: a power of two; datagram_bytes: the largest MTU that the
	 * port can have. Context: process. Errors: ENOMEM.
	 */
	kern::Result<> allocate(ib_device *device, u32 entries, u32 datagram_bytes, u32 lkey);
	/* Frees the ring, whose buffers must have been reclaimed. Context: process. */
	void free();
	/* Sets the QP and its CQ, until detach(). Must be called before fill(). */
	void attach(ib_qp *qp, ib_cq *cq);
	void detach();
	/* Adds the number of a QP from which the interface sends. Must be called before start(). */
	void add_own_qp(u32 number);

	/*
	 * Posts all receives to the QP. If this fails, some may have been posted. Context: process.
	 * Errors: ENOMEM, those of ib_post_recv().
	 */
	kern::Result<> fill(const ib::Gid &broadcast);
	/*
	 * Enable and disable NAPI. stop() must also be called if start() has failed. Context:
	 * process. Errors: those of ib_req_notify_cq().
	 */
	kern::Result<> start();
	void stop();
	/*
	 * Waits until all posted buffers have completed. NAPI must be disabled. Returns false if
	 * the device does not complete them in time. Context: process.
	 */
	bool drain();
	/* Frees buffers that never completed. The QP must be in RESET or destroyed. */
	void reclaim();
	void report(Fault fault) { faults_->report(fault); }

	/*
	 * Sets the LID by which the interface recognises its own multicast packets. Context: any.
	 */
	void set_own_lid(u32 lid) { __atomic_store_n(&own_lid_, lid, __ATOMIC_RELAXED); }
	void set_checksum(bool on) { checksum_ = on; }

	void on_completion()
	{
		moderation_.on_event();
		schedule();
	}
	int poll(int budget);
	Moderation &moderation() { return moderation_; }

	u32 depth() const { return static_cast<u32>(slots_.size()); }
	const ReceiveCounters &counters() const { return counters_; }

private:
	/* A page that is mapped for the device. */
	struct Buffer {
		struct page *page;
		u64 dma;
	};
	struct Slot {
		ib_recv_wr wr;
		ib_sge sge[2]; /* the GRH, the datagram */
		Buffer buffer; /* has a page while a buffer is posted */
		u32 offset;    /* offset of the buffer in the page: 0 or half a page */
	};
	/* Whether completed buffers are posted again. */
	enum class Supply : u8 {
		kept, /* yes */
		cut,  /* no: the QP is in ERR, and would flush them at once */
	};

	bool is_own_qp(u32 number) const;
	bool acquire(Buffer &buffer);
	void release(Buffer &buffer);
	void install(Slot &slot, const Buffer &buffer);
	void receive(Slot &slot, const ib_wc &wc);
	bool deliver(Slot &slot, const ib_wc &wc, u32 length);
	bool other_half_is_free(const Slot &slot) const;
	int post();
	void repost();
	Slot &slot(u32 index) { return slots_[index & mask_]; }

	kern::OwnedArray<Slot> slots_;
	u32 mask_ = 0;
	u32 buffer_bytes_ = 0;
	kern::DmaBuffer grh_area_;
	net_device *dev_ = nullptr;
	Faults *faults_ = nullptr;
	ib_device *device_ = nullptr;
	ib_qp *qp_ = nullptr;
	ib_cq *cq_ = nullptr;
	ib::Gid broadcast_{};
	u32 own_lid_ = 0;
	u32 own_qps_[max_transmit_queues]{};
	u32 own_qp_count_ = 0;
	bool checksum_ = false;

	/* Used in NAPI context only. Buffers are posted and completed in the order of the ring. */
	u32 posted_ = 0; /* index of the next buffer to post */
	u32 taken_ = 0;  /* index of the next buffer to complete */
	Supply supply_ = Supply::kept;
	ReceiveCounters counters_{};
	ib_wc wc_[16];
	Moderation moderation_;
};

} // namespace ipoib
