// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What fixtures of several rooms have: waiting for a condition, and what is too large for the stack
// of a test.
#pragma once
#include <kern/memory.hpp>
#include <kern/time.hpp>

namespace kern::kunit
{

/*
 * Waits until the condition holds; false if it does not within a minute: far longer than anything
 * takes, on the debug kernel of a busy machine, too.
 */
template<class Condition>
bool eventually(Condition condition)
{
	const auto deadline = Deadline::in_ms(60'000);

	while (!condition()) {
		if (deadline.passed())
			return condition();
		sleep_us(50, 200);
	}
	return true;
}

/* What is too large for the stack of a test. */
template<class T>
class Boxed
{
public:
	template<class... Args>
	explicit Boxed(Args &&...args)
	{
		auto made = make<T>(Gfp::kernel, std::forward<Args>(args)...);
		if (made.ok())
			object_ = made.take();
	}
	T *operator->() const { return object_.get(); }
	T &operator*() const { return *object_; }
	bool there() const { return static_cast<bool>(object_); }
	/* Whether it is there, and all right. */
	bool ok() const { return there() && object_->ok(); }
	void reset() { object_.reset(); }

private:
	Owned<T> object_;
};

} // namespace kern::kunit
