/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines the formats of management datagrams (MADs) and of RMPP (IBA 13). The names are those of
 * Linux; ib/mad.hpp describes the same formats for C++.
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

/* A mask with a bit for each component of an SA record, big-endian. */
typedef __be64 ib_sa_comp_mask;

/**
 * struct ib_sa_hdr - the header of SA MADs after the RMPP header, as on the wire (IBA 15.2.1.1)
 * @sm_key: key of the subnet manager, 0 if not used
 * @attr_offset: distance of records in a table, in units of 8 bytes
 * @reserved: reserved
 * @comp_mask: components of the record that are used
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
 * @cap_mask2_resp_time: CapabilityMask2 (27 bits) and longest response time (5 bits: 4.096 us *
 * 2^n)
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

#ifdef __cplusplus
static_assert(sizeof(ib_mad_hdr) == IB_MGMT_MAD_HDR);
static_assert(sizeof(ib_mad) == IB_MGMT_MAD_SIZE);
static_assert(sizeof(ib_rmpp_mad) == IB_MGMT_MAD_SIZE);
static_assert(sizeof(ib_sa_mad) == IB_MGMT_MAD_SIZE &&
	      __builtin_offsetof(ib_sa_mad, data) == IB_MGMT_SA_HDR);
static_assert(sizeof(ib_vendor_mad) == IB_MGMT_MAD_SIZE);
static_assert(sizeof(ib_class_port_info) == 72);
#endif
