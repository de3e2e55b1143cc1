/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One IPoIB interface: a port and a partition of it, as a network device.
 *
 * Locks, outermost first: the rtnl lock (open, stop, refresh()), the locks of Multicast and of DestinationTable. None of the three is held
 * while the SA client is waited for.
 */
#pragma once

#include "destination.hpp"
#include "multicast.hpp"
#include "receive.hpp"
#include "transmit.hpp"

#include <kern/completion.hpp>
#include <kern/work.hpp>

namespace ipoib
{

class Interface
{
public:
	/* What an event asks for, from least to most. */
	enum Flush : u32 {
		flush_none = 0,
		flush_light = 1 << 0,  /* the SM may have changed its mind: paths are asked for again, and used meanwhile */
		flush_normal = 1 << 1, /* addresses of ours are void: groups are left, destinations forgotten */
		flush_heavy = 1 << 2,  /* the QP itself is bound to what changed: it is taken down and up */
	};

	/**
	 * create() - an interface on a port, registered with the stack
	 * @dev: allocated by the stack for user space, or nullptr to allocate one by the name ib%d
	 * @parent: of a child interface; nullptr for the port's own
	 * @pkey: its partition, with the full-membership bit
	 *
	 * It belongs to the stack afterwards: remove() ends it. Context: process, rtnl lock held.
	 * Errors: ENOMEM, those of the verbs and of the registration.
	 */
	static kern::Result<Interface *> create(ib_device *device, u32 port_num, u16 pkey, Interface *parent,
						net_device *dev);
	/* Context: process, rtnl lock held. */
	void remove();

	/* Transmit queues that an interface has if its device has the completion vectors: one for each CPU, within reason. */
	static unsigned transmit_queues_wanted();

	/* The interface of a device of the stack's, or nullptr. */
	static Interface *of(net_device *dev);

	/* Context: that of an event handler. */
	void on_event(ib_event_type event);

	net_device *netdev() const { return dev_; }
	ib_device *device() const { return device_; }
	ib_qp *qp() const { return qp_; }
	u32 port_num() const { return port_num_; }
	u16 pkey() const { return pkey_; }
	Interface *parent() const { return parent_; }
	const HardwareAddress &broadcast() const { return broadcast_; }
	const ib_gid &port_gid() const { return port_gid_; }
	ib_sa_client *sa_client();
	kern::ListNode port_node; /* in Port::interfaces, under the rtnl lock and the port's own */

	/* From Multicast: a group that was joined: attach it, if it is to be heard. Errors: those of the verbs. Context: process. */
	int enter_group(Group &group);
	void resolved_group(const Group &group);
	/* How the search for an address ended; the handle becomes the interface's. Context: process or softirq. */
	void resolved(const HardwareAddress &address, ib_ah *ah);
	void forget(const HardwareAddress &address);
	/* Whether packets go there, or have until lately. Context: any but hard interrupt. */
	bool sends_to(const HardwareAddress &address) { return static_cast<bool>(destinations_.get(address)); }
	/* The broadcast group was joined or lost. Context: any. */
	void domain_changed() { refresh_work_.queue(); }

private:
	friend struct NetdevOps;
	/* A path being asked for. The callback has a reference, and so has whoever asks or cancels. */
	struct PathQuery : kern::RefCounted<PathQuery> {
		PathQuery(Interface &asking, kern::Ref<Destination> to) : interface(asking), destination(std::move(to)) {}

		Interface &interface;
		kern::Ref<Destination> destination;
		/* Under path_queries_lock_. */
		kern::ListNode node; /* in path_queries_out_, once it may be cancelled */
		int id = 0;
		ib_sa_query *handle = nullptr;
		bool answered = false;
	};
	/* One transmit queue of the stack's, with a QP and a CQ of its own, so that CPUs do not meet there. */
	struct Sender {
		ib_cq *cq = nullptr;
		ib_qp *qp = nullptr;
		kern::Owned<TransmitQueue> queue;
	};

	Interface(ib_device *device, u32 port_num, u16 pkey, Interface *parent);
	~Interface();
	friend void kern::destroy<Interface>(Interface *);

	kern::Result<> create_queues(u32 receive_depth, u32 transmit_depth);
	kern::Result<> create_sender(u32 index, u32 receive_depth, u32 transmit_depth);
	ib_cq *create_cq(u32 entries, u32 vector, ib_comp_handler handler);
	ib_qp *create_qp(ib_cq *send_cq, u32 receive_depth, u32 transmit_depth);
	void destroy_queues();
	/* NAPI of the queues, while there is a device. */
	void attach_queues();
	void detach_queues();
	kern::Result<> start_queues();
	void stop_queues();
	/* Of all QPs. The first error, if there was any. */
	kern::Result<> modify_qps(ib_qp_attr &attr, int mask);
	kern::Result<> to_state(ib_qp_state state);
	kern::Result<> read_port();

	/* The stack's calls. */
	int start_xmit(sk_buff *skb);
	int open();
	void stop();
	int change_mtu(unsigned mtu);
	void tx_timeout();
	void get_stats(kern_net_stats &stats) const;
	int set_rings(u32 receive, u32 transmit);
	void get_coalesce(kern_coalesce &rx, kern_coalesce &tx);
	int set_coalesce(const kern_coalesce &rx, const kern_coalesce &tx);
	void get_counters(u64 *values) const;
	TransmitCounters sent() const;

	TransmitQueue &transmit_queue(const sk_buff *skb) { return *senders_[kern::skb_queue(skb)].queue; }
	void send_unresolved(sk_buff *skb, const HardwareAddress &to);
	void begin_path_query(kern::Ref<Destination> destination);
	void path_answered(PathQuery &query, int status, sa_path_rec *path);
	void cancel_path_queries();
	void finish(Destination &destination, ib_ah *ah);

	void refresh();
	void apply_domain(const ib_sa_mcmember_rec &record);
	void recover();
	void tend();

	ib_device *const device_;
	const u32 port_num_;
	const u16 pkey_;
	Interface *const parent_;
	u16 pkey_index_ = 0;
	bool pkey_present_ = false;
	ib_gid port_gid_{};
	HardwareAddress broadcast_;
	HardwareAddress address_{};
	net_device *dev_ = nullptr;

	ib_pd *pd_ = nullptr;
	ib_cq *receive_cq_ = nullptr;
	ib_qp *qp_ = nullptr; /* that of the hardware address: it receives, and is the first to send */
	kern::Owned<ReceiveQueue> receive_;
	kern::OwnedArray<Sender> senders_;
	u32 send_sge_ = 0;
	u32 inline_bytes_ = 0;
	kern_coalesce receive_coalesce_{0, 0, true};
	kern_coalesce transmit_coalesce_{0, 0, true};

	DestinationTable destinations_;
	Multicast multicast_{*this};

	/* Under the rtnl lock. */
	bool opened_ = false;
	bool removing_ = false;
	unsigned wanted_mtu_ = 0; /* the administrator's */
	unsigned domain_mtu_ = 0; /* the broadcast group's; 0 while it is not known */

	u32 pending_flush_ = 0;
	bool stuck_ = false; /* the stack found the transmit queue so */
	u64 tx_dropped_ = 0;
	u64 path_queries_ = 0;
	kern::Work refresh_work_{kern::method<&Interface::refresh>, this};
	kern::Work recover_work_{kern::method<&Interface::recover>, this};
	kern::DelayedWork tend_work_{kern::method<&Interface::tend>, this};
	kern::BhSpinLock path_queries_lock_{KERN_LOCK_CLASS("ipoib.path_queries")};
	kern::List<PathQuery, &PathQuery::node> path_queries_out_ GUARDED_BY(path_queries_lock_);
	/* One for the interface and one for each query that is out. */
	kern::RefCount queries_;
	kern::Completion queries_done_;
};

extern const kern_netdev_ops netdev_ops;

/* The module's rtnetlink kind, "ipoib". Errors: ENOMEM, EEXIST. */
kern::Result<> register_link_kind();
void unregister_link_kind();
void adopt_link_kind(net_device *dev);

} // namespace ipoib
