// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A memory barrier for all threads of the process. It is for code in which one side is frequent and
// the other side is rare, and at least one of them must see what the other one has stored. The rare
// side issues the barrier, and the frequent side needs none:
//
//     frequent side                      rare side
//     ProcessBarrier::store(a, 1);       b.store(1, seq_cst);
//     b.load(seq_cst);                   ProcessBarrier::issue();
//                                        a.load(seq_cst);
//
// Either the load of b or the load of a returns 1. Where the kernel refuses the barrier
// (membarrier(2)), for example in a container, the frequent side stores with sequential
// consistency. The same is true under ThreadSanitizer, which does not know membarrier().
#pragma once

#include <atomic>

namespace weft
{

class ProcessBarrier
{
public:
	// The store of the frequent side. It also has release order.
	template<class T>
	static void store(std::atomic<T> &object, T value)
	{
		if (kAvailable) [[likely]] {
			object.store(value, std::memory_order_release);
			// The compiler must not move a later load to a place in front of the store.
			std::atomic_signal_fence(std::memory_order_seq_cst);
		} else {
			object.store(value, std::memory_order_seq_cst);
		}
	}
	// The barrier of the rare side; does nothing if available() returns false. If the barrier
	// fails although it is available, the process is aborted, because the frequent side relies
	// on it.
	static void issue() noexcept;
	// Returns false where the kernel refuses the barrier, and until static objects have been
	// initialised.
	static bool available() { return kAvailable; }

private:
	static const bool kAvailable;
};

} // namespace weft
