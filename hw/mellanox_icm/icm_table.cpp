// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "icm_table.hpp"
#include <kern/bits.hpp>

namespace mellanox_icm
{

namespace
{

constexpr size_t card_page = 4096;

} // namespace

IcmTable::IcmTable(CommandInterface &commands, struct device *dma_device, const IcmExtent &extent)
    : commands_(commands), dma_device_(dma_device), extent_(extent),
      log_entries_per_chunk_(kern::log2_ceil(chunk_bytes / extent.entry_bytes)),
      lock_(KERN_LOCK_CLASS("mellanox.icm"))
{
}

kern::Result<kern::Owned<IcmTable>> IcmTable::create(CommandInterface &commands,
						     struct device *dma_device,
						     const IcmExtent &extent, u32 reserved)
{
	auto table = KERN_TRY(
		kern::adopt(new (kern::Gfp::kernel) IcmTable(commands, dma_device, extent)));
	const u32 entries = 1u << extent.log_entries;
	table->chunks_ = KERN_TRY(
		kern::make_array<Chunk>(kern::Gfp::kernel, table->chunk_of(entries - 1) + 1));
	if (reserved) {
		KERN_TRY(table->get(0, reserved));
		table->reserved_ = reserved;
	}
	return table;
}

IcmTable::~IcmTable()
{
	if (reserved_)
		put(0, reserved_);
	kern::Guard guard(lock_);
	if (spare_)
		unmap(*spare_);
	kern_assert(resident_bytes() == 0);
}

kern::Result<> IcmTable::get_chunk(u32 index)
{
	Chunk &chunk = chunks_[index];
	if (&chunk == spare_) {
		spare_ = nullptr;
	} else if (!chunk.users) {
		const u64 start = u64{index} * chunk_bytes;
		const u64 rest = kern::align_up(extent_.bytes(), card_page) - start;
		const size_t bytes = rest < chunk_bytes ? rest : chunk_bytes;
		PageArea area = KERN_TRY(PageArea::create(dma_device_, bytes));
		KERN_TRY(area.map(commands_, hw::mellanox_icm::Opcode::map_icm,
				  extent_.base + start));
		chunk.area = std::move(area);
		resident_.add_relaxed(bytes);
	}
	chunk.users++;
	return {};
}

void IcmTable::put_chunk(u32 index)
{
	Chunk &chunk = chunks_[index];
	if (--chunk.users)
		return;
	if (spare_)
		unmap(*spare_);
	spare_ = &chunk;
}

void IcmTable::unmap(Chunk &chunk)
{
	const u64 index = static_cast<u64>(&chunk - chunks_.data());
	// A card that does not unmap the memory counts as failed; the listener has disabled its
	// access to memory.
	kern::ignore(commands_.execute_closing(
		{.opcode = hw::mellanox_icm::Opcode::unmap_icm,
		 .in_modifier = static_cast<u32>(chunk.area.bytes() / card_page),
		 .in_param = extent_.base + index * chunk_bytes}));
	resident_.add_relaxed(-chunk.area.bytes());
	chunk.area = PageArea();
}

kern::Result<> IcmTable::get(u32 first, u32 count)
{
	kern::Guard guard(lock_);
	const u32 last = chunk_of(first + count - 1);
	for (u32 at = chunk_of(first); at <= last; at++) {
		if (const auto got = get_chunk(at); !got) {
			while (at-- > chunk_of(first))
				put_chunk(at);
			return kern::Error{got.error()};
		}
	}
	return {};
}

void IcmTable::put(u32 first, u32 count)
{
	kern::Guard guard(lock_);
	const u32 last = chunk_of(first + count - 1);
	for (u32 at = chunk_of(first); at <= last; at++)
		put_chunk(at);
}

std::span<u8> IcmTable::entries_from(u32 index) const
{
	const size_t offset =
		size_t{index & ((1u << log_entries_per_chunk_) - 1)} * extent_.entry_bytes;
	return chunks_[chunk_of(index)].area.from(offset);
}

} // namespace mellanox_icm
