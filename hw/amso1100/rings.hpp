// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the rings of the Ethernet function, which are in the card's memory. There are no
// locks: the owner of a ring serializes the calls.
#pragma once
#include <hw/amso1100/registers.hpp>
#include <kern/dma.hpp>
#include <kern/memory.hpp>
#include <kern/mmio.hpp>

namespace amso1100
{

namespace wire = hw::amso1100;

/*
 * Frames to transmit. The caller of put() owns the slot's data until finished() returns the slot.
 * Slots are returned in order.
 */
class TransmitRing
{
public:
	/*
	 * @ring: the descriptors. The position starts at the first descriptor, like the card's, and
	 * reset() does not change it.
	 */
	void attach(kern::Mmio ring) { ring_ = static_cast<kern::Mmio &&>(ring); }
	/*
	 * Takes all descriptors back from the card. The caller must then reclaim() all outstanding
	 * frames.
	 */
	void reset();

	bool full() const { return outstanding_ == wire::most_transmits; }
	bool empty() const { return !outstanding_; }
	/*
	 * Sends a frame. The ring must not be full. There is no doorbell, so the card may send it
	 * at once. Returns the slot.
	 */
	u32 put(u64 address, u16 length);
	/* If the card has completed the oldest frame, returns true and its slot. */
	bool finished(u32 &slot);
	/*
	 * Returns the oldest frame whether or not the card has completed it; false if there is
	 * none. Must be called after reset().
	 */
	bool reclaim(u32 &slot);

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
	/*
	 * @ring: the descriptors; @word: the register through which the index is exchanged; @index:
	 * the card's current index.
	 */
	void attach(kern::Mmio ring, kern::Mmio word, u32 index)
	{
		ring_ = static_cast<kern::Mmio &&>(ring);
		word_ = static_cast<kern::Mmio &&>(word);
		index_ = index;
	}

	/*
	 * Allocates buffers for frames of up to @capacity bytes. May sleep. Errors: ENOMEM; then
	 * the former buffers remain.
	 */
	kern::Result<> allocate(device *device, u32 capacity);
	/*
	 * Frees the buffers. The card must not own any: quiesce() has succeeded, or post_all() was
	 * not called.
	 */
	void release();
	/*
	 * Makes the card drop all buffers, and sets the index to that at which the card
	 * continues. May sleep. Errors: EIO if the card does not respond within two seconds.
	 */
	kern::Result<> quiesce();
	/* Passes all buffers to the card. Must be called after quiesce(). */
	void post_all();

	enum class Arrival : u8 { none, frame, bad };
	/*
	 * Checks the next buffer. bytes, length: the received frame, valid until advance(). Returns
	 * `bad` for a frame that the card marks as bad or that is too short or too long.
	 */
	Arrival peek(const u8 *&bytes, u32 &length) const;
	/* Returns the next buffer to the card, and advances the index. */
	void advance();
	/* Writes the host's index to the card. */
	void publish() const { word_.write_be32(0, index_); }

private:
	void post(u32 index);
	wire::ReceiveHeader &header(u32 index) const
	{
		return *buffers_[index].as<wire::ReceiveHeader>();
	}
	static u64 entry(u32 index) { return u64{index} * wire::receive::size; }

	kern::Mmio ring_;
	kern::Mmio word_;
	kern::OwnedArray<kern::DmaBuffer> buffers_;
	u32 capacity_ = 0;
	u32 index_ = 0;
};

} // namespace amso1100
