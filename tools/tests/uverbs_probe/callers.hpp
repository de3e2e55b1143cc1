// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#pragma once
#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <random>
#include <thread>

namespace weft::uverbs
{

inline constexpr unsigned kCallers = 4;

/*
 * So many rounds: begin() makes what is called, so many calls are made by each of the callers at
 * the same time, end() does away with it. The threads stay the same, as starting them takes longer
 * than what they do.
 */
template<class Begin, class Call, class End>
void call_from_threads(std::uint64_t seed, unsigned long rounds, unsigned calls, Begin begin,
		       Call call, End end)
{
	std::barrier meeting(kCallers + 1);
	std::array<std::thread, kCallers> threads;
	std::array<std::atomic<bool>, kCallers> begun{};

	/*
	 * One after the other: the um kernels do not bear that a thread begins while another
	 * changes their mappings.
	 */
	for (unsigned thread = 0; thread < kCallers; thread++) {
		threads[thread] = std::thread([&, thread] {
			begun[thread] = true;
			begun[thread].notify_one();
			for (unsigned long round = 0; round < rounds; round++) {
				meeting.arrive_and_wait();
				std::mt19937_64 random(seed + round * kCallers + thread);
				for (unsigned i = 0; i < calls; i++)
					call(random);
				meeting.arrive_and_wait();
			}
		});
		begun[thread].wait(false);
	}
	for (unsigned long round = 0; round < rounds; round++) {
		begin();
		meeting.arrive_and_wait();
		meeting.arrive_and_wait();
		end();
	}
	for (std::thread &thread : threads)
		thread.join();
}

} // namespace weft::uverbs
