/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The buffers that all connections of an interface receive into: an SRQ of blocks of pages, each
 * large enough for any packet. Large packets are handed to the stack in place if a new block can
 * replace theirs. They are copied if not, or if they would waste a block.
 *
 * Context: NAPI of the owner, unless stated otherwise.
 */
#pragma once

#include "counters.hpp"
#include "wire.hpp"

#include <kern/dma.hpp>
#include <kern/memory.hpp>
#include <kern/netdev.hpp>
#include <rdma/ib_verbs.h>

namespace ipoib
{

/* Meaning of a packet's flag for a missing checksum (Header::unsummed). */
enum class Unsummed : u8 {
	nothing, /* the sender has not agreed to omit checksums: the packet has one */
	missing, /* agreed */
	/* the agreement has ended, or belonged to a former connection: the packet is dropped */
	lost,
};

class LargeReceive
{
public:
	/* Receives of an interface in connected mode: 20 MiB. */
	static constexpr u32 depth = 320;
	static constexpr u32 block_order = 4;
	static constexpr u32 block_bytes = u32{kern::page_size} << block_order;
	static_assert(block_bytes >= connected_bytes);

	~LargeReceive() { kern_assert(slots_.empty()); }

	/*
	 * Blocks for the whole queue, posted to it. Context: process. Errors: ENOMEM, those of
	 * ib_post_srq_recv().
	 */
	kern::Result<> fill(net_device *dev, ib_device *device, ib_srq *srq, u32 lkey);
	/* Frees all memory. The SRQ has been destroyed. Context: process. */
	void reclaim();

	/* True if a completion is of a receive. */
	static bool owns(const ib_wc &wc) { return wc.wr_id < depth; }
	void receive(kern_napi &napi, const ib_wc &wc, Unsummed unsummed);
	/*
	 * Posts free buffers. Returns false if the queue accepts none and has none, so that it will
	 * never receive anything.
	 */
	bool post();

	const ReceiveCounters &counters() const { return counters_; }

private:
	struct Block {
		page *pages;
		u64 dma;
	};
	struct Slot {
		ib_recv_wr wr;
		ib_sge sge;
		Block block;
	};
	/*
	 * Blocks that the stack uses, with a reference held here: reused when the stack is done
	 * with them. This many at most, 8 MiB; packets beyond that are copied.
	 */
	static constexpr u32 spares_max = 128;
	static_assert((spares_max & (spares_max - 1)) == 0);

	kern::Result<Block> make(kern::Gfp flags);
	void release(const Block &block);
	void install(Slot &slot, const Block &block);
	bool take_spare(Block &block);
	bool take_another(Block &block);
	void deliver(kern_napi &napi, Slot &slot, u32 length, Unsummed unsummed);
	void append(Slot &slot);

	net_device *dev_ = nullptr;
	ib_device *device_ = nullptr;
	ib_srq *srq_ = nullptr;
	kern::OwnedArray<Slot> slots_;
	Block spares_[spares_max]{};
	u32 spares_first_ = 0, spares_end_ = 0; /* modulo spares_max */
	ib_recv_wr *back_first_ = nullptr;      /* first request to post */
	ib_recv_wr *back_last_ = nullptr;
	u32 back_ = 0;
	ReceiveCounters counters_{};
};

} // namespace ipoib
