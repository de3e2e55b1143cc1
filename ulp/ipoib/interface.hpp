/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines an IPoIB interface: a network device for one port and partition.
 *
 * Locks, outermost first: the rtnl lock, under which the state changes; the locks of Multicast, of
 * DestinationTable and of the path queries. Code that waits for the SA client holds only the rtnl
 * lock, which the SA client's callbacks do not take.
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
	/* The kind of flush that an event requires, in ascending order. */
	enum Flush : u32 {
		flush_none = 0,
		/* the SM has changed: paths are queried again, and stay in use until then */
		flush_light = 1 << 0,
		/* local addresses are invalid: all groups are left, all destinations removed */
		flush_normal = 1 << 1,
		/* the QP depends on the changed value: the queues are stopped and started */
		flush_heavy = 1 << 2,
	};

	/*
	 * Each state has the resources of the previous one. Documentation/ipoib.rst has a diagram.
	 */
	enum class State : u8 {
		/* not registered any more, or not yet; no resources of the device are in use */
		gone,
		down, /* administratively down; its QPs exist, so it has a hardware address */
		/* administratively up, but the queues could not be started, which is retried */
		halted,
		/*
		 * the queues run; there is no carrier until the port is active and the broadcast
		 * group is joined
		 */
		waiting,
		active, /* the broadcast group is joined: carrier on */
	};

	/* The mode in which the interface sends to peers that support both modes. */
	enum class Mode : u8 {
		datagram,
		connected, /* RFC 4755 */
	};

	/**
	 * create() - create an interface on a port, and register it with the network stack
	 * @dev: allocated by the stack for user space, or nullptr to allocate a device
	 * @parent: the parent of a child interface; nullptr for the port's own interface
	 * @pkey: the interface's partition, with the full-membership bit
	 *
	 * Afterwards the network stack owns the interface, until remove(). Context: process, rtnl
	 * lock held. Errors: ENOMEM, those of the verbs and of the registration.
	 */
	static kern::Result<Interface *> create(ib_device *device, u32 port_num, u16 pkey,
						Interface *parent, net_device *dev);
	/*
	 * Unregisters the device, which destroys the interface. Context: process, rtnl lock held.
	 */
	void remove();

	/*
	 * Returns the number of transmit queues that an interface should have if its device has
	 * enough completion vectors: one for each CPU, at most max_transmit_queues.
	 */
	static unsigned transmit_queues_wanted();

	/*
	 * Returns the interface of a network device, or nullptr if the device is not an IPoIB
	 * interface.
	 */
	static Interface *of(net_device *dev);

	/*
	 * Applies settings from rtnetlink or sysfs. Errors: EOPNOTSUPP for a mode that the device
	 * does not support; the errors of starting the queues. Context: rtnl lock.
	 */
	int change(const kern_link_settings &settings);

	/* Handles an asynchronous event of the port or device. Context: event handler. */
	void on_event(ib_event_type event);

	net_device *netdev() const { return dev_; }
	ib_device *device() const { return device_; }
	State state() const { return bring_up_.state(); }
	/* Context: any; the mode does not change while the rtnl lock is held. */
	Mode mode() const { return static_cast<Mode>(mode_.load_relaxed()); }
	Connected &connected() { return connected_; }
	bool ignores_users_groups() const { return umcast_; }
	ib_qp *qp(u32 sender = 0) const { return queues_.qp(sender); }
	u32 port_num() const { return port_num_; }
	u16 pkey() const { return pkey_; }
	Interface *parent() const { return parent_; }
	/*
	 * Returns true for a child that was created through sysfs, where its P_Key identifies it
	 * for deletion.
	 */
	bool is_made_by_pkey() const { return parent_ && !user_made_; }
	const HardwareAddress &broadcast() const { return broadcast_; }
	const ib_gid &port_gid() const { return port_gid_; }
	ib_sa_client *sa_client();
	/* in Port::interfaces, protected by the rtnl lock and the port's lock */
	kern::ListNode port_node;

	/*
	 * Called by Multicast when a group was joined: attaches the QP if the interface receives
	 * the group's packets. Errors: those of the verbs. Context: process.
	 */
	/*
	 * Called by Multicast when a group was joined: creates the group's address handle, and
	 * sends the packets that wait for it. Context: process.
	 */
	int enter_group(Group &group);
	void resolved_group(const Group &group);
	/*
	 * Called when the resolution of an address has ended; `handle` is empty if it failed.
	 * Context: process or softirq.
	 */
	void resolved(const HardwareAddress &address, kern::Owned<Handle> handle);
	/*
	 * Removes the destination of an address, and drops the packets that wait for it. Context:
	 * process.
	 */
	void remove_destination(const HardwareAddress &address);
	/*
	 * Returns true if there is a destination with this address: packets are sent to it, or were
	 * until recently. Context: any but hard interrupt.
	 */
	bool sends_to(const HardwareAddress &address)
	{
		return static_cast<bool>(destinations_.get(address));
	}
	/* Called when the broadcast group was joined or lost. Context: any. */
	void domain_changed() { refresh_work_.queue(); }

private:
	friend struct NetdevOps;
	/* Access for tests. */
	friend struct TimePasses;
	friend struct MulticastOf;
	friend class BringUp<Interface, State>;
	/*
	 * A path query in progress. It holds a reference to the destination. The interface waits
	 * for all queries before it is destroyed.
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
		/*
		 * for ib_sa_cancel_query(); 0 if the ID is not known yet, or the query was
		 * cancelled
		 */
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
	void use_guid(__be64 guid);

	/* Methods of the network device. */
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
	kern::Result<> apply_broadcast_record(const ib_sa_mcmember_rec &record);
	void leave_domain();
	void recover();
	void restart();
	void retry_later(int error);
	void run_periodic();

	ib_device *const device_;
	const u32 port_num_;
	const u16 pkey_;
	Interface *const parent_;
	u16 pkey_index_ = 0;
	ib_gid port_gid_{};
	/*
	 * interface ID of the GID that the administrator or the parent has set; 0: that of the
	 * port's first GID
	 */
	__be64 wanted_guid_{};
	HardwareAddress broadcast_;
	HardwareAddress address_{};
	net_device *dev_ = nullptr;

	ib_pd *pd_ = nullptr;
	/* Set when create() has succeeded, and never cleared. */
	kern::Atomic<bool> registered_{false};
	kern::DelayedWork recover_work_{kern::method<&Interface::recover>, this};
	Queues queues_;

	DestinationTable destinations_;
	Multicast multicast_{*this};
	/* Active while the queues run in connected mode. */
	Connected connected_{destinations_, recover_work_};

	/* Protected by the rtnl lock. */
	BringUp<Interface, State> bring_up_{*this};
	kern::Atomic<u8> mode_{static_cast<u8>(
		/* an integer, because clang has no atomic built-ins for scoped enumerations */
		Mode::datagram)};
	bool umcast_ = false;
	/* the network stack has allocated the device for user space */
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
	kern::Completion queries_done_; /* completed when the last query ends */
};

extern const kern_netdev_ops netdev_ops;
/* The start_xmit method of connected mode. */
int netdev_start_xmit_connected(sk_buff *skb, net_device *dev);

/* Registers the rtnetlink kind "ipoib". Errors: ENOMEM, EEXIST. */
kern::Result<> register_link_kind();
void unregister_link_kind();
/* Marks a device as one of this kind, before it is registered. Context: rtnl lock held. */
void adopt_link_kind(net_device *dev);

} // namespace ipoib
