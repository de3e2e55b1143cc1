// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/shared_memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <vector>

#include <sys/mman.h>

#include "base/mutex.hpp"
#include "base/memory_mapping.hpp"

namespace weft::shared_memory
{

namespace
{

/*
 * The handler may run at any moment on any thread, so it takes no lock: each slot is a seqlock,
 * whose version is odd while it changes. The slot that the handler is after does not change,
 * because the thread that it interrupts holds the mapping.
 */
struct Slot {
	std::atomic<std::uint32_t> version;
	std::atomic<std::uintptr_t> begin;
	std::atomic<std::size_t> size; // 0: free
	std::atomic<MemoryLender *> lender;
};

struct Range {
	std::uintptr_t begin;
	std::size_t size;
	MemoryLender *lender;

	bool holds(std::uintptr_t address) const { return address - begin < size; }
};

// Constant-initialised: the handler needs no constructor to have run.
constinit std::array<Slot, kMaxSharedMappings> slots{};
constinit std::atomic<std::size_t> slots_used{0}; // slots after these were never used

constinit Mutex free_mutex;
// Among the slots_used.
constinit std::vector<int> free_slots WEFT_GUARDED_BY(free_mutex);

struct sigaction previous; // handler of SIGBUS before

void store(Slot &slot, const Range &range)
{
	const std::uint32_t version = slot.version.load(std::memory_order_relaxed);
	slot.version.store(version + 1, std::memory_order_relaxed);
	std::atomic_thread_fence(std::memory_order_release);
	slot.begin.store(range.begin, std::memory_order_relaxed);
	slot.size.store(range.size, std::memory_order_relaxed);
	slot.lender.store(range.lender, std::memory_order_relaxed);
	slot.version.store(version + 2, std::memory_order_release);
}

// False if the slot changes just now.
bool load(const Slot &slot, Range &range)
{
	const std::uint32_t version = slot.version.load(std::memory_order_acquire);
	range = {slot.begin.load(std::memory_order_relaxed),
		 slot.size.load(std::memory_order_relaxed),
		 slot.lender.load(std::memory_order_relaxed)};
	std::atomic_thread_fence(std::memory_order_acquire);
	return !(version & 1) && slot.version.load(std::memory_order_relaxed) == version;
}

// Page sizes of the files that memory may be in.
constexpr std::size_t kPageSizes[] = {4 << 10, 2 << 20, 1 << 30};

bool put_memory(std::uintptr_t begin, std::size_t size)
{
	void *const place = reinterpret_cast<void *>(begin);
	return ::mmap(place, size, PROT_READ | PROT_WRITE,
		      MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == place;
}

/*
 * Replaces the whole mapping at once, not only the page: each page would become a mapping of its
 * own, and nothing of it is needed any more. Maps without reservation, because it may be larger
 * than the host's free memory. A host that commits no more than it has (vm.overcommit_memory is 2)
 * refuses that all the same: then only the page is replaced, because the lender's card ends at the
 * next turn of its loop, and few are touched until then. Only the kernel knows the size of a page:
 * it refuses a part of one. The process's limits (RLIMIT_DATA, RLIMIT_AS) do not matter, because
 * the previous mapping counts too.
 */
bool replace(std::uintptr_t address)
{
	const std::size_t used = slots_used.load(std::memory_order_acquire);
	for (std::size_t i = 0; i < used; ++i) {
		Range range;
		if (!load(slots[i], range) || !range.holds(address))
			continue;
		const auto page_is_put = [&](std::size_t page) {
			return put_memory(address & ~(page - 1), page);
		};
		if (!put_memory(range.begin, range.size) &&
		    !std::ranges::any_of(kPageSizes, page_is_put))
			return false;
		range.lender->fail();
		return true;
	}
	return false;
}

void bus_error(int number, siginfo_t *info, void *)
{
	const int saved = errno;
	const bool by_access = info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR;
	if (!by_access || !replace(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
		// The fault is not in shared memory. The access is repeated, with the former
		// handler.
		::sigaction(number, &previous, nullptr);
		if (!by_access)
			::raise(number);
	}
	errno = saved;
}

void install()
{
	static std::once_flag once;
	std::call_once(once, [] {
		struct sigaction action{};
		action.sa_sigaction = bus_error;
		action.sa_flags = SA_SIGINFO | SA_ONSTACK;
		sigemptyset(&action.sa_mask);
		if (::sigaction(SIGBUS, &action, &previous))
			throw std::system_error(errno, std::generic_category(), "sigaction");
	});
}

} // namespace

int add(std::uintptr_t begin, std::size_t size, MemoryLender &lender)
{
	install();
	const MutexLock lock(free_mutex);
	int number;
	if (!free_slots.empty()) {
		number = free_slots.back();
		free_slots.pop_back();
	} else if (const std::size_t used = slots_used.load(std::memory_order_relaxed);
		   used < slots.size()) {
		number = static_cast<int>(used);
		// Reserve memory now, so that remove() cannot fail.
		if (free_slots.capacity() <= used)
			free_slots.reserve(2 * used + 64);
		slots_used.store(used + 1, std::memory_order_release);
	} else {
		return -1;
	}
	store(slots[static_cast<std::size_t>(number)], {begin, size, &lender});
	return number;
}

void remove(int number)
{
	const MutexLock lock(free_mutex);
	store(slots[static_cast<std::size_t>(number)], {});
	free_slots.push_back(number);
}

} // namespace weft::shared_memory
