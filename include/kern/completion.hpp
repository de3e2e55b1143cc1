// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines completions. A completion is an event for which tasks wait. Each complete() wakes one
// waiter; complete_all() wakes all present and future ones.
#pragma once
#include <kern/abi/wait.h>

namespace kern
{

class Completion
{
public:
	Completion() { kern_completion_init(&native_); }
	Completion(const Completion &) = delete;
	Completion &operator=(const Completion &) = delete;

	/* Context: any. The waiter may destroy the completion as soon as wait() has returned. */
	void complete() { kern_complete(&native_); }
	void complete_all() { kern_complete_all(&native_); }
	/* May sleep. */
	void wait() { kern_completion_wait(&native_); }
	/* Returns false if the time has expired. May sleep. */
	[[nodiscard]] bool wait_for(unsigned int ms)
	{
		return kern_completion_wait_for(&native_, ms);
	}
	bool done() { return kern_completion_done(&native_); }
	/* Prepares the completion for another use. No task may be waiting. */
	void reinit() { kern_completion_reinit(&native_); }

private:
	kern_completion native_;
};

} // namespace kern
