// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "scheduler.hpp"
#include <algorithm>
#include "failure.hpp"

namespace sim
{

namespace
{

constexpr std::uint64_t step_ns = 100;
// A fiber that has executed this number of steps without interruption is assumed to wait for
// another fiber in a loop.
constexpr std::uint64_t spinning = 5000;
// Time advances early only to deadlines within this limit: a host may be delayed for that long, but
// not for a minute.
constexpr std::uint64_t longest_leap_ns = 200'000'000;

} // namespace

Scheduler &scheduler()
{
	static Scheduler instance;
	return instance;
}

void Scheduler::run(Strategy &strategy, std::uint64_t limit, std::function<void()> body)
{
	strategy_ = &strategy;
	limit_ = limit;
	now_ = 1'000'000'000;
	steps_ = choices_ = readied_ = alone_ = alarms_set_ = draws_ = 0;
	started_ = 0;
	alarms_.clear();
	stretches_.clear();
	stretch_begin_ = 0;
	stretch_from_ = {};
	running_ = &start(Kind::task, "the test", std::move(body));
	running_->resume(Fiber::root());
	running_ = nullptr;
}

void Scheduler::make_ready(Fiber &fiber)
{
	fiber.state = State::runnable;
	fiber.waits_for = nullptr;
	fiber.ready = ++readied_;
}

Fiber &Scheduler::start(Kind kind, std::string name, std::function<void()> body)
{
	if (idle_.empty()) {
		all_.push_back(std::make_unique<Fiber>());
		idle_.push_back(all_.back().get());
	}
	Fiber &fiber = *idle_.back();
	idle_.pop_back();
	fiber.prepare(started_++, kind, std::move(name), std::move(body));
	fiber.ready = ++readied_;
	live_.push_back(&fiber);
	strategy_->begins(fiber);
	return fiber;
}

std::uint64_t Scheduler::set_alarm(std::uint64_t at, std::function<void()> expired)
{
	alarms_.emplace(at, Alarm{++alarms_set_, std::move(expired)});
	return alarms_set_;
}

void Scheduler::cancel_alarm(std::uint64_t alarm)
{
	std::erase_if(alarms_, [&](const auto &entry) { return entry.second.number == alarm; });
}

void Scheduler::ring_alarm(std::uint64_t alarm)
{
	const auto found = std::find_if(alarms_.begin(), alarms_.end(), [&](const auto &entry) {
		return entry.second.number == alarm;
	});
	auto expired = std::move(found->second.expired);

	alarms_.erase(found);
	expired();
}

std::uint64_t Scheduler::next_deadline() const
{
	std::uint64_t next = alarms_.empty() ? never : alarms_.begin()->first;

	for (const Fiber *fiber : live_)
		if (fiber->state == State::blocked)
			next = std::min(next, fiber->deadline);
	return next;
}

void Scheduler::expire()
{
	while (!alarms_.empty() && alarms_.begin()->first <= now_) {
		auto expired = std::move(alarms_.begin()->second.expired);
		alarms_.erase(alarms_.begin());
		expired();
	}
	for (Fiber *fiber : live_)
		if (fiber->state == State::blocked && fiber->deadline <= now_)
			make_ready(*fiber);
}

Fiber *Scheduler::choose(Fiber *from, bool yields)
{
	expire();
	for (;;) {
		runnable_.clear();
		for (Fiber *fiber : live_)
			if (fiber->state == State::runnable && !(yields && fiber == from))
				runnable_.push_back(fiber);
		if (!runnable_.empty())
			break;
		if (yields)
			return from;
		if (live_.empty())
			return nullptr;
		const std::uint64_t next = next_deadline();
		if (next == never)
			deadlock();
		now_ = std::max(now_, next);
		expire();
	}
	if (runnable_.size() == 1)
		return runnable_.front();
	choices_++;
	std::sort(runnable_.begin(), runnable_.end(),
		  [](const Fiber *a, const Fiber *b) { return a->ready < b->ready; });
	Fiber *plain = from->state == State::runnable && !yields ? from : runnable_.front();
	return strategy_->choose(from, runnable_, plain);
}

void Scheduler::switch_to(Fiber &next)
{
	Fiber &from = *running_;

	if (&next == &from)
		return;
	alone_ = 0;
	end_stretch();
	running_ = &next;
	stretch_from_ = next.place;
	next.resume(from);
}

void Scheduler::step(const Place &place)
{
	Fiber &self = *running_;

	self.place = place;
	self.steps++;
	now_ += step_ns;
	if (++steps_ > limit_)
		fail("the run does not finish", "after " + std::to_string(limit_) + " steps");
	if (const std::uint64_t next = next_deadline(); next != never && next > now_ &&
							next - now_ <= longest_leap_ns &&
							strategy_->lets_time_pass(self))
		now_ = next;
	const bool spins = ++alone_ > spinning;
	if (spins) {
		alone_ = 0;
		strategy_->has_spun(self);
	}
	switch_to(*choose(&self, spins));
}

void Scheduler::yield(const Place &place)
{
	Fiber &self = *running_;

	self.place = place;
	self.steps++;
	now_ += step_ns;
	strategy_->has_spun(self);
	if (++steps_ > limit_)
		fail("the run does not finish", "after " + std::to_string(limit_) + " steps");
	self.ready = ++readied_;
	switch_to(*choose(&self, true));
}

bool Scheduler::block(const volatile void *on, std::uint64_t deadline)
{
	Fiber &self = *running_;

	self.state = State::blocked;
	self.waits_for = on;
	self.deadline = deadline;
	self.steps++;
	switch_to(*choose(&self, false));
	self.deadline = never;
	return now_ < deadline;
}

void Scheduler::wake(const volatile void *on)
{
	for (Fiber *fiber : live_)
		if (fiber->state == State::blocked && fiber->waits_for == on)
			make_ready(*fiber);
}

void Scheduler::wake(Fiber &fiber)
{
	if (fiber.state == State::blocked)
		make_ready(fiber);
}

void Scheduler::finish()
{
	Fiber &self = *running_;

	if (!self.held.empty())
		fail("a lock is held at the end of its task or interrupt",
		     lock_name(self.held.back().lock_class));
	if (self.preempt_off || self.bh_off || self.rcu_readers || self.non_block ||
	    self.irqs_off != (self.kind == Kind::hard_interrupt))
		fail("a section is still open at the end of its task or interrupt", "");
	self.state = State::finished;
	if (self.kind != Kind::task)
		wake(&grace_periods);
	self.place = {"the end", nullptr, nullptr};
	self.steps++;
	std::erase(live_, &self);
	end_stretch();
	Fiber *next = choose(&self, false);
	/*
	 * The fiber becomes available only now, because choose() may start new fibers while this
	 * stack is still in use.
	 */
	idle_.push_back(&self);
	alone_ = 0;
	running_ = next;
	if (next) {
		stretch_from_ = next->place;
		next->resume(self);
	} else {
		Fiber::root().resume(self);
	}
	__builtin_unreachable();
}

void Scheduler::end_stretch()
{
	if (recording_)
		stretches_.push_back({running_->id, running_->name, stretch_from_, running_->place,
				      steps_ - stretch_begin_, now_});
	stretch_begin_ = steps_;
}

const std::vector<Stretch> &Scheduler::stretches()
{
	if (running_)
		end_stretch();
	return stretches_;
}

void Scheduler::deadlock()
{
	std::string text;

	for (const Fiber *fiber : live_)
		text += "  " + fiber->name + " (" + std::to_string(fiber->id) + ") waits in " +
			describe(fiber->place) + "\n";
	fail("deadlock: no fiber can run, and none waits for a deadline", text);
}

} // namespace sim
