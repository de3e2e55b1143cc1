// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/qp_context.hpp"

#include <cstring>
#include <optional>

#include "cards/hca/completion_sink.hpp"
#include "cards/hca/port.hpp"
#include "cards/mlx5/limits.hpp"

namespace weft::mlx5::qp_context
{

using hw::mlx5::Field;
using hw::mlx5::PathLayout;
using hw::mlx5::QpContext;
namespace qp_opt = hw::mlx5::qp_opt;

namespace
{

std::uint8_t byte(const Field &field, const std::uint8_t *base)
{
	return static_cast<std::uint8_t>(field.get(base));
}

// Returns the transport's service type. QP0 and QP1 use datagrams; a queue pair for UMR requests
// sends no packets.
std::optional<ServiceType> service_of(QpService kind)
{
	switch (kind) {
	case QpService::rc:
	case QpService::reg_umr:
		return ServiceType::rc;
	case QpService::uc:
		return ServiceType::uc;
	case QpService::ud:
	case QpService::qp0:
	case QpService::qp1:
		return ServiceType::ud;
	case QpService::xrc:
		return ServiceType::xrc;
	}
	return std::nullopt;
}

// Returns the maximum number of data bytes in completions, from the code of one direction; 0xff if
// there is no such code.
std::uint8_t inline_bytes(std::uint32_t code, std::uint32_t code_32, std::uint32_t code_64)
{
	return code == 0 ? 0 : code == code_32 ? 32 : code == code_64 ? 64 : 0xff;
}

std::uint32_t inline_code(std::uint8_t bytes, std::uint32_t code_32, std::uint32_t code_64)
{
	return bytes == 0 ? 0 : bytes == 32 ? code_32 : code_64;
}

std::uint32_t state_code(QpState state)
{
	switch (state) {
	case QpState::reset:
		return 0;
	case QpState::init:
		return 1;
	case QpState::rtr:
		return 2;
	case QpState::rts:
		return 3;
	case QpState::sqer:
		return 4;
	case QpState::sqd:
	case QpState::sq_draining:
		return 5;
	case QpState::err:
		break;
	}
	return 6;
}

// Decodes all fields except the P_Key index, the port and the timeout, which can be changed
// separately.
void decode_path(const std::uint8_t *layout, AddressPath &path)
{
	path.force_loopback = PathLayout::force_loopback.get(layout);
	path.grh = PathLayout::grh.get(layout);
	path.source_path_bits = byte(PathLayout::source_path_bits, layout);
	path.remote_lid = static_cast<std::uint16_t>(PathLayout::remote_lid.get(layout));
	path.sgid_index = byte(PathLayout::sgid_index, layout);
	path.static_rate = byte(PathLayout::static_rate, layout);
	path.hop_limit = byte(PathLayout::hop_limit, layout);
	path.traffic_class = byte(PathLayout::traffic_class, layout);
	path.flow_label = PathLayout::flow_label.get(layout);
	path.sl = byte(PathLayout::sl, layout);
	std::memcpy(path.remote_gid.raw, layout + PathLayout::remote_gid,
		    sizeof(path.remote_gid.raw));
}

bool decode_port(const std::uint8_t *path, unsigned ports, QueuePairAttributes &qp)
{
	const std::uint32_t port = PathLayout::port.get(path);
	if (port == 0 || port > ports)
		return false;
	qp.path.port = static_cast<std::uint8_t>(port);
	return true;
}

bool decode_pkey_index(const std::uint8_t *path, QueuePairAttributes &qp)
{
	const std::uint32_t index = PathLayout::pkey_index.get(path);
	if (index >= 1u << limits::kLogPkeys)
		return false;
	qp.path.pkey_index = static_cast<std::uint8_t>(index);
	return true;
}

} // namespace

Created create(const std::uint8_t *context, QueuePair &qp)
{
	qp.kind = static_cast<QpService>(QpContext::service.get(context));
	const auto service = service_of(qp.kind);
	if (!service)
		return Created::not_modelled;
	qp.service = *service;
	qp.pd = QpContext::pd.get(context);
	qp.uar_page = QpContext::uar_page.get(context);
	qp.user_index = QpContext::user_index.get(context);
	const std::uint32_t source = QpContext::datagram_source.get(context);
	qp.sends_as = source == ib::qpn_gsi ? source : 0;
	qp.send_cqn = QpContext::send_cqn.get(context);
	qp.receive_cqn = QpContext::receive_cqn.get(context);
	qp.record = QpContext::record.get(context);
	qp.reserved_lkey = QpContext::reserved_lkey.get(context);
	qp.block_loopback = QpContext::block_loopback.get(context);
	const std::uint32_t offload = QpContext::offload_mode.get(context);
	qp.ip_offload = offload == QpContext::ipoib_offload;
	qp.steered = offload == QpContext::enhanced_ipoib;
	qp.xrc_domain = static_cast<std::uint16_t>(QpContext::xrc_domain.get(context));
	const std::uint32_t receive = QpContext::receive_type.get(context);
	qp.uses_srq = receive == QpContext::shared_queue;
	qp.has_receive_queue = receive == QpContext::own_queue && qp.service != ServiceType::xrc;
	qp.srqn = qp.uses_srq ? QpContext::srqn.get(context) : 0;
	qp.has_send_queue = !QpContext::no_send_queue.get(context);
	// Only RC and UC have these fields.
	if (qp.kind == QpService::rc || qp.kind == QpService::uc) {
		qp.inline_receive =
			inline_bytes(QpContext::inline_receive.get(context),
				     QpContext::receive_32_bytes, QpContext::receive_64_bytes);
		qp.inline_response =
			inline_bytes(QpContext::inline_response.get(context),
				     QpContext::response_32_bytes, QpContext::response_64_bytes);
	}
	qp.log_send_blocks = byte(QpContext::log_sq_size, context);
	qp.log_receive_size = byte(QpContext::log_rq_size, context);
	qp.log_receive_stride =
		static_cast<std::uint8_t>(4 + byte(QpContext::log_rq_stride, context));
	if (offload > QpContext::enhanced_ipoib)
		return Created::not_modelled;
	if (source > ib::qpn_gsi ||
	    ((source || qp.ip_offload || qp.steered) && qp.kind != QpService::ud))
		return Created::bad_field;
	// Its queues are separate objects: RQs and SQs.
	if (qp.steered)
		qp.has_send_queue = qp.has_receive_queue = qp.uses_srq = false;
	const bool fits = receive <= QpContext::no_queue && qp.record % 8 == 0 &&
			  qp.inline_receive <= hca::kCompletionDataMax &&
			  qp.inline_response <= hca::kCompletionDataMax &&
			  qp.log_receive_stride <= 9; // limits::kReceiveWqeBytes
	return fits ? Created::done : Created::bad_field;
}

bool modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required, unsigned ports,
	    QpService kind, QueuePairAttributes &qp)
{
	const std::uint8_t *const primary = context + QpContext::primary_path;
	const bool to_init = required == Required::to_init;
	const bool to_rtr = required == Required::to_rtr;
	const bool to_rts = required == Required::to_rts;
	const bool connected = qp.service != ServiceType::ud && kind != QpService::reg_umr;
	const auto chosen = [opt_mask](std::uint32_t bit) { return (opt_mask & bit) != 0; };

	if (to_init) {
		// The driver sets the domain of its own queue pairs for UMR requests at this point.
		if (kind == QpService::reg_umr)
			qp.pd = QpContext::pd.get(context);
		if (kind != QpService::reg_umr && !decode_port(primary, ports, qp))
			return false;
		qp.qkey = QpContext::qkey.get(context);
	}
	if (to_rtr) {
		qp.mtu = byte(QpContext::mtu, context);
		if (connected && ib::mtu_bytes(static_cast<ib::Mtu>(qp.mtu)) == 0)
			return false;
		qp.log_max_message = byte(QpContext::log_max_message, context);
		qp.remote_qpn = QpContext::remote_qpn.get(context);
		qp.initial_receive_psn = QpContext::next_receive_psn.get(context);
	}
	if ((to_rtr && connected) || chosen(qp_opt::primary_path)) {
		decode_path(primary, qp.path);
		if (qp.path.grh && qp.path.sgid_index >= CardPort::kGids)
			return false;
	}
	if (chosen(qp_opt::port) && !decode_port(primary, ports, qp))
		return false;
	if ((to_init || chosen(qp_opt::pkey_index)) && !decode_pkey_index(primary, qp))
		return false;
	if (to_rtr || chosen(qp_opt::responder_reads))
		qp.log_responder_reads = byte(QpContext::log_responder_reads, context);
	if (to_rtr || chosen(qp_opt::min_rnr_timer))
		qp.min_rnr_timer = byte(QpContext::min_rnr_timer, context);
	if (to_rts) {
		qp.initial_send_psn = QpContext::next_send_psn.get(context);
		qp.ack_request_frequency = byte(QpContext::ack_request_frequency, context);
	}
	if (to_rts || chosen(qp_opt::requester_reads))
		qp.log_requester_reads = byte(QpContext::log_requester_reads, context);
	if (to_rts || chosen(qp_opt::retry_count))
		qp.retry_count = byte(QpContext::retry_count, context);
	if (to_rts || chosen(qp_opt::rnr_retry))
		qp.rnr_retry = byte(QpContext::rnr_retry, context);
	if (to_rts || chosen(qp_opt::ack_timeout))
		qp.path.ack_timeout = byte(PathLayout::ack_timeout, primary);
	if (chosen(qp_opt::qkey))
		qp.qkey = QpContext::qkey.get(context);
	if (to_init || chosen(qp_opt::remote_read))
		qp.remote_read = QpContext::remote_read.get(context);
	if (to_init || chosen(qp_opt::remote_write))
		qp.remote_write = QpContext::remote_write.get(context);
	if (to_init || chosen(qp_opt::remote_atomic))
		qp.remote_atomic = QpContext::remote_atomic.get(context);
	if (chosen(qp_opt::srqn) && qp.uses_srq)
		qp.srqn = QpContext::srqn.get(context);
	if (chosen(qp_opt::receive_cqn))
		qp.receive_cqn = QpContext::receive_cqn.get(context);
	// Automatic path migration is not supported, so the only state is the one after migration.
	return !chosen(qp_opt::alternate_path);
}

void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context)
{
	QpContext::state.set(context, state_code(qp.state));
	QpContext::service.set(context, static_cast<std::uint32_t>(qp.kind));
	QpContext::migration.set(context, QpContext::migrated);
	QpContext::block_loopback.set(context, qp.block_loopback);
	QpContext::pd.set(context, qp.pd);
	QpContext::mtu.set(context, qp.mtu);
	QpContext::log_max_message.set(context, qp.log_max_message);
	if (qp.has_receive_queue) {
		QpContext::log_rq_size.set(context, qp.log_receive_size);
		QpContext::log_rq_stride.set(context, qp.log_receive_stride - 4u);
	}
	QpContext::no_send_queue.set(context, !qp.has_send_queue);
	QpContext::log_sq_size.set(context, qp.log_send_blocks);
	QpContext::reserved_lkey.set(context, qp.reserved_lkey);
	QpContext::offload_mode.set(context, qp.steered      ? QpContext::enhanced_ipoib
					     : qp.ip_offload ? QpContext::ipoib_offload
							     : QpContext::no_offload);
	QpContext::uar_page.set(context, qp.uar_page);
	QpContext::user_index.set(context, qp.user_index);
	QpContext::log_page_size.set(context, qp.buffer.log_page_size());
	QpContext::remote_qpn.set(context, qp.remote_qpn);
	std::uint8_t *const path = context + QpContext::primary_path;
	PathLayout::force_loopback.set(path, qp.path.force_loopback);
	PathLayout::pkey_index.set(path, qp.path.pkey_index);
	PathLayout::grh.set(path, qp.path.grh);
	PathLayout::source_path_bits.set(path, qp.path.source_path_bits);
	PathLayout::remote_lid.set(path, qp.path.remote_lid);
	PathLayout::ack_timeout.set(path, qp.path.ack_timeout);
	PathLayout::sgid_index.set(path, qp.path.sgid_index);
	PathLayout::static_rate.set(path, qp.path.static_rate);
	PathLayout::hop_limit.set(path, qp.path.hop_limit);
	PathLayout::traffic_class.set(path, qp.path.traffic_class);
	PathLayout::flow_label.set(path, qp.path.flow_label);
	std::memcpy(path + PathLayout::remote_gid, qp.path.remote_gid.raw,
		    sizeof(qp.path.remote_gid.raw));
	PathLayout::sl.set(path, qp.path.sl);
	PathLayout::port.set(path, qp.path.port);
	QpContext::ack_request_frequency.set(context, qp.ack_request_frequency);
	QpContext::log_requester_reads.set(context, qp.log_requester_reads);
	QpContext::retry_count.set(context, qp.retry_count);
	QpContext::rnr_retry.set(context, qp.rnr_retry);
	QpContext::current_rnr_retry.set(context, progress.current_rnr_retry);
	QpContext::current_retry.set(context, progress.current_retry);
	QpContext::next_send_psn.set(context, progress.next_send_psn);
	QpContext::send_cqn.set(context, qp.send_cqn);
	QpContext::datagram_source.set(context, qp.sends_as);
	QpContext::last_acked_psn.set(context, progress.last_acked_psn);
	QpContext::ssn.set(context, progress.ssn);
	QpContext::log_responder_reads.set(context, qp.log_responder_reads);
	QpContext::remote_read.set(context, qp.remote_read);
	QpContext::remote_write.set(context, qp.remote_write);
	QpContext::remote_atomic.set(context, qp.remote_atomic);
	QpContext::page_offset.set(context, qp.buffer.page_offset());
	QpContext::min_rnr_timer.set(context, qp.min_rnr_timer);
	QpContext::next_receive_psn.set(context, progress.next_receive_psn);
	QpContext::xrc_domain.set(context, qp.xrc_domain);
	QpContext::receive_cqn.set(context, qp.receive_cqn);
	QpContext::record.set(context, qp.record);
	QpContext::qkey.set(context, qp.qkey);
	QpContext::receive_type.set(context, qp.uses_srq            ? QpContext::shared_queue
					     : qp.has_receive_queue ? QpContext::own_queue
								    : QpContext::no_queue);
	QpContext::srqn.set(context, qp.srqn);
	QpContext::receive_msn.set(context, progress.receive_msn);
	QpContext::sq_hardware_counter.set(context, progress.sq_counter);
	QpContext::rq_hardware_counter.set(context, progress.rq_counter);
	QpContext::inline_receive.set(context,
				      inline_code(qp.inline_receive, QpContext::receive_32_bytes,
						  QpContext::receive_64_bytes));
	QpContext::inline_response.set(context,
				       inline_code(qp.inline_response, QpContext::response_32_bytes,
						   QpContext::response_64_bytes));
}

} // namespace weft::mlx5::qp_context
