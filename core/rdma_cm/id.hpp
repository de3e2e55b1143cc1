// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * One ID: its addresses, its state, and the events that have not been reported to its handler yet.
 *
 * The public part is written with the ID's lock held. The consumer has one reference, which is
 * dropped by rdma_destroy_id() or by the handler's return value. Other code holds a reference while
 * it uses the ID.
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
 * The creator of an id: a module, for itself or for a process, and its network namespace. The ids
 * of requests to a listener have the listener's.
 */
class Maker : public kern::RefCounted<Maker>
{
public:
	Maker(const char *caller, bool of_process, kern::Ref<NetNamespace> in)
	    : process(of_process ? kern_process_get() : nullptr), net(std::move(in))
	{
		kern_format(module, sizeof(module), "%s", caller);
	}
	~Maker()
	{
		if (process)
			kern_process_put(process);
	}

	char module[sizeof(
		ib_resource_info::
			owner)]{}; /* a copy: an id that was released may outlive its module */
	kern_process *const process;
	const kern::Ref<NetNamespace> net; /* the process's; a module's own ids: the initial one */
};

/* A result on its way to the handler. */
struct Notice {
	kern::ListNode node;
	Event event{};
	int status = 0;
	Group *group = nullptr; /* group of the result */
};

/* An id's membership in a multicast group. All under the id's lock. */
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
	NetNamespace &net() const { return *maker->net; }
	bool in_own_handler() const;

	/*
	 * calls.cpp, the first and set_path() resolve.cpp; see rdma/rdma_cm.h for each of them. The
	 * lock is held.
	 */
	kern::Result<> bind(const Address &address);
	/*
	 * Listeners begun before a failure go to @doomed, for Manager::destroy_listeners() without
	 * a lock.
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
	/* multicast.cpp, the same; leave() without any lock, and not from the handler. */
	kern::Result<> join(const Address &address, u8 join_state, void *join_context);
	void leave(const Address &address);
	/* resolve.cpp, the same. */
	kern::Result<> resolve_addr(const Address *source, const Address &destination,
				    unsigned long timeout_ms);
	kern::Result<> resolve_route(unsigned long timeout_ms);

	/* The neighbour may be known, or the time has expired. Called without the lock. */
	void retry();

	/* Checks if its address is still on the same interface. Without the lock. */
	void check_address();

	/*
	 * The transport reports an event of this ID's connection. Context: process, without locks.
	 */
	void handle(const TransportEvent &report);
	/*
	 * Offers a new id to the consumer of this listener, whose handler lock is held. Returns the
	 * handler's result.
	 */
	int offer(Id &fresh, rdma_cm_event &event);
	/* Initialises an ID for a request that arrived. It is not visible to other tasks yet. */
	kern::Result<> begin(const struct Ends &ends, const Interface &interface,
			     class Request &request);
	/* The device is removed. Called without the lock. */
	void lose_device();
	/*
	 * Fills in all displayed values except the owner; returns false if the ID is being
	 * destroyed. Called without the lock.
	 */
	bool show(ib_resource_info &info);

	/*
	 * Starts the destruction; returns false if another task has started it. Called without the
	 * lock.
	 */
	bool begin_end();
	/*
	 * Completes the destruction, and drops the consumer's reference. Called without locks, and
	 * not from a handler of this ID.
	 */
	void end();

	/* Attributes for the transport. The lock is held. */
	const Address &source() const { return route.addr.src_addr; }
	const Address &destination() const { return route.addr.dst_addr; }
	u32 psn() const { return psn_; }
	u32 qkey() const { return qkey_; }
	/*
	 * Errors: EADDRNOTAVAIL if IPoIB's group, whose Q_Key the port space shares, is not joined.
	 */
	kern::Result<> find_qkey(u32 wanted = 0);

	/* Members that the Manager uses. */
	kern::ListNode device_node, service_node, reap_node;
	kern::Ref<Device> bound_device;
	u32 number = 0; /* index in Device::numbers */
	const kern::Ref<Maker> maker;
	rdma_ucm_port_space
		port_space; /* the space of its port: `ps`, or the space in an AF_IB address */
	class Service *service = nullptr;
	bool counts_port = false; /* counted as a port of programs in its namespace */
	bool listening = false;
	u32 checked = 0; /* number of the last check by the Manager */
	bool reuse = false;
	bool afonly = false;
	Interface interface{}; /* interface of its address; index 0: none */

private:
	Id(rdma_cm_event_handler handler, void *context, rdma_ucm_port_space space, ib_qp_type type,
	   kern::Ref<Maker> maker, kern::LockClass &handler_class);

	kern::Result<> permit(Event event) const;
	void change(Event event);
	/* Changes the state if the event permits it. */
	bool take(Event event);
	void post(Notice &notice, Event event, int status);
	void run();
	int deliver(rdma_cm_event &event);
	/* The handler has returned an error, which destroys the ID. */
	void destroy_after_handler();
	kern::Result<> modify_qp(ib_qp_state state, const rdma_conn_param *param = nullptr);
	void fail_qp();
	void name_qp(u32 number);
	kern::Result<> connect_qp();
	kern::Result<> make_connection();
	Connection *connection() const;
	/* resolve.cpp */
	kern::Result<> bind_host(const Address &address);
	kern::Result<> resolve_loopback();
	kern::Result<> permit_service(const Address &destination) const;
	kern::Result<> resolve_gid();
	kern::Result<> resolve_ip(unsigned long timeout_ms);
	void find_neighbour(const ib_gid &gid);
	/*
	 * Applies the result of the resolution to the ID. The handler lock is also held. Errors:
	 * ENODEV; those of the verbs.
	 */
	kern::Result<> apply_route();
	void take_path();
	void on_time() { retry(); }
	void find_path(int status, const sa_path_rec *path);
	/* multicast.cpp */
	void take_membership(Group &group, int status, const ib_sa_mcmember_rec &rec);
	void fill_group(rdma_cm_event &event, Group &group);
	void leave_all();

	kern::Mutex handler_lock_;
	kern::NoIoMutex lock_{KERN_LOCK_CLASS("rdma_cm.id")};
	kern::Atomic<unsigned long> running_in_{0}; /* the handler's context */
	State state_ = State::idle;
	kern::Owned<Connection> connection_;
	const u32 psn_;
	/*
	 * number of its QP, or of the consumer's own QP once the consumer has specified it
	 */
	u32 qp_number_ = 0;
	u32 qkey_ = 0;
	u8 tos_ = 0;
	u8 ack_timeout_ = 0, min_rnr_timer_ = 0;
	bool has_ack_timeout_ = false, has_min_rnr_timer_ = false, has_afonly_ = false;

	/*
	 * The addresses being resolved, and the result. Readers that exclude handlers may read the
	 * public part, so that is set only when the event is reported; before, the id is not bound.
	 * Freed when no task waits for them, because there may be tens of thousands of connected
	 * IDs.
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

	/* The second ends first. */
	kern::Work work_{kern::method<&Id::run>, this};
	kern::DelayedWork timer_{kern::method<&Id::on_time>, this};
};

/*
 * Returns the group of an address on an interface with that broadcast group; zero if the SA assigns
 * the MGID.
 */
ib_gid mgid_of(const Address &address, rdma_ucm_port_space space, const ib_gid &broadcast);

} // namespace rdma_cm
