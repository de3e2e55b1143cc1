// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A guest's memory as a device sees it: sections that are mapped and unmapped, addressed by I/O
// virtual address. Everything that a device writes to or reads from a guest goes through here, and
// nothing outside the mapped sections can be reached.
//
// A GuestMemory belongs to the loop of its card. Segments from translate() may be passed to other
// threads: they hold a reference on their section, so the memory stays valid (though no longer the
// guest's) if the section is unmapped meanwhile. The guest's processors can change memory at any
// time: copy first, then check.
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

// MemorySegment - a stretch of guest memory in the host's address space. Writing through it is
// allowed only if it was translated with Access::Write.
struct MemorySegment {
	std::shared_ptr<const MemoryMapping> mapping;
	std::byte *data = nullptr;
	std::size_t size = 0;
};

class GuestMemory
{
public:
	enum class MapResult { mapped, overlap, invalid };

	// Adds a section at @iova. @mapping may be null: the range is then known but out of reach
	// (the client shared no descriptor), and each access to it is a miss. Overlap: some of the
	// range is mapped already. Invalid: empty, wraps around, or larger than @mapping.
	MapResult map(std::uint64_t iova, std::uint64_t size, bool readable, bool writable,
		      std::shared_ptr<const MemoryMapping> mapping);
	// Removes every section inside [@iova, @iova + @size). False, and nothing is removed, if
	// there is none or if the range cuts through one.
	bool unmap(std::uint64_t iova, std::uint64_t size);
	void clear();
	std::size_t sections() const { return sections_.size(); }

	// Copies between guest memory and @data. The whole range must be mapped with the needed
	// permission, over any number of adjacent sections; else false, and nothing was written to
	// the guest. No bytes are always there.
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

	// A naturally aligned integer, read whole, before all later accesses (acquire); written
	// whole, after all earlier ones (release): for owner bits and doorbell records. False or
	// nothing on a miss or a misaligned address. Bytes as they lie in memory.
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

	// Replaces the aligned 64-bit word at @iova by @change(word), atomically towards the
	// guest's processors and all other cards, and returns the former word. @change may run
	// repeatedly.
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

	// Appends to @out the segments that make up [@iova, @iova + @length), in order. False if
	// any byte is not mapped with @access; @out is then as before.
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
		// Bytes from @address, which it holds, to its end.
		std::uint64_t left(std::uint64_t address) const { return size - (address - iova); }
		bool allows(Access wanted) const
		{
			return access & static_cast<std::uint8_t>(wanted);
		}
		std::byte *at(std::uint64_t address) const { return data + (address - iova); }
	};

	// The section that holds the whole range and allows @access, or null.
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
		// A client may map sections at odd addresses.
		if (reinterpret_cast<std::uintptr_t>(place) % sizeof(T))
			return nullptr;
		return reinterpret_cast<T *>(place);
	}

	std::vector<Section> sections_; // sorted by iova, disjoint
	mutable std::size_t last_ = 0;  // index of the section of the last access
};

} // namespace weft
