// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/ethernet/link.hpp"

#include <algorithm>
#include <chrono>

namespace weft::ethernet
{

namespace
{

// Time that a reordered frame waits for another one to overtake it. After that, it is sent anyway.
constexpr std::chrono::milliseconds kReorderingDelay{10};
// Number of bytes that are delivered before other tasks of the loop run, so that the receivers'
// output is written in between.
constexpr std::size_t kAtOnce = 64 << 10;

} // namespace

void Port::send(const FramePtr &frame)
{
	if (!link_) {
		++counters.xmit_discards;
		return;
	}
	link_->carry(*this, frame);
}

void Port::deliver(const FramePtr &frame)
{
	++counters.rcv_frames;
	counters.rcv_bytes += frame->size();
	counters.rcv_group_frames += is_group(destination_of(*frame));
	receive_(frame);
}

Link::Link(Loop &loop, Port &a, Port &b, const LinkSettings &settings, std::uint64_t seed)
    : loop_(loop), ends_{&a, &b}, name_(a.name() + "-" + b.name()), settings_(settings),
      random_(seed), timer_(loop, [this] { run(); })
{
	for (Port *port : ends_)
		port->link_ = this;
}

Link::~Link()
{
	for (Port *port : ends_)
		port->link_ = nullptr;
}

void Link::set(const LinkSettings &settings)
{
	settings_ = settings;
	if (settings_.up)
		return;
	in_flight_.clear();
	for (const unsigned side : {0u, 1u}) {
		bytes_in_flight_[side] = 0;
		last_due_[side] = {};
	}
	for (FramePtr &held : held_)
		held.reset();
	arm();
}

void Link::set_capture(std::shared_ptr<Capture> capture)
{
	capture_ = std::move(capture);
	if (capture_)
		interface_ = capture_->add_interface(name_);
}

bool Link::chance(double probability)
{
	// A fault that is off uses no random number, so that it does not affect other faults.
	return probability > 0 && std::uniform_real_distribution<>(0, 1)(random_) < probability;
}

FramePtr Link::with_a_bit_flipped(const Frame &frame)
{
	// Corruption inside a switch affects the frame that it forwards, but not the addresses.
	constexpr std::size_t first = 12;
	Frame damaged = frame;
	const std::uint64_t bit = random_() % ((frame.size() - first) * 8);
	damaged[first + bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
	return std::make_shared<const Frame>(std::move(damaged));
}

void Link::carry(Port &from, const FramePtr &frame)
{
	const unsigned side = ends_[0] == &from ? 1 : 0;
	if (!settings_.up) {
		++from.counters.xmit_discards;
		return;
	}
	++from.counters.xmit_frames;
	from.counters.xmit_bytes += frame->size();
	const fabric::Faults &faults = settings_.faults;
	if (!faults.any() && in_flight_.empty() && !held_[side])
		return arrive(side, frame);
	// The receiver has received a lost frame as garbage.
	if (chance(faults.loss) || chance(faults.corruption)) {
		++ends_[side]->counters.rcv_fcs_errors;
		return;
	}
	const FramePtr passing =
		chance(faults.silent_corruption) ? with_a_bit_flipped(*frame) : frame;
	const bool doubled = chance(faults.duplication);
	if (chance(faults.reordering) && !held_[side]) {
		held_[side] = passing;
		held_until_[side] = loop_.now() + kReorderingDelay;
		if (doubled)
			pass(side, passing);
		return arm();
	}
	const FramePtr overtaken = std::exchange(held_[side], nullptr);
	pass(side, passing);
	if (doubled)
		pass(side, passing);
	if (overtaken)
		pass(side, overtaken);
}

// Delivers the frame now, or after the link's delay.
void Link::pass(unsigned side, const FramePtr &frame)
{
	const fabric::Faults &faults = settings_.faults;
	std::chrono::nanoseconds delay = faults.delay;
	if (faults.jitter.count() > 0)
		delay += std::chrono::nanoseconds(
			random_() % static_cast<std::uint64_t>(faults.jitter.count() + 1));
	if (delay.count() == 0 && in_flight_.empty())
		return arrive(side, frame);
	const std::size_t cost = frame->size() + kOverhead;
	if (cost > kMostInFlight - bytes_in_flight_[side]) {
		++ends_[1 - side]->counters.xmit_discards;
		return;
	}
	const auto due = std::max(loop_.now() + delay, last_due_[side]);
	last_due_[side] = due;
	in_flight_.emplace(due, InFlight{side, frame});
	bytes_in_flight_[side] += cost;
	arm();
}

void Link::arrive(unsigned side, const FramePtr &frame)
{
	if (capture_)
		capture_->record(interface_, *frame);
	ends_[side]->deliver(frame);
}

void Link::run()
{
	const auto now = loop_.now();
	for (std::size_t arrived = 0;
	     arrived < kAtOnce && !in_flight_.empty() && in_flight_.begin()->first <= now;) {
		const InFlight next = std::move(in_flight_.begin()->second);
		in_flight_.erase(in_flight_.begin());
		bytes_in_flight_[next.side] -= next.frame->size() + kOverhead;
		arrived += next.frame->size() + kOverhead;
		arrive(next.side, next.frame);
	}
	for (const unsigned side : {0u, 1u})
		if (held_[side] && held_until_[side] <= now)
			pass(side, std::exchange(held_[side], nullptr));
	arm();
}

void Link::arm()
{
	auto next = Clock::time_point::max();
	if (!in_flight_.empty())
		next = in_flight_.begin()->first;
	for (const unsigned side : {0u, 1u})
		if (held_[side])
			next = std::min(next, held_until_[side]);
	if (next == Clock::time_point::max())
		timer_.cancel();
	else
		// Deliver the remaining frames that are due after other work of the loop.
		timer_.arm_at(std::max(next, loop_.now() + std::chrono::nanoseconds(1)));
}

} // namespace weft::ethernet
