// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Memory that other processes share with this one by descriptors, and how this process survives its
// loss.
//
// A mapped file may have no page at an accessed address: its owner truncated it, its tmpfs is full,
// its huge pages are used up, or the memory is broken. The kernel then sends SIGBUS to the thread
// that accesses it, which may belong to another guest's card that reads a payload. Seals
// (F_SEAL_SHRINK) would prevent only the first of these. So the signal handler replaces the whole
// mapping by zeroed memory, the access continues there, and the owner is marked as failed: its card
// loses the mapping. A mapping is lost once, whatever its size, and other mappings are not
// affected.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/file_descriptor.hpp"

namespace weft
{

// The number of mappings of shared memory in the process: half of what Linux permits by default
// (vm.max_map_count is 65530), which leaves enough for threads and the heap.
constexpr std::size_t kMaxSharedMappings = 32768;

// A lender may map this number of bytes for each mapping that it may have; all lenders together a
// quarter of a process's addresses (47 bits). Files cost no memory until they are touched, so that
// one client could otherwise map all addresses.
constexpr std::uint64_t kSharedBytesPerMapping = 1ull << 30;
static_assert(kMaxSharedMappings * kSharedBytesPerMapping == 1ull << 45);

// MemoryLender - one client's mappings: how many and how large they may be, and whether one of them
// was lost.
class MemoryLender
{
public:
	explicit MemoryLender(std::size_t most_mappings = kMaxSharedMappings);

	std::size_t most_mappings() const { return most_; }
	// Number of existing mappings. They may outlive the client: data sent from one keeps it.
	std::size_t mappings() const { return mappings_.load(std::memory_order_relaxed); }
	std::uint64_t most_bytes() const { return most_ * kSharedBytesPerMapping; }
	std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
	// A page could not be read; all data that was written to its mapping since is lost. Any
	// thread.
	bool failed() const { return failed_.load(std::memory_order_acquire); }
	// A descriptor that is readable once failed() is true.
	int event() const { return event_.get(); }

	// Used by mappings only, with their size in bytes. take() returns false, without effect, if
	// the limit would be exceeded.
	bool take(std::uint64_t size);
	void release(std::uint64_t size);
	// Async-signal-safe.
	void fail() noexcept;

private:
	const std::size_t most_;
	const FileDescriptor event_;
	std::atomic<std::size_t> mappings_{0};
	std::atomic<std::uint64_t> bytes_{0};
	std::atomic<bool> failed_{false};
};

// MemoryMapping - one mapping of host memory, which is unmapped with the last reference. Code that
// accesses the memory must hold a reference meanwhile, because the handler of lost pages relies on
// it.
class MemoryMapping
{
public:
	// Maps [@offset, @offset + @size) of @fd, which is not kept. @offset is a multiple of the
	// page size. Throws std::system_error; EOPNOTSUPP if others than the kernel bring the
	// file's pages, EINVAL if it is shorter, ENOSPC if
	// @lender has as many mappings or bytes as may be, or the process as many mappings.
	static std::shared_ptr<const MemoryMapping>
	map_file(int fd, std::uint64_t offset, std::size_t size, bool writable,
		 std::shared_ptr<MemoryLender> lender = std::make_shared<MemoryLender>());
	// Zeroed memory of the process's own: for tests and for tools without a guest.
	static std::shared_ptr<const MemoryMapping> allocate(std::size_t size);

	~MemoryMapping();
	MemoryMapping(const MemoryMapping &) = delete;
	MemoryMapping &operator=(const MemoryMapping &) = delete;

	std::byte *data() const { return data_; }
	std::size_t size() const { return size_; }

private:
	class Loan;

	MemoryMapping(std::byte *data, std::size_t size, std::size_t mapped,
		      std::unique_ptr<Loan> loan);

	std::byte *const data_;
	const std::size_t size_;
	const std::size_t mapped_;   // mapped size, in whole pages of the file
	std::unique_ptr<Loan> loan_; // null for memory of the process itself
};

} // namespace weft
