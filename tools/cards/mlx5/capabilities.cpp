// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/capabilities.hpp"

#include <algorithm>
#include <bit>

#include <hw/mlx5/commands.hpp>

#include "cards/mellanox_icm/faults.hpp"
#include "cards/mlx5/limits.hpp"

namespace weft::mlx5
{

namespace
{

using hw::mlx5::Field;

// Offsets are those in a page of capabilities. Fields are named as those of include/hw/mlx5 are.
// NOLINTBEGIN(readability-identifier-naming)
namespace general
{
constexpr Field log_max_srq_size{0x10, 31, 24};
constexpr Field log_max_qp_size{0x10, 23, 16};
constexpr Field log_max_qp{0x10, 4, 0};
constexpr Field log_max_srq{0x14, 20, 16};
constexpr Field log_max_cq_size{0x18, 23, 16};
constexpr Field log_max_cq{0x18, 4, 0};
constexpr Field log_max_eq_size{0x1c, 31, 24};
constexpr Field log_max_mkey{0x1c, 21, 16};
constexpr Field log_max_eq{0x1c, 3, 0};
constexpr Field max_indirection{0x20, 31, 24};
constexpr Field umr_extended_translation_offset{0x20, 7, 7};
constexpr Field log_max_klm_list_size{0x20, 5, 0};
constexpr Field log_max_requester_reads{0x28, 21, 16};
constexpr Field log_max_responder_reads{0x28, 5, 0};
constexpr Field pkey_table_size{0x30, 15, 0};
constexpr Field ack_delay{0x34, 20, 16};
constexpr Field port_type{0x34, 9, 8}; // 0: InfiniBand
constexpr Field num_ports{0x34, 7, 0};
constexpr Field log_max_message{0x38, 28, 24};
constexpr Field static_rates{0x3c, 31, 16};
constexpr Field cqe_version{0x3c, 3, 0};
constexpr Field ipoib_enhanced_offloads{0x40, 28, 28};
constexpr Field ipoib_basic_offloads{0x40, 27, 27};
constexpr Field umr_fence{0x40, 21, 20};      // 2: no fence needed
constexpr Field inline_scatter{0x40, 10, 10}; // sctr_data_cqe
constexpr Field atomic{0x40, 1, 1};
constexpr Field cq_overrun_ignore{0x44, 31, 31};
constexpr Field cq_resize{0x44, 30, 30};
constexpr Field cq_moderation{0x44, 29, 29};
constexpr Field block_loopback{0x44, 23, 23};
constexpr Field memory_windows{0x44, 14, 14}; // imaicl
constexpr Field qkey_violations{0x44, 9, 9};
constexpr Field pkey_violations{0x44, 8, 8};
constexpr Field set_deth_sqpn{0x44, 7, 7};
constexpr Field xrc{0x44, 3, 3};
constexpr Field ud{0x44, 2, 2};
constexpr Field uc{0x44, 1, 1};
constexpr Field rc{0x44, 0, 0};
constexpr Field log_page_size{0x48, 7, 0};
constexpr Field driver_version{0x4c, 30, 30};
constexpr Field log_blue_flame_size{0x4c, 20, 16};
constexpr Field max_send_wqe{0x50, 15, 0};
constexpr Field max_receive_wqe{0x54, 15, 0};
constexpr Field max_group_members{0x5c, 24, 0};
constexpr Field log_max_groups{0x60, 7, 0};
constexpr Field log_max_pd{0x64, 20, 16};
constexpr Field log_max_xrc_domain{0x64, 4, 0};
constexpr Field log_max_transport_domain{0x64, 28, 24};
constexpr Field log_max_rq{0x6c, 28, 24};
constexpr Field log_max_sq{0x6c, 20, 16};
constexpr Field log_max_tir{0x6c, 12, 8};
constexpr Field log_max_tis{0x6c, 4, 0};
constexpr Field log_max_rmp{0x70, 28, 24};
constexpr Field log_max_rqt{0x70, 20, 16};
constexpr Field log_max_rqt_size{0x70, 12, 8};
constexpr Field log_max_wq_size{0x78, 4, 0};
constexpr Field max_eqs{0x8c, 15, 0};
constexpr Field uars_per_page{0xa4, 31, 0};
constexpr Field mini_cqe_stride_index{0xb4, 3, 3};
constexpr Field padded_cqes{0xb4, 2, 2}; // cqe_128_always
constexpr Field compressed_cqes_128{0xb4, 1, 1};
constexpr Field compressed_cqes{0xb4, 0, 0};
constexpr Field max_compressed_cqes{0xb8, 15, 0};
} // namespace general

namespace atomic
{
constexpr Field endianness{0x08, 31, 30};
constexpr Field host_order_supported{0x08, 25, 25};
// Bits: 1 compare and swap, 2 fetch and add, 4 and 8 their masked forms.
constexpr Field operations{0x10, 15, 0};
constexpr Field qp_sizes{0x14, 15, 0}; // a bit for each operand size in bytes
} // namespace atomic

namespace enhanced_ipoib
{
constexpr Field checksums{0x00, 31, 31};
constexpr Field loopback_modifiable{0x00, 23, 23};
constexpr Field log_max_large_send{0x00, 20, 16};
constexpr Field log_max_rqt_size{0x00, 11, 8};
} // namespace enhanced_ipoib

// Properties of the flow tables for received packets.
namespace flow_tables
{
constexpr Field supported{0x40, 31, 31};
constexpr Field entry_modify{0x40, 28, 28};
constexpr Field root_modify{0x40, 27, 27};
constexpr Field miss_table{0x40, 26, 26};
constexpr Field table_modify{0x40, 25, 25};
constexpr Field log_max_size{0x44, 29, 24};
constexpr Field max_level{0x44, 7, 0};
constexpr Field log_max_tables{0x4c, 7, 0};
constexpr Field log_max_destinations{0x50, 7, 0};
constexpr Field log_max_entries{0x54, 7, 0};
// Header fields that groups may match, as a whole and by a mask.
constexpr Field fields{0x60, 31, 0};
constexpr Field field_bits{0x70, 31, 0};
constexpr std::uint32_t modelled_fields = 1u << 29 | 1u << 28 |            // ethertype, IP version
					  1u << 24 | 1u << 19 | 1u << 18 | // hop limit, addresses
					  1u << 17 | 1u << 16 |            // fragment, protocol
					  1u << 15 | 1u << 14 |            // ECN, DSCP
					  1u << 13 | 1u << 12 | 1u << 11 | 1u << 10 |
					  1u << 9; // ports, flags of TCP
} // namespace flow_tables
// NOLINTEND(readability-identifier-naming)

constexpr struct {
	Field field;
	std::uint32_t value;
} kGeneral[] = {
	{general::log_max_srq_size, limits::kLogSrqSize},
	{general::log_max_qp_size, limits::kLogQpSize},
	{general::log_max_srq, limits::kLogSrqs},
	{general::log_max_cq_size, limits::kLogCqSize},
	{general::log_max_cq, limits::kLogCqs},
	{general::log_max_eq_size, limits::kLogEqSize},
	{general::log_max_mkey, limits::kLogKeys},
	{general::log_max_eq, 7},
	{general::max_indirection, limits::kMostIndirections},
	{general::umr_extended_translation_offset, 1},
	{general::log_max_klm_list_size, limits::kLogPieces},
	{general::log_max_requester_reads, limits::kLogReads},
	{general::log_max_responder_reads, limits::kLogReads},
	{general::ack_delay, limits::kAckDelay},
	{general::port_type, 0},
	{general::log_max_message, limits::kLogMessage},
	{general::static_rates, 0x0fff},
	{general::cqe_version, 1},
	{general::ipoib_basic_offloads, 1},
	{general::umr_fence, 2},
	{general::inline_scatter, 1},
	{general::atomic, 1},
	{general::cq_overrun_ignore, 1},
	{general::cq_resize, 1},
	{general::cq_moderation, 1},
	{general::block_loopback, 1},
	{general::memory_windows, 1},
	{general::qkey_violations, 1},
	{general::pkey_violations, 1},
	{general::set_deth_sqpn, 1},
	{general::xrc, 1},
	{general::ud, 1},
	{general::uc, 1},
	{general::rc, 1},
	{general::log_page_size, limits::kLeastPageShift},
	{general::driver_version, 1},
	// BlueFlame is not supported, but doorbells are at the offset of its registers.
	{general::log_blue_flame_size, 9},
	{general::max_send_wqe, limits::kSendWqeBytes},
	{general::max_receive_wqe, limits::kReceiveWqeBytes},
	{general::max_group_members, limits::kMostMembers},
	{general::log_max_groups, limits::kLogGroups},
	{general::log_max_pd, limits::kLogPds},
	{general::log_max_xrc_domain, limits::kLogXrcDomains},
	{general::log_max_rmp, limits::kLogSrqs},
	{general::log_max_wq_size, limits::kLogSrqSize},
	{general::max_eqs, limits::kEqs},
	{general::uars_per_page, 1},
	{general::mini_cqe_stride_index, 1},
	{general::padded_cqes, 1},
	{general::compressed_cqes_128, 1},
	{general::compressed_cqes, 1},
	{general::max_compressed_cqes, limits::kMostCompressed},
};

// Further general capabilities of a card with enhanced IPoIB.
constexpr struct {
	Field field;
	std::uint32_t value;
} kGeneralEnhanced[] = {
	{general::ipoib_enhanced_offloads, 1},
	{general::log_max_transport_domain, limits::kLogTransportDomains},
	{general::log_max_rq, limits::kLogRawQueues},
	{general::log_max_sq, limits::kLogRawQueues},
	{general::log_max_tir, limits::kLogReceiveInterfaces},
	{general::log_max_tis, limits::kLogSendInterfaces},
	{general::log_max_rqt, limits::kLogQueueTables},
	{general::log_max_rqt_size, limits::kLogQueueTableSize},
};

using Layout = hw::mlx5::HcaCap;

void put_enhanced_ipoib(std::uint8_t *out)
{
	namespace offload = enhanced_ipoib;
	offload::checksums.set(out, 1);
	offload::loopback_modifiable.set(out, 1);
	offload::log_max_large_send.set(out, limits::kLogLargeSend);
	offload::log_max_rqt_size.set(out, limits::kLogQueueTableSize);
}

void put_flow_tables(std::uint8_t *out)
{
	namespace tables = flow_tables;
	tables::supported.set(out, 1);
	tables::entry_modify.set(out, 1);
	tables::root_modify.set(out, 1);
	tables::miss_table.set(out, 1);
	tables::table_modify.set(out, 1);
	tables::log_max_size.set(out, limits::kLogFlowTableSize);
	tables::max_level.set(out, limits::kMostFlowLevel);
	tables::log_max_tables.set(out, limits::kLogFlowTables);
	tables::log_max_destinations.set(out, 0);
	tables::log_max_entries.set(out, limits::kLogFlowEntries);
	tables::fields.set(out, tables::modelled_fields);
	tables::field_bits.set(out, tables::modelled_fields);
}

// Wrong values that a faulty card may report. Each contradicts another value, or is arithmetically
// impossible.
using Lie = void (*)(std::uint8_t *out);
constexpr Lie kLies[] = {
	[](std::uint8_t *out) { general::log_max_qp.set(out, 0); },
	[](std::uint8_t *out) { general::log_max_cq.set(out, 31); },
	[](std::uint8_t *out) { general::log_max_cq_size.set(out, 0); },
	[](std::uint8_t *out) { general::log_max_mkey.set(out, 0); },
	[](std::uint8_t *out) { general::log_max_srq.set(out, 31); },
	[](std::uint8_t *out) { general::max_eqs.set(out, 1); },
	[](std::uint8_t *out) { general::num_ports.set(out, 0); },
	[](std::uint8_t *out) { general::num_ports.set(out, 15); },
	[](std::uint8_t *out) { general::log_page_size.set(out, 31); },
	[](std::uint8_t *out) { general::max_send_wqe.set(out, 0); },
	[](std::uint8_t *out) { general::max_receive_wqe.set(out, 0xffff); },
	[](std::uint8_t *out) { general::log_blue_flame_size.set(out, 31); },
	[](std::uint8_t *out) { general::log_max_pd.set(out, 0); },
	[](std::uint8_t *out) { general::log_max_groups.set(out, 31); },
};

} // namespace

void Capabilities::reset()
{
	log_qps_ = limits::kLogQps;
	pkey_table_code_ = 0;
	atomic_endianness_ = 0;
}

bool Capabilities::query(std::uint32_t kind, bool current, std::span<std::uint8_t> page) const
{
	std::uint8_t *const out = page.data();
	std::ranges::fill(page, std::uint8_t{0});
	switch (kind) {
	case Layout::kind_general:
		for (const auto &row : kGeneral)
			row.field.set(out, row.value);
		if (enhanced_ipoib_)
			for (const auto &row : kGeneralEnhanced)
				row.field.set(out, row.value);
		general::num_ports.set(out, ports_);
		general::log_max_qp.set(out, current ? log_qps_ : limits::kLogQps);
		general::pkey_table_size.set(out, pkey_table_code_);
		return true;
	case Layout::kind_atomic:
		atomic::endianness.set(out, current ? atomic_endianness_ : 1);
		atomic::host_order_supported.set(out, 1);
		atomic::operations.set(out, 0xf);
		atomic::qp_sizes.set(out, 8);
		return true;
	case Layout::kind_enhanced_ipoib:
		if (enhanced_ipoib_)
			put_enhanced_ipoib(out);
		return enhanced_ipoib_;
	case Layout::kind_flow_tables:
		if (enhanced_ipoib_)
			put_flow_tables(out);
		return enhanced_ipoib_;
	default:
		return false;
	}
}

void Capabilities::distort(Faults &faults, std::uint32_t kind, std::span<std::uint8_t> page)
{
	if (kind == Layout::kind_general)
		mellanox_icm::contradict(faults, kLies, page.data());
}

bool Capabilities::set(std::uint32_t kind, std::span<const std::uint8_t> page)
{
	const std::uint8_t *const in = page.data();
	if (kind == Layout::kind_general) {
		// The P_Key table has 128 entries, whose code is 0; no other size is supported.
		if (general::log_max_qp.get(in) > limits::kLogQps ||
		    general::pkey_table_size.get(in) != pkey_table_code_)
			return false;
		log_qps_ = general::log_max_qp.get(in);
		return true;
	}
	if (kind == Layout::kind_atomic) {
		if (atomic::endianness.get(in) > 1)
			return false;
		atomic_endianness_ = atomic::endianness.get(in);
		return true;
	}
	return false;
}

} // namespace weft::mlx5
