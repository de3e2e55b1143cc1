// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that napi_disable() waits for a poll on another CPU.
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/kunit_fixture.hpp>
#include <kern/netdev.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>

using kern::kunit::Test;

namespace
{

/* A poll that reports completion, and then continues until NAPI is being disabled. */
class Lingering : public kern::Napi<Lingering>
{
public:
	Lingering() : dev_(kern_netdev_alloc("kern_test%d", 1))
	{
		if (!dev_)
			return;
		add(dev_, false);
		enable();
		auto made = kern::Thread::create("kern_test", kern::method<&Lingering::run>, this);
		there_ = made.ok();
		if (there_)
			thread_ = made.take();
	}
	~Lingering()
	{
		if (!dev_)
			return;
		if (!disabled_)
			disable();
		thread_ = {};
		del();
		kern_netdev_free(dev_);
	}
	Lingering(const Lingering &) = delete;
	Lingering &operator=(const Lingering &) = delete;

	bool there() const { return there_; }
	int poll(int)
	{
		(void)complete_done(0);
		completed_.complete();
		wait_ms(met_wait_ms, [&] { return met_.load_acquire(); });
		was_met_.store_release(met_.load_acquire());
		wait_ms(lingers_ms, [] { return false; });
		left_.store_release(true);
		return 0;
	}
	/*
	 * Returns true if the poll had ended when disable() returned. Waits first until it has
	 * begun.
	 */
	bool ends_before_it_is_disabled()
	{
		if (!completed_.wait_for(60'000))
			return false;
		met_.store_release(true);
		disable();
		disabled_ = true;
		return left_.load_acquire();
	}
	bool was_met() const { return was_met_.load_acquire(); }

private:
	/*
	 * Time limits for two threads to overlap on a busy host, and for a call that does not wait.
	 */
	static constexpr unsigned int met_wait_ms = 3000, lingers_ms = 20;

	int run()
	{
		(void)schedule_from_task();
		return 0;
	}
	template<class Condition>
	static void wait_ms(unsigned int ms, Condition condition)
	{
		const auto deadline = kern::Deadline::in_ms(ms);
		while (!condition() && !deadline.passed())
			kern::cpu_relax();
	}

	net_device *dev_;
	bool there_ = false, disabled_ = false;
	kern::Completion completed_;
	kern::Atomic<bool> met_{false}, was_met_{false}, left_{false};
	kern::Thread thread_;
};

/* The caller of disable() may free what a poll uses, even after the poll's last call. */
void napi_disable_waits_for_a_running_poll(Test &test)
{
	if (!test.needs_another_cpu())
		return;
	/*
	 * The waiter may be woken on the polling CPU, and then runs too late to overlap with the
	 * poll.
	 */
	bool met = false;
	for (unsigned int tries = 0; tries < 20 && !met && !test.failed(); tries++) {
		kern::kunit::Boxed<Lingering> napi;
		ASSERT_TRUE(napi.there() && napi->there());
		EXPECT_TRUE(napi->ends_before_it_is_disabled());
		met = napi->was_met();
	}
	EXPECT_TRUE(met);
}

} // namespace

KUNIT_SUITE(kern_napi, KUNIT_CASE(napi_disable_waits_for_a_running_poll));
