// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates and maps memory that a device reads and writes. Addresses are DMA addresses.
#pragma once
#include <utility>
#include <kern/abi/dma.h>
#include <kern/memory.hpp>

namespace kern
{

/*
 * Coherent memory: the CPU and the device see each other's writes immediately. It is zeroed, and
 * page-aligned if its size is at least a page.
 */
class DmaBuffer
{
public:
	DmaBuffer() = default;
	/* Errors: ENOMEM. Context: any that `flags` permits, but not with interrupts disabled. */
	static Result<DmaBuffer> create(device *device, std::size_t size, Gfp flags = Gfp::kernel)
	{
		u64 address;
		void *memory = kern_dma_alloc_coherent(device, size, &address,
						       static_cast<unsigned int>(flags));
		if (!memory) [[unlikely]]
			return Error{-ENOMEM};
		return DmaBuffer(device, memory, size, address);
	}
	DmaBuffer(DmaBuffer &&other) noexcept
	    : device_(other.device_), memory_(std::exchange(other.memory_, nullptr)),
	      size_(std::exchange(other.size_, 0)), address_(other.address_)
	{
	}
	DmaBuffer &operator=(DmaBuffer &&other) noexcept
	{
		std::swap(device_, other.device_);
		std::swap(memory_, other.memory_);
		std::swap(size_, other.size_);
		std::swap(address_, other.address_);
		return *this;
	}
	~DmaBuffer()
	{
		if (memory_)
			kern_dma_free_coherent(device_, size_, memory_, address_);
	}

	void *memory() const { return memory_; }
	template<class T>
	T *as() const
	{
		return static_cast<T *>(memory_);
	}
	std::size_t size() const { return size_; }
	u64 address() const { return address_; }
	explicit operator bool() const { return memory_ != nullptr; }

private:
	DmaBuffer(device *device, void *memory, std::size_t size, u64 address)
	    : device_(device), memory_(memory), size_(size), address_(address)
	{
	}
	device *device_ = nullptr;
	void *memory_ = nullptr;
	std::size_t size_ = 0;
	u64 address_ = 0;
};

/* A pool of small pieces of coherent memory, all of the same size. */
class DmaPool
{
public:
	struct Piece {
		void *memory;
		u64 address;
	};

	DmaPool() = default;
	/* align: must be a power of two. May sleep. Errors: ENOMEM. */
	static Result<DmaPool> create(const char *name, device *device, std::size_t size,
				      std::size_t align)
	{
		dma_pool *pool = kern_dma_pool_create(name, device, size, align);
		if (!pool)
			return Error{-ENOMEM};
		return DmaPool(pool);
	}
	DmaPool(DmaPool &&other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
	DmaPool &operator=(DmaPool &&other) noexcept
	{
		std::swap(pool_, other.pool_);
		return *this;
	}
	/* All pieces must have been freed. */
	~DmaPool()
	{
		if (pool_)
			kern_dma_pool_destroy(pool_);
	}

	/* The memory is zeroed. Errors: ENOMEM. Context: any that `flags` permits. */
	Result<Piece> alloc(Gfp flags)
	{
		Piece piece;
		piece.memory = kern_dma_pool_alloc(pool_, static_cast<unsigned int>(flags),
						   &piece.address);
		if (!piece.memory) [[unlikely]]
			return Error{-ENOMEM};
		return piece;
	}
	/* Context: any. */
	void free(Piece piece) { kern_dma_pool_free(pool_, piece.memory, piece.address); }

private:
	explicit DmaPool(dma_pool *pool) : pool_(pool) {}
	dma_pool *pool_ = nullptr;
};

namespace dma
{

enum class Direction {
	both = KERN_DMA_BIDIRECTIONAL,
	to_device = KERN_DMA_TO_DEVICE,
	from_device = KERN_DMA_FROM_DEVICE,
};

/*
 * Maps memory for a device, until it is unmapped with the same address, size and direction. Between
 * sync_for_cpu and sync_for_device, only the CPU may access the memory. The memory of map_single()
 * must come from make(), make_array() without fallback, Pages or an skb, and must not be on a
 * stack. Context: any. Errors: ENOMEM.
 */
inline Result<u64> map_single(device *device, void *memory, std::size_t size, Direction direction)
{
	u64 address;
	KERN_TRY_ERRNO(kern_dma_map_single(device, memory, size,
					   static_cast<kern_dma_direction>(direction), &address));
	return address;
}
inline Result<u64> map_page(device *device, page *page, std::size_t offset, std::size_t size,
			    Direction direction)
{
	u64 address;
	KERN_TRY_ERRNO(kern_dma_map_page(device, page, offset, size,
					 static_cast<kern_dma_direction>(direction), &address));
	return address;
}
inline void unmap_single(device *device, u64 address, std::size_t size, Direction direction)
{
	kern_dma_unmap_single(device, address, size, static_cast<kern_dma_direction>(direction));
}
inline void unmap_page(device *device, u64 address, std::size_t size, Direction direction)
{
	kern_dma_unmap_page(device, address, size, static_cast<kern_dma_direction>(direction));
}
inline void sync_for_cpu(device *device, u64 address, std::size_t size, Direction direction)
{
	kern_dma_sync_for_cpu(device, address, size, static_cast<kern_dma_direction>(direction));
}
inline void sync_for_device(device *device, u64 address, std::size_t size, Direction direction)
{
	kern_dma_sync_for_device(device, address, size, static_cast<kern_dma_direction>(direction));
}

/* A list of pages and its DMA mapping. */
class ScatterTable
{
public:
	ScatterTable() = default;
	ScatterTable(const ScatterTable &) = delete;
	ScatterTable &operator=(const ScatterTable &) = delete;
	~ScatterTable()
	{
		unmap();
		if (allocated_)
			kern_sg_free(&native_);
	}

	/* Must be called only once. Errors: ENOMEM; EINVAL for 0 entries. */
	Result<> alloc(unsigned int entries, Gfp flags = Gfp::kernel)
	{
		KERN_TRY_ERRNO(kern_sg_alloc(&native_, entries, static_cast<unsigned int>(flags)));
		allocated_ = true;
		return {};
	}
	void set_page(unsigned int entry, page *page, unsigned int size, unsigned int offset = 0)
	{
		kern_sg_set_page(&native_, entry, page, size, offset);
	}
	/*
	 * Returns the number of segments, which is at most the number of entries. Errors: ENOMEM,
	 * EIO.
	 */
	Result<unsigned int> map(device *device, Direction direction)
	{
		const int segments =
			kern_sg_map(device, &native_, static_cast<kern_dma_direction>(direction));
		if (segments < 0)
			return Error{segments};
		device_ = device;
		direction_ = direction;
		return static_cast<unsigned int>(segments);
	}
	void unmap()
	{
		if (device_)
			kern_sg_unmap(std::exchange(device_, nullptr), &native_,
				      static_cast<kern_dma_direction>(direction_));
	}
	/* Calls body(address, size) for each mapped segment, until body returns false. */
	template<class Body>
	void for_each(Body body)
	{
		kern_sg_for_each(
			&native_,
			[](void *context, u64 address, u64 size) -> bool {
				return (*static_cast<Body *>(context))(address, size);
			},
			&body);
	}

private:
	kern_sg_table native_;
	bool allocated_ = false;
	device *device_ = nullptr;
	Direction direction_ = Direction::both;
};

} // namespace dma
} // namespace kern
