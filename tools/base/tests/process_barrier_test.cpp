// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that of two threads, which store and then load, at least one sees the other one's store,
// whether or not the kernel permits membarrier().
#include "base/process_barrier.hpp"

#include <atomic>
#include <cstdlib>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/testing/pending_stores.hpp"
#include "base/testing/refused_membarrier.hpp"

namespace weft
{
namespace
{

// Set in a process to which the kernel refuses membarrier().
constexpr const char *kRefused = "WEFT_TEST_MEMBARRIER_REFUSED";

// Returns the wait status of a child process.
int status_of(pid_t child)
{
	int status = -1;
	EXPECT_EQ(child, ::waitpid(child, &status, 0));
	return status;
}

// Each variable is in cache lines of its own, so that the CPU of the reader keeps the others.
struct alignas(128) Variable : std::atomic<unsigned> {
};

// Either thread enters a section if it does not see that the other one is about to. Without a
// barrier, both would enter.
TEST(ProcessBarrier, OneOfTwoThreadsSeesTheStoreOfTheOther)
{
	if (std::getenv(kRefused)) {
		ASSERT_FALSE(ProcessBarrier::available());
	}
	Variable a, b, entered;
	testing::Passes passes;
	std::atomic<bool> stop = false;
	std::thread frequent([&] {
		testing::PendingStores pending;
		while (!stop) {
			pending.begin();
			ProcessBarrier::store<unsigned>(a, 1);
			if (b.load(std::memory_order_seq_cst) == 0)
				entered.store(entered + 1, std::memory_order_release);
			a.store(0, std::memory_order_release);
			passes.count();
		}
	});
	unsigned rounds = 0, both = 0;
	passes.repeat([&] {
		b.store(1, std::memory_order_seq_cst);
		ProcessBarrier::issue();
		if (a.load(std::memory_order_seq_cst) == 0) {
			const unsigned before = entered.load(std::memory_order_acquire);
			if (passes.wait())
				rounds++;
			both += entered.load(std::memory_order_acquire) != before;
		}
		b.store(0, std::memory_order_release);
		passes.wait();
		return rounds < testing::Passes::kRounds && both == 0;
	});
	stop = true;
	frequent.join();
	EXPECT_EQ(0u, both) << "in round " << rounds;
}

// The child is a new program, because the process asks for permission when it starts.
TEST(ProcessBarrier, StoresAreSequentiallyConsistentIfTheKernelRefusesMembarrier)
{
	const pid_t child = ::fork();
	ASSERT_GE(child, 0);
	if (child == 0) {
		if (!testing::refuse_membarrier() || ::setenv(kRefused, "1", 1) != 0)
			::_exit(125);
		::execl("/proc/self/exe", "base_test",
			"--gtest_filter=ProcessBarrier.OneOfTwoThreadsSeesTheStoreOfTheOther",
			static_cast<char *>(nullptr));
		::_exit(126);
	}
	EXPECT_EQ(0, status_of(child));
}

TEST(ProcessBarrier, ChildProcessCanIssueBarriers)
{
	ProcessBarrier::issue();
	const pid_t child = ::fork();
	ASSERT_GE(child, 0);
	if (child == 0) {
		ProcessBarrier::issue();
		::_exit(0);
	}
	EXPECT_EQ(0, status_of(child));
}

// Threads rely on the barrier once the kernel has permitted it.
TEST(ProcessBarrierDeathTest, ProcessIsAbortedIfAPermittedBarrierFails)
{
	if (!ProcessBarrier::available())
		GTEST_SKIP() << "The kernel does not permit membarrier() here.";
	EXPECT_DEATH(
		{
			if (testing::refuse_membarrier())
				ProcessBarrier::issue();
		},
		"membarrier");
}

} // namespace
} // namespace weft
