/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines work requests, and the completions that report their results (IBA 11.4). */
#pragma once
#include <rdma/types.h>

struct ib_ah;
struct ib_cq;
struct ib_mr;
struct ib_mw;
struct ib_qp;
struct ib_wc;

enum ib_access_flags {
	IB_ACCESS_LOCAL_WRITE = 1 << 0,
	IB_ACCESS_REMOTE_WRITE = 1 << 1,
	IB_ACCESS_REMOTE_READ = 1 << 2,
	IB_ACCESS_REMOTE_ATOMIC = 1 << 3,
	IB_ACCESS_MW_BIND = 1 << 4,
	IB_ZERO_BASED = 1 << 5,
	IB_ACCESS_ON_DEMAND = 1 << 6,
	IB_ACCESS_HUGETLB = 1 << 7,
	IB_ACCESS_RELAXED_ORDERING = 1 << 20,
	/* Hints, which a device ignores if it does not know them. */
	IB_ACCESS_OPTIONAL = ((1 << 30) - 1) & ~((1 << 20) - 1),
	IB_ACCESS_SUPPORTED = ((1 << 8) - 1) | IB_ACCESS_OPTIONAL,
};

enum ib_wr_opcode {
	IB_WR_RDMA_WRITE = 0,
	IB_WR_RDMA_WRITE_WITH_IMM = 1,
	IB_WR_SEND = 2,
	IB_WR_SEND_WITH_IMM = 3,
	IB_WR_RDMA_READ = 4,
	IB_WR_ATOMIC_CMP_AND_SWP = 5,
	IB_WR_ATOMIC_FETCH_AND_ADD = 6,
	IB_WR_LOCAL_INV = 7,
	IB_WR_BIND_MW = 8,
	IB_WR_SEND_WITH_INV = 9,
	IB_WR_LSO = 10,
	IB_WR_RDMA_READ_WITH_INV = 11,
	IB_WR_MASKED_ATOMIC_CMP_AND_SWP = 12,
	IB_WR_MASKED_ATOMIC_FETCH_AND_ADD = 13,
	IB_WR_REG_MR = 0x20,
	/* The driver defines the meaning of opcodes from here on. */
	IB_WR_RESERVED1 = 0xf0,
	IB_WR_RESERVED2,
	IB_WR_RESERVED3,
	IB_WR_RESERVED4,
	IB_WR_RESERVED5,
	IB_WR_RESERVED6,
	IB_WR_RESERVED7,
	IB_WR_RESERVED8,
	IB_WR_RESERVED9,
	IB_WR_RESERVED10,
};

enum ib_send_flags {
	IB_SEND_FENCE = 1 << 0,
	IB_SEND_SIGNALED = 1 << 1,
	IB_SEND_SOLICITED = 1 << 2,
	IB_SEND_INLINE = 1 << 3,
	IB_SEND_IP_CSUM = 1 << 4,
};

/**
 * struct ib_sge - a segment of a registered memory region
 * @addr: address: a DMA address with the PD's local_dma_lkey, otherwise one that begins at the iova
 * of the region
 * @length: bytes
 * @lkey: key of the region
 */
struct ib_sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

/**
 * struct ib_cqe - completion callback of a work request, for CQs from ib_alloc_cq()
 * @done: called once for each completion, in the CQ's polling context. Its argument wc is valid
 * during the call only; of a completion in error, only wr_cqe, status, vendor_err and qp are
 * defined
 *
 * Embedded in the consumer's request, and found again by container_of; its address is the wr_cqe of
 * the request. The consumer keeps it until the request has completed.
 */
struct ib_cqe {
	void (*done)(struct ib_cq *cq, struct ib_wc *wc);
};

/**
 * struct ib_send_wr - a request for the send queue (IBA 11.4)
 * @next: the next request of a list that is posted together, or NULL
 * @wr_id: returned in the completion; chosen by the consumer, on CQs from ib_create_cq()
 * @wr_cqe: returned in the completion, on CQs from ib_alloc_cq(), which call its done function
 * @sg_list: the local memory, @num_sge segments. With IB_SEND_INLINE the addresses are kernel
 * virtual ones
 * @num_sge: number of segments, at most the QP's max_send_sge
 * @opcode: enum ib_wr_opcode; determines the typed request below in which this is embedded
 * @send_flags: enum ib_send_flags
 * @ex.imm_data: immediate data, with opcodes *_WITH_IMM
 * @ex.invalidate_rkey: key to invalidate, with opcodes *_INV
 *
 * The request may be reused as soon as it has been posted, the memory when it has completed.
 */
struct ib_send_wr {
	struct ib_send_wr *next;
	union {
		u64 wr_id;
		struct ib_cqe *wr_cqe;
	};
	struct ib_sge *sg_list;
	int num_sge;
	enum ib_wr_opcode opcode;
	int send_flags;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
};

/**
 * struct ib_rdma_wr - an RDMA read or write
 * @wr: the request
 * @remote_addr: address in the peer's region
 * @rkey: key of that region
 */
struct ib_rdma_wr {
	struct ib_send_wr wr;
	u64 remote_addr;
	u32 rkey;
};

/**
 * struct ib_atomic_wr - an atomic operation on 8 bytes of the peer's memory
 * @wr: the request, whose local memory gets the former value
 * @remote_addr: address in the peer's region, a multiple of 8
 * @compare_add: value to compare with, or to add
 * @swap: value to store if the comparison holds
 * @compare_add_mask: IB_WR_MASKED_ATOMIC_* only: bits that are compared, or bits from which an
 * addition does not carry
 * @swap_mask: IB_WR_MASKED_ATOMIC_CMP_AND_SWP only: bits that are stored
 * @rkey: key of the peer's region
 */
struct ib_atomic_wr {
	struct ib_send_wr wr;
	u64 remote_addr;
	u64 compare_add;
	u64 swap;
	u64 compare_add_mask;
	u64 swap_mask;
	u32 rkey;
};

/**
 * struct ib_ud_wr - a send on a QP of type UD, SMI or GSI
 * @wr: the request
 * @ah: address handle of the remote port
 * @header: IB_WR_LSO only: the header with which every segment begins
 * @hlen: IB_WR_LSO only: bytes of @header
 * @mss: IB_WR_LSO only: bytes of payload of a segment
 * @remote_qpn: number of the remote QP, 24 bits
 * @remote_qkey: its Q_Key; one with the top bit set selects the QP's own (MGMT-05)
 * @pkey_index: SMI and GSI only: index of the P_Key
 * @port_num: SMI and GSI of a switch only: the port that sends
 */
struct ib_ud_wr {
	struct ib_send_wr wr;
	struct ib_ah *ah;
	void *header;
	int hlen;
	int mss;
	u32 remote_qpn;
	u32 remote_qkey;
	u16 pkey_index;
	u32 port_num;
};

/**
 * struct ib_reg_wr - register the pages of the last ib_map_mr_sg() in a region from ib_alloc_mr()
 * @wr: the request
 * @mr: the region; not in use by an earlier request that has not completed
 * @key: the new key: the region's lkey or rkey after ib_update_fast_reg_key()
 * @access: enum ib_access_flags
 *
 * IBA 10.6.
 */
struct ib_reg_wr {
	struct ib_send_wr wr;
	struct ib_mr *mr;
	u32 key;
	int access;
};

/**
 * struct ib_bind_mw_wr - bind a type 2 memory window
 * @wr: the request
 * @mw: the window
 * @rkey: the new key
 * @mr: the region to whose memory it gives access
 * @addr: first address, in the region's iova
 * @length: bytes
 * @access: remote flags of enum ib_access_flags
 *
 * Linux: differs by having no such request since version 4.4; the member names are those that it
 * had.
 */
struct ib_bind_mw_wr {
	struct ib_send_wr wr;
	struct ib_mw *mw;
	u32 rkey;
	struct ib_mr *mr;
	u64 addr;
	u64 length;
	int access;
};

/**
 * struct ib_xrc_wr - a request on a QP of type XRC_INI, whatever its opcode
 * @wr: the request
 * @rdma: the request, with an RDMA opcode
 * @atomic: the request, with an atomic opcode
 * @reg: the request, with IB_WR_REG_MR
 * @bind: the request, with IB_WR_BIND_MW
 * @remote_srqn: number of the peer's SRQ, which is its ext.xrc.srq_num (IBA annex A14). Every
 * message contains one, although only sends and writes with immediate data consume a receive
 *
 * Linux: differs by having no such request: its kernel consumers cannot send on such a QP.
 */
struct ib_xrc_wr {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_reg_wr reg;
		struct ib_bind_mw_wr bind;
	};
	u32 remote_srqn;
};

/**
 * struct ib_recv_wr - a buffer for the receive queue (IBA 11.4)
 * @next: the next request of a list that is posted together, or NULL
 * @wr_id: returned in the completion; chosen by the consumer, on CQs from ib_create_cq()
 * @wr_cqe: returned in the completion, on CQs from ib_alloc_cq(), which call its done function
 * @sg_list: the memory, @num_sge segments
 * @num_sge: number of segments, at most max_recv_sge of the QP, or max_sge of the SRQ
 *
 * The request may be reused as soon as it has been posted, the memory when it has completed.
 */
struct ib_recv_wr {
	struct ib_recv_wr *next;
	union {
		u64 wr_id;
		struct ib_cqe *wr_cqe;
	};
	struct ib_sge *sg_list;
	int num_sge;
};

/**
 * rdma_wr - get the RDMA request in which a request is embedded
 * @wr: a request with an RDMA opcode, on a QP that is not of type XRC_INI
 *
 * Context: any. Return: the typed request.
 */
static inline const struct ib_rdma_wr *rdma_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_rdma_wr *)wr;
}

/**
 * atomic_wr - get the atomic request in which a request is embedded
 * @wr: a request with an atomic opcode
 *
 * Context: any. Return: the typed request.
 */
static inline const struct ib_atomic_wr *atomic_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_atomic_wr *)wr;
}

/**
 * ud_wr - get the datagram request in which a request is embedded
 * @wr: a request on a QP of type UD, SMI or GSI
 *
 * Context: any. Return: the typed request.
 */
static inline const struct ib_ud_wr *ud_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_ud_wr *)wr;
}

/**
 * reg_wr - get the registration in which a request is embedded
 * @wr: a request with IB_WR_REG_MR
 *
 * Context: any. Return: the typed request.
 */
static inline const struct ib_reg_wr *reg_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_reg_wr *)wr;
}

/**
 * bind_mw_wr - get the binding of a window in which a request is embedded
 * @wr: a request with IB_WR_BIND_MW
 *
 * Context: any. Return: the typed request.
 */
static inline const struct ib_bind_mw_wr *bind_mw_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_bind_mw_wr *)wr;
}

/**
 * xrc_wr - get the XRC request in which a request is embedded
 * @wr: a request on a QP of type XRC_INI
 *
 * Context: any. Return: the typed request.
 */
static inline const struct ib_xrc_wr *xrc_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_xrc_wr *)wr;
}

enum ib_wc_status {
	IB_WC_SUCCESS,
	IB_WC_LOC_LEN_ERR,
	IB_WC_LOC_QP_OP_ERR,
	IB_WC_LOC_EEC_OP_ERR,
	IB_WC_LOC_PROT_ERR,
	IB_WC_WR_FLUSH_ERR,
	IB_WC_MW_BIND_ERR,
	IB_WC_BAD_RESP_ERR,
	IB_WC_LOC_ACCESS_ERR,
	IB_WC_REM_INV_REQ_ERR,
	IB_WC_REM_ACCESS_ERR,
	IB_WC_REM_OP_ERR,
	IB_WC_RETRY_EXC_ERR,
	IB_WC_RNR_RETRY_EXC_ERR,
	IB_WC_LOC_RDD_VIOL_ERR,
	IB_WC_REM_INV_RD_REQ_ERR,
	IB_WC_REM_ABORT_ERR,
	IB_WC_INV_EECN_ERR,
	IB_WC_INV_EEC_STATE_ERR,
	IB_WC_FATAL_ERR,
	IB_WC_RESP_TIMEOUT_ERR,
	IB_WC_GENERAL_ERR,
};

enum ib_wc_opcode {
	IB_WC_SEND = 0,
	IB_WC_RDMA_WRITE = 1,
	IB_WC_RDMA_READ = 2,
	IB_WC_COMP_SWAP = 3,
	IB_WC_FETCH_ADD = 4,
	IB_WC_BIND_MW = 5,
	IB_WC_LOCAL_INV = 6,
	IB_WC_LSO = 7,
	IB_WC_REG_MR = 8,
	IB_WC_MASKED_COMP_SWAP = 9,
	IB_WC_MASKED_FETCH_ADD = 10,
	/* Only receive opcodes have this bit. */
	IB_WC_RECV = 1 << 7,
	IB_WC_RECV_RDMA_WITH_IMM,
};

enum ib_wc_flags {
	IB_WC_GRH = 1 << 0,
	IB_WC_WITH_IMM = 1 << 1,
	IB_WC_WITH_INVALIDATE = 1 << 2,
	IB_WC_IP_CSUM_OK = 1 << 3,
	IB_WC_WITH_SMAC = 1 << 4,
	IB_WC_WITH_VLAN = 1 << 5,
	IB_WC_WITH_NETWORK_HDR_TYPE = 1 << 6,
};

/**
 * struct ib_wc - a work completion (IBA 11.4)
 * @wr_id: wr_id of the request
 * @wr_cqe: wr_cqe of the request
 * @status: enum ib_wc_status; unless it is IB_WC_SUCCESS, only @wr_id, @vendor_err and @qp are
 * valid
 * @opcode: enum ib_wc_opcode: the operation that has completed
 * @vendor_err: the device's own code of an error
 * @byte_len: bytes received, RDMA-read or fetched; on UD the 40 bytes of GRH space are included
 * @qp: the QP of the request; NULL if it has been destroyed, see ib_destroy_qp()
 * @ex.imm_data: immediate data, with IB_WC_WITH_IMM
 * @ex.invalidate_rkey: key that the peer has invalidated, with IB_WC_WITH_INVALIDATE
 * @src_qp: UD: the sender's QP number
 * @slid: UD: the sender's LID, host order
 * @wc_flags: enum ib_wc_flags
 * @pkey_index: GSI: index of the P_Key with which the datagram arrived
 * @sl: UD: service level
 * @dlid_path_bits: UD: low bits of the LID to which the datagram was sent
 * @port_num: SMI and GSI of a switch: the port at which the datagram arrived; an adapter's driver
 * need not set it
 */
struct ib_wc {
	union {
		u64 wr_id;
		struct ib_cqe *wr_cqe;
	};
	enum ib_wc_status status;
	enum ib_wc_opcode opcode;
	u32 vendor_err;
	u32 byte_len;
	struct ib_qp *qp;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
	u32 src_qp;
	u32 slid;
	int wc_flags;
	u16 pkey_index;
	u8 sl;
	u8 dlid_path_bits;
	u32 port_num;
};

RDMA_C_BEGIN

/**
 * ib_wc_status_msg - describe a completion status in words (IBA 11.6.2)
 * @status: enum ib_wc_status, or any number
 *
 * Context: any. Return: a constant string, never NULL.
 */
const char *ib_wc_status_msg(enum ib_wc_status status);

RDMA_C_END
