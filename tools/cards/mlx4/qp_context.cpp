// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/qp_context.hpp"

#include <hw/mlx4/wqe.hpp>

#include "cards/mlx4/limits.hpp"
#include "cards/hca/port.hpp"
#include "cards/mellanox_icm/codes.hpp"
#include "cards/mellanox_icm/qp_context.hpp"

namespace weft::mlx4::qp_context
{

using hw::mlx4::AddressPathLayout;
using hw::mlx4::QpContext;
using hw::mlx4::Status;
using mellanox_icm::qp_context::byte;
namespace qp_opt = hw::mlx4::qp_opt;

namespace
{

using Path = AddressPathLayout;

// Decodes all fields except the P_Key index and the timeout, which have their own opt bits.
Status decode_path(const std::uint8_t *layout, unsigned ports, AddressPath &path)
{
	path.force_loopback = Path::force_loopback.get(layout);
	mellanox_icm::qp_context::decode_address<Path>(layout, path);
	path.port = static_cast<std::uint8_t>(1 + Path::sched_port.get(layout));
	path.sl = byte(Path::sched_sl, layout);
	if (path.port > ports || (path.grh && path.sgid_index >= CardPort::kGids))
		return Status::bad_parameter;
	return Status::ok;
}

void encode_path(const AddressPath &path, std::uint8_t *layout)
{
	Path::force_loopback.set(layout, path.force_loopback);
	mellanox_icm::qp_context::encode_address<Path>(path, layout);
	Path::counter_index.set(layout, 0xff);
	constexpr std::uint32_t normal_queue = 0x83;
	Path::sched_queue.set(layout, normal_queue);
	Path::sched_port.set(layout, path.port - 1u);
	Path::sched_sl.set(layout, path.sl);
}

// Sets the locations of the queues. The queue with the larger stride is first in the buffer. If
// both strides are equal, the send queue is first.
void place_queues(const std::uint8_t *context, QueuePair &qp)
{
	WorkQueue &send = qp.send_queue;
	WorkQueue &receive = qp.receive_queue;
	// Fields of a queue that does not exist have arbitrary values. An XRC target QP has no send
	// queue. It is recognised by its number, as in libmlx4, or by a size that no queue can have
	// (seen with Linux).
	const bool xrc_target =
		qp.service == ServiceType::xrc && (qp.qpn & hw::mlx4::xrc_target_qpn);
	send = {};
	send.log_size = byte(QpContext::log_sq_size, context);
	send.log_stride = static_cast<std::uint8_t>(4 + QpContext::log_sq_stride.get(context));
	send.present = !xrc_target && send.log_size <= limits::kLogMaxQpSize;
	receive = {};
	receive.present = !qp.uses_srq && qp.service != ServiceType::xrc;
	qp.has_receive_queue = receive.present;
	if (!receive.present)
		return;
	receive.log_size = byte(QpContext::log_rq_size, context);
	receive.log_stride = static_cast<std::uint8_t>(4 + QpContext::log_rq_stride.get(context));
	const auto bytes = [](const WorkQueue &queue) {
		return queue.present ? std::uint64_t{queue.size()} << queue.log_stride : 0;
	};
	if (receive.log_stride > send.log_stride)
		send.offset = bytes(receive);
	else
		receive.offset = bytes(send);
}

} // namespace

Status create(const std::uint8_t *context, QueuePair &qp)
{
	const auto service = service_type(
		static_cast<hw::mlx4::ServiceType>(QpContext::service_type.get(context)));
	if (!service)
		return Status::bad_parameter;
	qp.service = *service;
	qp.pd = QpContext::pd.get(context);
	qp.uar_page = QpContext::uar_page.get(context);
	qp.send_cqn = QpContext::send_cqn.get(context);
	qp.receive_cqn = QpContext::receive_cqn.get(context);
	qp.uses_srq = QpContext::srq_enable.get(context);
	qp.srqn = QpContext::srqn.get(context);
	qp.xrc_domain = static_cast<std::uint16_t>(QpContext::xrc_domain.get(context));
	qp.doorbell_record = QpContext::doorbell_record.get(context);
	qp.reserved_lkey = QpContext::reserved_lkey.get(context);
	qp.fast_register = QpContext::fast_register.get(context);
	qp.responder_invalid_credits = QpContext::responder_invalid_credits.get(context);
	qp.remote_read = QpContext::remote_read.get(context);
	qp.remote_write = QpContext::remote_write.get(context);
	qp.remote_atomic = QpContext::remote_atomic.get(context);
	qp.qkey = QpContext::qkey.get(context);
	qp.path.pkey_index = byte(Path::pkey_index, context + QpContext::primary_path);

	const std::uint32_t log_page = QpContext::log_page_size.get(context);
	if (log_page > limits::kMaxLogPageSize || qp.uar_page >= limits::kUarPages)
		return Status::bad_parameter;
	qp.buffer.mtt_offset = QpContext::mtt_offset.get(context);
	qp.buffer.page_shift = static_cast<std::uint8_t>(12 + log_page);
	qp.buffer.page_offset = QpContext::page_offset.get(context) * 64;
	place_queues(context, qp);
	return Status::ok;
}

Status modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required,
	      unsigned ports, QueuePairAttributes &qp)
{
	const std::uint8_t *const primary = context + QpContext::primary_path;
	const bool to_rtr = required == Required::to_rtr;
	const bool to_rts = required == Required::to_rts;
	const auto chosen = [opt_mask](std::uint32_t bit) { return (opt_mask & bit) != 0; };

	if (to_rtr) {
		qp.mtu = byte(QpContext::mtu, context);
		if (qp.service != ServiceType::whole_packet &&
		    ib::mtu_bytes(static_cast<ib::Mtu>(qp.mtu)) == 0)
			return Status::bad_parameter;
	}
	if (to_rtr || chosen(qp_opt::primary_path)) {
		if (const Status status = decode_path(primary, ports, qp.path);
		    status != Status::ok)
			return status;
	} else if (chosen(qp_opt::sched_queue)) {
		qp.path.port = static_cast<std::uint8_t>(1 + Path::sched_port.get(primary));
		qp.path.sl = byte(Path::sched_sl, primary);
		if (qp.path.port > ports)
			return Status::bad_parameter;
	}
	if (to_rts || chosen(qp_opt::rnr_retry))
		qp.rnr_retry = byte(QpContext::rnr_retry, context);
	// Automatic path migration is not supported, so the only state is the one after migration.
	return mellanox_icm::qp_context::decode_attributes<QpContext, Path>(context, opt_mask,
									    required, qp)
		       ? Status::ok
		       : Status::bad_parameter;
}

void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context)
{
	mellanox_icm::qp_context::encode_attributes<QpContext>(qp, progress, context);
	QpContext::service_type.set(context, static_cast<std::uint32_t>(service_code(qp.service)));
	if (qp.receive_queue.present) {
		QpContext::log_rq_size.set(context, qp.receive_queue.log_size);
		QpContext::log_rq_stride.set(context, qp.receive_queue.log_stride - 4u);
	}
	QpContext::log_sq_size.set(context, qp.send_queue.log_size);
	QpContext::log_sq_stride.set(context, qp.send_queue.log_stride - 4u);
	QpContext::reserved_lkey.set(context, qp.reserved_lkey);
	QpContext::uar_page.set(context, qp.uar_page);
	encode_path(qp.path, context + QpContext::primary_path);
	QpContext::rnr_retry.set(context, qp.rnr_retry);
	QpContext::fast_register.set(context, qp.fast_register);
	QpContext::page_offset.set(context, qp.buffer.page_offset / 64);
	QpContext::responder_invalid_credits.set(context, qp.responder_invalid_credits);
	QpContext::xrc_domain.set(context, qp.xrc_domain);
	QpContext::doorbell_record.set(context, qp.doorbell_record);
	QpContext::log_page_size.set(context, qp.buffer.page_shift - 12u);
	QpContext::mtt_offset.set(context, qp.buffer.mtt_offset);
}

} // namespace weft::mlx4::qp_context
