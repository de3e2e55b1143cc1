// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates a kernel thread that calls int T::run() once. The destructor requests the thread to stop,
// and waits until it has exited.
#pragma once
#include <utility>
#include <kern/abi/thread.h>
#include <kern/method.hpp>
#include <kern/result.hpp>

namespace kern
{

class Thread
{
public:
	Thread() = default;
	/* May sleep. Errors: ENOMEM, EINTR. The object must outlive the thread. */
	template<auto Member, class T>
	static Result<Thread> create(const char *name, Method<Member>, T *object)
	{
		int error;
		auto *task = kern_thread_start(
			[](void *context) -> int { return (static_cast<T *>(context)->*Member)(); },
			object, name, &error);
		if (!task)
			return Error{error};
		return Thread(task);
	}
	Thread(Thread &&other) noexcept : task_(std::exchange(other.task_, nullptr)) {}
	Thread &operator=(Thread &&other) noexcept
	{
		std::swap(task_, other.task_);
		return *this;
	}
	~Thread() { (void)stop(); }

	/*
	 * Stops the thread, and returns the result of its function; 0 if there is no thread; -EINTR
	 * if it was stopped before it started. May sleep.
	 */
	int stop() { return task_ ? kern_thread_stop(std::exchange(task_, nullptr)) : 0; }
	explicit operator bool() const { return task_ != nullptr; }

	/* Must be called by the thread itself. */
	static bool should_stop() { return kern_thread_should_stop(); }

private:
	explicit Thread(task_struct *task) : task_(task) {}
	task_struct *task_ = nullptr;
};

} // namespace kern
