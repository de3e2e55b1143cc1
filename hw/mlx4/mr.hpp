// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements memory regions and windows of a ConnectX, including fast registration.
#pragma once
#include <kern/dma.hpp>
#include <rdma/driver.hpp>
#include "../mellanox_icm/protection_entry.hpp"
#include "hca.hpp"
#include "user_queue.hpp"

namespace mlx4
{

class Mr
{
public:
	using Object = rdma::DriverObject<ib_mr, Mr>;
	static Mr &of(ib_mr *mr) { return Object::state(mr); }

	Mr(Hca &hca, ib_mr &verbs) : verbs_(verbs), hca_(hca) {}

	/* Creates a region that covers all memory, addressed by DMA addresses. */
	kern::Result<> start_dma(int access);
	/* Creates a region for fast registration, whose pages a work request sets later. */
	kern::Result<> start_fast(u32 max_pages);
	/* Registers a program's memory. Context: process of the program. */
	kern::Result<> start_user(UserContext *, u64 start, u64 length, u64 iova, int access);
	/*
	 * Changes a region. Arguments: as in the verb; for attributes that do not change, the
	 * current values. Context: process of the program.
	 */
	kern::Result<> change_user(int flags, u64 start, u64 length, u64 iova, int access,
				   ib_pd *pd);
	kern::Result<> stop() { return entry_.close(); }

	/* Implements ib_map_mr_sg(). Context: any. */
	int map(const ib_dma_segment *segments, int count, unsigned int *offset);
	u64 page_list_address() const { return page_list_.address(); }

private:
	kern::Result<> open_user(const UserPages &pages, u64 length, u64 iova, int access,
				 ib_pd *pd);

	kern::Result<ProtectionEntry> make_entry()
	{
		return ProtectionEntry::create(hca_.commands(), hca_.mpts(),
					       hca_.table(IcmRegion::dmpt));
	}

	ib_mr &verbs_;
	Hca &hca_;
	// The card uses both until the entry is closed.
	UserPages user_pages_;
	MttRange pages_;
	ProtectionEntry entry_;
	int access_ = 0;
	kern::DmaBuffer page_list_;
	u32 max_pages_ = 0;
	u32 mapped_ = 0;
};

class Mw
{
public:
	using Object = rdma::DriverObject<ib_mw, Mw>;
	static Mw &of(ib_mw *mw) { return Object::state(mw); }

	Mw(Hca &hca, ib_mw &verbs) : verbs_(verbs), hca_(hca) {}
	kern::Result<> start();
	kern::Result<> stop() { return entry_.close(); }

private:
	ib_mw &verbs_;
	Hca &hca_;
	ProtectionEntry entry_;
};

inline constexpr u32 max_fast_pages = 511;

} // namespace mlx4
