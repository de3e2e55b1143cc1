// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Host memory that the driver gives to the card, in pieces as large as can be allocated.
#pragma once
#include <kern/dma.hpp>
#include <kern/memory.hpp>
#include "command.hpp"

namespace mellanox_icm
{

/*
 * Zeroed memory of a given size, which is contiguous for the card once it is mapped. It must not be
 * destroyed before the card has unmapped it or has been reset.
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
	 * MAP_FA, MAP_ICM_AUX or MAP_ICM: gives all of it to the card, in as many commands as it
	 * takes. icm_address: where in ICM, for MAP_ICM only.
	 */
	kern::Result<> map(CommandInterface &commands, hw::mellanox_icm::Opcode opcode,
			   u64 icm_address = 0) const;

	/*
	 * The CPU's address of byte `offset`; pieces are at least a page, so nothing aligned below
	 * that is split.
	 */
	u8 *at(size_t offset) const { return from(offset).data(); }
	/* Returns the bytes from the offset to the end of the piece. */
	std::span<u8> from(size_t offset) const;
	size_t bytes() const { return bytes_; }

private:
	struct Piece {
		kern::DmaBuffer buffer;
		size_t start;
	};
	/* A chunk of ICM of the usual size has few; the firmware's area may have more. */
	kern::OwnedArray<Piece> pieces_;
	size_t count_ = 0;
	size_t bytes_ = 0;
};

/*
 * MAP_ICM of a page of a program, which the card uses until take_back_page(). Errors: those of
 * commands. May sleep.
 */
kern::Result<> lend_page(CommandInterface &commands, u64 icm_address, u64 bus_address);
/* UNMAP_ICM. A card that does not release the page counts as failed. May sleep. */
void take_back_page(CommandInterface &commands, u64 icm_address);

} // namespace mellanox_icm
