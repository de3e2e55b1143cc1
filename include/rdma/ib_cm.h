/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections: the communication manager (IBA 12). See Documentation/connections.rst for the states
 * and what leads from one to another.
 *
 * Events of one id come one at a time and in order, by its handler, in process context, with no
 * lock held: a handler may sleep and call every function below, but must not destroy its own id,
 * nor wait for the handler of another. Different ids may be handled in parallel.
 */
#pragma once
#include <rdma/ib_sa.h>

/* Of a connection, and of an id that listens or resolves. */
enum ib_cm_state {
	IB_CM_IDLE,
	IB_CM_LISTEN,
	IB_CM_REQ_SENT,
	IB_CM_REQ_RCVD,
	IB_CM_MRA_REQ_SENT,
	IB_CM_MRA_REQ_RCVD,
	IB_CM_REP_SENT,
	IB_CM_REP_RCVD,
	IB_CM_MRA_REP_SENT,
	IB_CM_MRA_REP_RCVD,
	IB_CM_ESTABLISHED,
	IB_CM_DREQ_SENT,
	IB_CM_DREQ_RCVD,
	IB_CM_TIMEWAIT,
	IB_CM_SIDR_REQ_SENT,
	IB_CM_SIDR_REQ_RCVD,
};

enum ib_cm_event_type {
	IB_CM_REQ_ERROR,
	IB_CM_REQ_RECEIVED,
	IB_CM_REP_ERROR,
	IB_CM_REP_RECEIVED,
	IB_CM_RTU_RECEIVED,
	IB_CM_USER_ESTABLISHED,
	IB_CM_DREQ_ERROR,
	IB_CM_DREQ_RECEIVED,
	IB_CM_DREP_RECEIVED,
	IB_CM_TIMEWAIT_EXIT,
	IB_CM_MRA_RECEIVED,
	IB_CM_REJ_RECEIVED,
	IB_CM_LAP_ERROR,
	IB_CM_LAP_RECEIVED,
	IB_CM_APR_RECEIVED,
	IB_CM_SIDR_REQ_ERROR,
	IB_CM_SIDR_REQ_RECEIVED,
	IB_CM_SIDR_REP_RECEIVED,
	/*
	 * Departure from Linux: the device has gone; what is left to do with the id is to destroy
	 * it.
	 */
	IB_CM_DEVICE_REMOVAL,
};

/* Bytes of private data in a message, of which a receiver is always shown all. */
enum ib_cm_data_size {
	IB_CM_REQ_PRIVATE_DATA_SIZE = 92,
	IB_CM_MRA_PRIVATE_DATA_SIZE = 222,
	IB_CM_REJ_PRIVATE_DATA_SIZE = 148,
	IB_CM_REP_PRIVATE_DATA_SIZE = 196,
	IB_CM_RTU_PRIVATE_DATA_SIZE = 224,
	IB_CM_DREQ_PRIVATE_DATA_SIZE = 220,
	IB_CM_DREP_PRIVATE_DATA_SIZE = 224,
	IB_CM_REJ_ARI_LENGTH = 72,
	IB_CM_LAP_PRIVATE_DATA_SIZE = 168,
	IB_CM_APR_PRIVATE_DATA_SIZE = 148,
	IB_CM_APR_INFO_LENGTH = 72,
	IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE = 216,
	IB_CM_SIDR_REP_PRIVATE_DATA_SIZE = 136,
	IB_CM_SIDR_REP_INFO_LENGTH = 72,
};

/* Why a connection is refused (IBA 12.6.7.2). */
enum ib_cm_rej_reason {
	IB_CM_REJ_NO_QP = 1,
	IB_CM_REJ_NO_EEC = 2,
	IB_CM_REJ_NO_RESOURCES = 3,
	IB_CM_REJ_TIMEOUT = 4,
	IB_CM_REJ_UNSUPPORTED = 5,
	IB_CM_REJ_INVALID_COMM_ID = 6,
	IB_CM_REJ_INVALID_COMM_INSTANCE = 7,
	IB_CM_REJ_INVALID_SERVICE_ID = 8,
	IB_CM_REJ_INVALID_TRANSPORT_TYPE = 9,
	IB_CM_REJ_STALE_CONN = 10,
	IB_CM_REJ_RDC_NOT_EXIST = 11,
	IB_CM_REJ_INVALID_GID = 12,
	IB_CM_REJ_INVALID_LID = 13,
	IB_CM_REJ_INVALID_SL = 14,
	IB_CM_REJ_INVALID_TRAFFIC_CLASS = 15,
	IB_CM_REJ_INVALID_HOP_LIMIT = 16,
	IB_CM_REJ_INVALID_PACKET_RATE = 17,
	IB_CM_REJ_INVALID_ALT_GID = 18,
	IB_CM_REJ_INVALID_ALT_LID = 19,
	IB_CM_REJ_INVALID_ALT_SL = 20,
	IB_CM_REJ_INVALID_ALT_TRAFFIC_CLASS = 21,
	IB_CM_REJ_INVALID_ALT_HOP_LIMIT = 22,
	IB_CM_REJ_INVALID_ALT_PACKET_RATE = 23,
	IB_CM_REJ_PORT_CM_REDIRECT = 24,
	IB_CM_REJ_PORT_REDIRECT = 25,
	IB_CM_REJ_INVALID_MTU = 26,
	IB_CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
	IB_CM_REJ_CONSUMER_DEFINED = 28,
	IB_CM_REJ_INVALID_RNR_RETRY = 29,
	IB_CM_REJ_DUPLICATE_LOCAL_COMM_ID = 30,
	IB_CM_REJ_INVALID_CLASS_VERSION = 31,
	IB_CM_REJ_INVALID_FLOW_LABEL = 32,
	IB_CM_REJ_INVALID_ALT_FLOW_LABEL = 33,
	IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED = 35,
};

/* IBA 12.8.2. */
enum ib_cm_apr_status {
	IB_CM_APR_SUCCESS,
	IB_CM_APR_INVALID_COMM_ID,
	IB_CM_APR_UNSUPPORTED,
	IB_CM_APR_REJECT,
	IB_CM_APR_REDIRECT,
	IB_CM_APR_IS_CURRENT,
	IB_CM_APR_INVALID_QPN_EECN,
	IB_CM_APR_INVALID_LID,
	IB_CM_APR_INVALID_GID,
	IB_CM_APR_INVALID_FLOW_LABEL,
	IB_CM_APR_INVALID_TCLASS,
	IB_CM_APR_INVALID_HOP_LIMIT,
	IB_CM_APR_INVALID_PACKET_RATE,
	IB_CM_APR_INVALID_SL,
};

/* IBA 12.11.2. */
enum ib_cm_sidr_status {
	IB_SIDR_SUCCESS,
	IB_SIDR_UNSUPPORTED,
	IB_SIDR_REJECT,
	IB_SIDR_NO_QP,
	IB_SIDR_REDIRECT,
	IB_SIDR_UNSUPPORTED_VERSION,
};

struct ib_cm_id;

/*
 * What came with a REQ; "local" is the receiver's. Pointers are valid during the call of the
 * handler only, as all of an event.
 */
struct ib_cm_req_event_param {
	struct ib_cm_id *listen_id;
	u16 bth_pkey;
	u32 port;
	u16 sgid_index;
	struct sa_path_rec *primary_path;
	/* NULL for none. */
	struct sa_path_rec *alternate_path;
	__be64 remote_ca_guid;
	u32 remote_qkey;
	u32 remote_qpn;
	enum ib_qp_type qp_type;
	u32 starting_psn;
	u8 responder_resources;
	u8 initiator_depth;
	u8 local_cm_response_timeout;
	u8 flow_control;
	u8 remote_cm_response_timeout;
	u8 retry_count;
	u8 rnr_retry_count;
	u8 srq;
};

struct ib_cm_rep_event_param {
	__be64 remote_ca_guid;
	u32 remote_qkey;
	u32 remote_qpn;
	u32 starting_psn;
	u8 responder_resources;
	u8 initiator_depth;
	u8 target_ack_delay;
	u8 failover_accepted;
	u8 flow_control;
	u8 rnr_retry_count;
	u8 srq;
};

struct ib_cm_rej_event_param {
	enum ib_cm_rej_reason reason;
	const void *ari;
	u8 ari_length;
};

struct ib_cm_mra_event_param {
	u8 service_timeout;
};

struct ib_cm_lap_event_param {
	struct sa_path_rec *alternate_path;
};

struct ib_cm_apr_event_param {
	enum ib_cm_apr_status ap_status;
	const void *apr_info;
	u8 info_len;
};

struct ib_cm_sidr_req_event_param {
	struct ib_cm_id *listen_id;
	__be64 service_id;
	u32 port;
	u16 pkey;
	u16 bth_pkey;
};

struct ib_cm_sidr_rep_event_param {
	enum ib_cm_sidr_status status;
	u32 qkey;
	u32 qpn;
	const void *info;
	u8 info_len;
};

/**
 * struct ib_cm_event - what a handler is told
 * @event: what it is
 * @param: what came with it, by @event: REQ, REP, REJ, MRA, LAP, APR, SIDR_REQ and SIDR_REP
 * received; of the errors the status of the send
 * @private_data: of a message
 * @private_data_len: bytes of it, all that the message has room for
 */
struct ib_cm_event {
	enum ib_cm_event_type event;
	union {
		struct ib_cm_req_event_param req_rcvd;
		struct ib_cm_rep_event_param rep_rcvd;
		struct ib_cm_rej_event_param rej_rcvd;
		struct ib_cm_mra_event_param mra_rcvd;
		struct ib_cm_lap_event_param lap_rcvd;
		struct ib_cm_apr_event_param apr_rcvd;
		struct ib_cm_sidr_req_event_param sidr_req_rcvd;
		struct ib_cm_sidr_rep_event_param sidr_rep_rcvd;
		enum ib_wc_status send_status;
	} param;
	const void *private_data;
	u8 private_data_len;
};

/*
 * Returns 0, or anything else to have the CM destroy the id, which is the consumer's no more then.
 * REQ and SIDR_REQ come on the listener's handler with a new id, whose context is the listener's,
 * and which is the consumer's if it returns 0; -ENOMEM there destroys it in silence, if nothing has
 * been sent by it, so that the peer asks again.
 */
typedef int (*ib_cm_handler)(struct ib_cm_id *cm_id, const struct ib_cm_event *event);

/**
 * struct ib_cm_id - one end of a connection, of a resolution, or a listener
 * @cm_handler: called with its events; may be set anew in the handler
 * @context: the consumer's
 * @device: the device
 * @service_id: what it listens on, or asks for
 * @service_mask: of a listener: the bits that count
 * @local_id: its number, never 0
 * @remote_id: the peer's number, once it is known
 * @remote_cm_qpn: the QP that the peer's messages come from
 */
struct ib_cm_id {
	ib_cm_handler cm_handler;
	void *context;
	struct ib_device *device;
	__be64 service_id;
	__be64 service_mask;
	__be32 local_id;
	__be32 remote_id;
	u32 remote_cm_qpn;
};

/**
 * struct ib_cm_req_param - a REQ to send
 * @primary_path: the path
 * @alternate_path: NULL for none; of the same P_Key and MTU
 * @service_id: what is asked for
 * @qp_num: our QP
 * @qp_type: IB_QPT_RC, IB_QPT_UC or IB_QPT_XRC_INI
 * @starting_psn: what the peer sends first, and our QP so expects, 24 bits
 * @private_data: for the listener
 * @private_data_len: at most IB_CM_REQ_PRIVATE_DATA_SIZE
 * @peer_to_peer: must be 0: two peers that connect to each other at once have two connections
 * @responder_resources: RDMA reads and atomics that we answer at a time
 * @initiator_depth: the same that we ask
 * @remote_cm_response_timeout: 4.096 us * 2^n that the peer has for its answers
 * @flow_control: end-to-end
 * @local_cm_response_timeout: the same that we take
 * @retry_count: of the peer's QP, 3 bits
 * @rnr_retry_count: the same
 * @max_cm_retries: how many times either side repeats a message, 4 bits
 * @srq: our QP has one
 */
struct ib_cm_req_param {
	const struct sa_path_rec *primary_path;
	const struct sa_path_rec *alternate_path;
	__be64 service_id;
	u32 qp_num;
	enum ib_qp_type qp_type;
	u32 starting_psn;
	const void *private_data;
	u8 private_data_len;
	u8 peer_to_peer;
	u8 responder_resources;
	u8 initiator_depth;
	u8 remote_cm_response_timeout;
	u8 flow_control;
	u8 local_cm_response_timeout;
	u8 retry_count;
	u8 rnr_retry_count;
	u8 max_cm_retries;
	u8 srq;
};

/**
 * struct ib_cm_rep_param - a REP to send
 * @qp_num: our QP
 * @starting_psn: what the peer sends first, and our QP so expects, 24 bits
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_REP_PRIVATE_DATA_SIZE
 * @responder_resources: as in struct ib_cm_req_param
 * @initiator_depth: as there
 * @failover_accepted: the alternate path: 0 taken, 1 not supported, 2 refused
 * @flow_control: as there
 * @rnr_retry_count: as there
 * @srq: as there
 */
struct ib_cm_rep_param {
	u32 qp_num;
	u32 starting_psn;
	const void *private_data;
	u8 private_data_len;
	u8 responder_resources;
	u8 initiator_depth;
	u8 failover_accepted;
	u8 flow_control;
	u8 rnr_retry_count;
	u8 srq;
};

/**
 * struct ib_cm_sidr_req_param - a SIDR_REQ to send
 * @path: to whom
 * @service_id: what is asked for
 * @timeout_ms: how long to wait for the answer, at least 1
 * @private_data: for the listener
 * @private_data_len: at most IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE
 * @max_cm_retries: how many times to ask again, at most 15
 */
struct ib_cm_sidr_req_param {
	const struct sa_path_rec *path;
	__be64 service_id;
	unsigned long timeout_ms;
	const void *private_data;
	u8 private_data_len;
	u8 max_cm_retries;
};

/**
 * struct ib_cm_sidr_rep_param - a SIDR_REP to send
 * @qp_num: the QP that serves
 * @qkey: its Q_Key
 * @status: what the answer is
 * @info: as @status says
 * @info_length: at most IB_CM_SIDR_REP_INFO_LENGTH
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_SIDR_REP_PRIVATE_DATA_SIZE
 */
struct ib_cm_sidr_rep_param {
	u32 qp_num;
	u32 qkey;
	enum ib_cm_sidr_status status;
	const void *info;
	u8 info_length;
	const void *private_data;
	u8 private_data_len;
};

/*
 * Of the messages of one kind: IB_CM_COUNTER_REQ is REQ, and so on in the order of their attributes
 * (IBA 12.6.1).
 */
enum ib_cm_counter_kind {
	IB_CM_COUNTER_REQ,
	IB_CM_COUNTER_MRA,
	IB_CM_COUNTER_REJ,
	IB_CM_COUNTER_REP,
	IB_CM_COUNTER_RTU,
	IB_CM_COUNTER_DREQ,
	IB_CM_COUNTER_DREP,
	IB_CM_COUNTER_SIDR_REQ,
	IB_CM_COUNTER_SIDR_REP,
	IB_CM_COUNTER_LAP,
	IB_CM_COUNTER_APR,
	IB_CM_COUNTER_KINDS,
};

/**
 * struct ib_cm_counters - messages of a port, since the CM serves it
 * @sent: handed to the port, repetitions included
 * @retries: among these, those that an answer did not come to
 * @received: that passed the check
 * @duplicates: among these, those that had been received before
 * @malformed: broke a rule of the message
 * @no_room: dropped because a listener's backlog, the port's send queue, or an id's queue of events
 * was full
 * @no_memory: dropped for want of memory
 */
struct ib_cm_counters {
	u64 sent[IB_CM_COUNTER_KINDS];
	u64 retries[IB_CM_COUNTER_KINDS];
	u64 received[IB_CM_COUNTER_KINDS];
	u64 duplicates[IB_CM_COUNTER_KINDS];
	u64 malformed;
	u64 no_room;
	u64 no_memory;
};

/*
 * For ib_cm_listen(): choose a service id. Others with this first byte are not for consumers to
 * choose (IBA A3.2).
 */
#define IB_CM_ASSIGN_SERVICE_ID_HOST 0x0200000000000000ull

/*
 * In the service time-out of ib_send_cm_mra(): none is sent now, one is sent for each message that
 * comes again.
 */
#define IB_CM_MRA_FLAG_DELAY 0x80

RDMA_C_BEGIN

/**
 * ib_create_cm_id - make an id
 * @device: the device; the caller is a client of it
 * @cm_handler: called with the id's events
 * @context: the consumer's
 *
 * Context: process.
 * Return: the id, idle; -EINVAL without a handler; -ENODEV for a device without the CM, or one that
 * goes; -ENOMEM.
 */
RDMA_MUST_CHECK struct ib_cm_id *ib_create_cm_id(struct ib_device *device, ib_cm_handler cm_handler,
						 void *context);

/**
 * ib_destroy_cm_id - end an id in any state
 * @cm_id: the id
 *
 * Tells the peer, if it has one that it owes a word: REJ, DREQ, DREP or SIDR_REP. When this has
 * returned, the handler does not run and will not run again, and ids of a listener that nobody has
 * been told of are gone. No time-wait is reported any more.
 * Context: process; not from the handler of the id, of a listener not from that of an id which it
 * is told of.
 */
void ib_destroy_cm_id(struct ib_cm_id *cm_id);

/**
 * ib_cm_listen - wait for REQ and SIDR_REQ
 * @cm_id: an idle id
 * @service_id: for which service; IB_CM_ASSIGN_SERVICE_ID_HOST to have one assigned, which @cm_id
 * then has
 * @service_mask: which bits of it count; 0 stands for all
 *
 * Where several listeners would do, the one with most bits that count has it. Departure from
 * Linux: the mask.
 * Context: process.
 * Return: 0; -EINVAL for an id that is not idle, or a service id that is not the consumer's to
 * choose; -EBUSY if another listens on the same, or uses a mask beyond the eight that a device has
 * room for; -ENODEV; -ENOMEM.
 */
RDMA_MUST_CHECK int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id, __be64 service_mask);

/**
 * ib_cm_set_backlog - how many new ids may wait for a listener's handler to return
 * @cm_id: a listener
 * @backlog: 1 to 4096; 256 as long as nobody has said
 *
 * Of REQ and SIDR_REQ beyond that nothing is kept: they are counted, and their senders ask again.
 * Context: process. Return: 0; -EINVAL.
 */
RDMA_MUST_CHECK int ib_cm_set_backlog(struct ib_cm_id *cm_id, unsigned int backlog);

/**
 * ib_send_cm_req - ask for a connection
 * @cm_id: an idle id
 * @param: what to say
 *
 * Ends by the event REP_RECEIVED, REJ_RECEIVED or REQ_ERROR.
 * Context: process.
 * Return: 0; -EINVAL for an id that is not idle, or what does not fit; -ENOENT for a path whose source GID or P_Key is no port's;
 * -ENODEV; -ENOMEM; the errors of ib_post_send_mad().
 */
RDMA_MUST_CHECK int ib_send_cm_req(struct ib_cm_id *cm_id, const struct ib_cm_req_param *param);

/**
 * ib_send_cm_rep - agree to a connection
 * @cm_id: an id that got a REQ
 * @param: what to say
 *
 * Ends by the event RTU_RECEIVED, DREQ_RECEIVED, REJ_RECEIVED or REP_ERROR. Context: process.
 * Return: 0; -EINVAL for the wrong state, or what does not fit; -ENODEV; -ENOMEM; the errors of
 * ib_post_send_mad().
 */
RDMA_MUST_CHECK int ib_send_cm_rep(struct ib_cm_id *cm_id, const struct ib_cm_rep_param *param);

/**
 * ib_send_cm_rtu - begin to use a connection
 * @cm_id: an id that got a REP
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_RTU_PRIVATE_DATA_SIZE
 *
 * Context, return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_rtu(struct ib_cm_id *cm_id, const void *private_data,
				   u8 private_data_len);

/**
 * ib_send_cm_dreq - end a connection
 * @cm_id: an id with an established connection
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_DREQ_PRIVATE_DATA_SIZE
 *
 * Ends by DREP_RECEIVED, DREQ_RECEIVED or DREQ_ERROR, and, after the time-wait, by TIMEWAIT_EXIT.
 * Context: process. Return: as ib_send_cm_rep(); where it could not be sent the id is in time-wait
 * all the same, and is told of DREQ_ERROR.
 */
RDMA_MUST_CHECK int ib_send_cm_dreq(struct ib_cm_id *cm_id, const void *private_data,
				    u8 private_data_len);

/**
 * ib_send_cm_drep - agree to the end of a connection
 * @cm_id: an id that got a DREQ
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_DREP_PRIVATE_DATA_SIZE
 *
 * Context: process. Return: as ib_send_cm_dreq().
 */
RDMA_MUST_CHECK int ib_send_cm_drep(struct ib_cm_id *cm_id, const void *private_data,
				    u8 private_data_len);

/**
 * ib_send_cm_rej - refuse a connection that is being made
 * @cm_id: the id
 * @reason: why
 * @ari: additional information, as @reason says
 * @ari_length: at most IB_CM_REJ_ARI_LENGTH
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_REJ_PRIVATE_DATA_SIZE
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason,
				   const void *ari, u8 ari_length, const void *private_data,
				   u8 private_data_len);

/**
 * ib_send_cm_mra - ask the peer to wait longer
 * @cm_id: an id that got REQ, REP or LAP
 * @service_timeout: 4.096 us * 2^n, 5 bits, with or without IB_CM_MRA_FLAG_DELAY
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_MRA_PRIVATE_DATA_SIZE
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_mra(struct ib_cm_id *cm_id, u8 service_timeout,
				   const void *private_data, u8 private_data_len);

/**
 * ib_send_cm_lap - propose another alternate path
 * @cm_id: an id with an established connection that it asked for
 * @alternate_path: the path
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_LAP_PRIVATE_DATA_SIZE
 *
 * Ends by APR_RECEIVED or LAP_ERROR. Context: process. Return: as ib_send_cm_rep(); -ENOENT for a
 * path whose source GID is no port's.
 */
RDMA_MUST_CHECK int ib_send_cm_lap(struct ib_cm_id *cm_id, const struct sa_path_rec *alternate_path,
				   const void *private_data, u8 private_data_len);

/**
 * ib_send_cm_apr - answer to a proposed path
 * @cm_id: an id that got a LAP
 * @status: the answer
 * @info: as @status says
 * @info_length: at most IB_CM_APR_INFO_LENGTH
 * @private_data: for the peer
 * @private_data_len: at most IB_CM_APR_PRIVATE_DATA_SIZE
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_apr(struct ib_cm_id *cm_id, enum ib_cm_apr_status status,
				   const void *info, u8 info_length, const void *private_data,
				   u8 private_data_len);

/**
 * ib_send_cm_sidr_req - ask which QP serves a service
 * @cm_id: an idle id
 * @param: what to say
 *
 * Ends by SIDR_REP_RECEIVED or SIDR_REQ_ERROR. Context: process. Return: as ib_send_cm_req().
 */
RDMA_MUST_CHECK int ib_send_cm_sidr_req(struct ib_cm_id *cm_id,
					const struct ib_cm_sidr_req_param *param);

/**
 * ib_send_cm_sidr_rep - answer that
 * @cm_id: an id that got a SIDR_REQ
 * @param: what to say
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_sidr_rep(struct ib_cm_id *cm_id,
					const struct ib_cm_sidr_rep_param *param);

/**
 * ib_cm_notify - say what the QP knows before the CM does
 * @cm_id: the id of its connection
 * @event: IB_EVENT_COMM_EST: data came before RTU; IB_EVENT_PATH_MIG: the alternate path is the
 * primary now
 *
 * Departure from Linux: not from the QP's event handler itself, which may not sleep.
 * Context: process. Return: 0; -EISCONN if the connection is established already; -EINVAL in other
 * states, and for other events; -ENODEV.
 */
RDMA_MUST_CHECK int ib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event);

/**
 * ib_cm_init_qp_attr - what to give ib_modify_qp() for the connection
 * @cm_id: the id
 * @qp_attr: @qp_attr->qp_state is the state to go to: INIT, RTR or RTS; filled in
 * @qp_attr_mask: filled in: which of it
 *
 * Context: process. Return: 0; -EINVAL for a state of the QP or of the connection in which there is
 * nothing to say; -ENOENT; -ENODEV.
 */
RDMA_MUST_CHECK int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *qp_attr,
				       int *qp_attr_mask);

/**
 * ib_end_cm_id - end an id without waiting for its handlers
 * @cm_id: the id
 *
 * All that ib_destroy_cm_id() does but to wait and to free: the peer has had its last word, and a
 * listener's service id is free for others. ib_destroy_cm_id() alone may be called then, and is
 * due.
 *
 * Context: process.
 */
void ib_end_cm_id(struct ib_cm_id *cm_id);

/**
 * ib_cm_query_state - the state of an id
 * @cm_id: the id
 *
 * Context: process. Return: the state; of an established connection one, whatever goes on about its
 * paths.
 */
enum ib_cm_state ib_cm_query_state(struct ib_cm_id *cm_id);

/**
 * ib_cm_query_counters - what a port has sent and received
 * @device: the device
 * @port_num: the port
 * @counters: filled in
 *
 * Context: process. Return: 0; -EINVAL; -ENODEV for a port without the CM.
 */
RDMA_MUST_CHECK int ib_cm_query_counters(struct ib_device *device, u32 port_num,
					 struct ib_cm_counters *counters);

/**
 * ibcm_reject_msg - a reason in words
 * @reason: enum ib_cm_rej_reason, or any number
 *
 * Context: any. Return: the text, never NULL.
 */
const char *ibcm_reject_msg(int reason);

RDMA_C_END
