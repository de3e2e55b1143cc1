// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/process_barrier.hpp"

#include <cstdio>
#include <cstdlib>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft
{

namespace
{

bool membarrier(int command)
{
	return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

bool register_process()
{
#ifdef WEFT_THREAD_SANITIZER
	return false;
#else
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
#endif
}

} // namespace

const bool ProcessBarrier::kAvailable = register_process();

void ProcessBarrier::issue() noexcept
{
	// The kernel may have no memory for the barrier. The barrier for all processes is slow, but
	// needs no memory.
	if (!kAvailable || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
	    membarrier(MEMBARRIER_CMD_GLOBAL))
		return;
	std::perror("membarrier() fails, although the kernel has permitted it to this process");
	std::abort();
}

} // namespace weft
