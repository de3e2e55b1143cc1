/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One IPoIB interface: a network device for one port and partition.
 *
 * Locks, outermost first: the rtnl lock, under which its state changes; the locks of Multicast, of
 * DestinationTable and of the queries. Code waits for the SA client only under the rtnl lock, which
 * the client's callbacks do not take.
 */
#pragma once

#include "connected.hpp"
#include "destination.hpp"
#include "multicast.hpp"
#include "queues.hpp"

#include <kern/completion.hpp>
#include <kern/list.hpp>
#include <kern/ref.hpp>
#include <kern/work.hpp>

namespace ipoib
{

class Interface
{
public:
	/* Kind of flush that an event requires, from least to most. */
	enum Flush : u32 {
		flush_none = 0,
		flush_light =
			1
			<< 0, /* the SM may have changed its mind: paths are asked for again, and used meanwhile */
		flush_normal =
			1
			<< 1, /* addresses of ours are void: groups are left, destinations forgotten */
		flush_heavy =
			1
			/* the QP depends on the changed value: the queues are taken down and up */
			<< 2,
	};

	/* Each state has the resources of the one before. Documentation/ipoib.rst has a diagram. */
	enum class State : u8 {
		gone, /* not registered, or unregistered; no resources of the device are in use */
		down, /* administratively down; its QPs exist, so it has a hardware address */
		/* administratively up, but its queues could not be started; this is retried */
		halted,
		/*
		 * the queues run; there is no carrier until the port is active and the broadcast
		 * group is joined
		 */
		waiting,
		active, /* the broadcast group is joined: carrier on */
	};

	/* The mode in which it sends to peers that support both modes. */
	enum class Mode : u8 {
		datagram,
		connected, /* RFC 4755 */
	};

	/**
	 * create() - create an interface on a port, and register it with the network stack
	 * @dev: allocated by the stack for user space, or nullptr to allocate one by the name ib%d
	 * @parent: the parent of a child interface; nullptr for the port's own interface
	 * @pkey: its partition, with the full-membership bit
	 *
	 * The network stack owns it afterwards: remove() ends it. Context: process, rtnl lock held.
	 * Errors: ENOMEM, those of the verbs and of the registration.
	 */
	static kern::Result<Interface *> create(ib_device *device, u32 port_num, u16 pkey,
						Interface *parent, net_device *dev);
	/* Context: process, rtnl lock held. */
	void remove();

	/*
	 * Transmit queues that an interface has if its device has the completion vectors: one for
	 * each CPU, within reason.
	 */
	static unsigned transmit_queues_wanted();

	/* Returns the interface of a network device, or nullptr. */
	static Interface *of(net_device *dev);

	/*
	 * Applies settings from rtnetlink or sysfs. Errors: EOPNOTSUPP for a mode that the device
	 * does not support, those of the start. Context: rtnl lock.
	 */
	int change(const kern_link_settings &settings);

	/* Context: that of an event handler. */
	void on_event(ib_event_type event);

	net_device *netdev() const { return dev_; }
	ib_device *device() const { return device_; }
	State state() const { return bring_up_.state(); }
	/* Context: any; it does not change while the rtnl lock is held. */
	Mode mode() const { return static_cast<Mode>(mode_.load_relaxed()); }
	Connected &connected() { return connected_; }
	bool ignores_users_groups() const { return umcast_; }
	ib_qp *qp(u32 sender = 0) const { return queues_.qp(sender); }
	u32 port_num() const { return port_num_; }
	u16 pkey() const { return pkey_; }
	Interface *parent() const { return parent_; }
	/*
	 * Returns true for a child that was created through sysfs, and is deleted there by its
	 * P_Key.
	 */
	bool is_made_by_pkey() const { return parent_ && !user_made_; }
	const HardwareAddress &broadcast() const { return broadcast_; }
	const ib_gid &port_gid() const { return port_gid_; }
	ib_sa_client *sa_client();
	/* in Port::interfaces, protected by the rtnl lock and the port's lock */
	kern::ListNode port_node;

	/*
	 * Called by Multicast for a group that was joined: attaches the QP if packets of the group
	 * are to be received. Errors: those of the verbs. Context: process.
	 */
	int enter_group(Group &group);
	void resolved_group(const Group &group);
	/*
	 * Called when the resolution of an address has ended; handle is empty if it failed.
	 * Context: process or softirq.
	 */
	void resolved(const HardwareAddress &address, kern::Owned<Handle> handle);
	void forget(const HardwareAddress &address);
	/*
	 * Returns true if packets are sent there, or were until recently. Context: any but hard
	 * interrupt.
	 */
	bool sends_to(const HardwareAddress &address)
	{
		return static_cast<bool>(destinations_.get(address));
	}
	/* The broadcast group was joined or lost. Context: any. */
	void domain_changed() { refresh_work_.queue(); }

private:
	friend struct NetdevOps;
	/* For tests. */
	friend struct TimePasses;
	friend struct MulticastOf;
	friend class BringUp<Interface, State>;
	/*
	 * A path query in progress. It keeps the destination, and the interface waits for it before
	 * it is destroyed.
	 */
	struct PathQuery : kern::RefCounted<PathQuery> {
		PathQuery(Interface &asker, kern::Ref<Destination> to)
		    : interface(asker), destination(std::move(to))
		{
		}

		Interface &interface;
		kern::Ref<Destination> destination;
		/* Protected by queries_lock_. */
		kern::ListNode node;
		/* for ib_sa_cancel_query(); 0 if it is not known yet, or the query was cancelled */
		int id = 0;
		ib_sa_query *handle = nullptr;
	};

	Interface(ib_device *device, u32 port_num, u16 pkey, Interface *parent);
	~Interface();
	friend void kern::destroy<Interface>(Interface *);

	kern::Result<> step_up(State to);
	State step_down(State from);
	kern::Result<> create_resources();
	void destroy_resources();
	kern::Result<> start_queues();
	kern::Result<> start_connections();
	void stop_queues();
	void end_addresses();

	kern::Result<> read_port();
	HardwareAddress own_address() const;
	void publish_address();
	void go_by(__be64 guid);

	/* The stack's calls. */
	int start_xmit(sk_buff *skb);
	int start_xmit_connected(sk_buff *skb);
	int open();
	void stop();
	void uninit();
	int change_mtu(unsigned mtu);
	int set_address(const HardwareAddress &wanted);
	void tx_timeout();
	void get_stats(kern_net_stats &stats) const;
	int set_rings(u32 receive, u32 transmit);
	void get_counters(u64 *values) const;
	void send_unresolved(sk_buff *skb, const HardwareAddress &to);
	void send_resolved(TransmitQueue &queue, sk_buff *skb, const Destination &destination,
			   ib_ah *ah);
	u32 largest_datagram() const;
	u32 datagram_bytes() const;
	bool fits_datagram(sk_buff *skb) const;
	void report_too_big(sk_buff *skb, u32 limit);
	void answer_too_big();
	int set_mode(Mode mode);
	void adopt_mode(Mode mode);
	void set_mtu(unsigned mtu);
	unsigned datagram_mtu() const;
	void refresh_path(Destination &destination);
	void begin_path_query(kern::Ref<Destination> destination);
	void path_answered(PathQuery &query, int status, sa_path_rec *path);
	void finish(Destination &destination, kern::Owned<Handle> handle,
		    kern::Owned<sa_path_rec> path = {});
	void cancel_queries();

	void refresh();
	kern::Result<> take_over(const ib_sa_mcmember_rec &record);
	void leave_domain();
	void recover();
	void restart();
	void try_again_later(int error);
	void run_periodic();

	ib_device *const device_;
	const u32 port_num_;
	const u16 pkey_;
	Interface *const parent_;
	u16 pkey_index_ = 0;
	ib_gid port_gid_{};
	__be64 wanted_guid_{}; /* the administrator's, or the parent's; 0: the port's first */
	HardwareAddress broadcast_;
	HardwareAddress address_{};
	net_device *dev_ = nullptr;

	ib_pd *pd_ = nullptr;
	/* Set permanently when create() has succeeded. */
	kern::Atomic<bool> registered_{false};
	kern::DelayedWork recover_work_{kern::method<&Interface::recover>, this};
	Queues queues_;

	DestinationTable destinations_;
	Multicast multicast_{*this};
	/* Runs while the queues run in connected mode. */
	Connected connected_{destinations_, recover_work_};

	/* Protected by the rtnl lock. */
	BringUp<Interface, State> bring_up_{*this};
	kern::Atomic<u8> mode_{static_cast<u8>(
		Mode::datagram)}; /* clang takes no atomic of a scoped enumeration */
	bool umcast_ = false;
	/* the network stack has allocated its device for user space */
	bool user_made_ = false;
	unsigned max_datagram_mtu_ = 0; /* of the port */
	unsigned wanted_mtu_ = 0;       /* set by the administrator, for datagram mode */
	unsigned domain_mtu_ = 0;       /* MTU of the broadcast group; 0 while it is not known */

	u32 pending_flush_ = 0;
	u64 tx_dropped_ = 0;
	u64 path_queries_ = 0;
	kern::Work refresh_work_{kern::method<&Interface::refresh>, this};
	kern::DelayedWork periodic_work_{kern::method<&Interface::run_periodic>, this};

	kern::BhSpinLock too_big_lock_{KERN_LOCK_CLASS("ipoib.too_big")};
	kern_skb_queue too_big_ KERN_GUARDED_BY(too_big_lock_){};
	kern::Work too_big_work_{kern::method<&Interface::answer_too_big>, this};

	kern::BhSpinLock queries_lock_{KERN_LOCK_CLASS("ipoib.queries")};
	kern::List<PathQuery, &PathQuery::node> queries_ KERN_GUARDED_BY(queries_lock_);
	kern::Completion queries_done_; /* completed whenever the last query ends */
};

extern const kern_netdev_ops netdev_ops;
/* Replaces start_xmit in connected mode. */
int netdev_start_xmit_connected(sk_buff *skb, net_device *dev);

/* The module's rtnetlink kind, "ipoib". Errors: ENOMEM, EEXIST. */
kern::Result<> register_link_kind();
void unregister_link_kind();
void adopt_link_kind(net_device *dev);

} // namespace ipoib
