// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts QP attributes to a card's QP context and back: the fields that mlx4 and mthca both have,
// at different positions. The template parameters Context and Path are a card's layouts.
#pragma once
#include <hw/mellanox_icm/commands.hpp>
#include <hw/mellanox_icm/contexts.hpp>
#include <kern/log.hpp>
#include <kern/time.hpp>
#include <rdma/ib_verbs.h>
#include "command.hpp"
#include "work_queue.hpp"

namespace mellanox_icm
{

/* Returns log2 of count, rounded up; 0 for 0 and 1. */
constexpr u32 log_reads(u32 count)
{
	u32 log = 0;
	while (1u << log < count)
		log++;
	return log;
}

/* Writes the LIDs and the global route of an address. `path` must be zero. */
template<class Path>
void put_route(u8 *path, const rdma_ah_attr &address)
{
	Path::source_path_bits.set(path, address.ib.src_path_bits);
	Path::remote_lid.set(path, address.ib.dlid);
	if (address.ah_flags & IB_AH_GRH) {
		Path::grh.set(path, 1);
		Path::sgid_index.set(path, address.grh.sgid_index);
		Path::hop_limit.set(path, address.grh.hop_limit);
		Path::traffic_class.set(path, address.grh.traffic_class);
		Path::flow_label.set(path, address.grh.flow_label);
		__builtin_memcpy(path + Path::remote_gid, address.grh.dgid.raw, 16);
	}
}

/* Reads them from a path. */
template<class Path>
void get_route(const u8 *path, rdma_ah_attr &address)
{
	address.type = RDMA_AH_ATTR_TYPE_IB;
	address.ib.dlid = static_cast<u16>(Path::remote_lid.get(path));
	address.ib.src_path_bits = static_cast<u8>(Path::source_path_bits.get(path));
	if (Path::grh.get(path)) {
		address.ah_flags = IB_AH_GRH;
		address.grh.sgid_index = static_cast<u8>(Path::sgid_index.get(path));
		address.grh.hop_limit = static_cast<u8>(Path::hop_limit.get(path));
		address.grh.traffic_class = static_cast<u8>(Path::traffic_class.get(path));
		address.grh.flow_label = Path::flow_label.get(path);
		__builtin_memcpy(address.grh.dgid.raw, path + Path::remote_gid, 16);
	}
}

/*
 * Writes the attributes in `mask` whose format is the same on all cards. Returns the mask of
 * optional parameters; without their bits, the card would ignore some of the attributes. Errors:
 * EINVAL for more reads than the card supports.
 */
template<class Context, class Path, class Capabilities>
kern::Result<u32> put_plain_attributes(u8 *context, const Capabilities &cap, const ib_qp_attr &attr,
				       int mask)
{
	namespace qp_opt = hw::mellanox_icm::qp_opt;
	u32 optional = 0;

	if (mask & IB_QP_TIMEOUT) {
		Path::ack_timeout.set(context + Context::primary_path, attr.timeout);
		optional |= qp_opt::ack_timeout;
	}
	if (mask & IB_QP_DEST_QPN)
		Context::remote_qpn.set(context, attr.dest_qp_num);
	if (mask & IB_QP_QKEY) {
		Context::qkey.set(context, attr.qkey);
		optional |= qp_opt::qkey;
	}
	if (mask & IB_QP_RQ_PSN)
		Context::next_receive_psn.set(context, attr.rq_psn);
	if (mask & IB_QP_SQ_PSN)
		Context::next_send_psn.set(context, attr.sq_psn);
	if (mask & IB_QP_MIN_RNR_TIMER) {
		Context::min_rnr_timer.set(context, attr.min_rnr_timer);
		optional |= qp_opt::min_rnr_timer;
	}
	if (mask & IB_QP_RETRY_CNT) {
		Context::retry_count.set(context, attr.retry_cnt);
		optional |= qp_opt::retry_count;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC) {
		const u32 log = log_reads(attr.max_rd_atomic);
		if (log > cap.log_max_requester_reads)
			return kern::Error{-EINVAL};
		Context::sra_max.set(context, log);
		optional |= qp_opt::sra_max;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC) {
		const u32 log = log_reads(attr.max_dest_rd_atomic);
		if (log > cap.log_max_responder_reads)
			return kern::Error{-EINVAL};
		Context::rra_max.set(context, log);
		optional |= qp_opt::rra_max;
	}
	return optional;
}

/* Reads these attributes and the access rights from a context. */
template<class Context, class Path>
void get_plain_attributes(const u8 *context, ib_qp_attr &attr)
{
	const u8 *const primary = context + Context::primary_path;
	attr.path_mtu = static_cast<ib_mtu>(Context::mtu.get(context));
	attr.qkey = Context::qkey.get(context);
	attr.rq_psn = Context::next_receive_psn.get(context);
	attr.sq_psn = Context::next_send_psn.get(context);
	attr.dest_qp_num = Context::remote_qpn.get(context);
	attr.qp_access_flags = (Context::remote_read.get(context) ? IB_ACCESS_REMOTE_READ : 0) |
			       (Context::remote_write.get(context) ? IB_ACCESS_REMOTE_WRITE : 0) |
			       (Context::remote_atomic.get(context) ? IB_ACCESS_REMOTE_ATOMIC : 0);
	attr.pkey_index = static_cast<u16>(Path::pkey_index.get(primary));
	attr.max_rd_atomic = static_cast<u8>(1u << Context::sra_max.get(context));
	attr.max_dest_rd_atomic = static_cast<u8>(1u << Context::rra_max.get(context));
	attr.min_rnr_timer = static_cast<u8>(Context::min_rnr_timer.get(context));
	attr.timeout = static_cast<u8>(Path::ack_timeout.get(primary));
	attr.retry_cnt = static_cast<u8>(Context::retry_count.get(context));
}

/*
 * Sets the operations that the peer may use. Each operation needs its right (enum ib_access_flags);
 * reads and atomics also need responder resources. Returns the mask of optional parameters.
 */
template<class Context>
u32 put_access(u8 *context, u32 access, u32 reads)
{
	namespace qp_opt = hw::mellanox_icm::qp_opt;
	Context::remote_write.set(context, (access & IB_ACCESS_REMOTE_WRITE) != 0);
	Context::remote_read.set(context, reads && (access & IB_ACCESS_REMOTE_READ));
	Context::remote_atomic.set(context, reads && (access & IB_ACCESS_REMOTE_ATOMIC));
	return qp_opt::remote_read | qp_opt::remote_write | qp_opt::remote_atomic;
}

/*
 * Attributes of a QP that the driver saves, because a later transition needs them again or because
 * the driver builds the packets of special QPs from them.
 */
struct SavedAttributes {
	u32 port = 0;
	u32 qkey = 0;
	u32 psn = 0; // PSN of the next packet of a special QP
	u8 access_flags = 0;
	u8 max_dest_reads = 0;

	void save(const ib_qp_attr &attr, int mask)
	{
		if (mask & IB_QP_PORT)
			port = attr.port_num;
		if (mask & IB_QP_QKEY)
			qkey = attr.qkey;
		if (mask & IB_QP_SQ_PSN)
			psn = attr.sq_psn;
		if (mask & IB_QP_ACCESS_FLAGS)
			access_flags = static_cast<u8>(attr.qp_access_flags);
		if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
			max_dest_reads = attr.max_dest_rd_atomic;
	}
	/*
	 * Writes both attributes if one of them changes, because the card takes them together.
	 * Returns as put_access() does, or 0.
	 */
	template<class Context>
	u32 put_access_change(u8 *context, const ib_qp_attr &attr, int mask) const
	{
		if (!(mask & (IB_QP_ACCESS_FLAGS | IB_QP_MAX_DEST_RD_ATOMIC)))
			return 0;
		return put_access<Context>(
			context,
			mask & IB_QP_ACCESS_FLAGS ? static_cast<u32>(attr.qp_access_flags)
						  : access_flags,
			mask & IB_QP_MAX_DEST_RD_ATOMIC ? attr.max_dest_rd_atomic : max_dest_reads);
	}
};

/*
 * Makes the card flush a QP's requests, and waits until it has. Moves the QP to ERR, unless it is
 * already in error (in_error). The card flushes asynchronously; its counters show when it has
 * finished (Documentation/connectx.rst, "Transitions"). May sleep.
 */
template<class Context, class Hca>
void flush_requests(Hca &hca, u32 number, bool in_error, const SendQueue &sq,
		    const ReceiveQueue &rq)
{
	/* Time limit for the flush. */
	constexpr unsigned int flush_ms = 5000;
	const kern::Deadline deadline = kern::Deadline::in_ms(flush_ms);
	kern::Result<> result;
	if (!in_error)
		result =
			kern::check(hca.commands()
					    .execute({.opcode = hw::mellanox_icm::Opcode::to_err_qp,
						      .in_modifier = number})
					    .error());
	auto mailbox = hca.commands().mailbox();
	if (result.ok())
		result = kern::check(mailbox.error());
	while (result.ok()) {
		result = hca.commands().execute_out(
			{.opcode = hw::mellanox_icm::Opcode::query_qp, .in_modifier = number},
			mailbox.value());
		/* If the card has failed, the mailbox was abandoned. */
		if (!result.ok())
			break;
		const u8 *const context =
			mailbox.value().bytes() + hw::mellanox_icm::qp_mailbox_context;
		if (Context::sq_counter.get(context) == (sq.posted_head() & 0xffff) &&
		    Context::rq_counter.get(context) == (rq.posted_head() & 0xffff))
			return;
		if (deadline.passed())
			result = kern::Error{-ETIMEDOUT};
		kern::sleep_us(50, 200);
	}
	if (!hca.failed())
		kern_dev_error(hca.dma_device(), "QP %#x: its requests were not all flushed: %d\n",
			       number, result.error());
}

} // namespace mellanox_icm
