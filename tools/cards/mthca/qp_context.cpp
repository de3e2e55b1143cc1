// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/qp_context.hpp"

#include <optional>

#include "cards/hca/port.hpp"
#include "cards/mthca/limits.hpp"
#include "cards/mellanox_icm/codes.hpp"
#include "cards/mellanox_icm/qp_context.hpp"

namespace weft::mthca::qp_context
{

using hw::mthca::QpContext;
using hw::mthca::Status;
using Path = hw::mthca::PathLayout;
using mellanox_icm::qp_context::byte;
namespace qp_opt = hw::mthca::qp_opt;

namespace
{

// Decodes all fields except the port, the P_Key index and the timeouts, which have their own opt
// bits.
void decode_path(const std::uint8_t *layout, AddressPath &path)
{
	mellanox_icm::qp_context::decode_address<Path>(layout, path);
	path.sl = byte(Path::sl, layout);
}

void encode_path(const AddressPath &path, std::uint8_t rnr_retry, std::uint8_t *layout)
{
	Path::port.set(layout, path.port);
	mellanox_icm::qp_context::encode_address<Path>(path, layout);
	Path::rnr_retry.set(layout, rnr_retry);
	Path::sl.set(layout, path.sl);
}

// Decodes the port. Port 0 leaves the port unchanged (iPXE sends it in INIT2RTR). Returns false for
// a port that the card does not have.
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
	// The stride must have space for the link and one data segment.
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
	}
	// A datagram QP has no path.
	if ((to_rtr && connected) || chosen(qp_opt::primary_path)) {
		decode_path(primary, qp.path);
		if (!decode_port(primary, ports, qp.path) ||
		    (qp.path.grh && qp.path.sgid_index >= CardPort::kGids))
			return Status::bad_parameter;
	}
	if (chosen(qp_opt::port) && !decode_port(primary, ports, qp.path))
		return Status::bad_parameter;
	if (to_rts || chosen(qp_opt::rnr_retry))
		qp.rnr_retry = byte(Path::rnr_retry, primary);
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
	QpContext::log_sq_size.set(context, qp.send_queue.log_size);
	QpContext::log_sq_stride.set(context, qp.send_queue.log_stride - 4u);
	if (qp.has_receive_queue) {
		QpContext::log_rq_size.set(context, qp.receive_queue.log_size);
		QpContext::log_rq_stride.set(context, qp.receive_queue.log_stride - 4u);
	}
	QpContext::uar_page.set(context, qp.uar_page);
	encode_path(qp.path, qp.rnr_retry, context + QpContext::primary_path);
	QpContext::wqe_base_high.set(context, qp.wqe_base_high);
	QpContext::wqe_lkey.set(context, qp.wqe_lkey);
	QpContext::signal_all.set(context, qp.signal_all);
	hw::mellanox_icm::store_be32(context, QpContext::send_base.offset, qp.send_queue.base);
	QpContext::send_record.set(context, qp.send_queue.record);
	QpContext::invalid_credits.set(context, qp.responder_invalid_credits);
	hw::mellanox_icm::store_be32(context, QpContext::receive_base.offset,
				     qp.receive_queue.base);
	QpContext::receive_record.set(context, qp.receive_queue.record);
}

} // namespace weft::mthca::qp_context
