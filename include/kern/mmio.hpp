// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A window of device registers. Offsets are bytes from its start. Values are in the host's byte order on a little-endian bus;
// the _be functions are for registers that the device keeps in big-endian order, as ConnectX does.
//
// Each access happens once, whole, and in order with the other accesses to the window and with normal memory before it (writes) or
// after it (reads); the _relaxed ones say nothing about normal memory. A write is posted: read something back to
// be sure that it arrived. Nothing here is a call.
#pragma once
#include <utility>
#include <kern/abi/pci.h>
#include <kern/assert.hpp>
#include <kern/atomic.hpp>

namespace kern {

class Mmio {
public:
	Mmio() = default;
	/* Takes over a mapping that kern_iounmap() ends. */
	static Mmio adopt(void *base, u64 size) { return Mmio(base, size, true); }
	/* For tests: registers that are plain memory. */
	static Mmio over_memory(void *base, u64 size) { return Mmio(base, size, false); }
	Mmio(Mmio &&other) noexcept
	    : base_(std::exchange(other.base_, nullptr)), size_(other.size_), owned_(other.owned_)
	{
	}
	Mmio &operator=(Mmio &&other) noexcept
	{
		std::swap(base_, other.base_);
		std::swap(size_, other.size_);
		std::swap(owned_, other.owned_);
		return *this;
	}
	~Mmio()
	{
		if (base_ && owned_)
			kern_iounmap(base_);
	}

	u64 size() const { return size_; }
	/* A part of the window; valid as long as the window is. */
	Mmio view(u64 offset, u64 size) const
	{
		kern_assert(offset <= size_ && size <= size_ - offset);
		return Mmio(base_ + offset, size, false);
	}
	explicit operator bool() const { return base_ != nullptr; }

	u8 read8(u64 offset) const
	{
		u8 value;
		asm volatile("movb %1, %0" : "=q"(value) : "m"(*at<u8>(offset)) : "memory");
		return value;
	}
	u16 read16(u64 offset) const
	{
		u16 value;
		asm volatile("movw %1, %0" : "=r"(value) : "m"(*at<u16>(offset)) : "memory");
		return value;
	}
	u32 read32(u64 offset) const
	{
		u32 value;
		asm volatile("movl %1, %0" : "=r"(value) : "m"(*at<u32>(offset)) : "memory");
		return value;
	}
	u64 read64(u64 offset) const
	{
		u64 value;
		asm volatile("movq %1, %0" : "=r"(value) : "m"(*at<u64>(offset)) : "memory");
		return value;
	}
	void write8(u64 offset, u8 value) const
	{
		asm volatile("movb %0, %1" : : "q"(value), "m"(*at<u8>(offset)) : "memory");
	}
	void write16(u64 offset, u16 value) const
	{
		asm volatile("movw %0, %1" : : "r"(value), "m"(*at<u16>(offset)) : "memory");
	}
	void write32(u64 offset, u32 value) const
	{
		asm volatile("movl %0, %1" : : "r"(value), "m"(*at<u32>(offset)) : "memory");
	}
	void write64(u64 offset, u64 value) const
	{
		asm volatile("movq %0, %1" : : "r"(value), "m"(*at<u64>(offset)) : "memory");
	}
	void write32_relaxed(u64 offset, u32 value) const
	{
		asm volatile("movl %0, %1" : : "r"(value), "m"(*at<u32>(offset)));
	}
	void write64_relaxed(u64 offset, u64 value) const
	{
		asm volatile("movq %0, %1" : : "r"(value), "m"(*at<u64>(offset)));
	}

	u32 read_be32(u64 offset) const { return __builtin_bswap32(read32(offset)); }
	u64 read_be64(u64 offset) const { return __builtin_bswap64(read64(offset)); }
	void write_be32(u64 offset, u32 value) const { write32(offset, __builtin_bswap32(value)); }
	void write_be64(u64 offset, u64 value) const { write64(offset, __builtin_bswap64(value)); }

	/* Copies whole 64-bit words in rising order, for write-combining windows; a wmb() after it pushes them out. */
	void copy64(u64 offset, const void *from, std::size_t words) const
	{
		kern_assert(offset + words * 8 <= size_);
		const u64 *source = static_cast<const u64 *>(from);
		for (std::size_t i = 0; i < words; i++)
			write64_relaxed(offset + i * 8, source[i]);
	}

private:
	Mmio(void *base, u64 size, bool owned) : base_(static_cast<std::byte *>(base)), size_(size), owned_(owned) {}

	template <class T>
	volatile T *at(u64 offset) const
	{
		kern_assert(offset % sizeof(T) == 0 && offset < size_ && size_ - offset >= sizeof(T));
		return reinterpret_cast<volatile T *>(base_ + offset);
	}

	std::byte *base_ = nullptr;
	u64 size_ = 0;
	bool owned_ = false;
};

} // namespace kern
