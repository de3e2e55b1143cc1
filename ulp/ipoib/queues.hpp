/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Manages the queues of an interface with their verbs objects: one receive queue and several
 * transmit queues. Each transmit queue has its own QP and CQ, so that CPUs do not contend.
 *
 * All functions are called with the rtnl lock held, unless stated otherwise.
 */
#pragma once

#include "fault.hpp"
#include "bring_up.hpp"
#include "receive.hpp"
#include "transmit.hpp"

namespace ipoib
{

class Queues
{
public:
	/*
	 * Each state has the resources of the previous one. Documentation/ipoib.rst has a diagram.
	 */
	enum class State : u8 {
		none, /* no verbs objects, no rings */
		/* rings and CQs exist, and QPs in RESET: the interface has a hardware address */
		made,
		ready,   /* the QPs are in RTS, and all receives are posted */
		running, /* completions are polled, and the stack may transmit */
	};

	Queues(ib_device *device, u32 port_num, kern::DelayedWork &recovery_work);
	~Queues();
	Queues(const Queues &) = delete;
	Queues &operator=(const Queues &) = delete;

	/*
	 * Creates the queues for a network device, without rings. They exist until the destructor,
	 * whatever the state is, so that the device's counters and settings are always available.
	 * Context: process; called once. Errors: ENOMEM.
	 */
	kern::Result<> attach(net_device *dev, const ib::Gid &broadcast);
	/*
	 * Removes the queues' NAPI contexts from the device, which is not used afterwards. State:
	 * none.
	 */
	void detach();

	State state() const { return bring_up_.state(); }
	/* Moves to a state. Context: may sleep. Errors: ENOMEM, those of the verbs. */
	kern::Result<> to(State wanted) { return bring_up_.to(wanted); }

	/* Parameters for the following steps up. */
	void set_pd(ib_pd *pd) { pd_ = pd; }
	void set_pkey_index(u16 index) { pkey_index_ = index; }
	void set_own_lid(u32 lid) { receive_.set_own_lid(lid); }
	void set_checksum(bool on) { receive_.set_checksum(on); }
	/*
	 * Sets the depths of rings that are allocated later. Both must be powers of two within the
	 * queues' limits; they are reduced to what the device supports.
	 */
	void set_depths(u32 receive, u32 transmit);
	u32 receive_depth() const { return receive_depth_; }
	u32 transmit_depth() const { return transmit_depth_; }

	/*
	 * Returns the QP of a transmit queue, or nullptr in state none. The first QP also receives,
	 * and its number is in the hardware address.
	 */
	ib_qp *qp(u32 sender = 0) const
	{
		return sender < senders_.size() ? senders_[sender].qp : nullptr;
	}
	u32 transmit_queues() const { return static_cast<u32>(senders_.size()); }

	/* Sets the Q_Key of all QPs. State: ready or running. Returns the first error, if any. */
	kern::Result<> set_qkey(u32 qkey);
	/* Returns true if all QPs can send. Moves a QP in SQE to RTS (IBA 10.3.1). */
	bool send_again();
	void report(Fault fault) { faults_.report(fault); }
	u32 take_faults() { return faults_.take(); }

	/* Returns the queue that the stack has chosen for a packet. Context: start_xmit. */
	TransmitQueue &transmit(const sk_buff *skb) { return senders_[kern::skb_queue(skb)].queue; }

	/* Context: any. */
	const ReceiveCounters &received() const { return receive_.counters(); }
	TransmitCounters sent() const;

	void get_coalesce(kern_coalesce &rx, kern_coalesce &tx);
	/* Applies settings from ethtool. Errors: those of Moderation::set(). */
	int set_coalesce(const kern_coalesce &rx, const kern_coalesce &tx);

private:
	friend class BringUp<Queues, State>;
	struct Sender {
		ib_cq *cq = nullptr;
		ib_qp *qp = nullptr;
		TransmitQueue queue;
	};

	kern::Result<> step_up(State to);
	State step_down(State from);

	kern::Result<> make();
	kern::Result<> make_sender(u32 index, u32 receive_depth, u32 transmit_depth);
	kern::Result<ib_cq *> make_cq(u32 entries, u32 vector, ib_comp_handler handler,
				      void (*event_handler)(ib_event *, void *), void *context);
	kern::Result<ib_qp *> make_qp(ib_cq *send_cq, u32 receive_depth, u32 transmit_depth);
	void unmake();
	kern::Result<> connect();
	State disconnect();
	kern::Result<> run();
	void halt();

	kern::Result<> modify(ib_qp_attr &attr, int mask);
	kern::Result<> to_qp_state(ib_qp_state state);
	static void on_qp_event(ib_event *event, void *context);

	ib_device *const device_;
	const u32 port_num_;
	ib_pd *pd_ = nullptr;
	net_device *dev_ = nullptr;
	ib::Gid broadcast_{};
	u16 pkey_index_ = 0;
	u32 receive_depth_ = ReceiveQueue::default_depth;
	u32 transmit_depth_ = TransmitQueue::default_depth;
	u32 send_sge_ = 0;
	u32 inline_bytes_ = 0;

	Faults faults_;
	ib_cq *receive_cq_ = nullptr;
	ReceiveQueue receive_;
	kern::OwnedArray<Sender> senders_;
	BringUp<Queues, State> bring_up_{*this};
};

} // namespace ipoib
