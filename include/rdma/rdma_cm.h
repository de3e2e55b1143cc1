/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares connections by IP address, with calls like those of sockets (IBA annex A11).
 * Documentation/connections.rst has the states, and the differences from Linux.
 *
 * Each ID has a handler lock. Its handler is called with one event at a time, in order, in process
 * context, with this lock held and no other. (For CONNECT_REQUEST, the listener's handler lock is
 * held, and then the new ID's.) A handler may sleep, and may call every function below for its ID
 * unless the function's description forbids it. It must not call rdma_destroy_id() for its own ID,
 * nor for the listener while it handles CONNECT_REQUEST, nor wait for another handler.
 *
 * An ID has the addresses of one network namespace: the namespace of the process or listener that
 * created the ID, or the initial namespace for consumers in the kernel (RCM-17).
 *
 * Linux: differs by union rdma_sockaddr instead of struct sockaddr.
 */
#pragma once
#include <rdma/ib_cm.h>

/* Events of an ID, with the numbers of the ABI for programs. */
enum rdma_cm_event_type {
	RDMA_CM_EVENT_ADDR_RESOLVED,
	RDMA_CM_EVENT_ADDR_ERROR,
	RDMA_CM_EVENT_ROUTE_RESOLVED,
	RDMA_CM_EVENT_ROUTE_ERROR,
	RDMA_CM_EVENT_CONNECT_REQUEST,
	RDMA_CM_EVENT_CONNECT_RESPONSE,
	RDMA_CM_EVENT_CONNECT_ERROR,
	RDMA_CM_EVENT_UNREACHABLE,
	RDMA_CM_EVENT_REJECTED,
	RDMA_CM_EVENT_ESTABLISHED,
	RDMA_CM_EVENT_DISCONNECTED,
	RDMA_CM_EVENT_DEVICE_REMOVAL,
	RDMA_CM_EVENT_MULTICAST_JOIN,
	RDMA_CM_EVENT_MULTICAST_ERROR,
	RDMA_CM_EVENT_ADDR_CHANGE,
	RDMA_CM_EVENT_TIMEWAIT_EXIT,
};

/* Port spaces: sets of port numbers, which determine the first bytes of service IDs (IBA A11.2). */
enum rdma_ucm_port_space {
	RDMA_PS_IPOIB = 0x0002,
	RDMA_PS_TCP = 0x0106,
	RDMA_PS_UDP = 0x0111,
	RDMA_PS_IB = 0x013f,
};

/* Q_Key of datagrams in the port spaces UDP and IB. */
#define RDMA_UDP_QKEY 0x01234567u

/*
 * Sizes of the consumer's private data with IP addresses, in bytes. With AF_IB addresses, the
 * consumer can use all private data of a message.
 */
enum rdma_cm_data_size {
	RDMA_CM_IP_HEADER_SIZE = 36,
	RDMA_CM_REQ_PRIVATE_DATA_SIZE = IB_CM_REQ_PRIVATE_DATA_SIZE - RDMA_CM_IP_HEADER_SIZE,
	RDMA_CM_SIDR_REQ_PRIVATE_DATA_SIZE =
		IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE - RDMA_CM_IP_HEADER_SIZE,
};

enum rdma_cm_address_family {
	RDMA_AF_INET = 2,
	RDMA_AF_INET6 = 10,
	RDMA_AF_IB = 27,
};

/**
 * struct rdma_sockaddr_in - an address of IPv4, as struct sockaddr_in
 * @family: RDMA_AF_INET
 * @port: port number; 0 for none
 * @addr: address as on the wire; zero for any
 * @zero: not used
 */
struct rdma_sockaddr_in {
	u16 family;
	__be16 port;
	u8 addr[4];
	u8 zero[8];
};

/**
 * struct rdma_sockaddr_in6 - an address of IPv6, as struct sockaddr_in6
 * @family: RDMA_AF_INET6
 * @port: port number; 0 for none
 * @flowinfo: traffic class and flow label
 * @addr: address as on the wire; zero for any
 * @scope_id: index of the interface of a link-local address
 */
struct rdma_sockaddr_in6 {
	u16 family;
	__be16 port;
	__be32 flowinfo;
	u8 addr[16];
	u32 scope_id;
};

/**
 * struct rdma_sockaddr_ib - a GID and a service, as struct sockaddr_ib
 * @family: RDMA_AF_IB
 * @pkey: P_Key; 0 for any
 * @flowinfo: traffic class and flow label
 * @addr: GID; zero for any
 * @sid: service ID
 * @sid_mask: significant bits of @sid
 * @scope_id: not used
 */
struct rdma_sockaddr_ib {
	u16 family;
	__be16 pkey;
	__be32 flowinfo;
	union ib_gid addr;
	__be64 sid;
	__be64 sid_mask;
	__be64 scope_id;
};

/**
 * union rdma_sockaddr - an address
 * @family: enum rdma_cm_address_family; 0 means no address
 * @in: the address, with RDMA_AF_INET
 * @in6: the address, with RDMA_AF_INET6
 * @ib: the address, with RDMA_AF_IB
 */
union rdma_sockaddr {
	u16 family;
	struct rdma_sockaddr_in in;
	struct rdma_sockaddr_in6 in6;
	struct rdma_sockaddr_ib ib;
};

struct rdma_cm_id;

/**
 * struct rdma_addr - the addresses of both ends
 * @src_addr: local address; family 0 until the ID is bound
 * @dst_addr: the peer's address; family 0 until it has one
 * @sgid: local GID; zero until a device is bound
 * @dgid: the peer's GID; zero until it is known
 * @pkey: P_Key, host order; 0 until a device is bound
 */
struct rdma_addr {
	union rdma_sockaddr src_addr;
	union rdma_sockaddr dst_addr;
	union ib_gid sgid;
	union ib_gid dgid;
	u16 pkey;
};

/**
 * struct rdma_route - the addresses of both ends, and the path between them
 * @addr: the addresses
 * @path_rec: the path
 * @num_paths: 1 if @path_rec is valid, else 0
 */
struct rdma_route {
	struct rdma_addr addr;
	struct sa_path_rec path_rec;
	int num_paths;
};

/**
 * struct rdma_conn_param - parameters of a connection, sent or received
 * @private_data: private data for the peer, or from the peer, with the maximum length of the
 * message
 * @private_data_len: length of @private_data in bytes; at most enum rdma_cm_data_size,
 * IB_CM_REP_PRIVATE_DATA_SIZE or IB_CM_SIDR_REP_PRIVATE_DATA_SIZE
 * @responder_resources: RDMA reads and atomics that the local QP answers at a time; in an event, at
 * most
 * @initiator_depth: RDMA reads and atomics that the local QP has outstanding; in an event, at most
 * @flow_control: whether the QP uses end-to-end flow control
 * @retry_count: retries of both QPs, 0 to 7; ignored by rdma_accept()
 * @rnr_retry_count: RNR retries of the peer's QP, 0 to 7
 * @srq: whether the QP has an SRQ; ignored for an ID that has its QP from rdma_create_qp()
 * @qp_num: number of the QP, 24 bits; ignored for an ID that has its QP from rdma_create_qp()
 * @qkey: Q_Key of an ID of datagrams with AF_IB addresses; 0 means RDMA_UDP_QKEY
 */
struct rdma_conn_param {
	const void *private_data;
	u8 private_data_len;
	u8 responder_resources;
	u8 initiator_depth;
	u8 flow_control;
	u8 retry_count;
	u8 rnr_retry_count;
	u8 srq;
	u32 qp_num;
	u32 qkey;
};

/**
 * struct rdma_ud_param - the address of datagrams to a peer, or to a group
 * @private_data: private data from the peer
 * @private_data_len: length of @private_data in bytes
 * @ah_attr: the address
 * @qp_num: number of the QP; 0xffffff for a group
 * @qkey: its Q_Key
 */
struct rdma_ud_param {
	const void *private_data;
	u8 private_data_len;
	struct rdma_ah_attr ah_attr;
	u32 qp_num;
	u32 qkey;
};

/**
 * struct rdma_cm_event - an event of an ID
 * @event: enum rdma_cm_event_type
 * @status: 0; a negative errno; with REJECTED, the reason of the REJ, greater than 0; with
 * UNREACHABLE for datagrams, enum ib_cm_sidr_status, greater than 0
 * @param.conn: an ID of a connection: its parameters; zero if the event has none
 * @param.ud: an ID whose type is IB_QPT_UD: the address; zero if the event has none
 * @join_context: with MULTICAST_JOIN and MULTICAST_ERROR: the context of rdma_join_multicast()
 *
 * Pointers are valid during the call of the handler.
 */
struct rdma_cm_event {
	enum rdma_cm_event_type event;
	int status;
	union {
		struct rdma_conn_param conn;
		struct rdma_ud_param ud;
	} param;
	void *join_context;
};

/**
 * rdma_cm_event_handler - called with the events of an ID
 * @id: the ID; with CONNECT_REQUEST a new one, whose context and handler are the listener's
 * @event: the event; valid during the call
 *
 * After DEVICE_REMOVAL no other event is reported. The consumer must destroy the ID soon, because
 * the removal of the device waits for that.
 *
 * Context: process, with the handler lock.
 *
 * Return: 0; anything else lets the RDMA CM destroy the ID after the call: it no longer belongs to
 * the consumer, which has destroyed its QP before. With CONNECT_REQUEST, 0 gives the new ID to the
 * consumer; -ENOMEM destroys it without an answer, so that the peer repeats its request; anything
 * else refuses the request.
 */
typedef int (*rdma_cm_event_handler)(struct rdma_cm_id *id, struct rdma_cm_event *event);

/**
 * struct rdma_cm_id - one side of a connection by address, or a listener
 * @device: the device; NULL until the ID is bound to one
 * @context: for the consumer; may be changed with the handler lock held
 * @qp: the QP of rdma_create_qp(), or NULL
 * @event_handler: called with its events; may be changed with the handler lock held
 * @route: addresses and path; read with the handler lock held, or while no event can be reported
 * @ps: port space
 * @qp_type: type of its QP
 * @port_num: port of @device; 0 until there is one
 */
struct rdma_cm_id {
	struct ib_device *device;
	void *context;
	struct ib_qp *qp;
	rdma_cm_event_handler event_handler;
	struct rdma_route route;
	enum rdma_ucm_port_space ps;
	enum ib_qp_type qp_type;
	u32 port_num;
};

RDMA_C_BEGIN

/*
 * Implements rdma_create_id() and rdma_create_user_id(). weft_netlink shows IDs with the name of
 * the caller's module, or the number of the calling process.
 */
RDMA_MUST_CHECK struct rdma_cm_id *__rdma_create_id(rdma_cm_event_handler event_handler,
						    void *context, enum rdma_ucm_port_space ps,
						    enum ib_qp_type qp_type, bool of_process,
						    const char *caller);

/**
 * rdma_create_id - create an ID for a consumer in the kernel
 * @event_handler: called with its events
 * @context: for the consumer
 * @ps: port space
 * @qp_type: IB_QPT_RC, IB_QPT_UC, IB_QPT_UD, IB_QPT_XRC_INI or IB_QPT_XRC_TGT
 *
 * The caller destroys it with rdma_destroy_id().
 *
 * Context: process. Return: the ID, idle; -EINVAL without a handler, or for another port space or
 * type; -ENOMEM if there is no memory.
 */
RDMA_MUST_CHECK static inline struct rdma_cm_id *rdma_create_id(rdma_cm_event_handler event_handler,
								void *context,
								enum rdma_ucm_port_space ps,
								enum ib_qp_type qp_type)
{
	return __rdma_create_id(event_handler, context, ps, qp_type, false, RDMA_CALLER);
}

/**
 * rdma_create_user_id - create an ID for the calling process
 * @event_handler: called with its events
 * @context: for the consumer
 * @ps: port space
 * @qp_type: as for rdma_create_id()
 *
 * Resource tracking shows the ID, and new IDs of it as a listener, as the process's. It has the
 * addresses of the process's network namespace. The caller destroys it with rdma_destroy_id().
 *
 * Context: process. Return: as rdma_create_id().
 */
RDMA_MUST_CHECK static inline struct rdma_cm_id *
rdma_create_user_id(rdma_cm_event_handler event_handler, void *context, enum rdma_ucm_port_space ps,
		    enum ib_qp_type qp_type)
{
	return __rdma_create_id(event_handler, context, ps, qp_type, true, RDMA_CALLER);
}

/**
 * rdma_destroy_id - destroy an ID in any state
 * @id: the ID, whose QP has been destroyed
 *
 * Cancels what is in progress, sends the peer the messages of ib_destroy_cm_id(), leaves multicast
 * groups, and destroys new IDs with which a listener's handler has not been called. When this has
 * returned, no handler runs for the ID and none will run (RCM-12).
 *
 * Context: process, without the handler lock of the ID. A call from its own handler is refused with
 * a warning, and the ID stays. A listener is not destroyed from the handler of its new IDs.
 */
void rdma_destroy_id(struct rdma_cm_id *id);

/**
 * rdma_lock_handler - prevent the handler of an ID from running
 * @id: the ID
 *
 * For actions that must not coincide with an event: rdma_accept() outside of the handler, and
 * changes of @id->context. rdma_unlock_handler() releases the lock.
 *
 * Context: process, not from the handler, which holds the lock.
 */
void rdma_lock_handler(struct rdma_cm_id *id);

/**
 * rdma_unlock_handler - undo rdma_lock_handler()
 * @id: the ID
 *
 * Context: the task that has locked it.
 */
void rdma_unlock_handler(struct rdma_cm_id *id);

/**
 * rdma_bind_addr - bind an ID to a source address
 * @id: an idle ID
 * @addr: the address; the family's "any" for all; with port 0, the ID gets a port of
 * net.ipv4.ip_local_port_range
 *
 * An IP address that is neither "any" nor loopback binds the ID to the device of its interface. An
 * AF_IB address binds it to the device of its GID, which must have its P_Key, if it contains one.
 * The service of an AF_IB address determines the port space, as far as its mask covers it; an ID of
 * RDMA_PS_IB may have the spaces IB, TCP and UDP (IBA A11.2).
 *
 * Linux: differs by ports that belong to one ID even if the peers differ.
 *
 * Context: process.
 *
 * Return: 0; -EINVAL for an ID that is not idle, another family, or a link-local address without
 * interface; -EPROTONOSUPPORT for an AF_IB service of a port space that the ID must not use;
 * -EADDRNOTAVAIL for an address that no interface has, or if no port is free; -ENODEV for an
 * interface, GID or P_Key that no device has; -EADDRINUSE if another ID has the port; -EACCES for a
 * port below 1024 without CAP_NET_BIND_SERVICE; -ENOMEM if there is no memory.
 */
RDMA_MUST_CHECK int rdma_bind_addr(struct rdma_cm_id *id, const union rdma_sockaddr *addr);

/**
 * rdma_resolve_addr - find device, port and GIDs of an address
 * @id: an idle or a bound ID
 * @src_addr: the address to bind an idle ID to; NULL for any
 * @dst_addr: the peer's address
 * @timeout_ms: milliseconds to wait for the neighbour, at least 1; limited to one hour
 *
 * Completes with the event ADDR_RESOLVED or ADDR_ERROR.
 *
 * Context: process.
 *
 * Return: 0; -EINVAL if the state of the ID does not allow it, for no timeout, or for addresses of
 * different families; -EHOSTUNREACH if the route uses another interface than the one to which the
 * ID is bound; -ENODEV if no device has that interface; -ENOMEM if there is no memory; the errors
 * of rdma_bind_addr(), and of the kernel's route and neighbour lookup.
 */
RDMA_MUST_CHECK int rdma_resolve_addr(struct rdma_cm_id *id, const union rdma_sockaddr *src_addr,
				      const union rdma_sockaddr *dst_addr,
				      unsigned long timeout_ms);

/**
 * rdma_resolve_route - query the SA for the path (IBA 15.2.5.16)
 * @id: an ID whose address is resolved
 * @timeout_ms: milliseconds to wait, at least 1; the SA is queried up to ten times in this time
 *
 * Completes with the event ROUTE_RESOLVED or ROUTE_ERROR; after the latter, this may be called
 * again. On an RNIC, it succeeds without a query.
 *
 * Context: process. Return: 0; -EINVAL if the state of the ID does not allow it, or for no timeout;
 * -ENOMEM if there is no memory; the errors of ib_sa_path_rec_get().
 */
RDMA_MUST_CHECK int rdma_resolve_route(struct rdma_cm_id *id, unsigned long timeout_ms);

/**
 * rdma_set_ib_path - set the path of an ID, instead of rdma_resolve_route() (IBA 15.2.5.16)
 * @id: an ID whose address is resolved
 * @path_rec: the path; copied
 *
 * The route is resolved when this has returned; no event is reported.
 *
 * Context: process. Return: 0; -EINVAL if the state of the ID does not allow it.
 */
RDMA_MUST_CHECK int rdma_set_ib_path(struct rdma_cm_id *id, const struct sa_path_rec *path_rec);

/**
 * rdma_create_qp - create the QP of an ID (IBA 11.2.5)
 * @id: an ID with a device, without a QP
 * @pd: a protection domain of that device
 * @qp_init_attr: as for ib_create_qp(), of the ID's type
 *
 * The QP of a connection is in state INIT afterwards, and the RDMA CM changes its state when the
 * connection is established. The QP of an ID of datagrams is in state RTS. The caller destroys it
 * with rdma_destroy_qp().
 *
 * Context: process. Return: 0; -EINVAL for an ID without device or with a QP, a protection domain
 * of another device, or another type than the ID's; the errors of ib_create_qp() and
 * ib_modify_qp().
 */
RDMA_MUST_CHECK int rdma_create_qp(struct rdma_cm_id *id, struct ib_pd *pd,
				   struct ib_qp_init_attr *qp_init_attr);

/**
 * rdma_destroy_qp - undo rdma_create_qp()
 * @id: the ID; has no effect on an ID without a QP
 *
 * A QP that is still in a multicast group is not destroyed, and stays with the ID; this is logged.
 *
 * Context: process.
 */
void rdma_destroy_qp(struct rdma_cm_id *id);

/**
 * rdma_init_qp_attr - get the attributes for ib_modify_qp() of the ID's QP (IBA 11.2.5.2)
 * @id: an ID with a device
 * @qp_attr: qp_state is the state to go to; the other attributes are filled in
 * @qp_attr_mask: filled in: enum ib_qp_attr_mask of the attributes
 *
 * Context: process. Return: 0; -EINVAL for an ID without device; -ENOENT if the port does not have
 * the P_Key of the ID; -EADDRNOTAVAIL for an ID of RDMA_PS_IPOIB while IPoIB's broadcast group is
 * not joined; the errors of ib_cm_init_qp_attr().
 */
RDMA_MUST_CHECK int rdma_init_qp_attr(struct rdma_cm_id *id, struct ib_qp_attr *qp_attr,
				      int *qp_attr_mask);

/**
 * rdma_connect - request a connection, or the peer's QP for datagrams (IBA annex A11)
 * @id: an ID whose route is resolved
 * @conn_param: the parameters; private data at most enum rdma_cm_data_size
 *
 * Completes with the event ESTABLISHED, REJECTED, UNREACHABLE or CONNECT_ERROR. An ID without a QP
 * of rdma_create_qp() gets CONNECT_RESPONSE instead of ESTABLISHED: then the consumer moves its QP
 * to RTS and calls rdma_accept().
 *
 * Context: process, without the handler lock.
 *
 * Return: 0; -EINVAL if the state of the ID does not allow it, or for a value out of its range
 * (struct rdma_conn_param); the errors of ib_send_cm_req(), ib_send_cm_sidr_req() and
 * iw_cm_connect().
 */
RDMA_MUST_CHECK int rdma_connect(struct rdma_cm_id *id, const struct rdma_conn_param *conn_param);

/**
 * rdma_connect_locked - request a connection as rdma_connect() does, with the handler lock held
 * @id: an ID whose route is resolved
 * @conn_param: the parameters, as for rdma_connect()
 *
 * Context: process, with the handler lock, for example from the handler. Return: as rdma_connect().
 */
RDMA_MUST_CHECK int rdma_connect_locked(struct rdma_cm_id *id,
					const struct rdma_conn_param *conn_param);

/**
 * rdma_listen - listen for requests (IBA annex A11)
 * @id: a bound ID, or an idle one, which is then bound to IPv4's "any" and a free port
 * @backlog: number of requests of each device that may wait for the handler to return; values above
 * 4096 mean 4096, and values below 1 mean 256
 *
 * An ID without device listens on every device, also those registered later.
 *
 * Context: process. Return: 0; -EINVAL if the state of the ID does not allow it; -EADDRINUSE if
 * another ID that shares the port listens; the errors of rdma_bind_addr(), ib_cm_listen() and
 * iw_cm_listen().
 */
RDMA_MUST_CHECK int rdma_listen(struct rdma_cm_id *id, int backlog);

/**
 * rdma_accept - accept a connection (IBA annex A11; RFC 5044, 7.1)
 * @id: a new ID of CONNECT_REQUEST, or one that got CONNECT_RESPONSE
 * @conn_param: the parameters; ignored after CONNECT_RESPONSE, and may be NULL then, and for a new
 * ID of datagrams with a QP of rdma_create_qp()
 *
 * Completes with the event ESTABLISHED on a new ID of a connection; no event follows on others.
 * After an error, the connection has been refused.
 *
 * Linux: differs by a REP that always reports that no alternate path is loaded (failover_accepted
 * is 1).
 *
 * Context: process, with the handler lock.
 *
 * Return: 0; -EINVAL if the state of the ID does not allow it, or for a value out of its range; the
 * errors of ib_modify_qp(), ib_send_cm_rep(), ib_send_cm_rtu(), ib_send_cm_sidr_rep() and
 * iw_cm_accept().
 */
RDMA_MUST_CHECK int rdma_accept(struct rdma_cm_id *id, const struct rdma_conn_param *conn_param);

/**
 * rdma_reject - refuse a connection (IBA annex A11; RFC 5044, 7.1)
 * @id: an ID as for rdma_accept()
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_REJ_PRIVATE_DATA_SIZE; for
 * datagrams 0 to IB_CM_SIDR_REP_PRIVATE_DATA_SIZE
 * @reason: enum ib_cm_rej_reason; 0 means IB_CM_REJ_CONSUMER_DEFINED
 *
 * Context: process. Return: 0; -EINVAL if the state of the ID does not allow it, or for private
 * data that do not fit; the errors of ib_send_cm_rej(), ib_send_cm_sidr_rep() and iw_cm_reject().
 */
RDMA_MUST_CHECK int rdma_reject(struct rdma_cm_id *id, const void *private_data,
				u8 private_data_len, u8 reason);

/**
 * rdma_notify - report an event of the QP to the RDMA CM
 * @id: an ID of a connection
 * @event: as for ib_cm_notify()
 *
 * Context: process. Return: 0; -EINVAL for an ID without connection; the errors of ib_cm_notify().
 */
RDMA_MUST_CHECK int rdma_notify(struct rdma_cm_id *id, enum ib_event_type event);

/**
 * rdma_disconnect - close a connection, or confirm that the peer has closed it
 * @id: the ID; its QP of rdma_create_qp() goes to state ERR
 *
 * After DISCONNECTED, the consumer calls this, too, or destroys the ID: that answers the peer. The
 * side that closes the connection first gets DISCONNECTED. On InfiniBand, TIMEWAIT_EXIT is reported
 * after timewait (IBA 12.9.8.2). With datagrams, only the QP changes, and no event is reported.
 *
 * Context: process. Return: 0; -EINVAL for an ID that has neither sent nor received a request; the
 * errors of ib_send_cm_dreq(), ib_send_cm_drep() and iw_cm_disconnect().
 */
int rdma_disconnect(struct rdma_cm_id *id);

/**
 * rdma_join_multicast - join the multicast group of an address (IBA 15.2.5.17)
 * @id: an ID of datagrams, bound to a device or with its address resolved, without a QP of
 * rdma_create_qp()
 * @addr: the address; "any" for a group that the SA chooses
 * @join_state: FULLMEMBER_JOIN or SENDONLY_FULLMEMBER_JOIN
 * @context: join_context of the events
 *
 * Completes with the event MULTICAST_JOIN or MULTICAST_ERROR. If the membership is lost later,
 * MULTICAST_ERROR is reported with -ENETRESET. The consumer attaches the QP. An ID may be in 4096
 * groups.
 *
 * Context: process.
 *
 * Return: 0; -EINVAL if the state or the type of the ID does not allow it, for an ID with a QP,
 * another family or join state, or a group of IPoIB with another port space than RDMA_PS_IPOIB;
 * -EADDRNOTAVAIL while IPoIB's broadcast group is not joined; -ENOSPC for more than 4096 groups;
 * -ENOMEM if there is no memory; the errors of ib_sa_join_multicast().
 */
RDMA_MUST_CHECK int rdma_join_multicast(struct rdma_cm_id *id, const union rdma_sockaddr *addr,
					u8 join_state, void *context);

/**
 * rdma_leave_multicast - undo rdma_join_multicast() (IBA 15.2.5.17)
 * @id: the ID
 * @addr: the address as it was joined, port included. Without such a group, nothing is done. Of
 * several joins of one address, the oldest is undone
 *
 * When this has returned, no event of the join is reported.
 *
 * Context: process, without the handler lock. A call from the handler is refused with a warning.
 */
void rdma_leave_multicast(struct rdma_cm_id *id, const union rdma_sockaddr *addr);

/**
 * rdma_set_service_type - set the type of service of an ID
 * @id: the ID; later calls of rdma_resolve_route() use the value
 * @tos: type of service of IPv4, 0 to 255, which the SA gets as the QoS class
 *
 * Context: process.
 */
void rdma_set_service_type(struct rdma_cm_id *id, int tos);

/**
 * rdma_set_ack_timeout - set the timeout of the ID's QP
 * @id: an ID of type IB_QPT_RC or IB_QPT_XRC_INI
 * @timeout: 4.096 us * 2^n, n is 0 to 31, instead of the timeout that follows from the path
 *
 * Context: process. Return: 0; -EINVAL for an ID of another type, or a value out of range.
 */
RDMA_MUST_CHECK int rdma_set_ack_timeout(struct rdma_cm_id *id, u8 timeout);

/**
 * rdma_set_min_rnr_timer - set the RNR timer of the ID's QP
 * @id: an ID of type IB_QPT_RC or IB_QPT_XRC_TGT
 * @min_rnr_timer: enum ib_rnr_timeout, 0 to 31 (IBA 9.7.5.2.8)
 *
 * Context: process. Return: 0; -EINVAL for an ID of another type, or a value out of range.
 */
RDMA_MUST_CHECK int rdma_set_min_rnr_timer(struct rdma_cm_id *id, u8 min_rnr_timer);

/**
 * rdma_set_reuseaddr - share a port with other IDs that share it, none of which listens
 * @id: an ID that does not listen; an idle one for @reuse 0
 * @reuse: 1 to share the port, else 0
 *
 * Context: process. Return: 0; -EINVAL if the state of the ID does not allow it.
 */
RDMA_MUST_CHECK int rdma_set_reuseaddr(struct rdma_cm_id *id, int reuse);

/**
 * rdma_set_afonly - listen for the family of the address only
 * @id: an idle or a bound ID
 * @afonly: 1 for this family only, 0 for both. Without this call it is 1 for IPv4, and the value of
 * net.ipv6.bindv6only for IPv6
 *
 * Context: process. Return: 0; -EINVAL if the state of the ID does not allow it.
 */
RDMA_MUST_CHECK int rdma_set_afonly(struct rdma_cm_id *id, int afonly);

/**
 * rdma_get_service_id - get the service ID of an address (IBA A11.2)
 * @id: the ID, whose port space is used
 * @addr: the address, whose port is used; for AF_IB its service
 *
 * Context: any. Return: the service ID.
 */
__be64 rdma_get_service_id(struct rdma_cm_id *id, const union rdma_sockaddr *addr);

/**
 * rdma_reject_msg - describe the status of REJECTED in words
 * @id: the ID
 * @reason: the status
 *
 * Context: any. Return: a constant string, never NULL.
 */
const char *rdma_reject_msg(struct rdma_cm_id *id, int reason);

/**
 * rdma_event_msg - describe an event in words
 * @event: enum rdma_cm_event_type
 *
 * Context: any. Return: a constant string, never NULL.
 */
const char *rdma_event_msg(enum rdma_cm_event_type event);

RDMA_C_END
