/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the communication manager (CM), which establishes connections (IBA 12).
 * Documentation/connections.rst has the states and their transitions, and the differences from
 * Linux.
 *
 * An ID's handler is called with one event at a time, in order, in process context, without locks.
 * It may sleep and call every function below, but must not destroy its own ID, nor wait for the
 * handler of another ID. Handlers of different IDs may run in parallel.
 */
#pragma once
#include <rdma/ib_sa.h>

/* States of a connection, and of an ID that listens or resolves. */
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
	 * The device is being removed, and the consumer must destroy the ID. Linux: differs by
	 * having no such event.
	 */
	IB_CM_DEVICE_REMOVAL,
};

/* Sizes of the private data in messages, in bytes. A receiver always gets all of it. */
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

/* Reasons of a REJ (IBA 12.6.7.2). */
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

/* Status of an APR (IBA 12.8.2). */
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

/* Status of a SIDR_REP (IBA 12.11.2). */
enum ib_cm_sidr_status {
	IB_SIDR_SUCCESS,
	IB_SIDR_UNSUPPORTED,
	IB_SIDR_REJECT,
	IB_SIDR_NO_QP,
	IB_SIDR_REDIRECT,
	IB_SIDR_UNSUPPORTED_VERSION,
};

struct ib_cm_id;

/**
 * struct ib_cm_req_event_param - contents of a REQ (IBA 12.6.5)
 * @listen_id: the listener
 * @bth_pkey: P_Key with which the REQ arrived
 * @port: port of the primary path
 * @sgid_index: index of its source in the port's GID table
 * @primary_path: the path, from this side to the peer
 * @alternate_path: the alternate path; NULL for none
 * @remote_ca_guid: GUID of the peer's adapter
 * @remote_qkey: Q_Key of the peer's QP
 * @remote_qpn: number of the peer's QP
 * @qp_type: type of the QP that the connection needs
 * @starting_psn: first PSN that this side sends, 24 bits
 * @responder_resources: RDMA reads and atomics that this side may answer at a time
 * @initiator_depth: RDMA reads and atomics that this side may have outstanding
 * @local_cm_response_timeout: time that this side has for responses, 4.096 us * 2^n
 * @flow_control: whether the peer uses end-to-end flow control
 * @remote_cm_response_timeout: time that the peer needs for responses, 4.096 us * 2^n
 * @retry_count: retries of this side's QP, 0 to 7
 * @rnr_retry_count: RNR retries of this side's QP, 0 to 7
 * @srq: whether the peer's QP has an SRQ
 *
 * Pointers are valid during the call of the handler.
 *
 * Linux: differs by a GID index instead of a GID attribute.
 */
struct ib_cm_req_event_param {
	struct ib_cm_id *listen_id;
	u16 bth_pkey;
	u32 port;
	u16 sgid_index;
	struct sa_path_rec *primary_path;
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

/**
 * struct ib_cm_rep_event_param - contents of a REP (IBA 12.6.8)
 * @remote_ca_guid: GUID of the peer's adapter
 * @remote_qkey: Q_Key of the peer's QP
 * @remote_qpn: number of the peer's QP
 * @starting_psn: first PSN that this side sends, 24 bits
 * @responder_resources: RDMA reads and atomics that this side may answer at a time
 * @initiator_depth: RDMA reads and atomics that this side may have outstanding
 * @target_ack_delay: longest time until the peer sends an ACK, 4.096 us * 2^n
 * @failover_accepted: the alternate path: 0 accepted, 1 not supported, 2 refused
 * @flow_control: whether the peer uses end-to-end flow control
 * @rnr_retry_count: RNR retries of this side's QP, 0 to 7
 * @srq: whether the peer's QP has an SRQ
 */
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

/**
 * struct ib_cm_rej_event_param - contents of a REJ (IBA 12.6.7)
 * @reason: enum ib_cm_rej_reason
 * @ari: additional information, as @reason defines it; valid during the call of the handler
 * @ari_length: length of @ari in bytes, 0 to IB_CM_REJ_ARI_LENGTH
 */
struct ib_cm_rej_event_param {
	enum ib_cm_rej_reason reason;
	const void *ari;
	u8 ari_length;
};

/**
 * struct ib_cm_mra_event_param - contents of an MRA (IBA 12.6.6)
 * @service_timeout: time that the peer needs, 4.096 us * 2^n, n is 0 to 31
 */
struct ib_cm_mra_event_param {
	u8 service_timeout;
};

/**
 * struct ib_cm_lap_event_param - contents of a LAP (IBA 12.8.1)
 * @alternate_path: the proposed path; valid during the call of the handler
 */
struct ib_cm_lap_event_param {
	struct sa_path_rec *alternate_path;
};

/**
 * struct ib_cm_apr_event_param - contents of an APR (IBA 12.8.2)
 * @ap_status: enum ib_cm_apr_status
 * @apr_info: additional information, as @ap_status defines it; valid during the call of the handler
 * @info_len: length of @apr_info in bytes, 0 to IB_CM_APR_INFO_LENGTH
 */
struct ib_cm_apr_event_param {
	enum ib_cm_apr_status ap_status;
	const void *apr_info;
	u8 info_len;
};

/**
 * struct ib_cm_sidr_req_event_param - contents of a SIDR_REQ (IBA 12.11.1)
 * @listen_id: the listener
 * @service_id: the requested service
 * @port: port at which the message arrived
 * @pkey: the requested P_Key
 * @bth_pkey: P_Key with which the message arrived
 */
struct ib_cm_sidr_req_event_param {
	struct ib_cm_id *listen_id;
	__be64 service_id;
	u32 port;
	u16 pkey;
	u16 bth_pkey;
};

/**
 * struct ib_cm_sidr_rep_event_param - contents of a SIDR_REP (IBA 12.11.2)
 * @status: enum ib_cm_sidr_status
 * @qkey: Q_Key of the QP
 * @qpn: number of the QP that serves
 * @info: additional information, as @status defines it; valid during the call of the handler
 * @info_len: length of @info in bytes, 0 to IB_CM_SIDR_REP_INFO_LENGTH
 */
struct ib_cm_sidr_rep_event_param {
	enum ib_cm_sidr_status status;
	u32 qkey;
	u32 qpn;
	const void *info;
	u8 info_len;
};

/**
 * struct ib_cm_event - an event of an ID
 * @event: enum ib_cm_event_type
 * @param.req_rcvd: with IB_CM_REQ_RECEIVED: contents of the REQ
 * @param.rep_rcvd: with IB_CM_REP_RECEIVED: contents of the REP
 * @param.rej_rcvd: with IB_CM_REJ_RECEIVED: contents of the REJ
 * @param.mra_rcvd: with IB_CM_MRA_RECEIVED: contents of the MRA
 * @param.lap_rcvd: with IB_CM_LAP_RECEIVED: contents of the LAP
 * @param.apr_rcvd: with IB_CM_APR_RECEIVED: contents of the APR
 * @param.sidr_req_rcvd: with IB_CM_SIDR_REQ_RECEIVED: contents of the SIDR_REQ
 * @param.sidr_rep_rcvd: with IB_CM_SIDR_REP_RECEIVED: contents of the SIDR_REP
 * @param.send_status: with IB_CM_*_ERROR: IB_WC_RESP_TIMEOUT_ERR
 * @private_data: private data of a message; valid during the call of the handler
 * @private_data_len: length of @private_data in bytes: the maximum of the message; 0 without a
 * message
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

/**
 * ib_cm_handler - called with the events of an ID
 * @cm_id: the ID; with IB_CM_REQ_RECEIVED and IB_CM_SIDR_REQ_RECEIVED a new one, whose context is
 * the listener's
 * @event: the event; valid during the call
 *
 * Context: process, without locks.
 *
 * Return: 0; anything else lets the CM destroy the ID, which no longer belongs to the consumer.
 * With a new ID, 0 passes the ownership to the consumer, and -ENOMEM destroys the ID without an
 * answer if none has been sent, so that the peer repeats its request.
 */
typedef int (*ib_cm_handler)(struct ib_cm_id *cm_id, const struct ib_cm_event *event);

/**
 * struct ib_cm_id - one side of a connection or of a service ID resolution, or a listener
 * @cm_handler: called with its events; the handler may change it
 * @context: for the consumer
 * @device: the device
 * @service_id: the service that it listens on, or asks for
 * @service_mask: listener: the significant bits of @service_id
 * @local_id: its number, never 0
 * @remote_id: the peer's number; 0 until it is known
 * @remote_cm_qpn: number of the QP from which the peer's messages are sent
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
 * struct ib_cm_req_param - a REQ to send (IBA 12.6.5)
 * @primary_path: the path
 * @alternate_path: the alternate path, with the same P_Key and MTU; NULL for none
 * @service_id: the requested service
 * @qp_num: number of the local QP, 24 bits, not 0
 * @qp_type: IB_QPT_RC, IB_QPT_UC or IB_QPT_XRC_INI
 * @starting_psn: first PSN that the local QP expects, 24 bits
 * @private_data: private data for the listener, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_REQ_PRIVATE_DATA_SIZE
 * @peer_to_peer: must be 0
 * @responder_resources: RDMA reads and atomics that the local QP answers at a time
 * @initiator_depth: RDMA reads and atomics that the local QP has outstanding
 * @remote_cm_response_timeout: time that the peer has for responses, 4.096 us * 2^n, n is 0 to 31
 * @flow_control: whether the local QP uses end-to-end flow control
 * @local_cm_response_timeout: time that this side needs for responses, 4.096 us * 2^n, n is 0 to 31
 * @retry_count: retries of both QPs, 0 to 7
 * @rnr_retry_count: RNR retries of the peer's QP, 0 to 7
 * @max_cm_retries: repetitions of a message by either side, 0 to 15
 * @srq: whether the local QP has an SRQ
 *
 * Linux: differs by @peer_to_peer, which must be 0: two sides that connect to each other at the
 * same time get two connections.
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
 * struct ib_cm_rep_param - a REP to send (IBA 12.6.8)
 * @qp_num: number of the local QP, 24 bits, not 0
 * @starting_psn: first PSN that the local QP expects, 24 bits
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_REP_PRIVATE_DATA_SIZE
 * @responder_resources: RDMA reads and atomics that the local QP answers at a time
 * @initiator_depth: RDMA reads and atomics that the local QP has outstanding
 * @failover_accepted: the alternate path: 0 accepted, 1 not supported, 2 refused. It should be 1:
 * ib_cm_init_qp_attr() does not return the alternate path of a REQ
 * @flow_control: whether the local QP uses end-to-end flow control
 * @rnr_retry_count: RNR retries of the peer's QP, 0 to 7
 * @srq: whether the local QP has an SRQ
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
 * struct ib_cm_sidr_req_param - a SIDR_REQ to send (IBA 12.11.1)
 * @path: the path to the peer
 * @service_id: the requested service
 * @timeout_ms: milliseconds to wait for the response, at least 1
 * @private_data: private data for the listener, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE
 * @max_cm_retries: repetitions without a response, 0 to 15
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
 * struct ib_cm_sidr_rep_param - a SIDR_REP to send (IBA 12.11.2)
 * @qp_num: number of the QP that serves, 24 bits
 * @qkey: its Q_Key
 * @status: enum ib_cm_sidr_status
 * @info: additional information, as @status defines it, or NULL
 * @info_length: length of @info in bytes, 0 to IB_CM_SIDR_REP_INFO_LENGTH
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_SIDR_REP_PRIVATE_DATA_SIZE
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

/* Kinds of messages, in the order of their attributes (IBA 12.6.1). */
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
 * @sent: messages posted, by kind, repetitions included
 * @retries: repetitions among these, because no response came
 * @received: messages received that passed the check, by kind
 * @duplicates: messages among these that had been received before
 * @malformed: messages that broke a rule of their format
 * @no_room: messages dropped because a listener's backlog, the port's send queue, or an ID's queue
 * of events was full
 * @no_memory: messages dropped because there was no memory
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
 * For ib_cm_listen(): the CM assigns a service ID. Consumers cannot choose IDs with this first byte
 * themselves (IBA A3.2).
 */
#define IB_CM_ASSIGN_SERVICE_ID_HOST 0x0200000000000000ull

/*
 * Flag in the service timeout of ib_send_cm_mra(): no MRA is sent now, but one for each repetition
 * of the peer's message.
 */
#define IB_CM_MRA_FLAG_DELAY 0x80

RDMA_C_BEGIN

/**
 * ib_create_cm_id - create an ID
 * @device: the device; the caller is a client of it
 * @cm_handler: called with the ID's events
 * @context: for the consumer
 *
 * The caller destroys it with ib_destroy_cm_id().
 *
 * Context: process. Return: the ID, idle; -EINVAL without a handler; -ENODEV for a device that the
 * CM does not serve, or that is being removed; -ENOMEM if there is no memory.
 */
RDMA_MUST_CHECK struct ib_cm_id *ib_create_cm_id(struct ib_device *device, ib_cm_handler cm_handler,
						 void *context);

/**
 * ib_destroy_cm_id - destroy an ID in any state
 * @cm_id: the ID
 *
 * Sends the peer the REJ, DREQ, DREP or SIDR_REP that the state requires. When this has returned,
 * the handler does not run and will not run again, and new IDs with which a listener's handler has
 * not been called have been destroyed. The end of timewait is not reported any more.
 *
 * Context: process, not from the handler of the ID: that is refused with a warning, and the ID
 * stays. A listener must not be destroyed from the handler that is called with one of its new IDs.
 */
void ib_destroy_cm_id(struct ib_cm_id *cm_id);

/**
 * ib_cm_listen - listen for REQ and SIDR_REQ
 * @cm_id: an idle ID
 * @service_id: the service; with IB_CM_ASSIGN_SERVICE_ID_HOST, the CM assigns one to @cm_id
 * @service_mask: the significant bits of @service_id; 0 means all
 *
 * If several listeners match a request, the one with the most significant bits gets it.
 *
 * Linux: differs by the mask.
 *
 * Context: process.
 *
 * Return: 0; -EINVAL for an ID that is not idle, or a service ID that consumers cannot choose (IBA
 * A3.2); -EBUSY if another ID listens on the same service, or the device has eight other masks
 * already; -ENODEV if the device is being removed; -ENOMEM if there is no memory.
 */
RDMA_MUST_CHECK int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id, __be64 service_mask);

/**
 * ib_cm_set_backlog - set how many new IDs may wait for a listener's handler to return
 * @cm_id: a listener
 * @backlog: number of IDs, 1 to 4096; 256 without this call
 *
 * REQ and SIDR_REQ beyond that are dropped and counted, and their senders repeat them.
 *
 * Context: process. Return: 0; -EINVAL for an ID that does not listen, or a number out of range;
 * -ENODEV if the device is being removed.
 */
RDMA_MUST_CHECK int ib_cm_set_backlog(struct ib_cm_id *cm_id, unsigned int backlog);

/**
 * ib_send_cm_req - request a connection (IBA 12.6.5)
 * @cm_id: an idle ID
 * @param: contents of the REQ; copied
 *
 * Completes with the event REP_RECEIVED, REJ_RECEIVED or REQ_ERROR.
 *
 * Linux: differs by a REJ (reason 4) to the peer when the REQ is abandoned, and by a new number of
 * an ID that is used again.
 *
 * Context: process.
 *
 * Return: 0; -EINVAL for an ID that is not idle, a value out of its range (struct
 * ib_cm_req_param), an unknown MTU, or an alternate path with another P_Key or MTU; -ENOENT for a
 * path whose source GID or P_Key no port has; -ENODEV if the device is being removed, or the CM
 * does not serve the port; -ENOMEM if there is no memory; the errors of rdma_create_ah() and
 * ib_post_send_mad().
 */
RDMA_MUST_CHECK int ib_send_cm_req(struct ib_cm_id *cm_id, const struct ib_cm_req_param *param);

/**
 * ib_send_cm_rep - accept a connection (IBA 12.6.8)
 * @cm_id: an ID that received a REQ
 * @param: contents of the REP; copied
 *
 * Completes with the event RTU_RECEIVED, DREQ_RECEIVED, REJ_RECEIVED or REP_ERROR.
 *
 * Context: process.
 *
 * Return: 0; -EINVAL if the state of the ID does not allow it, or for a value out of its range;
 * -ENODEV if the device is being removed; -ENOMEM if there is no memory; the errors of
 * ib_post_send_mad().
 */
RDMA_MUST_CHECK int ib_send_cm_rep(struct ib_cm_id *cm_id, const struct ib_cm_rep_param *param);

/**
 * ib_send_cm_rtu - confirm a connection (IBA 12.6.9)
 * @cm_id: an ID that received a REP
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_RTU_PRIVATE_DATA_SIZE
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_rtu(struct ib_cm_id *cm_id, const void *private_data,
				   u8 private_data_len);

/**
 * ib_send_cm_dreq - close a connection (IBA 12.6.10)
 * @cm_id: an ID with an established connection
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_DREQ_PRIVATE_DATA_SIZE
 *
 * Completes with the event DREP_RECEIVED, DREQ_RECEIVED or DREQ_ERROR, and after timewait (IBA
 * 12.9.8.2) TIMEWAIT_EXIT is reported. If the DREQ cannot be sent, the connection closes anyway:
 * the ID is in timewait and gets DREQ_ERROR.
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_dreq(struct ib_cm_id *cm_id, const void *private_data,
				    u8 private_data_len);

/**
 * ib_send_cm_drep - confirm that a connection is closed (IBA 12.6.11)
 * @cm_id: an ID that received a DREQ
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_DREP_PRIVATE_DATA_SIZE
 *
 * If the DREP cannot be sent, the connection is closed nevertheless.
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_drep(struct ib_cm_id *cm_id, const void *private_data,
				    u8 private_data_len);

/**
 * ib_send_cm_rej - refuse a connection that is being established (IBA 12.6.7)
 * @cm_id: the ID
 * @reason: enum ib_cm_rej_reason
 * @ari: additional information, as @reason defines it, or NULL
 * @ari_length: length of @ari in bytes, 0 to IB_CM_REJ_ARI_LENGTH
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_REJ_PRIVATE_DATA_SIZE
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason,
				   const void *ari, u8 ari_length, const void *private_data,
				   u8 private_data_len);

/**
 * ib_send_cm_mra - ask the peer to wait longer (IBA 12.6.6)
 * @cm_id: an ID that received a REQ, REP or LAP
 * @service_timeout: 4.096 us * 2^n, n is 0 to 31, with or without IB_CM_MRA_FLAG_DELAY
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_MRA_PRIVATE_DATA_SIZE
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_mra(struct ib_cm_id *cm_id, u8 service_timeout,
				   const void *private_data, u8 private_data_len);

/**
 * ib_send_cm_lap - propose another alternate path (IBA 12.8.1)
 * @cm_id: an ID with an established connection, which sent its REQ
 * @alternate_path: the path
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_LAP_PRIVATE_DATA_SIZE
 *
 * Completes with the event APR_RECEIVED or LAP_ERROR.
 *
 * Linux: differs by having no such function: it accepts LAP but never sends it.
 *
 * Context: process. Return: as ib_send_cm_rep(); -EINVAL for an ID that received the REQ; -ENOENT
 * for a path whose source GID or P_Key no port has; the errors of rdma_create_ah().
 */
RDMA_MUST_CHECK int ib_send_cm_lap(struct ib_cm_id *cm_id, const struct sa_path_rec *alternate_path,
				   const void *private_data, u8 private_data_len);

/**
 * ib_send_cm_apr - respond to a proposed path (IBA 12.8.2)
 * @cm_id: an ID that received a LAP
 * @status: enum ib_cm_apr_status
 * @info: additional information, as @status defines it, or NULL
 * @info_length: length of @info in bytes, 0 to IB_CM_APR_INFO_LENGTH
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IB_CM_APR_PRIVATE_DATA_SIZE
 *
 * Linux: differs by having no such function.
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_apr(struct ib_cm_id *cm_id, enum ib_cm_apr_status status,
				   const void *info, u8 info_length, const void *private_data,
				   u8 private_data_len);

/**
 * ib_send_cm_sidr_req - request the QP of a service (IBA 12.11.1)
 * @cm_id: an idle ID
 * @param: contents of the SIDR_REQ; copied
 *
 * Completes with the event SIDR_REP_RECEIVED or SIDR_REQ_ERROR.
 *
 * Context: process. Return: as ib_send_cm_req(); -EINVAL also for no path, no timeout, or more than
 * 15 retries.
 */
RDMA_MUST_CHECK int ib_send_cm_sidr_req(struct ib_cm_id *cm_id,
					const struct ib_cm_sidr_req_param *param);

/**
 * ib_send_cm_sidr_rep - respond with the QP of a service (IBA 12.11.2)
 * @cm_id: an ID that received a SIDR_REQ
 * @param: contents of the SIDR_REP; copied
 *
 * Context: process. Return: as ib_send_cm_rep().
 */
RDMA_MUST_CHECK int ib_send_cm_sidr_rep(struct ib_cm_id *cm_id,
					const struct ib_cm_sidr_rep_param *param);

/**
 * ib_cm_notify - report an event of the connection's QP to the CM
 * @cm_id: the ID of its connection
 * @event: IB_EVENT_COMM_EST: data arrived before the RTU; IB_EVENT_PATH_MIG: the alternate path is
 * now the primary one (IBA 17.2.8.1)
 *
 * Linux: differs by process context: the QP's event handler cannot call this, because it must not
 * sleep.
 *
 * Context: process. Return: 0; -EISCONN if the connection is established already; -EINVAL in other
 * states, for other events, and for IB_EVENT_PATH_MIG without an alternate path; -ENODEV if the
 * device is being removed.
 */
RDMA_MUST_CHECK int ib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event);

/**
 * ib_cm_init_qp_attr - get the attributes for ib_modify_qp() (IBA 12.9.7)
 * @cm_id: the ID
 * @qp_attr: qp_state is the state to go to: INIT, RTR or RTS; the other attributes are filled in
 * @qp_attr_mask: filled in: enum ib_qp_attr_mask of the attributes
 *
 * Linux: differs on the passive side, where an alternate path is returned only if it came with a
 * LAP.
 *
 * Context: process. Return: 0; -EINVAL for another state of the QP, an ID that has no connection or
 * whose connection is closed, or RTR and RTS before the REP; -ENODEV if the device is being
 * removed.
 */
RDMA_MUST_CHECK int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *qp_attr,
				       int *qp_attr_mask);

/**
 * ib_end_cm_id - close an ID without waiting for its handlers
 * @cm_id: the ID
 *
 * Does the same as ib_destroy_cm_id(), except that it neither waits nor frees the ID: the last
 * message to the peer has been sent, and a listener's service ID is free for others. Afterwards the
 * caller must call ib_destroy_cm_id(), and may call no other function.
 *
 * Linux: differs by having no such function.
 *
 * Context: process.
 */
void ib_end_cm_id(struct ib_cm_id *cm_id);

/**
 * ib_cm_query_state - get the state of an ID (IBA 12.9)
 * @cm_id: the ID
 *
 * Context: process. Return: enum ib_cm_state; IB_CM_ESTABLISHED for an established connection, also
 * during an exchange about its paths.
 */
enum ib_cm_state ib_cm_query_state(struct ib_cm_id *cm_id);

/**
 * ib_cm_query_counters - read the counters of a port's messages
 * @device: a registered device
 * @port_num: the port
 * @counters: filled in
 *
 * Context: process. Return: 0; -EINVAL for a port that does not exist; -ENODEV for a port that the
 * CM does not serve.
 */
RDMA_MUST_CHECK int ib_cm_query_counters(struct ib_device *device, u32 port_num,
					 struct ib_cm_counters *counters);

/**
 * ibcm_reject_msg - describe a reason of a REJ in words (IBA 12.6.7.2)
 * @reason: enum ib_cm_rej_reason, or any number
 *
 * Context: any. Return: a constant string, never NULL.
 */
const char *ibcm_reject_msg(int reason);

RDMA_C_END
