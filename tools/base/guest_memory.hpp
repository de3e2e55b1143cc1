// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Represents a guest's memory as a device sees it: DMA mappings at I/O virtual addresses, which the
// guest adds and removes. All accesses of a device to its guest's memory use this class, and memory
// that is not mapped cannot be reached.
//
// A GuestMemory belongs to the loop of its card. Segments from translate() may be passed to other
// threads. They hold a reference on their mapping, so the memory stays valid (though no longer the
// guest's) if the mapping is removed meanwhile. The guest's CPUs can change memory at any time, so
// callers must copy data before they check it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory_mapping.hpp"

namespace weft
{

enum class Access : std::uint8_t { read = 1, write = 2 };

// MemorySegment - a range of guest memory in the host's address space. It may be written only if it
// was translated with Access::write.
struct MemorySegment {
	std::shared_ptr<const MemoryMapping> mapping;
	std::byte *data = nullptr;
	std::size_t size = 0;
};

class GuestMemory
{
public:
	enum class MapResult { mapped, overlap, invalid };

	// Adds a section at @iova. @mapping may be null if the client shared no descriptor; then
	// the range is recorded, but every access to it fails. Returns `overlap` if a part of the
	// range is already mapped, and `invalid` if the range is empty, wraps around, or is larger
	// than @mapping.
	MapResult map(std::uint64_t iova, std::uint64_t size, bool readable, bool writable,
		      std::shared_ptr<const MemoryMapping> mapping);
	// Removes all sections in [@iova, @iova + @size). Returns false without removing any if
	// there is none, or if the range contains only a part of a section.
	bool unmap(std::uint64_t iova, std::uint64_t size);
	void clear();
	std::size_t mappings() const { return sections_.size(); }

	// Copy between guest memory and @data. Return false, without having written to the guest,
	// unless the whole range is mapped with the required permission. The range may consist of
	// several adjacent sections. Copies of length zero always succeed.
	bool read(std::uint64_t iova, std::span<std::byte> data) const
	{
		if (const Section *section = find(iova, data.size(), Access::read)) [[likely]] {
			std::memcpy(data.data(), section->at(iova), data.size());
			return true;
		}
		return read_pieces(iova, data);
	}
	bool write(std::uint64_t iova, std::span<const std::byte> data)
	{
		if (const Section *section = find(iova, data.size(), Access::write)) [[likely]] {
			std::memcpy(section->at(iova), data.data(), data.size());
			return true;
		}
		return write_pieces(iova, data);
	}

	// Reads an object, without conversion of the byte order.
	template<typename T>
	std::optional<T> read_as(std::uint64_t iova) const
	{
		static_assert(std::is_trivially_copyable_v<T>);
		T value;
		if (!read(iova, std::as_writable_bytes(std::span(&value, 1))))
			return std::nullopt;
		return value;
	}
	template<typename T>
	bool write_as(std::uint64_t iova, const T &value)
	{
		static_assert(std::is_trivially_copyable_v<T>);
		return write(iova, std::as_bytes(std::span(&value, 1)));
	}

	// Load a naturally aligned integer as a whole before all later accesses (acquire), and
	// store one after all earlier accesses (release): for owner bits and doorbell records. They
	// fail if the address is not mapped or misaligned. The byte order is not converted.
	template<typename T>
	std::optional<T> load(std::uint64_t iova) const
	{
		T *object = aligned<T>(iova, Access::read);
		if (!object)
			return std::nullopt;
		return std::atomic_ref<T>(*object).load(std::memory_order_acquire);
	}
	template<typename T>
	bool store(std::uint64_t iova, T value)
	{
		T *object = aligned<T>(iova, Access::write);
		if (!object)
			return false;
		std::atomic_ref<T>(*object).store(value, std::memory_order_release);
		return true;
	}

	// Atomically replaces the aligned 64-bit word at @iova by @change(word), and returns the
	// previous word. The update is atomic with respect to the guest's CPUs and all other cards.
	// @change may be called repeatedly.
	template<typename F>
	std::optional<std::uint64_t> fetch_update(std::uint64_t iova, F &&change)
	{
		auto *word = aligned<std::uint64_t>(iova, Access::write);
		if (!word || !aligned<std::uint64_t>(iova, Access::read))
			return std::nullopt;
		std::atomic_ref<std::uint64_t> ref(*word);
		std::uint64_t seen = ref.load(std::memory_order_relaxed);
		while (!ref.compare_exchange_weak(seen, change(seen), std::memory_order_seq_cst,
						  std::memory_order_relaxed)) {
		}
		return seen;
	}
	std::optional<std::uint64_t> compare_swap(std::uint64_t iova, std::uint64_t expected,
						  std::uint64_t desired)
	{
		return fetch_update(iova, [=](std::uint64_t word) {
			return word == expected ? desired : word;
		});
	}
	std::optional<std::uint64_t> fetch_add(std::uint64_t iova, std::uint64_t addend)
	{
		return fetch_update(iova, [=](std::uint64_t word) { return word + addend; });
	}

	// Appends the segments of [@iova, @iova + @length) to @out, in order. Returns false and
	// leaves @out unchanged if a byte is not mapped with @access.
	bool translate(std::uint64_t iova, std::uint64_t length, Access access,
		       std::vector<MemorySegment> &out) const;
	// Returns true if the whole range is mapped with @access.
	bool covers(std::uint64_t iova, std::uint64_t length, Access access) const;

private:
	struct Section {
		std::uint64_t iova;
		std::uint64_t size;
		std::byte *data;
		std::uint8_t access; // bits of Access; 0 without a mapping
		std::shared_ptr<const MemoryMapping> mapping;

		std::uint64_t last() const { return iova + (size - 1); }
		bool holds(std::uint64_t address) const { return address - iova < size; }
		// Returns the number of bytes from @address, which must be in the section, to the
		// section's end.
		std::uint64_t left(std::uint64_t address) const { return size - (address - iova); }
		bool allows(Access wanted) const
		{
			return access & static_cast<std::uint8_t>(wanted);
		}
		std::byte *at(std::uint64_t address) const { return data + (address - iova); }
	};

	// Returns the section that contains the whole range and permits @access, or null.
	const Section *find(std::uint64_t iova, std::uint64_t length, Access access) const
	{
		if (length && last_ < sections_.size()) [[likely]] {
			const Section &section = sections_[last_];
			if (section.holds(iova) && length <= section.left(iova)) [[likely]]
				return section.allows(access) ? &section : nullptr;
		}
		return find_slowly(iova, length, access);
	}
	const Section *find_slowly(std::uint64_t iova, std::uint64_t length, Access access) const;
	const Section *section_at(std::uint64_t iova) const;
	template<typename F>
	bool walk(std::uint64_t iova, std::uint64_t length, Access access, F &&piece) const;
	bool read_pieces(std::uint64_t iova, std::span<std::byte> data) const;
	bool write_pieces(std::uint64_t iova, std::span<const std::byte> data);

	template<typename T>
	T *aligned(std::uint64_t iova, Access access) const
	{
		static_assert(std::is_integral_v<T> && std::atomic_ref<T>::is_always_lock_free);
		if (iova % sizeof(T))
			return nullptr;
		const Section *section = find(iova, sizeof(T), access);
		if (!section)
			return nullptr;
		std::byte *place = section->at(iova);
		// Fails if the host address is misaligned, because a client may map sections at odd
		// offsets.
		if (reinterpret_cast<std::uintptr_t>(place) % sizeof(T))
			return nullptr;
		return reinterpret_cast<T *>(place);
	}

	std::vector<Section> sections_; // sorted by iova, disjoint
	mutable std::size_t last_ = 0;  // index of the section of the last access
};

} // namespace weft
