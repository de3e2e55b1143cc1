// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Memory regions and windows.
#pragma once
#include <kern/dma.hpp>
#include <rdma/driver.hpp>
#include "hca.hpp"
#include "user_queue.hpp"

namespace connectx {

/* A memory key's entry in the card's protection table, from SW2HW_MPT to HW2SW_MPT. */
class ProtectionEntry {
public:
	ProtectionEntry() = default;
	ProtectionEntry(ProtectionEntry &&other) noexcept
	    : hca_(std::exchange(other.hca_, nullptr)), number_(std::move(other.number_)),
	      hold_(std::move(other.hold_)), live_(other.live_)
	{
	}
	ProtectionEntry &operator=(ProtectionEntry &&other) noexcept
	{
		std::swap(hca_, other.hca_);
		number_ = std::move(other.number_);
		hold_ = std::move(other.hold_);
		std::swap(live_, other.live_);
		return *this;
	}
	~ProtectionEntry() { kern::ignore(close()); }

	static kern::Result<ProtectionEntry> create(Hca &hca);
	/* entry: MptEntry without its key. */
	kern::Result<> open(const u8 *entry);
	/* EBUSY while windows are bound to it; it then stays. */
	kern::Result<> close();
	/* The first key: the variant changes with registrations. */
	u32 key() const { return number_.value() << 8; }

private:
	Hca *hca_ = nullptr;
	Number number_;
	IcmHold hold_;
	bool live_ = false;
};

class Mr {
public:
	using Object = rdma::DriverObject<ib_mr, Mr>;
	static Mr &of(ib_mr *mr) { return Object::state(mr); }

	Mr(Hca &hca, ib_mr &verbs) : verbs_(verbs), hca_(hca) {}

	/* All of memory, by DMA addresses. */
	kern::Result<> start_dma(int access);
	/* Pages to come by a work request. */
	kern::Result<> start_fast(u32 max_pages);
	/* A program's memory. Context: process, the program's. */
	kern::Result<> start_user(u64 start, u64 length, u64 iova, int access);
	/* As the verb has it; what does not change is as it was. Context: process, the program's. */
	kern::Result<> change_user(int flags, u64 start, u64 length, u64 iova, int access, ib_pd *pd);
	kern::Result<> stop() { return entry_.close(); }

	/* ib_map_mr_sg(). Any context. */
	int map(const ib_dma_segment *segments, int count, unsigned int *offset);
	u64 page_list_address() const { return page_list_.address(); }

private:
	kern::Result<> open_user(const UserPages &pages, u64 length, u64 iova, int access, ib_pd *pd);

	ib_mr &verbs_;
	Hca &hca_;
	// Both are the card's until the entry is closed.
	UserPages user_pages_;
	MttRange pages_;
	ProtectionEntry entry_;
	int access_ = 0;
	kern::DmaBuffer page_list_;
	u32 max_pages_ = 0;
	u32 mapped_ = 0;
};

class Mw {
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

} // namespace connectx
