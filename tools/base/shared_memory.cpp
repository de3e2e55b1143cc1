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
 * whose version is odd while it changes. The slot that the handler looks for does not change,
 * because the interrupted thread holds a reference on the mapping.
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

// Constant-initialised, so that the handler does not depend on a constructor.
constinit std::array<Slot, kMaxSharedMappings> slots{};
constinit std::atomic<std::size_t> slots_used{0}; // slots after these were never used

constinit Mutex free_mutex;
// Free slots among the first slots_used.
constinit std::vector<int> free_slots WEFT_GUARDED_BY(free_mutex);

struct sigaction previous; // the previous handler of SIGBUS

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

// Returns false if the slot is being changed.
bool load(const Slot &slot, Range &range)
{
	const std::uint32_t version = slot.version.load(std::memory_order_acquire);
	range = {slot.begin.load(std::memory_order_relaxed),
		 slot.size.load(std::memory_order_relaxed),
		 slot.lender.load(std::memory_order_relaxed)};
	std::atomic_thread_fence(std::memory_order_acquire);
	return !(version & 1) && slot.version.load(std::memory_order_relaxed) == version;
}

// Page sizes of files that can contain guest memory.
constexpr std::size_t kPageSizes[] = {4 << 10, 2 << 20, 1 << 30};

bool put_memory(std::uintptr_t begin, std::size_t size)
{
	void *const place = reinterpret_cast<void *>(begin);
	return ::mmap(place, size, PROT_READ | PROT_WRITE,
		      MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == place;
}

/*
 * Replaces the whole mapping at once and not only the page. Otherwise each page would become a
 * separate mapping, and none of the mapping's data is needed any more. Maps without reservation,
 * because the mapping may be larger than the host's free memory. A host without overcommit
 * (vm.overcommit_memory is 2) refuses that. Then only the page is replaced: the lender's card
 * disconnects its guest at the next turn of its loop, and touches few pages until then. The size of
 * the page is tried, because only the kernel knows it and refuses a part of a page. The process's
 * limits (RLIMIT_DATA, RLIMIT_AS) do not matter, because the replaced mapping counts as well.
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
		// The fault is not in shared memory, so the access is repeated with the previous
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
