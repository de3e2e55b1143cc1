/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Management datagrams (MADs), and agents that send and receive them (IBA 13; MGMT-01 to MGMT-04).
 * The formats have Linux's names here; ib/mad.hpp describes the same bytes for C++.
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

/**
 * struct ib_mad_hdr - the header of every MAD, as on the wire (IBA 13.4.3)
 * @base_version: IB_MGMT_BASE_VERSION
 * @mgmt_class: management class (IBA 13.4.4)
 * @class_version: version of the class
 * @method: method (IBA 13.4.5); bit 7 marks a response
 * @status: status of a response (IBA 13.4.7)
 * @class_specific: as the class defines it
 * @tid: transaction ID; the upper half of a request's is hi_tid of its agent
 * @attr_id: attribute
 * @resv: reserved
 * @attr_mod: modifier of the attribute
 */
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

/**
 * struct ib_rmpp_hdr - the header of RMPP, as on the wire (IBA 13.6.2)
 * @rmpp_version: IB_MGMT_RMPP_VERSION
 * @rmpp_type: IB_MGMT_RMPP_TYPE_*
 * @rmpp_rtime_flags: response time (upper 5 bits), IB_MGMT_RMPP_FLAG_* (lower 3 bits)
 * @rmpp_status: IB_MGMT_RMPP_STATUS_*
 * @seg_num: number of the segment, from 1
 * @paylen_newwin: bytes of payload in a DATA packet, last segment of the window in an ACK
 */
struct ib_rmpp_hdr {
	u8 rmpp_version;
	u8 rmpp_type;
	u8 rmpp_rtime_flags;
	u8 rmpp_status;
	__be32 seg_num;
	__be32 paylen_newwin;
};

/* A bit for each component of an SA record, big-endian. */
typedef __be64 ib_sa_comp_mask;

/**
 * struct ib_sa_hdr - the header of SA MADs behind that of RMPP, as on the wire (IBA 15.2.1.1)
 * @sm_key: key of the subnet manager, 0 if not used
 * @attr_offset: distance of records in a table, in units of 8 bytes
 * @reserved: reserved
 * @comp_mask: components of the record that count
 */
struct ib_sa_hdr {
	__be64 sm_key;
	__be16 attr_offset;
	__be16 reserved;
	ib_sa_comp_mask comp_mask;
} __attribute__((packed));

/**
 * struct ib_mad - a MAD of a class without RMPP, as on the wire
 * @mad_hdr: the header
 * @data: data of the class
 */
struct ib_mad {
	struct ib_mad_hdr mad_hdr;
	u8 data[IB_MGMT_MAD_DATA];
};

/**
 * struct ib_rmpp_mad - a MAD of a class with RMPP, as on the wire (IBA 13.6.2)
 * @mad_hdr: the header
 * @rmpp_hdr: the header of RMPP
 * @data: data of the class, with its own header
 */
struct ib_rmpp_mad {
	struct ib_mad_hdr mad_hdr;
	struct ib_rmpp_hdr rmpp_hdr;
	u8 data[IB_MGMT_RMPP_DATA];
};

/**
 * struct ib_sa_mad - a MAD of subnet administration, as on the wire (IBA 15.2.1.1)
 * @mad_hdr: the header
 * @rmpp_hdr: the header of RMPP
 * @sa_hdr: the header of the class
 * @data: a record, or a segment of a table
 */
struct ib_sa_mad {
	struct ib_mad_hdr mad_hdr;
	struct ib_rmpp_hdr rmpp_hdr;
	struct ib_sa_hdr sa_hdr;
	u8 data[IB_MGMT_SA_DATA];
};

/**
 * struct ib_vendor_mad - a MAD of vendor range 2, as on the wire (IBA 16.5.1)
 * @mad_hdr: the header
 * @rmpp_hdr: the header of RMPP
 * @reserved: reserved
 * @oui: the vendor
 * @data: data of the class
 */
struct ib_vendor_mad {
	struct ib_mad_hdr mad_hdr;
	struct ib_rmpp_hdr rmpp_hdr;
	u8 reserved;
	u8 oui[3];
	u8 data[IB_MGMT_VENDOR_DATA];
};

/**
 * struct ib_class_port_info - ClassPortInfo, which every class has, as on the wire (IBA 13.4.8.1)
 * @base_version: base version that the class supports
 * @class_version: version of the class
 * @capability_mask: capabilities, the lower 8 bits of all classes
 * @cap_mask2_resp_time: CapabilityMask2 (27 bits), longest time of a response (5 bits), 4.096 us *
 * 2^n
 * @redirect_gid: redirection of requests: GID, zero for none
 * @redirect_tcslfl: redirection: traffic class (8 bits), service level (4 bits), flow label (20
 * bits)
 * @redirect_lid: redirection: LID
 * @redirect_pkey: redirection: P_Key
 * @redirect_qp: redirection: QP number, 24 bits
 * @redirect_qkey: redirection: Q_Key
 * @trap_gid: receiver of traps: GID
 * @trap_tcslfl: receiver of traps: traffic class, service level and flow label
 * @trap_lid: receiver of traps: LID
 * @trap_pkey: receiver of traps: P_Key
 * @trap_hlqp: receiver of traps: hop limit (8 bits), QP number (24 bits)
 * @trap_qkey: receiver of traps: Q_Key
 */
struct ib_class_port_info {
	u8 base_version;
	u8 class_version;
	__be16 capability_mask;
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

/**
 * ib_get_rmpp_resptime - get the response time of an RMPP header (IBA 13.6.2)
 * @rmpp_hdr: the header
 *
 * Context: any. Return: 4.096 us * 2^n, n is 0 to 31; IB_MGMT_RMPP_NO_RESPTIME for none.
 */
static inline u8 ib_get_rmpp_resptime(const struct ib_rmpp_hdr *rmpp_hdr)
{
	return rmpp_hdr->rmpp_rtime_flags >> 3;
}

/**
 * ib_get_rmpp_flags - get the flags of an RMPP header (IBA 13.6)
 * @rmpp_hdr: the header
 *
 * Context: any. Return: IB_MGMT_RMPP_FLAG_*, or-ed.
 */
static inline u8 ib_get_rmpp_flags(const struct ib_rmpp_hdr *rmpp_hdr)
{
	return rmpp_hdr->rmpp_rtime_flags & 0x7;
}

/**
 * ib_set_rmpp_resptime - set the response time of an RMPP header (IBA 13.6)
 * @rmpp_hdr: the header; its flags stay as they are
 * @rtime: 4.096 us * 2^n, n is 0 to 31; IB_MGMT_RMPP_NO_RESPTIME for none
 *
 * Context: any.
 */
static inline void ib_set_rmpp_resptime(struct ib_rmpp_hdr *rmpp_hdr, u8 rtime)
{
	rmpp_hdr->rmpp_rtime_flags = (u8)(ib_get_rmpp_flags(rmpp_hdr) | rtime << 3);
}

/**
 * ib_set_rmpp_flags - set the flags of an RMPP header (IBA 13.6)
 * @rmpp_hdr: the header; its response time stays as it is
 * @flags: IB_MGMT_RMPP_FLAG_*, or-ed
 *
 * Context: any.
 */
static inline void ib_set_rmpp_flags(struct ib_rmpp_hdr *rmpp_hdr, u8 flags)
{
	rmpp_hdr->rmpp_rtime_flags = (u8)((rmpp_hdr->rmpp_rtime_flags & 0xf8) | (flags & 0x7));
}

struct ib_mad_agent;
struct ib_mad_recv_wc;
struct ib_mad_send_wc;

/**
 * struct ib_mad_send_buf - a MAD to send, and its memory
 * @next: the next MAD of a list that is posted together, or NULL
 * @mad: the MAD, or the header and first segment of an RMPP message; the caller fills it in
 * @mad_agent: the agent that sends it
 * @ah: address handle of the receiver; the caller owns it, and keeps it until the send has ended
 * @context: for the caller
 * @hdr_len: bytes of headers before the data
 * @data_len: bytes of data, all segments together
 * @seg_count: RMPP: number of segments
 * @seg_size: RMPP: bytes of data in a segment
 * @seg_rmpp_size: RMPP: bytes of a segment behind the RMPP header
 * @timeout_ms: milliseconds to wait for a response after the MAD has been sent; 0 if none is
 * expected. The n-th transmission waits n times as long, at most four times
 * @retries: repetitions without a response, 0 or more
 *
 * From ib_create_send_mad(). The caller owns it, except between ib_post_send_mad() and the call of
 * the send handler.
 *
 * Linux: differs by the time that repetitions wait, which is constant there.
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

/**
 * ib_mad_send_handler - called when a send has ended
 * @mad_agent: the agent
 * @mad_send_wc: the result; valid during the call
 *
 * Context: process, without locks.
 */
typedef void (*ib_mad_send_handler)(struct ib_mad_agent *mad_agent,
				    struct ib_mad_send_wc *mad_send_wc);
/**
 * ib_mad_recv_handler - called with a received MAD
 * @mad_agent: the agent
 * @send_buf: the send that the MAD is a response to; NULL for an unsolicited MAD
 * @mad_recv_wc: the MAD, which the handler frees by ib_free_recv_mad()
 *
 * Context: process, without locks.
 */
typedef void (*ib_mad_recv_handler)(struct ib_mad_agent *mad_agent,
				    struct ib_mad_send_buf *send_buf,
				    struct ib_mad_recv_wc *mad_recv_wc);
/**
 * ib_mad_snoop_handler - called when a send of another agent has completed
 * @mad_agent: the agent from ib_register_mad_snoop()
 * @send_buf: the send; valid during the call
 * @mad_send_wc: the result; valid during the call
 *
 * Context: process, without locks.
 */
typedef void (*ib_mad_snoop_handler)(struct ib_mad_agent *mad_agent,
				     struct ib_mad_send_buf *send_buf,
				     struct ib_mad_send_wc *mad_send_wc);

enum {
	/* The consumer performs RMPP itself; to the agent, a segment is a whole message. */
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
 * @recv_handler: called with responses and with unsolicited MADs; may be NULL
 * @send_handler: called exactly once for every send that was accepted (MGMT-03); may be NULL
 * @snoop_handler: called with sends of other agents, for an agent from ib_register_mad_snoop()
 * @context: for the consumer
 * @hi_tid: upper half of the transaction IDs that its requests must have
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
 * struct ib_mad_send_wc - the result of a send
 * @send_buf: the send, which belongs to the consumer again
 * @status: IB_WC_SUCCESS; IB_WC_RESP_TIMEOUT_ERR if no response came; IB_WC_WR_FLUSH_ERR if it was
 * cancelled; another status of the QP
 * @vendor_err: as in struct ib_wc
 */
struct ib_mad_send_wc {
	struct ib_mad_send_buf *send_buf;
	enum ib_wc_status status;
	u32 vendor_err;
};

/**
 * struct ib_mad_recv_buf - a segment of a received message
 * @list: links of the segments of a message
 * @grh: its GRH; valid if the completion has IB_WC_GRH
 * @mad: the MAD
 */
struct ib_mad_recv_buf {
	struct ib_list_head list;
	struct ib_grh *grh;
	struct ib_mad *mad;
};

/**
 * struct ib_mad_recv_wc - a received MAD or RMPP message
 * @wc: its completion, with the sender's address (MGMT-07)
 * @recv_buf: the MAD, or the first segment of an RMPP message
 * @rmpp_list: all its segments in order, linked by recv_buf.list
 * @mad_len: bytes of the message, with the headers of the first segment only
 * @mad_seg_size: bytes of a segment
 *
 * The receive handler owns it, and frees it by ib_free_recv_mad().
 */
struct ib_mad_recv_wc {
	struct ib_wc *wc;
	struct ib_mad_recv_buf recv_buf;
	struct ib_list_head rmpp_list;
	int mad_len;
	size_t mad_seg_size;
};

/**
 * struct ib_mad_reg_req - the unsolicited MADs that an agent receives
 * @mgmt_class: management class, not 0
 * @mgmt_class_version: version of the class, not 0
 * @oui: the vendor, for classes of vendor range 2
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
 * @no_agent: no agent has registered for the MAD, or sent the request that it responds to
 * @no_memory: there was no memory to keep the receive queue full, or to respond
 * @misrouted: the MAD is a directed-route SMP that breaks a rule (IBA 14.2.2)
 * @no_room: a generated response, or on a switch an SMP in transit, found 512 others waiting to be
 * sent
 * @rmpp_discarded: the segment or ACK belongs to no message in transfer, or is beyond the limits of
 * reassembly
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
 * ib_query_mad_counters - read the counters of dropped MADs
 * @device: the device; the caller is a client of it
 * @port_num: the port
 * @qp_type: IB_QPT_SMI or IB_QPT_GSI
 * @counters: filled in; they begin at 0 when the device is registered
 *
 * Context: any. Return: 0; -EINVAL for another type, or a port that does not exist; -ENODEV for a
 * port without MADs.
 */
RDMA_MUST_CHECK int ib_query_mad_counters(struct ib_device *device, u32 port_num,
					  enum ib_qp_type qp_type,
					  struct ib_mad_counters *counters);

/**
 * ib_register_mad_agent - get access to SMI or GSI (IBA 13.4)
 * @device: the device; the caller is a client of it
 * @port_num: the port
 * @qp_type: IB_QPT_SMI or IB_QPT_GSI
 * @mad_reg_req: the unsolicited MADs to receive; copied. NULL for none
 * @rmpp_version: IB_MGMT_RMPP_VERSION to use RMPP, else 0
 * @send_handler: see struct ib_mad_agent; NULL to receive only
 * @recv_handler: see struct ib_mad_agent; NULL to send MADs without responses only
 * @context: for the consumer
 * @registration_flags: 0 or IB_MAD_USER_RMPP
 *
 * ib_unregister_mad_agent() ends it.
 *
 * Context: process.
 *
 * Return: the agent; -EINVAL for another type or RMPP version, a port that does not exist, an
 * unknown flag, neither handler, @mad_reg_req without receive handler or with a class or version of
 * 0, or methods that another agent has; -ENODEV for a port without MADs; -EPROTONOSUPPORT for a
 * class that @qp_type does not carry; -ENOMEM if there is no memory.
 */
RDMA_MUST_CHECK struct ib_mad_agent *
ib_register_mad_agent(struct ib_device *device, u32 port_num, enum ib_qp_type qp_type,
		      struct ib_mad_reg_req *mad_reg_req, u8 rmpp_version,
		      ib_mad_send_handler send_handler, ib_mad_recv_handler recv_handler,
		      void *context, u32 registration_flags);

/**
 * ib_register_mad_snoop - observe the MADs of SMI or GSI
 * @device: the device; the caller is a client of it
 * @port_num: the port
 * @qp_type: IB_QPT_SMI or IB_QPT_GSI
 * @mad_snoop_flags: enum ib_mad_snoop_flags, at least one
 * @snoop_handler: called with sends as they complete, with IB_MAD_SNOOP_SEND_COMPLETIONS
 * @recv_handler: called with received MADs, with IB_MAD_SNOOP_RECVS. They belong to the midlayer:
 * the handler must not free them, and they are valid during the call
 * @context: for the consumer
 *
 * ib_unregister_mad_agent() ends it.
 *
 * Context: process. Return: the agent; -EINVAL for another type, a port that does not exist, no or
 * unknown flags, or a flag without its handler; -ENODEV for a port without MADs; -ENOMEM if there
 * is no memory.
 */
RDMA_MUST_CHECK struct ib_mad_agent *
ib_register_mad_snoop(struct ib_device *device, u32 port_num, enum ib_qp_type qp_type,
		      int mad_snoop_flags, ib_mad_snoop_handler snoop_handler,
		      ib_mad_recv_handler recv_handler, void *context);

/**
 * ib_unregister_mad_agent - end an agent
 * @mad_agent: the agent
 *
 * Outstanding sends are completed as cancelled first. When this has returned, no handler of the
 * agent runs.
 *
 * Context: process, not from a handler of an agent on the same QP.
 */
void ib_unregister_mad_agent(struct ib_mad_agent *mad_agent);

/**
 * ib_create_send_mad - allocate a MAD to send (IBA 13.4)
 * @mad_agent: the agent that sends it
 * @remote_qpn: number of the receiving QP: 0 or 1, for GSI also that of a redirection
 * @pkey_index: GSI: index of the P_Key
 * @rmpp_active: whether it is an RMPP message
 * @hdr_len: bytes of headers before the data: IB_MGMT_MAD_HDR, IB_MGMT_SA_HDR and so on, 24 to 256
 * @data_len: bytes of data; what fits into one MAD with @hdr_len, unless RMPP is used
 * @gfp: the kernel's allocation flags
 * @base_version: IB_MGMT_BASE_VERSION
 *
 * ib_free_send_mad() frees it.
 *
 * Context: any, unless @gfp allows sleeping. Return: the MAD, zeroed; -EINVAL for lengths that do
 * not fit, too many segments, another version, or RMPP of an agent that does not use it; -ENOMEM if
 * there is no memory.
 */
RDMA_MUST_CHECK struct ib_mad_send_buf *
ib_create_send_mad(struct ib_mad_agent *mad_agent, u32 remote_qpn, u16 pkey_index, int rmpp_active,
		   int hdr_len, int data_len, unsigned int gfp, u8 base_version);

/**
 * ib_free_send_mad - undo ib_create_send_mad()
 * @send_buf: the MAD, which is not outstanding
 *
 * Context: any.
 */
void ib_free_send_mad(struct ib_mad_send_buf *send_buf);

/**
 * ib_post_send_mad - send a list of MADs (IBA 13.4)
 * @send_buf: the first MAD of the list. An accepted one belongs to the midlayer until the send
 * handler is called, which may be before this returns
 * @bad_send_buf: set to the first MAD that was not accepted, on an error; may be NULL
 *
 * MADs before @bad_send_buf are sent even on an error.
 *
 * Context: any.
 *
 * Return: 0; -EINVAL for an agent without send handler or from ib_register_mad_snoop(), a send that
 * is outstanding, a negative timeout or number of retries, a timeout without receive handler,
 * retries without timeout (except with RMPP), no address handle (except for a directed route), or a
 * class or directed route that the QP does not carry; -ENODEV while the agent is unregistered.
 * Errors of the driver are in the status that the send handler gets.
 */
RDMA_MUST_CHECK int ib_post_send_mad(struct ib_mad_send_buf *send_buf,
				     struct ib_mad_send_buf **bad_send_buf);

/**
 * ib_modify_mad - give an outstanding send another timeout
 * @send_buf: the send
 * @timeout_ms: milliseconds from now, or from when it has been sent; 0 cancels it
 *
 * Context: any. Return: 0; -EINVAL if it is not outstanding.
 */
int ib_modify_mad(struct ib_mad_send_buf *send_buf, u32 timeout_ms);

/**
 * ib_cancel_mad - end an outstanding send
 * @send_buf: the send. It completes with IB_WC_WR_FLUSH_ERR, unless it is completing already
 *
 * Context: any.
 */
static inline void ib_cancel_mad(struct ib_mad_send_buf *send_buf)
{
	ib_modify_mad(send_buf, 0);
}

/**
 * ib_free_recv_mad - give a received MAD back
 * @mad_recv_wc: the MAD that a receive handler was called with
 *
 * Context: any.
 */
void ib_free_recv_mad(struct ib_mad_recv_wc *mad_recv_wc);

/**
 * ib_get_rmpp_segment - get the memory for the data of a segment to send (IBA 13.6)
 * @send_buf: an RMPP message
 * @seg_num: number of the segment, from 1
 *
 * Context: any. Return: seg_size bytes in @send_buf; NULL for a segment that it does not have.
 */
RDMA_MUST_CHECK void *ib_get_rmpp_segment(struct ib_mad_send_buf *send_buf, int seg_num);

/**
 * ib_response_mad - test whether a MAD is a response
 * @hdr: its header
 *
 * Context: any. Return: 1 for a response, also TrapRepress (IBA 13.4.6.4); else 0.
 */
RDMA_MUST_CHECK int ib_response_mad(const struct ib_mad_hdr *hdr);

/**
 * ib_is_mad_class_rmpp - test whether MADs of a class have an RMPP header (IBA 13.6.2)
 * @mgmt_class: the class
 *
 * Context: any. Return: 1 if they have, else 0.
 */
RDMA_MUST_CHECK int ib_is_mad_class_rmpp(u8 mgmt_class);

/**
 * ib_get_mad_data_offset - get the offset of the data in MADs of a class
 * @mgmt_class: the class
 *
 * Context: any. Return: bytes of headers: IB_MGMT_MAD_HDR, IB_MGMT_SA_HDR, IB_MGMT_DEVICE_HDR or
 * IB_MGMT_VENDOR_HDR.
 */
RDMA_MUST_CHECK int ib_get_mad_data_offset(u8 mgmt_class);

/**
 * ib_mad_kernel_rmpp_agent - test whether the midlayer performs RMPP for an agent (IBA 13.6)
 * @agent: the agent
 *
 * Context: any. Return: 1 if it does; 0 if the agent does not use RMPP, or performs it itself.
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
