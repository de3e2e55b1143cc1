/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Allocates the receive buffers that all connections of an interface share: an SRQ of blocks of
 * pages, each large enough for any packet. A large packet is passed to the stack in its block if a
 * new block can replace it. Otherwise the packet is copied, as are packets that are too small to be
 * worth a block.
 *
 * All functions are called in the NAPI context of the owner (Connected), unless stated otherwise.
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

/* What the receiver does with a packet whose header has the flag Header::unsummed. */
enum class Unsummed : u8 {
	/*
	 * the sender has not agreed to omit checksums: the flag is ignored, the packet has a
	 * checksum
	 */
	nothing,
	missing, /* agreed: the stack must not verify the checksum */
	/* the agreement has ended, or the connection is gone: the packet is dropped */
	lost,
};

class LargeReceive
{
public:
	/* Number of buffers of an interface in connected mode: 20 MiB. */
	static constexpr u32 depth = 320;
	static constexpr u32 block_order = 4;
	static constexpr u32 block_bytes = u32{kern::page_size} << block_order;
	static_assert(block_bytes >= connected_bytes);

	~LargeReceive() { kern_assert(slots_.empty()); }

	/*
	 * Allocates the blocks of all slots, and posts them to the SRQ. Context: process. Errors:
	 * ENOMEM; EIO if the SRQ does not accept all of them.
	 */
	kern::Result<> fill(net_device *dev, ib_device *device, ib_srq *srq, u32 lkey);
	/* Frees all memory, after the SRQ has been destroyed. Context: process. */
	void reclaim();

	/* Returns true if the completion is that of a receive. */
	static bool owns(const ib_wc &wc) { return wc.wr_id < depth; }
	/*
	 * Passes a received packet to the stack or drops it. The buffer is posted with the next
	 * post().
	 */
	void receive(kern_napi &napi, const ib_wc &wc, Unsummed unsummed);
	/*
	 * Posts free buffers. Returns false if the SRQ accepts none and holds none, so that it will
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
	 * Blocks that were passed to the stack and to which this queue still holds a reference.
	 * They are reused when the stack has released them. At most this many (8 MiB); packets
	 * beyond that are copied.
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
	u32 spares_first_ = 0, spares_end_ = 0; /* indexes modulo spares_max */
	ib_recv_wr *back_first_ = nullptr;      /* chain of requests to post */
	ib_recv_wr *back_last_ = nullptr;
	u32 back_ = 0;
	ReceiveCounters counters_{};
};

} // namespace ipoib
