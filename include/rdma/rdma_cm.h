/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections by IP address: what a program that knows sockets asks of RDMA (IBA annex A11). See
 * Documentation/connections.rst for the states.
 *
 * Each id has a handler lock. Events of an id come one at a time and in order, by its handler, in
 * process context, with this lock held and no other (of CONNECT_REQUEST: the listener's, then the
 * new id's): a handler may sleep, and may call every function below for its id that does not say
 * otherwise. It must not call rdma_destroy_id() for its own id, nor, of a new id, for the listener,
 * nor wait for another handler.
 *
 * Departures from Linux: addresses are union rdma_sockaddr; ids live in the initial network
 * namespace; AF_IB addresses name GIDs and services.
 */
#pragma once
#include <rdma/ib_cm.h>

/* What happens to an id; the numbers are those that programs see. */
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

/* Who shares port numbers with whom, and what the service IDs begin with (A11.2). */
enum rdma_ucm_port_space {
	RDMA_PS_IPOIB = 0x0002,
	RDMA_PS_TCP = 0x0106,
	RDMA_PS_UDP = 0x0111,
	RDMA_PS_IB = 0x013f,
};

/* Q_Key of datagrams in the port spaces UDP and IB. */
#define RDMA_UDP_QKEY 0x01234567u

/*
 * Private data that are the consumer's, where the ends have IP addresses; with AF_IB's all of the
 * message's.
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

/* As struct sockaddr_in; address and port big-endian. */
struct rdma_sockaddr_in {
	u16 family;
	__be16 port;
	u8 addr[4];
	u8 zero[8];
};

/* As struct sockaddr_in6. */
struct rdma_sockaddr_in6 {
	u16 family;
	__be16 port;
	__be32 flowinfo;
	u8 addr[16];
	u32 scope_id;
};

/* As struct sockaddr_ib. */
struct rdma_sockaddr_ib {
	u16 family;
	__be16 pkey;
	__be32 flowinfo;
	union ib_gid addr;
	__be64 sid;
	__be64 sid_mask;
	__be64 scope_id;
};

/* An address of one of the families; family 0 stands for none. */
union rdma_sockaddr {
	u16 family;
	struct rdma_sockaddr_in in;
	struct rdma_sockaddr_in6 in6;
	struct rdma_sockaddr_ib ib;
};

struct rdma_cm_id;

/**
 * struct rdma_addr - the two ends
 * @src_addr: ours; family 0 as long as the id is not bound
 * @dst_addr: the peer's; family 0 as long as it has none
 * @sgid: our GID; zero as long as no device is bound
 * @dgid: the peer's; zero as long as it is not known
 * @pkey: the partition, host order; 0 as long as no device is bound
 */
struct rdma_addr {
	union rdma_sockaddr src_addr;
	union rdma_sockaddr dst_addr;
	union ib_gid sgid;
	union ib_gid dgid;
	u16 pkey;
};

/**
 * struct rdma_route - the ends, and the way between them
 * @addr: the ends
 * @path_rec: the path
 * @num_paths: 1 when @path_rec is valid, else 0
 */
struct rdma_route {
	struct rdma_addr addr;
	struct sa_path_rec path_rec;
	int num_paths;
};

/**
 * struct rdma_conn_param - what to say when a connection is made, and what was said
 * @private_data: for the peer, or from it: then all that the message has room for
 * @private_data_len: bytes of it
 * @responder_resources: RDMA reads and atomics that are answered at a time; of an event: that we
 * may answer
 * @initiator_depth: the same that are asked
 * @flow_control: end-to-end
 * @retry_count: at most 7; ignored where accepting
 * @rnr_retry_count: at most 7
 * @srq: the QP has one; ignored for an id that has its QP from rdma_create_qp()
 * @qp_num: the QP; ignored as @srq is
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
	/* Of ids of datagrams between AF_IB addresses; 0 stands for RDMA_UDP_QKEY. */
	u32 qkey;
};

/**
 * struct rdma_ud_param - how to send datagrams to the peer, or to a group
 * @private_data: from the peer
 * @private_data_len: bytes of it
 * @ah_attr: the address
 * @qp_num: the QP; 0xffffff of a group
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
 * struct rdma_cm_event - what a handler is told
 * @event: what it is
 * @status: 0; a negative errno; of REJECTED the reason, greater than 0; of UNREACHABLE of datagrams
 * the SIDR status, greater than 0
 * @param: @param.ud of an id whose @qp_type is IB_QPT_UD, else @param.conn; zero where nothing came
 * with the event. What its pointers
 *	point to is valid during the call of the handler only
 * @join_context: of MULTICAST_JOIN and MULTICAST_ERROR: what rdma_join_multicast() was given
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

/*
 * Returns 0, or anything else to have the id destroyed when it has returned: it is the consumer's
 * no more then, who has destroyed its QP before. CONNECT_REQUEST comes on the listener's handler
 * with a new id, whose context and handler are the listener's and which is the consumer's if it
 * returns 0; -ENOMEM there destroys it in silence, so that the peer asks again; anything else
 * refuses it. After DEVICE_REMOVAL no other event comes, and the consumer destroys the id soon: the
 * device waits for it.
 */
typedef int (*rdma_cm_event_handler)(struct rdma_cm_id *id, struct rdma_cm_event *event);

/**
 * struct rdma_cm_id - an end of a connection by address
 * @device: the device; NULL as long as the id is not bound to one
 * @context: the consumer's; may be set anew with the handler lock held
 * @qp: the QP of rdma_create_qp(), or NULL
 * @event_handler: called with its events; may be set anew with the handler lock held
 * @route: the ends, and the path; read with the handler lock held, or where no event can come
 * @ps: the port space
 * @qp_type: the type of its QP
 * @port_num: the port of @device; 0 as long as there is none
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
 * For a process or for the kernel; both are shown by weft_netlink, with the name of the caller's
 * module or the number of the calling process.
 */
RDMA_MUST_CHECK struct rdma_cm_id *__rdma_create_id(rdma_cm_event_handler event_handler,
						    void *context, enum rdma_ucm_port_space ps,
						    enum ib_qp_type qp_type, bool of_process,
						    const char *caller);

/**
 * rdma_create_id - make an id
 * @event_handler: called with its events
 * @context: the consumer's
 * @ps: the port space
 * @qp_type: IB_QPT_RC, IB_QPT_UC, IB_QPT_UD, IB_QPT_XRC_INI or IB_QPT_XRC_TGT
 *
 * Context: process. Return: the id, idle; -EINVAL without a handler, or for another port space or
 * type; -ENOMEM.
 */
RDMA_MUST_CHECK static inline struct rdma_cm_id *rdma_create_id(rdma_cm_event_handler event_handler,
								void *context,
								enum rdma_ucm_port_space ps,
								enum ib_qp_type qp_type)
{
	return __rdma_create_id(event_handler, context, ps, qp_type, false, RDMA_CALLER);
}

/**
 * rdma_create_user_id - make an id for the calling process
 * @event_handler: called with its events
 * @context: the consumer's
 * @ps: the port space
 * @qp_type: as for rdma_create_id()
 *
 * It is shown as the process's, and so is what comes of it as a listener; nothing else follows from
 * that. Context: process. Return: as rdma_create_id().
 */
RDMA_MUST_CHECK static inline struct rdma_cm_id *
rdma_create_user_id(rdma_cm_event_handler event_handler, void *context, enum rdma_ucm_port_space ps,
		    enum ib_qp_type qp_type)
{
	return __rdma_create_id(event_handler, context, ps, qp_type, true, RDMA_CALLER);
}

/**
 * rdma_destroy_id - end an id in any state
 * @id: the id, whose QP has been destroyed
 *
 * What goes on is cancelled; the peer is told as by ib_destroy_cm_id(); groups are left; new ids of
 * a listener that nobody has been told of are gone. When this has returned no handler runs for the
 * id and none will.
 * Context: process; without the handler lock of the id, and not from its handler, nor from that of
 * an id which came by it.
 */
void rdma_destroy_id(struct rdma_cm_id *id);

/**
 * rdma_lock_handler - keep the handler of an id from running
 * @id: the id
 *
 * For what must not be done while an event comes: rdma_accept() outside of the handler, setting
 * @id->context. Context: process, not from the handler, which has the lock.
 */
void rdma_lock_handler(struct rdma_cm_id *id);

/**
 * rdma_unlock_handler - undo rdma_lock_handler()
 * @id: the id
 *
 * Context: the task that has locked it.
 */
void rdma_unlock_handler(struct rdma_cm_id *id);

/**
 * rdma_bind_addr - give an id its source address
 * @id: an idle id
 * @addr: the address; the family's "any" for all; port 0 to be given a port of
 * net.ipv4.ip_local_port_range
 *
 * An address that is neither "any" nor loopback binds the id to the device of its interface; of
 * AF_IB to that of its GID, which has to have its P_Key, if it names one. Of AF_IB the service
 * names the port space, as far as its mask says: of an id of RDMA_PS_IB that may be IB, TCP or UDP.
 * Context: process. Return: 0; -EINVAL for an id that is not idle, another family, or a link-local address without interface;
 * -EPROTONOSUPPORT for an AF_IB service of a port space that the id may not have; -EADDRNOTAVAIL for an address that no interface has, or when no
 * port is free; -ENODEV for an interface, GID or P_Key of no device; -EADDRINUSE; -EACCES for a port below 1024 without CAP_NET_BIND_SERVICE; -ENOMEM.
 */
RDMA_MUST_CHECK int rdma_bind_addr(struct rdma_cm_id *id, const union rdma_sockaddr *addr);

/**
 * rdma_resolve_addr - find device, port and GIDs of an address
 * @id: an idle or a bound id
 * @src_addr: what to bind an idle id to; NULL for any
 * @dst_addr: the peer's
 * @timeout_ms: how long to wait for the neighbour, at least 1
 *
 * Ends by the event ADDR_RESOLVED or ADDR_ERROR. Context: process.
 * Return: 0; -EINVAL for the wrong state, or families that differ; what rdma_bind_addr() and a
 * route lookup return; -ENOMEM.
 */
RDMA_MUST_CHECK int rdma_resolve_addr(struct rdma_cm_id *id, const union rdma_sockaddr *src_addr,
				      const union rdma_sockaddr *dst_addr,
				      unsigned long timeout_ms);

/**
 * rdma_resolve_route - ask the SA for the path
 * @id: an id whose address is resolved
 * @timeout_ms: how long to wait in all, at least 1
 *
 * Ends by the event ROUTE_RESOLVED or ROUTE_ERROR, after which one may ask again. Context: process.
 * Return: 0; -EINVAL for the wrong state, or no @timeout_ms; the errors of ib_sa_path_rec_get().
 */
RDMA_MUST_CHECK int rdma_resolve_route(struct rdma_cm_id *id, unsigned long timeout_ms);

/**
 * rdma_set_ib_path - give an id its path instead
 * @id: an id whose address is resolved
 * @path_rec: the path
 *
 * The route is resolved then; no event comes. Context: process. Return: 0; -EINVAL for the wrong
 * state.
 */
RDMA_MUST_CHECK int rdma_set_ib_path(struct rdma_cm_id *id, const struct sa_path_rec *path_rec);

/**
 * rdma_create_qp - make the QP of an id
 * @id: an id with a device, without a QP
 * @pd: a protection domain of that device
 * @qp_init_attr: as for ib_create_qp(), of the id's type
 *
 * Of a connection it is in state INIT then, and goes on by itself when the connection is made; of
 * datagrams in RTS. Context: process.
 * Return: 0; -EINVAL if something of this is not so; the errors of ib_create_qp() and
 * ib_modify_qp().
 */
RDMA_MUST_CHECK int rdma_create_qp(struct rdma_cm_id *id, struct ib_pd *pd,
				   struct ib_qp_init_attr *qp_init_attr);

/**
 * rdma_destroy_qp - undo rdma_create_qp()
 * @id: the id
 *
 * A QP that is still in a multicast group stays the id's, which is logged. Context: process.
 */
void rdma_destroy_qp(struct rdma_cm_id *id);

/**
 * rdma_init_qp_attr - what to give ib_modify_qp() for the id's QP
 * @id: an id with a device
 * @qp_attr: @qp_attr->qp_state is the state to go to; filled in
 * @qp_attr_mask: filled in: which of it
 *
 * Context: process. Return: 0; -EINVAL without a device, or a state in which there is nothing to
 * say; -ENOENT; -ENODEV.
 */
RDMA_MUST_CHECK int rdma_init_qp_attr(struct rdma_cm_id *id, struct ib_qp_attr *qp_attr,
				      int *qp_attr_mask);

/**
 * rdma_connect - ask for the connection, or for the peer's QP of datagrams
 * @id: an id whose route is resolved
 * @conn_param: what to say; private data at most enum rdma_cm_data_size
 *
 * Ends by ESTABLISHED, REJECTED, UNREACHABLE, CONNECT_ERROR or, of an id without a QP of
 * rdma_create_qp(), CONNECT_RESPONSE: then the consumer moves its QP on and calls rdma_accept().
 * Context: process, without the handler lock.
 * Return: 0; -EINVAL for the wrong state, or what does not fit; the errors of ib_send_cm_req() and
 * ib_send_cm_sidr_req().
 */
RDMA_MUST_CHECK int rdma_connect(struct rdma_cm_id *id, const struct rdma_conn_param *conn_param);

/**
 * rdma_connect_locked - the same with the handler lock
 * @id: the same
 * @conn_param: the same
 *
 * Context: process, with the handler lock: from the handler, that is. Return: as rdma_connect().
 */
RDMA_MUST_CHECK int rdma_connect_locked(struct rdma_cm_id *id,
					const struct rdma_conn_param *conn_param);

/**
 * rdma_listen - wait for requests
 * @id: a bound id, or an idle one, which is bound to IPv4's "any" and a free port then
 * @backlog: how many requests may wait for the handler to return: of each device, at most 4096; 0
 * and less for the CM's own number
 *
 * An id without device listens on every device, those to come included.
 * Context: process. Return: 0; -EINVAL for the wrong state; -EADDRINUSE if the port is shared with
 * another that listens; the errors of rdma_bind_addr() and ib_cm_listen().
 */
RDMA_MUST_CHECK int rdma_listen(struct rdma_cm_id *id, int backlog);

/**
 * rdma_accept - agree to a connection
 * @id: a new id of CONNECT_REQUEST, or one that got CONNECT_RESPONSE
 * @conn_param: what to say to the peer; ignored, and may be NULL, after CONNECT_RESPONSE; NULL for
 * a new id of datagrams with a QP of
 *	rdma_create_qp()
 *
 * Ends by ESTABLISHED of a new id, but of datagrams, where nothing follows. An error has refused the connection.
 * Context: process, with the handler lock. Return: 0; -EINVAL for the wrong state, or what does not fit; the errors of ib_modify_qp() and of the
 * CM's functions.
 */
RDMA_MUST_CHECK int rdma_accept(struct rdma_cm_id *id, const struct rdma_conn_param *conn_param);

/**
 * rdma_reject - refuse a connection
 * @id: an id as for rdma_accept()
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_REJ_PRIVATE_DATA_SIZE, of datagrams
 * IB_CM_SIDR_REP_PRIVATE_DATA_SIZE
 * @reason: enum ib_cm_rej_reason; 0 stands for IB_CM_REJ_CONSUMER_DEFINED
 *
 * Context: process. Return: 0; -EINVAL for the wrong state, or what does not fit; the errors of
 * ib_send_cm_rej().
 */
RDMA_MUST_CHECK int rdma_reject(struct rdma_cm_id *id, const void *private_data,
				u8 private_data_len, u8 reason);

/**
 * rdma_notify - say what the QP knows before the CM does
 * @id: an id of a connection
 * @event: as for ib_cm_notify()
 *
 * Context: process. Return: 0; -EINVAL for an id without connection; the errors of ib_cm_notify().
 */
RDMA_MUST_CHECK int rdma_notify(struct rdma_cm_id *id, enum ib_event_type event);

/**
 * rdma_disconnect - end a connection, or agree to its end
 * @id: the id; its QP, if rdma_create_qp() made it, goes to the error state
 *
 * Must be called, or the id destroyed, after DISCONNECTED too: that is what answers the peer. Ends
 * by DISCONNECTED of who asked first, and after the time-wait by TIMEWAIT_EXIT. Of datagrams only
 * the QP changes, and no event comes.
 * Context: process. Return: 0; -EINVAL for an id that has neither asked nor been asked.
 */
int rdma_disconnect(struct rdma_cm_id *id);

/**
 * rdma_join_multicast - become member of the group of an address
 * @id: an id of datagrams, bound to a device or its address resolved, without a QP of
 * rdma_create_qp()
 * @addr: the address; "any" for a group that the SA names
 * @join_state: FULLMEMBER_JOIN or SENDONLY_FULLMEMBER_JOIN
 * @context: comes with the events
 *
 * Ends by MULTICAST_JOIN or MULTICAST_ERROR; of a membership lost later comes MULTICAST_ERROR with
 * -ENETRESET. Attaching the QP is the consumer's. An id may be in 4096 groups. Context: process.
 * Return: 0; -EINVAL if something of this is not so; -EADDRNOTAVAIL while IPoIB's broadcast group
 * is not joined; -ENOSPC; -ENOMEM.
 */
RDMA_MUST_CHECK int rdma_join_multicast(struct rdma_cm_id *id, const union rdma_sockaddr *addr,
					u8 join_state, void *context);

/**
 * rdma_leave_multicast - undo rdma_join_multicast()
 * @id: the id
 * @addr: the address as it was joined, port included; nothing is done if it is in no such group. Of
 * several joins of one address the oldest is undone
 *
 * When this has returned, no event of the join comes. Context: process, not from the handler,
 * without the handler lock.
 */
void rdma_leave_multicast(struct rdma_cm_id *id, const union rdma_sockaddr *addr);

/**
 * rdma_set_service_type - the type of service of an id
 * @id: the id; counts for rdma_resolve_route() to come
 * @tos: IPv4's octet, which the SA is given as QoS class
 *
 * Context: process.
 */
void rdma_set_service_type(struct rdma_cm_id *id, int tos);

/**
 * rdma_set_ack_timeout - the QP's timeout
 * @id: an id of type IB_QPT_RC or IB_QPT_XRC_INI
 * @timeout: 4.096 us * 2^n, 5 bits, instead of what the path says
 *
 * Context: process. Return: 0; -EINVAL.
 */
RDMA_MUST_CHECK int rdma_set_ack_timeout(struct rdma_cm_id *id, u8 timeout);

/**
 * rdma_set_min_rnr_timer - the QP's RNR timer
 * @id: an id of type IB_QPT_RC or IB_QPT_XRC_TGT
 * @min_rnr_timer: 5 bits (IBA 9.7.5.2.8)
 *
 * Context: process. Return: 0; -EINVAL.
 */
RDMA_MUST_CHECK int rdma_set_min_rnr_timer(struct rdma_cm_id *id, u8 min_rnr_timer);

/**
 * rdma_set_reuseaddr - share the port with others that say so, none of which listens
 * @id: an id that does not listen; taken back of an idle one only
 * @reuse: 0 or 1
 *
 * Context: process. Return: 0; -EINVAL.
 */
RDMA_MUST_CHECK int rdma_set_reuseaddr(struct rdma_cm_id *id, int reuse);

/**
 * rdma_set_afonly - listen for the family of the address only
 * @id: an idle or a bound id
 * @afonly: 0 or 1; without this call IPv4's is 1, and IPv6's what net.ipv6.bindv6only says
 *
 * Context: process. Return: 0; -EINVAL.
 */
RDMA_MUST_CHECK int rdma_set_afonly(struct rdma_cm_id *id, int afonly);

/**
 * rdma_get_service_id - the service of an address
 * @id: the id, for its port space
 * @addr: the address: its port, of AF_IB its service
 *
 * Context: any. Return: the service ID.
 */
__be64 rdma_get_service_id(struct rdma_cm_id *id, const union rdma_sockaddr *addr);

/**
 * rdma_reject_msg - a reason of REJECTED in words
 * @id: the id
 * @reason: the status
 *
 * Context: any. Return: the text, never NULL.
 */
const char *rdma_reject_msg(struct rdma_cm_id *id, int reason);

/**
 * rdma_event_msg - an event in words
 * @event: the event
 *
 * Context: any. Return: the text, never NULL.
 */
const char *rdma_event_msg(enum rdma_cm_event_type event);

RDMA_C_END
