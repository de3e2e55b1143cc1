// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/qp_context.hpp"

#include <cstring>
#include <optional>

#include "cards/hca/port.hpp"
#include "cards/mthca/limits.hpp"
#include "cards/mellanox_icm/codes.hpp"

namespace weft::mthca::qp_context
{

using hw::mellanox_icm::MigrationState;
using hw::mthca::QpContext;
using hw::mthca::Status;
using Path = hw::mthca::PathLayout;
namespace qp_opt = hw::mthca::qp_opt;

namespace
{

std::uint8_t byte(const hw::mellanox_icm::Field &field, const std::uint8_t *base)
{
	return static_cast<std::uint8_t>(field.get(base));
}

// All but port, P_Key index and the time-outs, which have opt bits of their own.
void decode_path(const std::uint8_t *layout, AddressPath &path)
{
	path.grh = Path::grh.get(layout);
	path.source_path_bits = byte(Path::source_path_bits, layout);
	path.remote_lid = static_cast<std::uint16_t>(Path::remote_lid.get(layout));
	path.sgid_index = byte(Path::sgid_index, layout);
	path.static_rate = byte(Path::static_rate, layout);
	path.hop_limit = byte(Path::hop_limit, layout);
	path.sl = byte(Path::sl, layout);
	path.traffic_class = byte(Path::traffic_class, layout);
	path.flow_label = Path::flow_label.get(layout);
	std::memcpy(path.remote_gid.raw, layout + Path::remote_gid, sizeof(path.remote_gid.raw));
}

void encode_path(const AddressPath &path, std::uint8_t rnr_retry, std::uint8_t *layout)
{
	Path::port.set(layout, path.port);
	Path::pkey_index.set(layout, path.pkey_index);
	Path::rnr_retry.set(layout, rnr_retry);
	Path::grh.set(layout, path.grh);
	Path::source_path_bits.set(layout, path.source_path_bits);
	Path::remote_lid.set(layout, path.remote_lid);
	Path::ack_timeout.set(layout, path.ack_timeout);
	Path::sgid_index.set(layout, path.sgid_index);
	Path::static_rate.set(layout, path.static_rate);
	Path::hop_limit.set(layout, path.hop_limit);
	Path::sl.set(layout, path.sl);
	Path::traffic_class.set(layout, path.traffic_class);
	Path::flow_label.set(layout, path.flow_label);
	std::memcpy(layout + Path::remote_gid, path.remote_gid.raw, sizeof(path.remote_gid.raw));
}

// A port of 0 says nothing (iPXE on the way to RTR); false for one that the card lacks.
bool decode_port(const std::uint8_t *layout, unsigned ports, AddressPath &path)
{
	const std::uint32_t port = Path::port.get(layout);
	if (port != 0)
		path.port = static_cast<std::uint8_t>(port);
	return port <= ports;
}

bool decode_queue(const std::uint8_t *context, const hw::mellanox_icm::Field &size,
		  const hw::mellanox_icm::Field &stride, const hw::mellanox_icm::Field &base,
		  const hw::mellanox_icm::Field &record, WorkQueue &queue)
{
	queue.log_size = byte(size, context);
	queue.log_stride = static_cast<std::uint8_t>(4 + stride.get(context));
	queue.base = base.in(base.get(context));
	queue.record = record.get(context);
	return queue.log_size <= limits::kLogMaxQpSize;
}

} // namespace

Status create(const std::uint8_t *context, unsigned ports, std::uint32_t opt_mask, QueuePair &qp)
{
	const auto service = service_type(
		static_cast<hw::mellanox_icm::ServiceType>(QpContext::service_type.get(context)));
	if (!service || *service == ServiceType::xrc)
		return Status::bad_parameter;
	qp.service = *service;
	qp.pd = QpContext::pd.get(context);
	qp.uar_page = QpContext::uar_page.get(context);
	qp.send_cqn = QpContext::send_cqn.get(context);
	qp.receive_cqn = QpContext::receive_cqn.get(context);
	qp.uses_srq = QpContext::srq_enable.get(context);
	qp.srqn = QpContext::srqn.get(context);
	qp.has_receive_queue = !qp.uses_srq;
	qp.signal_all = QpContext::signal_all.get(context);
	qp.responder_invalid_credits = QpContext::invalid_credits.get(context);
	qp.remote_read = QpContext::remote_read.get(context);
	qp.remote_write = QpContext::remote_write.get(context);
	qp.remote_atomic = QpContext::remote_atomic.get(context);
	if (opt_mask & qp_opt::qkey)
		qp.qkey = QpContext::qkey.get(context);
	const std::uint8_t *const primary = context + QpContext::primary_path;
	qp.path.pkey_index = byte(Path::pkey_index, primary);
	if (!decode_port(primary, ports, qp.path) || qp.uar_page >= limits::kUarPages)
		return Status::bad_parameter;

	qp.wqe_base_high = QpContext::wqe_base_high.get(context);
	qp.wqe_lkey = QpContext::wqe_lkey.get(context);
	// Room for the link and one segment.
	constexpr unsigned least_stride = 5;
	if (!decode_queue(context, QpContext::log_sq_size, QpContext::log_sq_stride,
			  QpContext::send_base, QpContext::send_record, qp.send_queue) ||
	    qp.send_queue.log_stride < least_stride)
		return Status::bad_parameter;
	if (qp.has_receive_queue &&
	    (!decode_queue(context, QpContext::log_rq_size, QpContext::log_rq_stride,
			   QpContext::receive_base, QpContext::receive_record, qp.receive_queue) ||
	     qp.receive_queue.log_stride < least_stride))
		return Status::bad_parameter;
	return Status::ok;
}

Status modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required,
	      unsigned ports, QueuePairAttributes &qp)
{
	const std::uint8_t *const primary = context + QpContext::primary_path;
	const bool to_rtr = required == Required::to_rtr;
	const bool to_rts = required == Required::to_rts;
	const bool connected = qp.service == ServiceType::rc || qp.service == ServiceType::uc;
	const auto chosen = [opt_mask](std::uint32_t bit) { return (opt_mask & bit) != 0; };

	if (to_rtr) {
		qp.mtu = byte(QpContext::mtu, context);
		if (connected && (ib::mtu_bytes(static_cast<ib::Mtu>(qp.mtu)) == 0 ||
				  qp.mtu > static_cast<unsigned>(ib::Mtu::mtu_2048)))
			return Status::bad_parameter;
		qp.log_max_message = byte(QpContext::log_max_message, context);
		qp.remote_qpn = QpContext::remote_qpn.get(context);
		qp.initial_receive_psn = QpContext::next_receive_psn.get(context);
	}
	// Datagrams have no path of their own.
	if ((to_rtr && connected) || chosen(qp_opt::primary_path)) {
		decode_path(primary, qp.path);
		if (!decode_port(primary, ports, qp.path) ||
		    (qp.path.grh && qp.path.sgid_index >= CardPort::kGids))
			return Status::bad_parameter;
	}
	if (chosen(qp_opt::port) && !decode_port(primary, ports, qp.path))
		return Status::bad_parameter;
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
		qp.rnr_retry = byte(Path::rnr_retry, primary);
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
	QpContext::mtu.set(context, qp.mtu);
	QpContext::log_max_message.set(context, qp.log_max_message);
	QpContext::log_sq_size.set(context, qp.send_queue.log_size);
	QpContext::log_sq_stride.set(context, qp.send_queue.log_stride - 4u);
	if (qp.has_receive_queue) {
		QpContext::log_rq_size.set(context, qp.receive_queue.log_size);
		QpContext::log_rq_stride.set(context, qp.receive_queue.log_stride - 4u);
	}
	QpContext::uar_page.set(context, qp.uar_page);
	QpContext::local_qpn.set(context, qp.qpn);
	QpContext::remote_qpn.set(context, qp.remote_qpn);
	encode_path(qp.path, qp.rnr_retry, context + QpContext::primary_path);
	QpContext::pd.set(context, qp.pd);
	QpContext::wqe_base_high.set(context, qp.wqe_base_high);
	QpContext::wqe_lkey.set(context, qp.wqe_lkey);
	QpContext::ack_request_frequency.set(context, qp.ack_request_frequency);
	QpContext::sra_max.set(context, qp.log_requester_reads);
	QpContext::retry_count.set(context, qp.retry_count);
	QpContext::current_rnr_retry.set(context, progress.current_rnr_retry);
	QpContext::current_retry.set(context, progress.current_retry);
	QpContext::signal_all.set(context, qp.signal_all);
	QpContext::next_send_psn.set(context, progress.next_send_psn);
	QpContext::send_cqn.set(context, qp.send_cqn);
	hw::mellanox_icm::store_be32(context, QpContext::send_base.offset, qp.send_queue.base);
	QpContext::send_record.set(context, qp.send_queue.record);
	QpContext::last_acked_psn.set(context, progress.last_acked_psn);
	QpContext::ssn.set(context, progress.ssn);
	QpContext::rra_max.set(context, qp.log_responder_reads);
	QpContext::remote_read.set(context, qp.remote_read);
	QpContext::remote_write.set(context, qp.remote_write);
	QpContext::remote_atomic.set(context, qp.remote_atomic);
	QpContext::invalid_credits.set(context, qp.responder_invalid_credits);
	QpContext::min_rnr_timer.set(context, qp.min_rnr_timer);
	QpContext::next_receive_psn.set(context, progress.next_receive_psn);
	QpContext::receive_cqn.set(context, qp.receive_cqn);
	hw::mellanox_icm::store_be32(context, QpContext::receive_base.offset,
				     qp.receive_queue.base);
	QpContext::receive_record.set(context, qp.receive_queue.record);
	QpContext::qkey.set(context, qp.qkey);
	QpContext::srq_enable.set(context, qp.uses_srq);
	QpContext::srqn.set(context, qp.srqn);
	QpContext::receive_msn.set(context, progress.receive_msn);
	QpContext::rq_counter.set(context, progress.rq_counter);
	QpContext::sq_counter.set(context, progress.sq_counter);
}

} // namespace weft::mthca::qp_context
