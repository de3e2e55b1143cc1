// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses the work requests that the driver writes into the slots of send and receive queues.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hw/amso1100/work.hpp>

namespace weft::amso1100
{

// Maximum number of SGEs per request, and slot sizes of the two queues in bytes.
constexpr unsigned kMostSges = 4;
constexpr std::size_t kSendSlot = hw::amso1100::message_size;
constexpr std::size_t kReceiveSlot = 96;
static_assert(hw::amso1100::receive_request::sges + kMostSges * hw::amso1100::sge::size <=
	      kReceiveSlot);

struct Sge {
	std::uint32_t stag = 0;
	std::uint32_t length = 0;
	std::uint64_t offset = 0;
};

struct SgeList {
	std::array<Sge, kMostSges> entries{};
	unsigned count = 0;
	std::uint64_t length = 0; // total length

	std::span<const Sge> view() const { return std::span(entries).first(count); }
	// Calls @piece(sge, offset in the SGE, offset in the range, size) for each part of the
	// range of @size bytes from @offset on, until @piece returns false. The range must be
	// within the list.
	template<typename Piece>
	bool walk(std::uint64_t offset, std::size_t size, Piece &&piece) const
	{
		std::size_t done = 0;
		for (const Sge &sge : view()) {
			if (offset >= sge.length) {
				offset -= sge.length;
				continue;
			}
			const auto part = static_cast<std::size_t>(
				std::min<std::uint64_t>(size - done, sge.length - offset));
			if (part && !piece(sge, offset, done, part))
				return false;
			done += part;
			offset = 0;
		}
		return true;
	}
};

// Fields that the completion returns.
struct Posted {
	hw::amso1100::WorkId id{};
	std::uint8_t sge_count = 0;
	std::uint8_t flags = 0;
	std::uint64_t context = 0;
};

struct SendWork : Posted {
	SgeList sges{};
	std::uint32_t remote_stag = 0;
	std::uint64_t remote_offset = 0;
	// Set for a Read.
	std::uint32_t local_stag = 0, length = 0;
	std::uint64_t local_offset = 0;
	// If not ok, the request must fail with this status.
	hw::amso1100::Status fault = hw::amso1100::Status::ok;
};

struct ReceiveWork : Posted {
	SgeList sges{};
	hw::amso1100::Status fault = hw::amso1100::Status::ok;
};

// @most, @most_send and @most_write are the numbers of SGEs that were requested for the queue pair.
SendWork parse_send_work(std::span<const std::byte> slot, unsigned most_send, unsigned most_write);
ReceiveWork parse_receive_work(std::span<const std::byte> slot, unsigned most);

} // namespace weft::amso1100
