/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines the types, states and attributes of queue pairs (IBA 10.3, 11.2.5). */
#pragma once
#include <rdma/verbs/address.h>
#include <rdma/verbs/event.h>
#include <rdma/verbs/link.h>

struct ib_cq;
struct ib_pd;
struct ib_srq;
struct ib_xrcd;

enum ib_qp_type {
	IB_QPT_SMI = 0,
	IB_QPT_GSI = 1,
	IB_QPT_RC = 2,
	IB_QPT_UC = 3,
	IB_QPT_UD = 4,
	IB_QPT_RAW_IPV6 = 5,
	IB_QPT_RAW_ETHERTYPE = 6,
	IB_QPT_RAW_PACKET = 8,
	IB_QPT_XRC_INI = 9,
	IB_QPT_XRC_TGT = 10,
	IB_QPT_MAX,
	IB_QPT_DRIVER = 0xff,
	/* The driver defines the meaning of types from here on. */
	IB_QPT_RESERVED1 = 0x1000,
	IB_QPT_RESERVED10 = 0x1009,
};

enum ib_qp_state {
	IB_QPS_RESET,
	IB_QPS_INIT,
	IB_QPS_RTR,
	IB_QPS_RTS,
	IB_QPS_SQD,
	IB_QPS_SQE,
	IB_QPS_ERR,
};

enum ib_mig_state {
	IB_MIG_MIGRATED,
	IB_MIG_REARM,
	IB_MIG_ARMED,
};

enum ib_sig_type {
	IB_SIGNAL_ALL_WR,
	IB_SIGNAL_REQ_WR,
};

enum ib_qp_create_flags {
	IB_QP_CREATE_IPOIB_UD_LSO = 1 << 0,
	IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK = 1 << 1,
	IB_QP_CREATE_NETIF_QP = 1 << 5,
	IB_QP_CREATE_NETDEV_USE = 1 << 7,
	/* The driver defines the meaning of flags from here on. */
	IB_QP_CREATE_RESERVED_START = 1 << 26,
	IB_QP_CREATE_RESERVED_END = 1u << 31,
};

enum ib_qp_attr_mask {
	IB_QP_STATE = 1 << 0,
	IB_QP_CUR_STATE = 1 << 1,
	IB_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	IB_QP_ACCESS_FLAGS = 1 << 3,
	IB_QP_PKEY_INDEX = 1 << 4,
	IB_QP_PORT = 1 << 5,
	IB_QP_QKEY = 1 << 6,
	IB_QP_AV = 1 << 7,
	IB_QP_PATH_MTU = 1 << 8,
	IB_QP_TIMEOUT = 1 << 9,
	IB_QP_RETRY_CNT = 1 << 10,
	IB_QP_RNR_RETRY = 1 << 11,
	IB_QP_RQ_PSN = 1 << 12,
	IB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	IB_QP_ALT_PATH = 1 << 14,
	IB_QP_MIN_RNR_TIMER = 1 << 15,
	IB_QP_SQ_PSN = 1 << 16,
	IB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	IB_QP_PATH_MIG_STATE = 1 << 18,
	IB_QP_CAP = 1 << 19,
	IB_QP_DEST_QPN = 1 << 20,
	IB_QP_RATE_LIMIT = 1 << 25,
	IB_QP_ATTR_STANDARD_BITS = (1 << 21) - 1,
};

/*
 * RNR NAK timer codes. The digits are milliseconds and hundredths of milliseconds (IBA 9.7.5.2.8).
 */
enum ib_rnr_timeout {
	IB_RNR_TIMER_655_36,
	IB_RNR_TIMER_000_01,
	IB_RNR_TIMER_000_02,
	IB_RNR_TIMER_000_03,
	IB_RNR_TIMER_000_04,
	IB_RNR_TIMER_000_06,
	IB_RNR_TIMER_000_08,
	IB_RNR_TIMER_000_12,
	IB_RNR_TIMER_000_16,
	IB_RNR_TIMER_000_24,
	IB_RNR_TIMER_000_32,
	IB_RNR_TIMER_000_48,
	IB_RNR_TIMER_000_64,
	IB_RNR_TIMER_000_96,
	IB_RNR_TIMER_001_28,
	IB_RNR_TIMER_001_92,
	IB_RNR_TIMER_002_56,
	IB_RNR_TIMER_003_84,
	IB_RNR_TIMER_005_12,
	IB_RNR_TIMER_007_68,
	IB_RNR_TIMER_010_24,
	IB_RNR_TIMER_015_36,
	IB_RNR_TIMER_020_48,
	IB_RNR_TIMER_030_72,
	IB_RNR_TIMER_040_96,
	IB_RNR_TIMER_061_44,
	IB_RNR_TIMER_081_92,
	IB_RNR_TIMER_122_88,
	IB_RNR_TIMER_163_84,
	IB_RNR_TIMER_245_76,
	IB_RNR_TIMER_327_68,
	IB_RNR_TIMER_491_52,
};

/**
 * struct ib_qp_cap - sizes of a QP's queues
 * @max_send_wr: requests in the send queue
 * @max_recv_wr: requests in the receive queue; not used with an SRQ
 * @max_send_sge: segments of a send request
 * @max_recv_sge: segments of a receive request; not used with an SRQ
 * @max_inline_data: bytes of a send request with IB_SEND_INLINE
 *
 * ib_create_qp() writes back the granted sizes, which are at least the requested ones.
 */
struct ib_qp_cap {
	u32 max_send_wr;
	u32 max_recv_wr;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_inline_data;
};

/**
 * struct ib_qp_init_attr - attributes of a new QP (IBA 11.2.5)
 * @event_handler: called with the QP's affiliated events, in any context; may be NULL
 * @qp_context: argument of the handler
 * @send_cq: the CQ of the send queue; not for XRC_TGT
 * @recv_cq: the CQ of the receive queue; not for XRC_INI and XRC_TGT
 * @srq: the shared receive queue of type IB_SRQT_BASIC, or NULL; RC, UC and UD only
 * @xrcd: XRC_TGT only: the domain
 * @cap: the sizes; the granted ones are written back
 * @sq_sig_type: whether every send completes, or only those with IB_SEND_SIGNALED
 * @qp_type: enum ib_qp_type
 * @create_flags: enum ib_qp_create_flags; a program may set only
 * IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK
 * @port_num: SMI and GSI only: the port
 */
struct ib_qp_init_attr {
	void (*event_handler)(struct ib_event *event, void *qp_context);
	void *qp_context;
	struct ib_cq *send_cq;
	struct ib_cq *recv_cq;
	struct ib_srq *srq;
	struct ib_xrcd *xrcd;
	struct ib_qp_cap cap;
	enum ib_sig_type sq_sig_type;
	enum ib_qp_type qp_type;
	u32 create_flags;
	u32 port_num;
};

/**
 * struct ib_qp_attr - attributes for ib_modify_qp() and ib_query_qp() (IBA 11.2.5)
 * @qp_state: the next state, or the current one
 * @cur_qp_state: the state that the caller believes the QP is in
 * @path_mtu: connected types: the largest packet
 * @path_mig_state: state of automatic path migration; IB_MIG_ARMED can only be queried
 * @qkey: datagram types: the Q_Key
 * @rq_psn: first PSN expected, 24 bits
 * @sq_psn: first PSN sent, 24 bits
 * @dest_qp_num: connected types: the peer's QP number, 24 bits
 * @qp_access_flags: enum ib_access_flags: operations that the peer may perform
 * @cap: sizes, if the device can resize
 * @ah_attr: the path
 * @alt_ah_attr: the alternate path, if the device has IB_DEVICE_AUTO_PATH_MIG
 * @pkey_index: index of the P_Key of @ah_attr
 * @alt_pkey_index: index of the P_Key of @alt_ah_attr
 * @en_sqd_async_notify: request IB_EVENT_SQ_DRAINED in the transition to SQD
 * @sq_draining: query only: in SQD and not yet drained
 * @max_rd_atomic: RDMA reads and atomics outstanding as the initiator, at most
 * max_qp_init_rd_atom of the device
 * @max_dest_rd_atomic: RDMA reads and atomics outstanding as the responder, at most max_qp_rd_atom
 * of the device
 * @min_rnr_timer: enum ib_rnr_timeout (IBA 9.7.5.2.8)
 * @port_num: the port of the path
 * @timeout: time after which a missing ACK causes a retransmission, 4.096 us * 2^n, n is 0 to 31; 0
 * means infinite
 * @retry_cnt: retries after a timeout or sequence error, 0 to 7
 * @rnr_retry: retries after receiver not ready, 0 to 7; 7 means without limit
 * @alt_port_num: the port of the alternate path
 * @alt_timeout: the timeout of the alternate path, as @timeout
 * @rate_limit: kbit/s; weft's midlayer refuses IB_QP_RATE_LIMIT
 */
struct ib_qp_attr {
	enum ib_qp_state qp_state;
	enum ib_qp_state cur_qp_state;
	enum ib_mtu path_mtu;
	enum ib_mig_state path_mig_state;
	u32 qkey;
	u32 rq_psn;
	u32 sq_psn;
	u32 dest_qp_num;
	int qp_access_flags;
	struct ib_qp_cap cap;
	struct rdma_ah_attr ah_attr;
	struct rdma_ah_attr alt_ah_attr;
	u16 pkey_index;
	u16 alt_pkey_index;
	u8 en_sqd_async_notify;
	u8 sq_draining;
	u8 max_rd_atomic;
	u8 max_dest_rd_atomic;
	u8 min_rnr_timer;
	u32 port_num;
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
	u32 alt_port_num;
	u8 alt_timeout;
	u32 rate_limit;
};

/**
 * struct ib_qp_open_attr - attributes of a handle on an XRC target QP
 * @event_handler: called with a copy of its events, in any context; may be NULL
 * @qp_context: argument of the handler
 * @qp_num: number of the QP in the XRC domain
 * @qp_type: IB_QPT_XRC_TGT
 */
struct ib_qp_open_attr {
	void (*event_handler)(struct ib_event *event, void *qp_context);
	void *qp_context;
	u32 qp_num;
	enum ib_qp_type qp_type;
};

RDMA_FLAGS(ib_qp_attr_mask);
RDMA_FLAGS(ib_qp_create_flags);
