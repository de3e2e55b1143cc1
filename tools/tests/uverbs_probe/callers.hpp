// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Calls the same function from several threads at the same time. */
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
 * Runs several rounds: begin() creates the object, each of the callers makes several calls at the
 * same time, and end() destroys the object. The threads are kept, because starting them takes
 * longer than their calls.
 */
template<class Begin, class Call, class End>
void call_from_threads(std::uint64_t seed, unsigned long rounds, unsigned calls, Begin begin,
		       Call call, End end)
{
	std::barrier meeting(kCallers + 1);
	std::array<std::thread, kCallers> threads;
	std::array<std::atomic<bool>, kCallers> begun{};

	/*
	 * The threads are started one at a time, because a UML kernel does not support
	 * starting a thread while another one changes their mappings.
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
