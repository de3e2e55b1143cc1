// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/work_request.hpp"

#include "cards/amso1100/bytes.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;
using wire::Status;
using wire::WorkId;

namespace
{

constexpr std::uint64_t kMostLength = 0xffffffff;

Posted parse_header(std::span<const std::byte> slot)
{
	return {.id = static_cast<WorkId>(slot[wire::header::id]),
		.sge_count = static_cast<std::uint8_t>(slot[wire::work::sge_count]),
		.flags = static_cast<std::uint8_t>(slot[wire::work::flags]),
		.context = load_be<std::uint64_t>(slot, wire::header::context)};
}

// Parses SGEs. The slot must have space for kMostSges.
Status parse_sges(std::span<const std::byte> slot, std::size_t at, unsigned count, unsigned most,
		  SgeList &list)
{
	if (count > most || count > kMostSges)
		return Status::invalid_sgl_length;
	for (; list.count < count; ++list.count, at += wire::sge::size) {
		Sge &sge = list.entries[list.count];
		sge.stag = load_be<std::uint32_t>(slot, at + wire::sge::stag);
		sge.length = load_be<std::uint32_t>(slot, at + wire::sge::length);
		sge.offset = load_be<std::uint64_t>(slot, at + wire::sge::offset);
		list.length += sge.length;
	}
	return list.length > kMostLength ? Status::total_length_too_big : Status::ok;
}

} // namespace

SendWork parse_send_work(std::span<const std::byte> slot, unsigned most_send, unsigned most_write)
{
	SendWork work{parse_header(slot)};
	const auto word = [&](std::size_t at) { return load_be<std::uint32_t>(slot, at); };
	std::uint32_t total = 0;
	switch (work.id) {
	case WorkId::send:
	case WorkId::send_invalidate:
	case WorkId::send_solicited:
	case WorkId::send_solicited_invalidate:
		work.remote_stag = word(wire::send::remote_stag);
		total = word(wire::send::total);
		work.fault =
			parse_sges(slot, wire::send::sges, work.sge_count, most_send, work.sges);
		break;
	case WorkId::rdma_write:
		work.remote_stag = word(wire::rdma_write::remote_stag);
		work.remote_offset = load_be<std::uint64_t>(slot, wire::rdma_write::remote_offset);
		total = word(wire::rdma_write::total);
		work.fault = parse_sges(slot, wire::rdma_write::sges, work.sge_count, most_write,
					work.sges);
		break;
	case WorkId::rdma_read:
	case WorkId::rdma_read_invalidate:
		work.local_stag = word(wire::rdma_read::local_stag);
		work.local_offset = load_be<std::uint64_t>(slot, wire::rdma_read::local_offset);
		work.remote_stag = word(wire::rdma_read::remote_stag);
		work.remote_offset = load_be<std::uint64_t>(slot, wire::rdma_read::remote_offset);
		work.length = word(wire::rdma_read::length);
		return work;
	case WorkId::fast_register:
	case WorkId::invalidate:
	case WorkId::nop:
		return work;
	default:
		work.fault = Status::invalid_wr_type;
		return work;
	}
	if (work.fault == Status::ok && total != work.sges.length)
		work.fault = Status::invalid_sgl_length;
	return work;
}

ReceiveWork parse_receive_work(std::span<const std::byte> slot, unsigned most)
{
	ReceiveWork work{parse_header(slot)};
	// Complete the slot as a receive request, even if it has another type.
	const bool named = work.id == WorkId::receive;
	work.id = WorkId::receive;
	work.fault = parse_sges(slot, wire::receive_request::sges, work.sge_count, most, work.sges);
	if (!named)
		work.fault = Status::invalid_wr_type;
	return work;
}

} // namespace weft::amso1100
