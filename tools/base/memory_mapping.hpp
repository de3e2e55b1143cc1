// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Maps memory that other processes share with this process by descriptors, so that this process
// survives the loss of its pages.
//
// A mapped file may have no page at an accessed address: its owner has truncated it, its tmpfs is
// full, its huge pages are used up, or the memory is broken. The kernel then sends SIGBUS to the
// thread that accesses it, which may belong to another guest's card that reads a payload. Seals
// (F_SEAL_SHRINK) would prevent only the first case. The signal handler therefore replaces the
// whole mapping by zeroed memory, and the access continues there. The handler also marks the owner
// as failed, whose card then disconnects its guest. This happens once for each mapping, whatever
// its size, and other mappings are not affected.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/file_descriptor.hpp"

namespace weft
{

// Limit of the process's mappings of shared memory: half of what Linux permits by default
// (vm.max_map_count is 65530), which leaves enough for threads and the heap.
constexpr std::size_t kMaxSharedMappings = 32768;

// A lender may map this number of bytes times the maximum number of its mappings. All lenders
// together may map a quarter of a process's addresses (47 bits). Files use no memory until they are
// accessed, so without this limit one client could use up all addresses.
constexpr std::uint64_t kSharedBytesPerMapping = 1ull << 30;
static_assert(kMaxSharedMappings * kSharedBytesPerMapping == 1ull << 45);

// MemoryLender - a client that shares memory: the limits of its mappings' number and size, and
// whether a page was lost.
class MemoryLender
{
public:
	explicit MemoryLender(std::size_t most_mappings = kMaxSharedMappings);

	std::size_t most_mappings() const { return most_; }
	// Returns the number of existing mappings. They may outlive the client, because data that
	// is being sent from a mapping keeps it.
	std::size_t mappings() const { return mappings_.load(std::memory_order_relaxed); }
	std::uint64_t most_bytes() const { return most_ * kSharedBytesPerMapping; }
	std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
	// Returns true if a page could not be read; all data that was written to its mapping since
	// then is lost. Thread-safe.
	bool failed() const { return failed_.load(std::memory_order_acquire); }
	// Returns a descriptor that is readable once failed() is true.
	int event() const { return event_.get(); }

	// For mappings only; @size is in bytes. take() returns false without effect if a limit
	// would be exceeded.
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

// MemoryMapping - one mapping of host memory, which is unmapped with the last reference. Code must
// hold a reference while it accesses the memory, because the SIGBUS handler relies on it.
class MemoryMapping
{
public:
	// Maps [@offset, @offset + @size) of @fd, which stays the caller's. @offset is a multiple
	// of the page size. Throws std::system_error: EOPNOTSUPP if the kernel does not provide the
	// file's pages itself, EINVAL if the file is too short, ENOSPC if @lender or the process
	// has reached a limit.
	static std::shared_ptr<const MemoryMapping>
	map_file(int fd, std::uint64_t offset, std::size_t size, bool writable,
		 std::shared_ptr<MemoryLender> lender = std::make_shared<MemoryLender>());
	// Allocates zeroed memory of the process itself, for tests and tools without a guest.
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
	const std::size_t mapped_;   // mapped size in whole pages of the file
	std::unique_ptr<Loan> loan_; // null for memory of the process itself
};

} // namespace weft
