/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Management datagrams: agents that send, are answered, and answer (IBA 13; MGMT-01 to MGMT-04).
 * The bytes are described here under Linux's names; C++ may prefer ib/mad.hpp, which describes the
 * same bytes.
 */
#pragma once
#include <rdma/ib_verbs.h>

#define IB_MGMT_BASE_VERSION 1

enum {
	IB_MGMT_CLASS_SUBN_LID_ROUTED = 0x01,
	IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE = 0x81,
	IB_MGMT_CLASS_SUBN_ADM = 0x03,
	IB_MGMT_CLASS_PERF_MGMT = 0x04,
	IB_MGMT_CLASS_BM = 0x05,
	IB_MGMT_CLASS_DEVICE_MGMT = 0x06,
	IB_MGMT_CLASS_CM = 0x07,
	IB_MGMT_CLASS_SNMP = 0x08,
	IB_MGMT_CLASS_DEVICE_ADM = 0x10,
	IB_MGMT_CLASS_BOOT_MGMT = 0x11,
	IB_MGMT_CLASS_BIS = 0x12,
	IB_MGMT_CLASS_CONG_MGMT = 0x21,
	IB_MGMT_CLASS_VENDOR_RANGE2_START = 0x30,
	IB_MGMT_CLASS_VENDOR_RANGE2_END = 0x4f,
};

enum {
	IB_MGMT_METHOD_GET = 0x01,
	IB_MGMT_METHOD_SET = 0x02,
	IB_MGMT_METHOD_SEND = 0x03,
	IB_MGMT_METHOD_TRAP = 0x05,
	IB_MGMT_METHOD_REPORT = 0x06,
	IB_MGMT_METHOD_TRAP_REPRESS = 0x07,
	IB_MGMT_METHOD_RESP = 0x80,
	IB_MGMT_METHOD_GET_RESP = 0x81,
	IB_MGMT_METHOD_REPORT_RESP = 0x86,
	IB_MGMT_MAX_METHODS = 128,
};

enum {
	IB_MGMT_MAD_STATUS_SUCCESS = 0x0000,
	IB_MGMT_MAD_STATUS_BUSY = 0x0001,
	IB_MGMT_MAD_STATUS_REDIRECT_REQD = 0x0002,
	IB_MGMT_MAD_STATUS_BAD_VERSION = 0x0004,
	IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD = 0x0008,
	IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB = 0x000c,
	IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE = 0x001c,
};

enum {
	IB_MGMT_RMPP_VERSION = 1,
	IB_MGMT_RMPP_TYPE_DATA = 1,
	IB_MGMT_RMPP_TYPE_ACK = 2,
	IB_MGMT_RMPP_TYPE_STOP = 3,
	IB_MGMT_RMPP_TYPE_ABORT = 4,
	IB_MGMT_RMPP_FLAG_ACTIVE = 1 << 0,
	IB_MGMT_RMPP_FLAG_FIRST = 1 << 1,
	IB_MGMT_RMPP_FLAG_LAST = 1 << 2,
	IB_MGMT_RMPP_NO_RESPTIME = 0x1f,
	IB_MGMT_RMPP_STATUS_SUCCESS = 0,
	IB_MGMT_RMPP_STATUS_RESX = 1,
	IB_MGMT_RMPP_STATUS_ABORT_MIN = 118,
	IB_MGMT_RMPP_STATUS_T2L = 118,
	IB_MGMT_RMPP_STATUS_BAD_LEN = 119,
	IB_MGMT_RMPP_STATUS_BAD_SEG = 120,
	IB_MGMT_RMPP_STATUS_BADT = 121,
	IB_MGMT_RMPP_STATUS_W2S = 122,
	IB_MGMT_RMPP_STATUS_S2B = 123,
	IB_MGMT_RMPP_STATUS_BAD_STATUS = 124,
	IB_MGMT_RMPP_STATUS_UNV = 125,
	IB_MGMT_RMPP_STATUS_TMR = 126,
	IB_MGMT_RMPP_STATUS_UNSPEC = 127,
	IB_MGMT_RMPP_STATUS_ABORT_MAX = 127,
};

#define IB_QP0 0
#define IB_QP1_QKEY 0x80010000u
#define IB_QP_SET_QKEY 0x80000000u
#define IB_DEFAULT_PKEY_PARTIAL 0x7fff
#define IB_DEFAULT_PKEY_FULL 0xffff
#ifdef __cplusplus
#define IB_QP1 (ib::be32(1))
#else
#define IB_QP1 ((__be32)__builtin_bswap32(1))
#endif

enum {
	IB_MGMT_MAD_HDR = 24,
	IB_MGMT_MAD_DATA = 232,
	IB_MGMT_RMPP_HDR = 36,
	IB_MGMT_RMPP_DATA = 220,
	IB_MGMT_VENDOR_HDR = 40,
	IB_MGMT_VENDOR_DATA = 216,
	IB_MGMT_SA_HDR = 56,
	IB_MGMT_SA_DATA = 200,
	IB_MGMT_DEVICE_HDR = 64,
	IB_MGMT_DEVICE_DATA = 192,
	IB_MGMT_MAD_SIZE = IB_MGMT_MAD_HDR + IB_MGMT_MAD_DATA,
};

struct ib_mad_hdr {
	u8 base_version;
	u8 mgmt_class;
	u8 class_version;
	u8 method;
	__be16 status;
	__be16 class_specific;
	__be64 tid;
	__be16 attr_id;
	__be16 resv;
	__be32 attr_mod;
};

struct ib_rmpp_hdr {
	u8 rmpp_version;
	u8 rmpp_type;
	u8 rmpp_rtime_flags;
	u8 rmpp_status;
	__be32 seg_num;
	__be32 paylen_newwin;
};

/* One bit for each component of an SA record, big-endian. */
typedef __be64 ib_sa_comp_mask;

struct ib_sa_hdr {
	__be64 sm_key;
	__be16 attr_offset;
	__be16 reserved;
	ib_sa_comp_mask comp_mask;
} __attribute__((packed));

struct ib_mad {
	struct ib_mad_hdr mad_hdr;
	u8 data[IB_MGMT_MAD_DATA];
};

struct ib_rmpp_mad {
	struct ib_mad_hdr mad_hdr;
	struct ib_rmpp_hdr rmpp_hdr;
	u8 data[IB_MGMT_RMPP_DATA];
};

struct ib_sa_mad {
	struct ib_mad_hdr mad_hdr;
	struct ib_rmpp_hdr rmpp_hdr;
	struct ib_sa_hdr sa_hdr;
	u8 data[IB_MGMT_SA_DATA];
};

struct ib_vendor_mad {
	struct ib_mad_hdr mad_hdr;
	struct ib_rmpp_hdr rmpp_hdr;
	u8 reserved;
	u8 oui[3];
	u8 data[IB_MGMT_VENDOR_DATA];
};

/* What every class answers to ClassPortInfo (IBA 13.4.8.1). */
struct ib_class_port_info {
	u8 base_version;
	u8 class_version;
	__be16 capability_mask;
	/* 27 bits of CapabilityMask2, 5 of response time. */
	__be32 cap_mask2_resp_time;
	u8 redirect_gid[16];
	__be32 redirect_tcslfl;
	__be16 redirect_lid;
	__be16 redirect_pkey;
	__be32 redirect_qp;
	__be32 redirect_qkey;
	u8 trap_gid[16];
	__be32 trap_tcslfl;
	__be16 trap_lid;
	__be16 trap_pkey;
	__be32 trap_hlqp;
	__be32 trap_qkey;
};

/* Bits of ib_port_attr::port_cap_flags (IBA 14.2.5.6). */
enum ib_port_capability_mask_bits {
	IB_PORT_SM = 1 << 1,
	IB_PORT_NOTICE_SUP = 1 << 2,
	IB_PORT_TRAP_SUP = 1 << 3,
	IB_PORT_OPT_IPD_SUP = 1 << 4,
	IB_PORT_AUTO_MIGR_SUP = 1 << 5,
	IB_PORT_SL_MAP_SUP = 1 << 6,
	IB_PORT_MKEY_NVRAM = 1 << 7,
	IB_PORT_PKEY_NVRAM = 1 << 8,
	IB_PORT_LED_INFO_SUP = 1 << 9,
	IB_PORT_SM_DISABLED = 1 << 10,
	IB_PORT_SYS_IMAGE_GUID_SUP = 1 << 11,
	IB_PORT_PKEY_SW_EXT_PORT_TRAP_SUP = 1 << 12,
	IB_PORT_EXTENDED_SPEEDS_SUP = 1 << 14,
	IB_PORT_CAP_MASK2_SUP = 1 << 15,
	IB_PORT_CM_SUP = 1 << 16,
	IB_PORT_SNMP_TUNNEL_SUP = 1 << 17,
	IB_PORT_REINIT_SUP = 1 << 18,
	IB_PORT_DEVICE_MGMT_SUP = 1 << 19,
	IB_PORT_VENDOR_CLASS_SUP = 1 << 20,
	IB_PORT_DR_NOTICE_SUP = 1 << 21,
	IB_PORT_CAP_MASK_NOTICE_SUP = 1 << 22,
	IB_PORT_BOOT_MGMT_SUP = 1 << 23,
	IB_PORT_LINK_LATENCY_SUP = 1 << 24,
	IB_PORT_CLIENT_REG_SUP = 1 << 25,
	IB_PORT_OTHER_LOCAL_CHANGES_SUP = 1 << 26,
	IB_PORT_LINK_SPEED_WIDTH_TABLE_SUP = 1 << 27,
	IB_PORT_VENDOR_SPECIFIC_MADS_TABLE_SUP = 1 << 28,
	IB_PORT_MCAST_PKEY_TRAP_SUPPRESSION_SUP = 1 << 29,
	IB_PORT_MCAST_FDB_TOP_SUP = 1 << 30,
};

/* Of rmpp_rtime_flags: the response time is the upper five bits, the flags are the lower three. */
static inline u8 ib_get_rmpp_resptime(const struct ib_rmpp_hdr *rmpp_hdr)
{
	return rmpp_hdr->rmpp_rtime_flags >> 3;
}

static inline u8 ib_get_rmpp_flags(const struct ib_rmpp_hdr *rmpp_hdr)
{
	return rmpp_hdr->rmpp_rtime_flags & 0x7;
}

static inline void ib_set_rmpp_resptime(struct ib_rmpp_hdr *rmpp_hdr, u8 rtime)
{
	rmpp_hdr->rmpp_rtime_flags = (u8)(ib_get_rmpp_flags(rmpp_hdr) | rtime << 3);
}

static inline void ib_set_rmpp_flags(struct ib_rmpp_hdr *rmpp_hdr, u8 flags)
{
	rmpp_hdr->rmpp_rtime_flags = (u8)((rmpp_hdr->rmpp_rtime_flags & 0xf8) | (flags & 0x7));
}

struct ib_mad_agent;
struct ib_mad_recv_wc;
struct ib_mad_send_wc;

/**
 * struct ib_mad_send_buf - a MAD to send, and the memory that it is in
 * @next: the next of a list that is posted together
 * @mad: the MAD, or the header and first segment of an RMPP message, for the caller to fill in
 * @mad_agent: the agent that sends it
 * @ah: where to; the caller's
 * @context: the caller's
 * @hdr_len: bytes in front of the data
 * @data_len: bytes of data, all segments together
 * @seg_count: RMPP: segments
 * @seg_size: RMPP: bytes of data in each
 * @seg_rmpp_size: RMPP: the same with what is after the RMPP header
 * @timeout_ms: how long to wait for an answer to what is out; 0 if none is expected
 * @retries: how many times to send it again
 */
struct ib_mad_send_buf {
	struct ib_mad_send_buf *next;
	void *mad;
	struct ib_mad_agent *mad_agent;
	struct ib_ah *ah;
	void *context[2];
	int hdr_len;
	int data_len;
	int seg_count;
	int seg_size;
	int seg_rmpp_size;
	int timeout_ms;
	int retries;
};

typedef void (*ib_mad_send_handler)(struct ib_mad_agent *mad_agent,
				    struct ib_mad_send_wc *mad_send_wc);
typedef void (*ib_mad_recv_handler)(struct ib_mad_agent *mad_agent,
				    struct ib_mad_send_buf *send_buf,
				    struct ib_mad_recv_wc *mad_recv_wc);
typedef void (*ib_mad_snoop_handler)(struct ib_mad_agent *mad_agent,
				     struct ib_mad_send_buf *send_buf,
				     struct ib_mad_send_wc *mad_send_wc);

enum {
	/* The consumer does RMPP itself; the agent takes segments for whole messages. */
	IB_MAD_USER_RMPP = 1 << 0,
};

enum ib_mad_snoop_flags {
	IB_MAD_SNOOP_SEND_COMPLETIONS = 1 << 2,
	IB_MAD_SNOOP_RECVS = 1 << 4,
};

/**
 * struct ib_mad_agent - a consumer's access to SMI or GSI of a port
 * @device: the device
 * @qp: QP0 or QP1 of the port
 * @recv_handler: gets answers (with the send_buf they answer) and what nobody asked for (without)
 * @send_handler: called exactly once for every send that was accepted (MGMT-03)
 * @snoop_handler: of an agent from ib_register_mad_snoop()
 * @context: the consumer's
 * @hi_tid: upper half of the transaction ids it must use
 * @flags: the registration_flags
 * @port_num: the port
 * @rmpp_version: 0 or IB_MGMT_RMPP_VERSION
 *
 * Handlers run in process context, never inside a call of the consumer's (LOCK-05), and of all
 * agents on one QP one at a time. They may sleep, post and cancel, but not wait for another handler
 * of that QP.
 */
struct ib_mad_agent {
	struct ib_device *device;
	struct ib_qp *qp;
	ib_mad_recv_handler recv_handler;
	ib_mad_send_handler send_handler;
	ib_mad_snoop_handler snoop_handler;
	void *context;
	u32 hi_tid;
	u32 flags;
	u32 port_num;
	u8 rmpp_version;
};

/**
 * struct ib_mad_send_wc - how a send ended
 * @send_buf: the send, the consumer's again
 * @status: IB_WC_SUCCESS; IB_WC_RESP_TIMEOUT_ERR without an answer; IB_WC_WR_FLUSH_ERR when
 * cancelled; others by the QP
 * @vendor_err: as in ib_wc
 */
struct ib_mad_send_wc {
	struct ib_mad_send_buf *send_buf;
	enum ib_wc_status status;
	u32 vendor_err;
};

struct ib_mad_recv_buf {
	struct ib_links list;
	struct ib_grh *grh;
	struct ib_mad *mad;
};

/**
 * struct ib_mad_recv_wc - a MAD received
 * @wc: its completion: the sender's address (MGMT-07)
 * @recv_buf: the MAD, or the first segment of an RMPP message
 * @rmpp_list: all its segments in order, linked by recv_buf.list
 * @mad_len: bytes of the message with the headers of the first segment only
 * @mad_seg_size: bytes of a segment
 *
 * Given to the handler, which gives it back by ib_free_recv_mad().
 */
struct ib_mad_recv_wc {
	struct ib_wc *wc;
	struct ib_mad_recv_buf recv_buf;
	struct ib_links rmpp_list;
	int mad_len;
	size_t mad_seg_size;
};

/**
 * struct ib_mad_reg_req - which unsolicited MADs an agent wants
 * @mgmt_class: class
 * @mgmt_class_version: version
 * @oui: for the classes of vendor range 2
 * @method_mask: a bit for each method
 */
struct ib_mad_reg_req {
	u8 mgmt_class;
	u8 mgmt_class_version;
	u8 oui[3];
	unsigned long method_mask[IB_MGMT_MAX_METHODS / (8 * sizeof(unsigned long))];
};

/**
 * struct ib_mad_counters - MADs that SMI or GSI of a port received and dropped, by reason
 * @malformed: length, base version or class do not fit the interface, or the buffer
 * @no_agent: nobody has registered for it, or nobody sent the request that it answers
 * @no_memory: for want of memory: to keep the receive queue full, or to answer
 * @misrouted: directed-route SMPs that break a rule
 * @no_room: the suite's own answers, and at a switch SMPs in transit, while 512 of them wait to be
 * sent
 * @rmpp_discarded: segments and answers of no message that is under way, or beyond the limits of
 * what is assembled
 */
struct ib_mad_counters {
	u64 malformed;
	u64 no_agent;
	u64 no_memory;
	u64 misrouted;
	u64 no_room;
	u64 rmpp_discarded;
};

RDMA_C_BEGIN

/**
 * ib_query_mad_counters - what was dropped
 * @device: the device
 * @port_num: the port
 * @qp_type: IB_QPT_SMI or IB_QPT_GSI
 * @counters: filled in; they begin at 0 when the device is registered
 *
 * Context: any, for a client of the device. Return: 0; -EINVAL; -ENODEV for a port without MADs.
 */
RDMA_MUST_CHECK int ib_query_mad_counters(struct ib_device *device, u32 port_num,
					  enum ib_qp_type qp_type,
					  struct ib_mad_counters *counters);

/**
 * ib_register_mad_agent - get access to SMI or GSI
 * @device: the device
 * @port_num: the port
 * @qp_type: IB_QPT_SMI or IB_QPT_GSI
 * @mad_reg_req: what unsolicited MADs to get; NULL for none
 * @rmpp_version: IB_MGMT_RMPP_VERSION to have RMPP done, 0 not to
 * @send_handler: see struct ib_mad_agent; NULL to receive only
 * @recv_handler: see struct ib_mad_agent; NULL to send without answers only
 * @context: the consumer's
 * @registration_flags: IB_MAD_USER_RMPP
 *
 * Context: process.
 * Return: the agent; -EINVAL for what does not fit together, or methods that another agent has;
 * -ENODEV for a port without MADs; -EPROTONOSUPPORT for a class that @qp_type does not carry;
 * -ENOMEM.
 */
RDMA_MUST_CHECK struct ib_mad_agent *
ib_register_mad_agent(struct ib_device *device, u32 port_num, enum ib_qp_type qp_type,
		      struct ib_mad_reg_req *mad_reg_req, u8 rmpp_version,
		      ib_mad_send_handler send_handler, ib_mad_recv_handler recv_handler,
		      void *context, u32 registration_flags);

/**
 * ib_register_mad_snoop - see the MADs of SMI or GSI go by
 * @device: the device
 * @port_num: the port
 * @qp_type: IB_QPT_SMI or IB_QPT_GSI
 * @mad_snoop_flags: enum ib_mad_snoop_flags
 * @snoop_handler: sees sends as they complete
 * @recv_handler: sees what is received, which stays the midlayer's: it is valid during the call and
 * not freed
 * @context: the consumer's
 *
 * Context: process. Return: the agent; -EINVAL; -ENODEV; -ENOMEM.
 */
RDMA_MUST_CHECK struct ib_mad_agent *
ib_register_mad_snoop(struct ib_device *device, u32 port_num, enum ib_qp_type qp_type,
		      int mad_snoop_flags, ib_mad_snoop_handler snoop_handler,
		      ib_mad_recv_handler recv_handler, void *context);

/**
 * ib_unregister_mad_agent - give the access back
 * @mad_agent: the agent
 *
 * Outstanding sends are completed as cancelled first. When this has returned no handler of the
 * agent runs.
 * Context: process, not from a handler of an agent on the same QP.
 */
void ib_unregister_mad_agent(struct ib_mad_agent *mad_agent);

/**
 * ib_create_send_mad - memory for a MAD
 * @mad_agent: who sends it
 * @remote_qpn: the receiving QP: 0 or 1, for GSI also a redirected one
 * @pkey_index: GSI: the partition
 * @rmpp_active: whether it is an RMPP message
 * @hdr_len: bytes in front of the data: IB_MGMT_MAD_HDR and its like
 * @data_len: bytes of data
 * @gfp: the kernel's allocation flags
 * @base_version: IB_MGMT_BASE_VERSION
 *
 * Context: as @gfp says. Return: the zeroed MAD; -EINVAL for lengths that do not fit; -ENOMEM.
 */
RDMA_MUST_CHECK struct ib_mad_send_buf *
ib_create_send_mad(struct ib_mad_agent *mad_agent, u32 remote_qpn, u16 pkey_index, int rmpp_active,
		   int hdr_len, int data_len, unsigned int gfp, u8 base_version);

/**
 * ib_free_send_mad - undo ib_create_send_mad()
 * @send_buf: not outstanding
 *
 * Context: any.
 */
void ib_free_send_mad(struct ib_mad_send_buf *send_buf);

/**
 * ib_post_send_mad - send a list of MADs
 * @send_buf: the list
 * @bad_send_buf: set to the first that was not accepted, on an error; may be NULL
 *
 * Context: any. Return: 0; -EINVAL for a MAD that the agent may not send, or a time-out without a receive handler;
 * -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK int ib_post_send_mad(struct ib_mad_send_buf *send_buf,
				     struct ib_mad_send_buf **bad_send_buf);

/**
 * ib_modify_mad - give an outstanding send another time-out
 * @send_buf: the send
 * @timeout_ms: from now on, or from when it is out; 0 cancels it
 *
 * Context: any. Return: 0; -EINVAL if it is not outstanding.
 */
int ib_modify_mad(struct ib_mad_send_buf *send_buf, u32 timeout_ms);

/**
 * ib_cancel_mad - end an outstanding send
 * @send_buf: completes with IB_WC_WR_FLUSH_ERR, unless it is completing just now
 *
 * Context: any.
 */
static inline void ib_cancel_mad(struct ib_mad_send_buf *send_buf)
{
	ib_modify_mad(send_buf, 0);
}

/**
 * ib_free_recv_mad - give a received MAD back
 * @mad_recv_wc: what the handler was given
 *
 * Context: any.
 */
void ib_free_recv_mad(struct ib_mad_recv_wc *mad_recv_wc);

/**
 * ib_get_rmpp_segment - where the data of a segment to send goes
 * @send_buf: an RMPP message
 * @seg_num: from 1
 *
 * Context: any. Return: seg_size bytes; NULL for a segment that it does not have.
 */
RDMA_MUST_CHECK void *ib_get_rmpp_segment(struct ib_mad_send_buf *send_buf, int seg_num);

/**
 * ib_response_mad - is a MAD a response
 * @hdr: its header
 *
 * Context: any. Return: 1 or 0; TrapRepress counts as one (IBA 13.4.6.4).
 */
RDMA_MUST_CHECK int ib_response_mad(const struct ib_mad_hdr *hdr);

/**
 * ib_is_mad_class_rmpp - have MADs of a class an RMPP header (IBA 13.6.2)
 * @mgmt_class: the class
 *
 * Context: any. Return: 1 or 0.
 */
RDMA_MUST_CHECK int ib_is_mad_class_rmpp(u8 mgmt_class);

/**
 * ib_get_mad_data_offset - where the data of a class's MADs begins
 * @mgmt_class: the class
 *
 * Context: any. Return: bytes of headers: IB_MGMT_MAD_HDR and its like.
 */
RDMA_MUST_CHECK int ib_get_mad_data_offset(u8 mgmt_class);

/**
 * ib_mad_kernel_rmpp_agent - is RMPP done for an agent
 * @agent: the agent
 *
 * Context: any. Return: 1, or 0 if it has none or does it itself.
 */
RDMA_MUST_CHECK int ib_mad_kernel_rmpp_agent(const struct ib_mad_agent *agent);

RDMA_C_END

#ifdef __cplusplus
static_assert(sizeof(ib_mad_hdr) == IB_MGMT_MAD_HDR);
static_assert(sizeof(ib_mad) == IB_MGMT_MAD_SIZE);
static_assert(sizeof(ib_rmpp_mad) == IB_MGMT_MAD_SIZE);
static_assert(sizeof(ib_sa_mad) == IB_MGMT_MAD_SIZE &&
	      __builtin_offsetof(ib_sa_mad, data) == IB_MGMT_SA_HDR);
static_assert(sizeof(ib_vendor_mad) == IB_MGMT_MAD_SIZE);
static_assert(sizeof(ib_class_port_info) == 72);
#endif
