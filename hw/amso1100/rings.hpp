// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The rings of the Ethernet function, which lie in the card's memory. There are no locks: the owner
// of a ring serialises access.
#pragma once
#include <hw/amso1100/registers.hpp>
#include <kern/dma.hpp>
#include <kern/memory.hpp>
#include <kern/mmio.hpp>

namespace amso1100
{

namespace wire = hw::amso1100;

/*
 * Frames to transmit. The caller owns a slot from put() until finished() returns it; slots are
 * returned in order.
 */
class TransmitRing
{
public:
	/*
	 * @ring: its descriptors. The position starts at the first one, as the card's does, and is
	 * not changed by reset().
	 */
	void attach(kern::Mmio ring) { ring_ = static_cast<kern::Mmio &&>(ring); }
	/* The card owns no descriptor any more; outstanding ones are returned by take_back(). */
	void reset();

	bool full() const { return outstanding_ == wire::most_transmits; }
	bool empty() const { return !outstanding_; }
	/*
	 * The ring must not be full. The frame is sent at once, because there is no doorbell.
	 * Returns the slot.
	 */
	u32 put(u64 address, u16 length);
	/* True if the card has completed the oldest entry; returns its slot. */
	bool finished(u32 &slot);
	/*
	 * Returns the oldest frame, regardless of the card; false if there is none. Must be called
	 * after reset().
	 */
	bool take_back(u32 &slot);

private:
	static u64 entry(u32 slot) { return u64{slot} * wire::transmit::size; }

	kern::Mmio ring_;
	u32 next_ = 0;
	u32 oldest_ = 0;
	u32 outstanding_ = 0;
};

/* Buffers for received frames. */
class ReceiveRing
{
public:
	/* @ring: its descriptors; @word: the word through which the index is exchanged. */
	void attach(kern::Mmio ring, kern::Mmio word, u32 index)
	{
		ring_ = static_cast<kern::Mmio &&>(ring);
		word_ = static_cast<kern::Mmio &&>(word);
		index_ = index;
	}

	/*
	 * Allocates buffers for frames of up to @room bytes. May sleep. Errors: ENOMEM; nothing is
	 * allocated then.
	 */
	kern::Result<> allocate(device *device, u32 room);
	/*
	 * Frees the buffers. The card must not have any: quiet() was called, or give_all() was not.
	 */
	void release();
	/*
	 * Makes the card drop all buffers, and begins at the slot at which the card continues. May
	 * sleep, for two seconds if the card does not answer: EIO.
	 */
	kern::Result<> quiet();
	/* Gives all buffers to the card. Called after quiet(). */
	void give_all();

	enum class Arrival : u8 { none, frame, bad };
	/*
	 * Reads the next buffer, @bytes: a frame of @length, valid until advance(), or one that the
	 * card marks as bad.
	 */
	Arrival peek(const u8 *&bytes, u32 &length) const;
	/* Returns the next buffer to the card, and advances to the following one. */
	void advance();
	/* Writes the read position of the host to the card. */
	void publish() const { word_.write_be32(0, index_); }

private:
	void give(u32 index);
	wire::ReceiveHeader &header(u32 index) const
	{
		return *buffers_[index].as<wire::ReceiveHeader>();
	}
	static u64 entry(u32 index) { return u64{index} * wire::receive::size; }

	kern::Mmio ring_;
	kern::Mmio word_;
	kern::OwnedArray<kern::DmaBuffer> buffers_;
	u32 room_ = 0;
	u32 index_ = 0;
};

} // namespace amso1100
