/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares agents that send and receive management datagrams, MADs (IBA 13; MGMT-01 to MGMT-04). */
#pragma once
#include <rdma/ib_mad_format.h>

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
 * @send_buf: the send to which the MAD is the response; NULL for an unsolicited MAD
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
	/* The consumer does RMPP itself; the agent treats each segment as a complete message. */
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
 * Handlers run in process context, never inside a call of the consumer (LOCK-05). The handlers of
 * all agents on one QP run one at a time. They may sleep, post and cancel, but not wait for another
 * handler of that QP.
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
 * @no_agent: no agent has registered for the MAD, or has sent the request to which it responds
 * @no_memory: there was no memory to keep the receive queue full, or to respond
 * @misrouted: the MAD is a directed-route SMP that breaks a rule (IBA 14.2.2)
 * @no_room: a generated response, or an SMP that a switch forwards, was dropped because 512 others
 * were waiting to be sent
 * @rmpp_discarded: the segment or ACK belongs to no message that is being transferred, or exceeds
 * the limits of reassembly
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
 * The caller destroys it with ib_unregister_mad_agent().
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
 * The caller destroys it with ib_unregister_mad_agent().
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
 * ib_unregister_mad_agent - unregister an agent
 * @mad_agent: the agent
 *
 * Outstanding sends are first completed with the status of a cancelled send, within ten seconds
 * even if the hardware loses their completions. When this has returned, no handler of the agent
 * runs.
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
 * The caller frees it with ib_free_send_mad().
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
 * ib_modify_mad - change the timeout of an outstanding send
 * @send_buf: the send
 * @timeout_ms: milliseconds from now, or from when it has been sent; 0 cancels it
 *
 * Context: any. Return: 0; -EINVAL if it is not outstanding.
 */
int ib_modify_mad(struct ib_mad_send_buf *send_buf, u32 timeout_ms);

/**
 * ib_cancel_mad - cancel an outstanding send
 * @send_buf: the send. It completes with IB_WC_WR_FLUSH_ERR, unless it is completing already
 *
 * Context: any.
 */
static inline void ib_cancel_mad(struct ib_mad_send_buf *send_buf)
{
	ib_modify_mad(send_buf, 0);
}

/**
 * ib_free_recv_mad - return a received MAD to the midlayer
 * @mad_recv_wc: the MAD with which a receive handler was called
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
 * ib_mad_kernel_rmpp_agent - test whether the midlayer does RMPP for an agent (IBA 13.6)
 * @agent: the agent
 *
 * Context: any. Return: 1 if it does; 0 if the agent does not use RMPP, or does it itself.
 */
RDMA_MUST_CHECK int ib_mad_kernel_rmpp_agent(const struct ib_mad_agent *agent);

RDMA_C_END
