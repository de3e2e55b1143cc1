// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the card's Ethernet interface: transmit and receive descriptor rings in the card's
// memory, which the driver fills and the card processes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include <hw/amso1100/registers.hpp>

#include "net/ethernet/frame.hpp"

namespace weft
{
class PciHost;
}

namespace weft::amso1100
{

class Interrupts;

class EthernetRings
{
public:
	// @send sends a frame, and is called only if @has_room returns true. Otherwise frames stay
	// in the ring, and the owner calls transmit() again when there is space. Everything runs on
	// the card's loop.
	EthernetRings(Interrupts &interrupts, std::function<void(const ethernet::FramePtr &)> send,
		      std::function<bool()> has_room)
	    : interrupts_(interrupts), send_(std::move(send)), has_room_(std::move(has_room))
	{
	}

	void reset();
	// Access the rings at @offset from the start of the receive ring. The access must be within
	// the rings. write() returns true if transmit() should be called.
	void read(std::uint64_t offset, std::span<std::byte> data) const;
	bool write(std::uint64_t offset, std::span<const std::byte> data);
	// Sends a bounded number of frames that are ready. Returns true if there are more.
	bool transmit(PciHost &host);
	// Receives a frame for the host. It is dropped if the driver has posted no buffer.
	void receive(PciHost &host, const ethernet::Frame &frame);

	// Return the offsets of the next descriptors in the card's memory, as the register page
	// reports them.
	std::uint32_t next_transmit() const
	{
		return hw::amso1100::transmit_ring_address +
		       static_cast<std::uint32_t>(transmit_index_ * hw::amso1100::transmit::size);
	}
	std::uint32_t next_receive() const
	{
		return hw::amso1100::receive_ring_address +
		       static_cast<std::uint32_t>(receive_index_ * hw::amso1100::receive::size);
	}

	// Written on the loop, read on any thread.
	struct Counts {
		std::atomic<std::uint64_t> transmitted{0}, received{0};
		// Number of frames with an invalid length or with memory that is not mapped.
		std::atomic<std::uint64_t> bad_transmits{0};
		// there was no buffer, or its memory is not mapped
		std::atomic<std::uint64_t> missed{0};
		std::atomic<std::uint64_t> overlong{0}; // the frame was larger than the buffer
	} counts;

private:
	static constexpr std::size_t kBytes = hw::amso1100::rings_end - hw::amso1100::receive_ring;

	std::span<std::byte> transmit_entry(unsigned index);
	std::span<std::byte> receive_entry(unsigned index);
	std::optional<unsigned> next_ready();
	bool carry_out(PciHost &host, std::span<std::byte> entry);
	void quiesce();

	Interrupts &interrupts_;
	const std::function<void(const ethernet::FramePtr &)> send_;
	const std::function<bool()> has_room_;
	std::array<std::byte, kBytes> memory_{};
	unsigned transmit_index_ = 0;
	unsigned receive_index_ = 0;
};

} // namespace weft::amso1100
