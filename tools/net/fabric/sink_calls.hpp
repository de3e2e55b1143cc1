// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Records which calls into the sinks of ports are in progress, so that Port::detach() can wait for
 * them. Each thread records its own calls, without atomic read-modify-write operations.
 *
 * A call writes its record and then reads the port's sink; detach() removes the sink and then reads
 * the records. One of them must see what the other one has written. Calls are frequent and detach()
 * is rare, so detach() issues the barrier for all threads that this needs (ProcessBarrier).
 *
 * When a call has ended, detach() must see everything that the call has done. It reads the record
 * with acquire order, and finds either null, which end() has stored with release order, or another
 * port, which the thread's next call has stored with release order, too.
 */
#pragma once

#include <array>
#include <atomic>

#include "base/process_barrier.hpp"
#include "base/thread_number.hpp"

namespace weft::fabric
{

class Port;

class SinkCalls
{
	struct OfThread;

public:
	/* Calls are nested if a packet passes through several switches. */
	static constexpr unsigned kMostNested = 31;

	/* A recorded call, or null. */
	using Call = OfThread *;

	/*
	 * Records that the calling thread calls the sink of a port. Returns null if the call cannot
	 * be recorded, because there are too many threads or nested calls; the caller must then
	 * count it in the port. The port's sink must be loaded afterwards.
	 */
	static Call begin(const Port &port)
	{
		OfThread *mine = &all_.threads[ThreadNumber::known()];
		if (mine->depth == kMostNested) [[unlikely]] {
			mine = &all_.threads[ThreadNumber::get()];
			if (mine->depth == kMostNested)
				return nullptr;
		}
		ProcessBarrier::store(mine->ports[mine->depth++], &port);
		return mine;
	}
	/* Ends the latest call that begin() has recorded and returned to this thread. */
	static void end(Call mine)
	{
		mine->ports[--mine->depth].store(nullptr, std::memory_order_release);
	}

	/*
	 * Returns true if a call has been recorded. If the port's sink was removed and a process
	 * barrier was issued before, all calls that have got the sink and have not ended are seen.
	 */
	static bool in_progress(const Port &port);

private:
	struct alignas(64) OfThread {
		std::array<std::atomic<const Port *>, kMostNested> ports;
		/* Used by the thread only. */
		unsigned depth;
	};
	struct All {
		constexpr All();

		/* Indexed by ThreadNumber::known(). */
		std::array<OfThread, ThreadNumber::kUnknown + 1> threads{};
	};

	static All all_;
};

} // namespace weft::fabric
