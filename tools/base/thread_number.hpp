// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Numbers the threads that use data structures with a part for each thread. No two running threads
// have the same number, so that a thread may write its part without atomic read-modify-write
// operations. The number of a thread that has ended is given to another thread, which sees
// everything that the former thread has written.
#pragma once

namespace weft
{

class ThreadNumber
{
public:
	static constexpr unsigned kMost = 128;
	// Replaces the number of a thread that has not called get() yet.
	static constexpr unsigned kUnknown = kMost + 1;

	// Returns the number of the calling thread, or kMost if all numbers are in use. A thread
	// without a number must use a part that is shared. From the moment when its thread-local
	// objects are destroyed, a thread has no number.
	static unsigned get()
	{
		if (number_ == kUnknown) [[unlikely]]
			assign();
		return number_;
	}
	// Returns the same as get() if the calling thread has called get() before, and otherwise
	// kUnknown. For code that must make only one check on its fast path.
	static unsigned known() { return number_; }
	// Returns true if the calling thread has this number, which is less than kMost; for
	// assertions.
	static bool is_own(unsigned number);

private:
	struct Release;

	static void assign();

	static constinit thread_local unsigned number_;
};

} // namespace weft
