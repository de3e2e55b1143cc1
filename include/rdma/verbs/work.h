/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Work requests and work completions (IBA 11.4). */
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
	/* Hints: a device that does not know one ignores it. */
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
	/* Opcodes from here on mean what the driver says. */
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
 * struct ib_sge - a piece of a registered memory region
 * @addr: address in the region's own terms: a DMA address for the PD's local_dma_lkey, otherwise
 * from the MR's iova
 * @length: bytes
 * @lkey: the region
 */
struct ib_sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

/**
 * struct ib_cqe - what becomes of one work request, for CQs from ib_alloc_cq()
 * @done: called once per completion, in the CQ's polling context; @wc is valid during the call
 * only. Of a completion
 *	in error only wr_cqe, status, vendor_err and qp are defined.
 *
 * Embedded in the consumer's request, found again by container_of; its address is the request's wr_cqe.
 */
struct ib_cqe {
	void (*done)(struct ib_cq *cq, struct ib_wc *wc);
};

/**
 * struct ib_send_wr - a request for the send queue
 * @next: the next of a list that is posted together, or NULL
 * @wr_id: given back in the completion; of the consumer's own choice on CQs from ib_create_cq()
 * @wr_cqe: the same, on CQs from ib_alloc_cq()
 * @sg_list: the local memory, @num_sge pieces. With IB_SEND_INLINE the addresses are kernel virtual
 * ones.
 * @num_sge: at most the QP's max_send_sge
 * @opcode: enum ib_wr_opcode; says which of the typed requests below this is embedded in
 * @send_flags: enum ib_send_flags
 * @ex: immediate data of the *_WITH_IMM, or the rkey that *_INV and LOCAL_INV invalidate
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

/* RDMA read and write. */
struct ib_rdma_wr {
	struct ib_send_wr wr;
	u64 remote_addr;
	u32 rkey;
};

/* Atomics. The masks are for the IB_WR_MASKED_ATOMIC_* opcodes only. */
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
 * @ah: where to, as far as the remote port
 * @header: with IB_WR_LSO, the header that every segment begins with
 * @hlen: its length
 * @mss: with IB_WR_LSO, bytes of payload per segment
 * @remote_qpn: the remote QP
 * @remote_qkey: its Q_Key; one with the top bit set stands for the QP's own (MGMT-05)
 * @pkey_index: SMI and GSI only
 * @port_num: SMI and GSI of a switch only
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
 * struct ib_reg_wr - give a region from ib_alloc_mr() the pages of the last ib_map_mr_sg()
 * @wr: the request
 * @mr: the region; not in use by an earlier request that has not completed
 * @key: the lkey and rkey it gets, from ib_update_fast_reg_key()
 * @access: enum ib_access_flags
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
 * @rkey: the key that it gets
 * @mr: the region whose memory it opens
 * @addr: start, in the region's terms
 * @length: bytes
 * @access: remote flags of enum ib_access_flags
 *
 * Linux took the kernel's own use of windows away with version 4.4; the member names are those that
 * it had.
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
 * @rdma: the same, of an RDMA opcode
 * @atomic: the same, of an atomic opcode
 * @reg: the same, of IB_WR_REG_MR
 * @bind: the same, of IB_WR_BIND_MW
 * @remote_srqn: the SRQ at the other end that the message goes through (IBA annex A14), from its
 * ext.xrc.srq_num. Every
 *	message names one, though only sends and writes with immediate data take a receive from it.
 *
 * Linux's kernel users cannot send on such a QP: it has no request for them.
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
 * struct ib_recv_wr - a buffer for the receive queue
 * @next: the next of a list that is posted together, or NULL
 * @wr_id: given back in the completion; of the consumer's own choice on CQs from ib_create_cq()
 * @wr_cqe: the same, on CQs from ib_alloc_cq()
 * @sg_list: the memory, @num_sge pieces
 * @num_sge: at most the QP's max_recv_sge
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

/*
 * From the request to the typed request that it is embedded in; @wr must have an opcode, or be for
 * a QP, of that type.
 */
static inline const struct ib_rdma_wr *rdma_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_rdma_wr *)wr;
}

static inline const struct ib_atomic_wr *atomic_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_atomic_wr *)wr;
}

static inline const struct ib_ud_wr *ud_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_ud_wr *)wr;
}

static inline const struct ib_reg_wr *reg_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_reg_wr *)wr;
}

static inline const struct ib_bind_mw_wr *bind_mw_wr(const struct ib_send_wr *wr)
{
	return (const struct ib_bind_mw_wr *)wr;
}

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
	/* Receive opcodes have this bit; the others do not. */
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
 * struct ib_wc - a work completion
 * @wr_id: the request's
 * @wr_cqe: the request's
 * @status: enum ib_wc_status; unless it is IB_WC_SUCCESS only @wr_id, @vendor_err and @qp hold
 * @opcode: what was done
 * @vendor_err: what the device says about an error
 * @byte_len: bytes received, RDMA-read or fetched; on UD the 40 bytes of GRH space are included
 * @qp: the QP whose request it was; NULL if it is no more (see ib_destroy_qp())
 * @ex: by @wc_flags, immediate data or the rkey that the peer invalidated
 * @src_qp: UD: the sender's QP number
 * @slid: UD: the sender's LID, host order
 * @wc_flags: enum ib_wc_flags
 * @pkey_index: GSI: index of the P_Key that the datagram came with
 * @sl: UD: service level
 * @dlid_path_bits: UD: low bits of the LID it came to
 * @port_num: SMI and GSI of a switch: the port it came in by; an adapter's driver need not set it
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
 * ib_wc_status_msg - a completion status for people
 * @status: the status
 *
 * Context: any. Return: a string that is never NULL.
 */
const char *ib_wc_status_msg(enum ib_wc_status status);

RDMA_C_END
