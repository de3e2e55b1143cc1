// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "rings.hpp"

#include <kern/time.hpp>

namespace amso1100
{
namespace
{

constexpr unsigned int quiesce_ms = 2000;

void write_be16(const kern::Mmio &ring, u64 offset, u16 value)
{
	ring.write16(offset, __builtin_bswap16(value));
}

template<class Flags>
void write_flags(const kern::Mmio &ring, u64 entry, Flags flags)
{
	write_be16(ring, entry, static_cast<u16>(flags));
}

} // namespace

void TransmitRing::reset()
{
	for (u32 slot = 0; slot < wire::transmit_entries; slot++)
		write_flags(ring_, entry(slot), wire::TransmitFlags::unused);
}

u32 TransmitRing::put(u64 address, u16 length)
{
	kern_assert(!full());
	const u32 slot = next_;
	const u64 at = entry(slot);
	/* This field is only aligned to four bytes, so write its halves separately. */
	ring_.write_be32(at + wire::transmit::address, static_cast<u32>(address >> 32));
	ring_.write_be32(at + wire::transmit::address + 4, static_cast<u32>(address));
	write_be16(ring_, at + wire::transmit::length, length);
	write_flags(ring_, at, wire::TransmitFlags::ready);
	next_ = (next_ + 1) % wire::transmit_entries;
	outstanding_++;
	return slot;
}

bool TransmitRing::finished(u32 &slot)
{
	if (!outstanding_ ||
	    ring_.read16(entry(oldest_)) != static_cast<u16>(wire::TransmitFlags::done))
		return false;
	return reclaim(slot);
}

bool TransmitRing::reclaim(u32 &slot)
{
	if (!outstanding_)
		return false;
	slot = oldest_;
	oldest_ = (oldest_ + 1) % wire::transmit_entries;
	outstanding_--;
	return true;
}

kern::Result<> ReceiveRing::allocate(device *device, u32 capacity)
{
	auto buffers = KERN_TRY(
		kern::make_array<kern::DmaBuffer>(kern::Gfp::kernel, wire::receive_entries));
	for (kern::DmaBuffer &buffer : buffers)
		buffer = KERN_TRY(
			kern::DmaBuffer::create(device, sizeof(wire::ReceiveHeader) + capacity));
	buffers_ = static_cast<kern::OwnedArray<kern::DmaBuffer> &&>(buffers);
	capacity_ = capacity;
	return {};
}

void ReceiveRing::release()
{
	buffers_ = {};
}

kern::Result<> ReceiveRing::quiesce()
{
	word_.write_be32(0, index_ | wire::receive_quiesce);
	const auto deadline = kern::Deadline::in_ms(quiesce_ms);
	u32 answer;
	while ((answer = word_.read_be32(0)) & wire::receive_quiesce) {
		if (deadline.passed())
			return kern::Error{-EIO};
		kern::sleep_ms(1);
	}
	if (answer >= wire::receive_entries)
		return kern::Error{-EIO};
	index_ = answer;
	return {};
}

void ReceiveRing::post_all()
{
	for (u32 i = 0; i < wire::receive_entries; i++) {
		const u32 index = (index_ + i) % wire::receive_entries;
		write_be16(ring_, entry(index) + wire::receive::count, 0);
		write_be16(ring_, entry(index) + wire::receive::length,
			   static_cast<u16>(capacity_));
		ring_.write_be64(entry(index) + wire::receive::address, buffers_[index].address());
		post(index);
	}
}

/* The header must be cleared before the card may write it. */
void ReceiveRing::post(u32 index)
{
	header(index) = {};
	write_be16(ring_, entry(index) + wire::receive::status,
		   static_cast<u16>(wire::ReceiveStatus::none));
	write_flags(ring_, entry(index), wire::ReceiveFlags::ready);
}

ReceiveRing::Arrival ReceiveRing::peek(const u8 *&bytes, u32 &length) const
{
	constexpr u32 least_frame = 14;
	const wire::ReceiveHeader &next = header(index_);
	bytes = buffers_[index_].as<u8>() + sizeof(next);
	if (__atomic_load_n(&next.flags, __ATOMIC_ACQUIRE) !=
	    static_cast<u16>(wire::ReceiveFlags::done))
		return Arrival::none;
	/* Read each field only once, because the card may change it. */
	const u16 status = __atomic_load_n(&next.status, __ATOMIC_RELAXED);
	length = __atomic_load_n(&next.length, __ATOMIC_RELAXED);
	const bool good = status == static_cast<u16>(wire::ReceiveStatus::good) &&
			  length >= least_frame && length <= capacity_;
	return good ? Arrival::frame : Arrival::bad;
}

void ReceiveRing::advance()
{
	post(index_);
	index_ = (index_ + 1) % wire::receive_entries;
}

} // namespace amso1100
