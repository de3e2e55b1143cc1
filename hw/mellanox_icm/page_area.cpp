// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "page_area.hpp"
#include <kern/bits.hpp>

namespace mellanox_icm
{

namespace
{

constexpr size_t card_page = 4096;
constexpr size_t largest_piece = 256 * 1024;

} // namespace

kern::Result<PageArea> PageArea::create(struct device *dma_device, size_t bytes)
{
	// Try ever smaller blocks. With each size, the allocation starts from the beginning,
	// because an array for the smallest size would be large.
	for (size_t piece = largest_piece; piece >= card_page; piece /= 4) {
		PageArea area;
		area.pieces_ = KERN_TRY(kern::make_array<Piece>(kern::Gfp::kernel,
								kern::div_round_up(bytes, piece)));
		while (area.bytes_ < bytes) {
			const size_t rest = bytes - area.bytes_;
			const size_t size =
				rest < piece ? size_t{1} << (63 - __builtin_clzll(rest)) : piece;
			if (area.count_ == area.pieces_.size())
				break;
			auto buffer = kern::DmaBuffer::create(
				dma_device, size, kern::Gfp::kernel | kern::Gfp::no_warn);
			if (!buffer)
				break;
			area.pieces_[area.count_++] = {buffer.take(), area.bytes_};
			area.bytes_ += size;
		}
		if (area.bytes_ >= bytes)
			return area;
	}
	return kern::Error{-ENOMEM};
}

kern::Result<> PageArea::map(CommandInterface &commands, hw::mellanox_icm::Opcode opcode,
			     u64 icm_address) const
{
	constexpr unsigned int per_command =
		hw::mellanox_icm::mailbox_max / hw::mellanox_icm::PageMapping::size;
	for (size_t i = 0; i < count_;) {
		auto mailbox = KERN_TRY(commands.mailbox());
		unsigned int entries = 0;
		for (; i < count_ && entries < per_command; i++, entries++) {
			const Piece &piece = pieces_[i];
			u8 *entry = mailbox.bytes() + entries * hw::mellanox_icm::PageMapping::size;
			if (opcode == hw::mellanox_icm::Opcode::map_icm)
				hw::mellanox_icm::PageMapping::virtual_address.set(
					entry, icm_address + piece.start);
			hw::mellanox_icm::PageMapping::bus_address.set(entry,
								       piece.buffer.address());
			hw::mellanox_icm::PageMapping::log_pages.set(
				entry, kern::log2_ceil(piece.buffer.size() / card_page));
		}
		KERN_TRY(commands.execute_in({.opcode = opcode, .in_modifier = entries}, mailbox));
	}
	return {};
}

kern::Result<> map_program_page(CommandInterface &commands, u64 icm_address, u64 bus_address)
{
	using hw::mellanox_icm::PageMapping;
	auto mailbox = KERN_TRY(commands.mailbox(PageMapping::size));
	PageMapping::virtual_address.set(mailbox.bytes(), icm_address);
	PageMapping::bus_address.set(mailbox.bytes(), bus_address);
	return commands.execute_in({.opcode = hw::mellanox_icm::Opcode::map_icm, .in_modifier = 1},
				   mailbox);
}

void unmap_program_page(CommandInterface &commands, u64 icm_address)
{
	kern::ignore(commands.execute_closing({.opcode = hw::mellanox_icm::Opcode::unmap_icm,
					       .in_modifier = 1,
					       .in_param = icm_address}));
}

std::span<u8> PageArea::from(size_t offset) const
{
	size_t i = 0;
	while (i + 1 < count_ && pieces_[i + 1].start <= offset)
		i++;
	const kern::DmaBuffer &buffer = pieces_[i].buffer;
	return std::span(buffer.as<u8>(), buffer.size()).subspan(offset - pieces_[i].start);
}

} // namespace mellanox_icm
