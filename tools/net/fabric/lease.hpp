// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Permits the fabric to read memory of an owner, such as a guest, while packets refer to that
 * memory. The owner may end the lease. When end() has returned, the owner may write to the memory
 * or free it. The payload of a packet that is still in flight can then no longer be read, and the
 * packet counts as lost.
 *
 * Any thread may read. Between enter() and leave(), a reader only copies. end() therefore waits for
 * the copy of one packet at most, and not for anything that waits for another lease.
 */
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace weft::fabric
{

class Lease
{
public:
	/* @keep keeps the address range valid until the lease ends, or no packet refers to it. */
	explicit Lease(std::shared_ptr<const void> keep) : keep_(std::move(keep)) {}
	Lease(const Lease &) = delete;
	Lease &operator=(const Lease &) = delete;

	/* Begins to read. Returns false if the lease has ended; nothing may be read then. */
	bool enter()
	{
		if (!(state_.fetch_add(1, std::memory_order_acquire) & kEnded))
			return true;
		leave();
		return false;
	}
	void leave()
	{
		if (state_.fetch_sub(1, std::memory_order_release) == (kEnded | 1))
			state_.notify_all();
	}
	/*
	 * Prevents new readers, waits for current ones, and then releases the memory. This may be
	 * the last reference, and unmapping a guest's memory takes long. So the owner's thread
	 * releases it, and not the thread that destroys the packet. May be called repeatedly, on
	 * the owner's thread.
	 */
	void end()
	{
		state_.fetch_or(kEnded, std::memory_order_acq_rel);
		for (;;) {
			const std::uint32_t seen = state_.load(std::memory_order_acquire);
			if (seen == kEnded)
				break;
			state_.wait(seen, std::memory_order_acquire);
		}
		keep_.reset();
	}

private:
	/* The highest bit is set when the lease has ended; the other bits count readers. */
	static constexpr std::uint32_t kEnded = 1u << 31;

	std::atomic<std::uint32_t> state_{0};
	/* Only the owner's thread accesses it. No thread reads the bytes when it is reset. */
	std::shared_ptr<const void> keep_;
};

} // namespace weft::fabric
