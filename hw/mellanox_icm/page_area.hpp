// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates the host memory that the driver gives to the card, in blocks as large as possible.
#pragma once
#include <kern/dma.hpp>
#include <kern/memory.hpp>
#include "command.hpp"

namespace mellanox_icm
{

/*
 * Zeroed memory of a given size, which is contiguous in the card's address space when it is mapped.
 * It must not be destroyed before the card has unmapped it or has been reset.
 */
class PageArea
{
public:
	/* bytes: a multiple of 4 KiB. Errors: ENOMEM. May sleep. */
	static kern::Result<PageArea> create(struct device *dma_device, size_t bytes);

	PageArea() = default;
	PageArea(PageArea &&) = default;
	PageArea &operator=(PageArea &&) = default;

	/*
	 * Gives all memory to the card (MAP_FA, MAP_ICM_AUX or MAP_ICM), with as many commands as
	 * necessary. icm_address: the address in ICM, only for MAP_ICM.
	 */
	kern::Result<> map(CommandInterface &commands, hw::mellanox_icm::Opcode opcode,
			   u64 icm_address = 0) const;

	/*
	 * Returns the CPU's address of byte `offset`. Blocks have at least the size of a page, so
	 * an object that is aligned within a page is contiguous.
	 */
	u8 *at(size_t offset) const { return from(offset).data(); }
	/* Returns the memory from the offset to the end of its block. */
	std::span<u8> from(size_t offset) const;
	size_t bytes() const { return bytes_; }

private:
	struct Piece {
		kern::DmaBuffer buffer;
		size_t start;
	};
	/* A chunk of ICM usually has few blocks; the firmware's area may have more. */
	kern::OwnedArray<Piece> pieces_;
	size_t count_ = 0;
	size_t bytes_ = 0;
};

/*
 * Maps a page of a program into ICM (MAP_ICM). The card uses it until unmap_program_page(). Errors:
 * those of commands. May sleep.
 */
kern::Result<> map_program_page(CommandInterface &commands, u64 icm_address, u64 bus_address);
/* Unmaps the page (UNMAP_ICM). A card that does not release it counts as failed. May sleep. */
void unmap_program_page(CommandInterface &commands, u64 icm_address);

} // namespace mellanox_icm
