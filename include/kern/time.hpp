// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines functions that read the clock, wait for a given time, and return random numbers.
#pragma once
#include <kern/abi/time.h>

namespace kern
{

/* Returns nanoseconds since boot, which never decrease. Context: any. */
inline u64 now_ns()
{
	return kern_now_ns();
}

/* Sleep at least this long. */
inline void sleep_ms(unsigned int ms)
{
	kern_sleep_ms(ms);
}
inline void sleep_us(unsigned int min, unsigned int max)
{
	kern_sleep_us(min, max);
}
/* Waits without sleeping, for at most a few microseconds. Context: any. */
inline void delay_us(unsigned int us)
{
	kern_delay_us(us);
}
/* Lets other tasks run. For long loops of a task. */
inline void cond_resched()
{
	kern_cond_resched();
}

/* A time limit. */
class Deadline
{
public:
	static Deadline in_ms(unsigned int ms) { return Deadline(now_ns() + u64{ms} * 1000000); }
	bool passed() const { return now_ns() >= at_; }

private:
	explicit Deadline(u64 at) : at_(at) {}
	u64 at_;
};

/*
 * Returns the time until a value of now_ns(), in milliseconds, at least 1. For a timer that has
 * expired too early.
 */
inline unsigned int rest_ms(u64 at)
{
	const u64 now = now_ns();

	return at > now ? static_cast<unsigned int>((at - now) / 1'000'000) + 1 : 1;
}

inline u32 random_u32()
{
	return kern_random_u32();
}
inline u64 random_u64()
{
	return kern_random_u64();
}

/* Reproducible random numbers for tests (xorshift64*). */
class SeededRandom
{
public:
	explicit SeededRandom(u64 seed) : state_(seed ? seed : 0x9e3779b97f4a7c15) {}
	u64 next()
	{
		state_ ^= state_ >> 12;
		state_ ^= state_ << 25;
		state_ ^= state_ >> 27;
		return state_ * 0x2545f4914f6cdd1d;
	}
	/* Returns a number from 0 to limit - 1. */
	u32 below(u32 limit) { return static_cast<u32>((next() >> 32) * limit >> 32); }

private:
	u64 state_;
};

} // namespace kern
