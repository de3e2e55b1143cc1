// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Accesses a window of device registers. Offsets are bytes from its start. Values are in the host's
// byte order on a little-endian bus; the _be functions are for registers that the device keeps in
// big-endian order, as ConnectX does.
//
// Each access happens exactly once and is not split. Accesses to the window are ordered. A write is
// also ordered after earlier accesses to normal memory, and a read before later ones; the _relaxed
// functions do not order normal memory. A write is posted: read a register back to be sure that it
// has arrived. All functions are inline, unless registers are not memory because the kernel
// implements device windows itself (CONFIG_INDIRECT_IOMEM, User-Mode Linux).
#pragma once
#include <utility>
#include <kern/abi/pci.h>
#include <kern/assert.hpp>
#include <kern/atomic.hpp>

#if !defined(__x86_64__)
#error "access to device registers is not written for this architecture yet"
#endif

namespace kern
{

class Mmio
{
public:
	Mmio() = default;
	/* Takes over a mapping, which the destructor passes to kern_iounmap(). */
	static Mmio adopt(void *base, u64 size) { return Mmio(base, size, Kind::owned); }
	/* For tests: registers that are ordinary memory. */
	static Mmio over_memory(void *base, u64 size) { return Mmio(base, size, Kind::memory); }
	Mmio(Mmio &&other) noexcept
	    : base_(std::exchange(other.base_, nullptr)), size_(other.size_), kind_(other.kind_)
	{
	}
	Mmio &operator=(Mmio &&other) noexcept
	{
		std::swap(base_, other.base_);
		std::swap(size_, other.size_);
		std::swap(kind_, other.kind_);
		return *this;
	}
	~Mmio()
	{
		if (base_ && kind_ == Kind::owned)
			kern_iounmap(base_);
	}

	u64 size() const { return size_; }
	/* Returns a part of the window. It is valid as long as the window exists. */
	Mmio view(u64 offset, u64 size) const
	{
		kern_assert(offset <= size_ && size <= size_ - offset);
		return Mmio(base_ + offset, size,
			    kind_ == Kind::memory ? Kind::memory : Kind::borrowed);
	}
	explicit operator bool() const { return base_ != nullptr; }

	u8 read8(u64 offset) const { return read<u8>(offset); }
	u16 read16(u64 offset) const { return read<u16>(offset); }
	u32 read32(u64 offset) const { return read<u32>(offset); }
	u64 read64(u64 offset) const { return read<u64>(offset); }
	void write8(u64 offset, u8 value) const { write<u8, Ordered::yes>(offset, value); }
	void write16(u64 offset, u16 value) const { write<u16, Ordered::yes>(offset, value); }
	void write32(u64 offset, u32 value) const { write<u32, Ordered::yes>(offset, value); }
	void write64(u64 offset, u64 value) const { write<u64, Ordered::yes>(offset, value); }
	void write32_relaxed(u64 offset, u32 value) const
	{
		write<u32, Ordered::no>(offset, value);
	}
	void write64_relaxed(u64 offset, u64 value) const
	{
		write<u64, Ordered::no>(offset, value);
	}

	u32 read_be32(u64 offset) const { return __builtin_bswap32(read32(offset)); }
	u64 read_be64(u64 offset) const { return __builtin_bswap64(read64(offset)); }
	void write_be32(u64 offset, u32 value) const { write32(offset, __builtin_bswap32(value)); }
	void write_be64(u64 offset, u64 value) const { write64(offset, __builtin_bswap64(value)); }

	/*
	 * Copies 64-bit words in ascending order, for write-combining windows. A following wmb()
	 * flushes them.
	 */
	void copy64(u64 offset, const void *from, std::size_t words) const
	{
		kern_assert(offset + words * 8 <= size_);
		const u64 *source = static_cast<const u64 *>(from);
		for (std::size_t i = 0; i < words; i++)
			write64_relaxed(offset + i * 8, source[i]);
	}

private:
	/*
	 * Registers in ordinary memory (memory), or device registers that this object does not
	 * (borrowed) or does (owned) unmap.
	 */
	enum class Kind : u8 { memory, borrowed, owned };
	/* Whether the write is ordered after all earlier writes to normal memory. */
	enum class Ordered { no, yes };

	Mmio(void *base, u64 size, Kind kind)
	    : base_(static_cast<std::byte *>(base)), size_(size), kind_(kind)
	{
	}

	template<class T>
	T read(u64 offset) const
	{
		const volatile T *from = at<T>(offset);
#ifdef CONFIG_INDIRECT_IOMEM
		if (kind_ != Kind::memory)
			return static_cast<T>(kern_mmio_read(from, sizeof(T)));
#endif
		T value;
		asm volatile("mov %1, %0" : "=r"(value) : "m"(*from) : "memory");
		return value;
	}
	template<class T, Ordered ordered>
	void write(u64 offset, T value) const
	{
		volatile T *to = at<T>(offset);
#ifdef CONFIG_INDIRECT_IOMEM
		if (kind_ != Kind::memory)
			return kern_mmio_write(to, value, sizeof(T));
#endif
		if constexpr (ordered == Ordered::yes)
			asm volatile("mov %0, %1" : : "r"(value), "m"(*to) : "memory");
		else
			asm volatile("mov %0, %1" : : "r"(value), "m"(*to));
	}

	template<class T>
	volatile T *at(u64 offset) const
	{
		kern_assert(offset % sizeof(T) == 0 && offset < size_ &&
			    size_ - offset >= sizeof(T));
		return reinterpret_cast<volatile T *>(base_ + offset);
	}

	std::byte *base_ = nullptr;
	u64 size_ = 0;
	Kind kind_ = Kind::memory;
};

} // namespace kern
