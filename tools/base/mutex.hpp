// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines wrappers of std::mutex, std::unique_lock and std::condition_variable with the annotations
// that clang's thread-safety analysis needs, because libstdc++ has none. All mutexes in tools/ have
// the type Mutex (architecture.rst, rule 10), so that the members that they protect can be declared
// WEFT_GUARDED_BY.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/thread_annotations.hpp"

namespace weft
{

class WEFT_CAPABILITY("mutex") Mutex
{
public:
	constexpr Mutex() = default;
	Mutex(const Mutex &) = delete;
	Mutex &operator=(const Mutex &) = delete;

	void lock() WEFT_ACQUIRE() { mutex_.lock(); }
	void unlock() WEFT_RELEASE() { mutex_.unlock(); }

private:
	friend class MutexLock;
	std::mutex mutex_;
};

// Holds a mutex for a scope. Code that must run without it in between calls unlock() and lock().
class WEFT_SCOPED_CAPABILITY MutexLock
{
public:
	explicit MutexLock(Mutex &mutex) WEFT_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
	~MutexLock() WEFT_RELEASE() {}
	MutexLock(const MutexLock &) = delete;
	MutexLock &operator=(const MutexLock &) = delete;

	void lock() WEFT_ACQUIRE() { lock_.lock(); }
	void unlock() WEFT_RELEASE() { lock_.unlock(); }

private:
	friend class ConditionVariable;
	std::unique_lock<std::mutex> lock_;
};

// A predicate that reads guarded members is a lambda annotated WEFT_REQUIRES(mutex).
class ConditionVariable
{
public:
	template<typename Predicate>
	void wait(MutexLock &lock, Predicate predicate) WEFT_NO_THREAD_SAFETY_ANALYSIS
	{
		condition_.wait(lock.lock_, std::move(predicate));
	}
	// Returns the predicate's value, which is false if it did not become true in time.
	template<typename Predicate>
	bool wait_for(MutexLock &lock, std::chrono::nanoseconds timeout,
		      Predicate predicate) WEFT_NO_THREAD_SAFETY_ANALYSIS
	{
		return condition_.wait_for(lock.lock_, timeout, std::move(predicate));
	}
	void notify_all() { condition_.notify_all(); }

private:
	std::condition_variable condition_;
};

} // namespace weft
