// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts the QP context fields that mlx4 and mthca cards both have. Each card's layout has the
// same field names, but different offsets.
#pragma once

#include <cstdint>
#include <cstring>

#include <hw/mellanox_icm/contexts.hpp>

#include "cards/hca/queue_pair.hpp"
#include "cards/mellanox_icm/qp_transitions.hpp"

namespace weft::mellanox_icm::qp_context
{

inline std::uint8_t byte(const hw::mellanox_icm::Field &field, const std::uint8_t *base)
{
	return static_cast<std::uint8_t>(field.get(base));
}

// Decodes the address of a path, except for fields that have their own opt bits.
template<class Path>
void decode_address(const std::uint8_t *layout, hca::AddressPath &path)
{
	path.grh = Path::grh.get(layout);
	path.source_path_bits = byte(Path::source_path_bits, layout);
	path.remote_lid = static_cast<std::uint16_t>(Path::remote_lid.get(layout));
	path.sgid_index = byte(Path::sgid_index, layout);
	path.static_rate = byte(Path::static_rate, layout);
	path.hop_limit = byte(Path::hop_limit, layout);
	path.traffic_class = byte(Path::traffic_class, layout);
	path.flow_label = Path::flow_label.get(layout);
	std::memcpy(path.remote_gid.raw, layout + Path::remote_gid, sizeof(path.remote_gid.raw));
}

template<class Path>
void encode_address(const hca::AddressPath &path, std::uint8_t *layout)
{
	Path::pkey_index.set(layout, path.pkey_index);
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
}

// Decodes the attributes that a transition requires or that the opt mask selects. Returns false if
// the mask selects an alternate path, or a migration state other than `migrated`, because these
// cards do not support path migration.
template<class Context, class Path>
bool decode_attributes(const std::uint8_t *context, std::uint32_t opt_mask, Required required,
		       hca::QueuePairAttributes &qp)
{
	namespace qp_opt = hw::mellanox_icm::qp_opt;
	using hw::mellanox_icm::MigrationState;
	const std::uint8_t *const primary = context + Context::primary_path;
	const bool to_rtr = required == Required::to_rtr;
	const bool to_rts = required == Required::to_rts;
	const auto chosen = [opt_mask](std::uint32_t bit) { return (opt_mask & bit) != 0; };

	if (to_rtr) {
		qp.log_max_message = byte(Context::log_max_message, context);
		qp.remote_qpn = Context::remote_qpn.get(context);
		qp.initial_receive_psn = Context::next_receive_psn.get(context);
	}
	if (to_rtr || chosen(qp_opt::rra_max))
		qp.log_responder_reads = byte(Context::rra_max, context);
	if (to_rtr || chosen(qp_opt::min_rnr_timer))
		qp.min_rnr_timer = byte(Context::min_rnr_timer, context);

	if (to_rts) {
		qp.initial_send_psn = Context::next_send_psn.get(context);
		qp.ack_request_frequency = byte(Context::ack_request_frequency, context);
	}
	if (to_rts || chosen(qp_opt::sra_max))
		qp.log_requester_reads = byte(Context::sra_max, context);
	if (to_rts || chosen(qp_opt::retry_count))
		qp.retry_count = byte(Context::retry_count, context);
	if (to_rts || chosen(qp_opt::ack_timeout))
		qp.path.ack_timeout = byte(Path::ack_timeout, primary);

	if (chosen(qp_opt::pkey_index))
		qp.path.pkey_index = byte(Path::pkey_index, primary);
	if (chosen(qp_opt::qkey))
		qp.qkey = Context::qkey.get(context);
	if (chosen(qp_opt::remote_read))
		qp.remote_read = Context::remote_read.get(context);
	if (chosen(qp_opt::remote_write))
		qp.remote_write = Context::remote_write.get(context);
	if (chosen(qp_opt::remote_atomic))
		qp.remote_atomic = Context::remote_atomic.get(context);
	const auto migration = static_cast<MigrationState>(Context::migration_state.get(context));
	return !chosen(qp_opt::alternate_path) &&
	       (!chosen(qp_opt::migration_state) || migration == MigrationState::migrated);
}

// Encodes the attributes and the progress of the queues for a query.
template<class Context>
void encode_attributes(const hca::QueuePair &qp, const hca::QueuePairProgress &progress,
		       std::uint8_t *context)
{
	using hw::mellanox_icm::MigrationState;
	Context::state.set(context, static_cast<std::uint32_t>(qp.state));
	Context::migration_state.set(context, static_cast<std::uint32_t>(MigrationState::migrated));
	Context::pd.set(context, qp.pd);
	Context::mtu.set(context, qp.mtu);
	Context::log_max_message.set(context, qp.log_max_message);
	Context::local_qpn.set(context, qp.qpn);
	Context::remote_qpn.set(context, qp.remote_qpn);
	Context::ack_request_frequency.set(context, qp.ack_request_frequency);
	Context::sra_max.set(context, qp.log_requester_reads);
	Context::retry_count.set(context, qp.retry_count);
	Context::current_rnr_retry.set(context, progress.current_rnr_retry);
	Context::current_retry.set(context, progress.current_retry);
	Context::next_send_psn.set(context, progress.next_send_psn);
	Context::send_cqn.set(context, qp.send_cqn);
	Context::last_acked_psn.set(context, progress.last_acked_psn);
	Context::ssn.set(context, progress.ssn);
	Context::rra_max.set(context, qp.log_responder_reads);
	Context::remote_read.set(context, qp.remote_read);
	Context::remote_write.set(context, qp.remote_write);
	Context::remote_atomic.set(context, qp.remote_atomic);
	Context::min_rnr_timer.set(context, qp.min_rnr_timer);
	Context::next_receive_psn.set(context, progress.next_receive_psn);
	Context::receive_cqn.set(context, qp.receive_cqn);
	Context::qkey.set(context, qp.qkey);
	Context::srq_enable.set(context, qp.uses_srq);
	Context::srqn.set(context, qp.srqn);
	Context::receive_msn.set(context, progress.receive_msn);
	Context::rq_counter.set(context, progress.rq_counter);
	Context::sq_counter.set(context, progress.sq_counter);
}

} // namespace weft::mellanox_icm::qp_context
