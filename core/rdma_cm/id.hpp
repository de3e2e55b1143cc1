// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines an ID of the RDMA CM: its addresses, its state, and the events that have not been
 * reported to its handler yet.
 *
 * The public part, struct rdma_cm_id, is written only with the ID's lock held. The consumer has one
 * reference, which is dropped by rdma_destroy_id() or by the handler's return value. Other code
 * holds a reference while it uses the ID.
 */
#pragma once

#include <kern/abi/process.h>
#include <kern/atomic.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/log.hpp>
#include <kern/ref.hpp>
#include <kern/work.hpp>
#include <rdma/ib_resources.h>

#include "net_namespace.hpp"
#include "transport.hpp"

namespace rdma_cm
{

class Device;
class Id;
struct Group;

/*
 * The creator of an ID: a module, for itself or on behalf of a process, and the network namespace.
 * IDs that are created for requests have the creator of the listener.
 */
class Creator : public kern::RefCounted<Creator>
{
public:
	Creator(const char *caller, bool of_process, kern::Ref<NetNamespace> in)
	    : process(of_process ? kern_process_get() : nullptr), net(std::move(in))
	{
		kern_format(module, sizeof(module), "%s", caller);
	}
	~Creator()
	{
		if (process)
			kern_process_put(process);
	}

	char module[sizeof(ib_resource_info::
				   /*
			 * a copy, because an ID that was released may still exist after its module
			 * has been unloaded
			 */
			   owner)]{};
	kern_process *const process;
	/* the process's namespace; for the IDs of modules the initial one */
	const kern::Ref<NetNamespace> net;
};

/* A result that is waiting to be reported to the handler. */
struct Notice {
	kern::ListNode node;
	Event event{};
	int status = 0;
	/* group that was joined or could not be joined, if the result is about one */
	Group *group = nullptr;
};

/* An ID's membership in a multicast group. All members are protected by the ID's lock. */
struct Group : Notice {
	Group(Id &of, const Address &by, void *consumers) : id(of), address(by), context(consumers)
	{
		group = this;
	}
	~Group();

	kern::ListNode group_node;
	Id &id;
	const Address address;
	void *const context;
	ib_sa_multicast *membership = nullptr;
	ib_sa_mcmember_rec rec{}; /* valid once the group is joined */
};

class Id : public rdma_cm_id, public NeighbourWaiter, public kern::RefCounted<Id>
{
public:
	/* Creates an ID for a consumer. `caller` must remain valid. Errors: EINVAL, ENOMEM. */
	static kern::Result<kern::Ref<Id>> create(rdma_cm_event_handler handler, void *context,
						  rdma_ucm_port_space space, ib_qp_type type,
						  bool of_process, const char *caller);
	/* Creates an ID for a request to `listener`. Errors: ENOMEM. */
	static kern::Result<kern::Ref<Id>> create_for(const Id &listener, ib_qp_type type);
	~Id();

	static Id &of(rdma_cm_id *id) { return *static_cast<Id *>(id); }

	kern::Mutex &handler_lock() KERN_RETURN_CAPABILITY(handler_lock_) { return handler_lock_; }
	kern::NoIoMutex &lock() KERN_RETURN_CAPABILITY(lock_) { return lock_; }
	State state() const { return state_; }
	NetNamespace &net() const { return *creator->net; }
	bool in_own_handler() const;

	/*
	 * Implemented in calls.cpp; bind() and set_path() in resolve.cpp. See rdma/rdma_cm.h for
	 * each of them. The caller holds the lock.
	 */
	kern::Result<> bind(const Address &address);
	/*
	 * If it fails, the listeners that have been started are added to @doomed, for
	 * Manager::destroy_listeners(), which must be called without a lock.
	 */
	kern::Result<> listen(int backlog, struct Listeners &doomed);
	kern::Result<> set_path(const sa_path_rec &path);
	kern::Result<> create_qp(ib_pd &pd, ib_qp_init_attr &attr);
	void destroy_qp();
	kern::Result<> qp_attributes(ib_qp_attr &attr, int &mask);
	kern::Result<> connect(const rdma_conn_param &param);
	kern::Result<> accept(const rdma_conn_param *param);
	kern::Result<> reject(const void *data, u8 length, u8 reason);
	kern::Result<> notify(ib_event_type event);
	kern::Result<> disconnect();
	void set_service_type(u8 tos);
	kern::Result<> set_ack_timeout(u8 timeout);
	kern::Result<> set_min_rnr_timer(u8 timer);
	kern::Result<> set_reuse(bool reuse);
	kern::Result<> set_afonly(bool afonly);
	/*
	 * Implemented in multicast.cpp. join(): the caller holds the lock. leave(): the caller
	 * holds no lock, and is not the handler.
	 */
	kern::Result<> join(const Address &address, u8 join_state, void *join_context);
	void leave(const Address &address);
	/* Implemented in resolve.cpp. The caller holds the lock. */
	kern::Result<> resolve_addr(const Address *source, const Address &destination,
				    unsigned long timeout_ms);
	kern::Result<> resolve_route(unsigned long timeout_ms);

	/*
	 * Called if the neighbour may have been resolved, or the timeout may have expired. The
	 * caller does not hold the lock.
	 */
	void retry();

	/*
	 * Reports ADDR_CHANGE if the ID's address is now on another interface. The caller does not
	 * hold the lock.
	 */
	void check_address();

	/*
	 * Handles an event of this ID's connection. Called by the transport. Context: process,
	 * without locks.
	 */
	void handle(const TransportEvent &report);
	/*
	 * Offers a new ID to the consumer of this listener. The caller holds the listener's handler
	 * lock. Returns the handler's result.
	 */
	int offer(Id &fresh, rdma_cm_event &event);
	/* Initialises an ID for a request. The ID must not be visible to other tasks yet. */
	kern::Result<> begin(const struct Ends &ends, const Interface &interface,
			     class Request &request);
	/* Reports that the device is being removed. The caller does not hold the lock. */
	void lose_device();
	/*
	 * Fills in all reported values except the owner; returns false if the ID is being
	 * destroyed. The caller does not hold the lock.
	 */
	bool show(ib_resource_info &info);

	/*
	 * Starts the destruction; returns false if another task has started it. The caller does not
	 * hold the lock.
	 */
	bool begin_end();
	/*
	 * Completes the destruction, and drops the consumer's reference. The caller holds no lock,
	 * and is not a handler of this ID.
	 */
	void end();

	/* Values that the transport reads. The caller holds the lock. */
	const Address &source() const { return route.addr.src_addr; }
	const Address &destination() const { return route.addr.dst_addr; }
	u32 psn() const { return psn_; }
	u32 qkey() const { return qkey_; }
	/*
	 * Determines the Q_Key. Errors: EADDRNOTAVAIL if the port space uses the Q_Key of IPoIB's
	 * broadcast group, and that group is not joined.
	 */
	kern::Result<> find_qkey(u32 wanted = 0);

	/* Members that the Manager uses. */
	kern::ListNode device_node, service_node, reap_node;
	kern::Ref<Device> bound_device;
	u32 number = 0; /* index in Device::numbers */
	const kern::Ref<Creator> creator;
	rdma_ucm_port_space
		port_space; /* the space of its port: `ps`, or the space in its AF_IB address */
	class Service *service = nullptr;
	bool counts_port = false; /* counted as a port of programs in its namespace */
	bool listening = false;
	u32 checked = 0; /* number of the last check by the Manager */
	bool reuse = false;
	bool afonly = false;
	Interface interface{}; /* interface that has the ID's address; index 0 if none */

private:
	Id(rdma_cm_event_handler handler, void *context, rdma_ucm_port_space space, ib_qp_type type,
	   kern::Ref<Creator> creator, kern::LockClass &handler_class);

	kern::Result<> permit(Event event) const;
	void change(Event event);
	/* Changes the state if the event permits it. */
	bool take(Event event);
	void post(Notice &notice, Event event, int status);
	void run();
	int deliver(rdma_cm_event &event);
	/* Called if the handler has returned an error: destroys the ID. */
	void destroy_after_handler();
	kern::Result<> modify_qp(ib_qp_state state, const rdma_conn_param *param = nullptr);
	void fail_qp();
	void set_qp_number(u32 number);
	kern::Result<> connect_qp();
	kern::Result<> make_connection();
	Connection *connection() const;
	/* Implemented in resolve.cpp. */
	kern::Result<> bind_host(const Address &address);
	kern::Result<> resolve_loopback();
	kern::Result<> permit_service(const Address &destination) const;
	kern::Result<> resolve_gid();
	kern::Result<> resolve_ip(unsigned long timeout_ms);
	void find_neighbour(const ib_gid &gid);
	/*
	 * Copies the result of the address resolution into the ID. The caller also holds the
	 * handler lock. Errors: ENODEV, and those of the verbs.
	 */
	kern::Result<> apply_route();
	void take_path();
	void on_time() { retry(); }
	void find_path(int status, const sa_path_rec *path);
	/* Implemented in multicast.cpp. */
	void take_membership(Group &group, int status, const ib_sa_mcmember_rec &rec);
	void fill_group(rdma_cm_event &event, Group &group);
	void leave_all();

	kern::Mutex handler_lock_;
	kern::NoIoMutex lock_{KERN_LOCK_CLASS("rdma_cm.id")};
	kern::Atomic<unsigned long> running_in_{0}; /* context of the running handler, or 0 */
	State state_ = State::idle;
	kern::Owned<Connection> connection_;
	const u32 psn_;
	/* number of its QP, or of the consumer's own QP if the consumer has specified one */
	u32 qp_number_ = 0;
	u32 qkey_ = 0;
	u8 tos_ = 0;
	u8 ack_timeout_ = 0, min_rnr_timer_ = 0;
	bool has_ack_timeout_ = false, has_min_rnr_timer_ = false, has_afonly_ = false;

	/*
	 * The state of an address resolution, and its result. Consumers may read the public part
	 * while they exclude handlers, so the result is copied there only when the event is
	 * reported; before that, the ID is not bound. Allocated only during a resolution, because
	 * there may be tens of thousands of connected IDs.
	 */
	struct Route {
		Interface interface{}; /* index 0: none */
		Address source{};
		ib_gid neighbour{};
	};
	kern::Owned<Route> route_;
	kern::Owned<sa_path_rec> found_path_;
	u64 deadline_ = 0;
	struct ib_sa_query *query_ = nullptr;
	int query_id_ = 0;
	Notice resolved_, changed_, gone_;
	kern::List<Notice, &Notice::node> notices_;
	kern::List<Group, &Group::group_node> groups_;
	unsigned int group_count_ = 0;

	/* timer_ is declared last, and thus destroyed first. */
	kern::Work work_{kern::method<&Id::run>, this};
	kern::DelayedWork timer_{kern::method<&Id::on_time>, this};
};

/*
 * Returns the MGID that corresponds to an address on an interface with that broadcast group; zero
 * if the SA shall choose the MGID.
 */
ib_gid mgid_of(const Address &address, rdma_ucm_port_space space, const ib_gid &broadcast);

} // namespace rdma_cm
