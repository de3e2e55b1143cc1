// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/qp_context.hpp"

#include <cstring>
#include <hw/mlx4/wqe.hpp>

#include "cards/mlx4/limits.hpp"
#include "cards/hca/port.hpp"
#include "cards/mellanox_icm/codes.hpp"

namespace weft::mlx4::qp_context
{

using hw::mlx4::AddressPathLayout;
using hw::mlx4::MigrationState;
using hw::mlx4::QpContext;
using hw::mlx4::Status;
namespace qp_opt = hw::mlx4::qp_opt;

namespace
{

using Path = AddressPathLayout;

std::uint8_t byte(const hw::mlx4::Field &field, const std::uint8_t *base)
{
	return static_cast<std::uint8_t>(field.get(base));
}

// All but the P_Key index and the time-out, which have opt bits of their own.
Status decode_path(const std::uint8_t *layout, unsigned ports, AddressPath &path)
{
	path.force_loopback = Path::force_loopback.get(layout);
	path.grh = Path::grh.get(layout);
	path.source_path_bits = byte(Path::source_path_bits, layout);
	path.remote_lid = static_cast<std::uint16_t>(Path::remote_lid.get(layout));
	path.sgid_index = byte(Path::sgid_index, layout);
	path.static_rate = byte(Path::static_rate, layout);
	path.hop_limit = byte(Path::hop_limit, layout);
	path.traffic_class = byte(Path::traffic_class, layout);
	path.flow_label = Path::flow_label.get(layout);
	path.port = static_cast<std::uint8_t>(1 + Path::sched_port.get(layout));
	path.sl = byte(Path::sched_sl, layout);
	std::memcpy(path.remote_gid.raw, layout + Path::remote_gid, sizeof(path.remote_gid.raw));
	if (path.port > ports || (path.grh && path.sgid_index >= CardPort::kGids))
		return Status::bad_parameter;
	return Status::ok;
}

void encode_path(const AddressPath &path, std::uint8_t *layout)
{
	Path::force_loopback.set(layout, path.force_loopback);
	Path::pkey_index.set(layout, path.pkey_index);
	Path::counter_index.set(layout, 0xff);
	Path::grh.set(layout, path.grh);
	Path::source_path_bits.set(layout, path.source_path_bits);
	Path::remote_lid.set(layout, path.remote_lid);
	Path::ack_timeout.set(layout, path.ack_timeout);
	Path::sgid_index.set(layout, path.sgid_index);
	Path::static_rate.set(layout, path.static_rate);
	Path::hop_limit.set(layout, path.hop_limit);
	Path::traffic_class.set(layout, path.traffic_class);
	Path::flow_label.set(layout, path.flow_label);
	std::memcpy(layout + Path::remote_gid, path.remote_gid.raw, sizeof(path.remote_gid.raw));
	constexpr std::uint32_t normal_queue = 0x83;
	Path::sched_queue.set(layout, normal_queue);
	Path::sched_port.set(layout, path.port - 1u);
	Path::sched_sl.set(layout, path.sl);
}

// In the buffer the queue with the larger stride comes first; at equal strides the send queue.
void place_queues(const std::uint8_t *context, QueuePair &qp)
{
	WorkQueue &send = qp.send_queue;
	WorkQueue &receive = qp.receive_queue;
	// The fields of a queue that is not there hold rubbish. The target of XRC has no send
	// queue: it is known by its number, as in libmlx4, or by a size that no queue can have
	// (seen: Linux).
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
		qp.log_max_message = byte(QpContext::log_max_message, context);
		qp.remote_qpn = QpContext::remote_qpn.get(context);
		qp.initial_receive_psn = QpContext::next_receive_psn.get(context);
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
	if (to_rtr || chosen(qp_opt::rra_max))
		qp.log_responder_reads = byte(QpContext::rra_max, context);
	if (to_rtr || chosen(qp_opt::min_rnr_timer))
		qp.min_rnr_timer = byte(QpContext::min_rnr_timer, context);

	if (to_rts) {
		qp.initial_send_psn = QpContext::next_send_psn.get(context);
		qp.ack_request_frequency = byte(QpContext::ack_request_frequency, context);
	}
	if (to_rts || chosen(qp_opt::sra_max))
		qp.log_requester_reads = byte(QpContext::sra_max, context);
	if (to_rts || chosen(qp_opt::retry_count))
		qp.retry_count = byte(QpContext::retry_count, context);
	if (to_rts || chosen(qp_opt::rnr_retry))
		qp.rnr_retry = byte(QpContext::rnr_retry, context);
	if (to_rts || chosen(qp_opt::ack_timeout))
		qp.path.ack_timeout = byte(Path::ack_timeout, primary);

	if (chosen(qp_opt::pkey_index))
		qp.path.pkey_index = byte(Path::pkey_index, primary);
	if (chosen(qp_opt::qkey))
		qp.qkey = QpContext::qkey.get(context);
	if (chosen(qp_opt::remote_read))
		qp.remote_read = QpContext::remote_read.get(context);
	if (chosen(qp_opt::remote_write))
		qp.remote_write = QpContext::remote_write.get(context);
	if (chosen(qp_opt::remote_atomic))
		qp.remote_atomic = QpContext::remote_atomic.get(context);
	// Automatic path migration is not offered: a queue pair stays where such migration ends.
	const auto migration = static_cast<MigrationState>(QpContext::migration_state.get(context));
	if (chosen(qp_opt::alternate_path) ||
	    (chosen(qp_opt::migration_state) && migration != MigrationState::migrated))
		return Status::bad_parameter;
	return Status::ok;
}

void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context)
{
	QpContext::state.set(context, static_cast<std::uint32_t>(qp.state));
	QpContext::service_type.set(context, static_cast<std::uint32_t>(service_code(qp.service)));
	QpContext::migration_state.set(context,
				       static_cast<std::uint32_t>(MigrationState::migrated));
	QpContext::pd.set(context, qp.pd);
	QpContext::mtu.set(context, qp.mtu);
	QpContext::log_max_message.set(context, qp.log_max_message);
	if (qp.receive_queue.present) {
		QpContext::log_rq_size.set(context, qp.receive_queue.log_size);
		QpContext::log_rq_stride.set(context, qp.receive_queue.log_stride - 4u);
	}
	QpContext::log_sq_size.set(context, qp.send_queue.log_size);
	QpContext::log_sq_stride.set(context, qp.send_queue.log_stride - 4u);
	QpContext::reserved_lkey.set(context, qp.reserved_lkey);
	QpContext::uar_page.set(context, qp.uar_page);
	QpContext::local_qpn.set(context, qp.qpn);
	QpContext::remote_qpn.set(context, qp.remote_qpn);
	encode_path(qp.path, context + QpContext::primary_path);
	QpContext::ack_request_frequency.set(context, qp.ack_request_frequency);
	QpContext::sra_max.set(context, qp.log_requester_reads);
	QpContext::retry_count.set(context, qp.retry_count);
	QpContext::rnr_retry.set(context, qp.rnr_retry);
	QpContext::fast_register.set(context, qp.fast_register);
	QpContext::current_rnr_retry.set(context, progress.current_rnr_retry);
	QpContext::current_retry.set(context, progress.current_retry);
	QpContext::next_send_psn.set(context, progress.next_send_psn);
	QpContext::send_cqn.set(context, qp.send_cqn);
	QpContext::last_acked_psn.set(context, progress.last_acked_psn);
	QpContext::ssn.set(context, progress.ssn);
	QpContext::rra_max.set(context, qp.log_responder_reads);
	QpContext::remote_read.set(context, qp.remote_read);
	QpContext::remote_write.set(context, qp.remote_write);
	QpContext::remote_atomic.set(context, qp.remote_atomic);
	QpContext::page_offset.set(context, qp.buffer.page_offset / 64);
	QpContext::responder_invalid_credits.set(context, qp.responder_invalid_credits);
	QpContext::min_rnr_timer.set(context, qp.min_rnr_timer);
	QpContext::next_receive_psn.set(context, progress.next_receive_psn);
	QpContext::xrc_domain.set(context, qp.xrc_domain);
	QpContext::receive_cqn.set(context, qp.receive_cqn);
	QpContext::doorbell_record.set(context, qp.doorbell_record);
	QpContext::qkey.set(context, qp.qkey);
	QpContext::srq_enable.set(context, qp.uses_srq);
	QpContext::srqn.set(context, qp.srqn);
	QpContext::receive_msn.set(context, progress.receive_msn);
	QpContext::rq_counter.set(context, progress.rq_counter);
	QpContext::sq_counter.set(context, progress.sq_counter);
	QpContext::log_page_size.set(context, qp.buffer.page_shift - 12u);
	QpContext::mtt_offset.set(context, qp.buffer.mtt_offset);
}

} // namespace weft::mlx4::qp_context
