// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/link.hpp"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "core/wire/checksum.hpp"
#include "net/fabric/capture.hpp"
#include "net/fabric/mad_packet.hpp"
#include "net/fabric/timeline.hpp"

namespace weft::fabric
{

namespace
{
/*
 * Time that a reordered packet waits for another one to overtake it. After that, it is sent anyway.
 */
constexpr std::chrono::milliseconds kReorderingDelay{10};
/* Maximum number of late messages of the CM on a link. Any further message is in time. */
constexpr unsigned kMostLate = 256;

bool is_of_cm(const Packet &packet)
{
	if (packet.packets() != 1)
		return false;
	const auto found = mad_of_packet(packet);
	return found && found->address.dest_qp == 1 &&
	       found->mad.header.cls() == ib::MgmtClass::com_mgt;
}
} // namespace

struct Link::Fate {
	bool lost = false;
	bool doubled = false;
	bool held = false;
	unsigned flipped_bits = 0;
	bool silent = false;
	std::chrono::nanoseconds delay{0};
};

Link::Link(std::string name, Port &a, Port &b, const LinkConfig &config, std::uint64_t seed,
	   Timeline &timeline)
    : name_(std::move(name)), ends_{&a, &b}, timeline_(timeline), plugged_(config.up),
      training_(config.training), slow_(config.faults.any()), rate_(config.rate),
      trained_rate_(config.rate), mtu_(config.mtu), faults_(config.faults), random_(seed)
{
	a.link_.store(this, std::memory_order_release);
	b.link_.store(this, std::memory_order_release);
	update();
}

Link::~Link()
{
	for (Port *port : ends_)
		port->link_.store(nullptr, std::memory_order_release);
}

void Link::remove()
{
	set_plugged(false);
	set_faults({});
	set_capture(nullptr);
	std::multimap<TimePoint, InFlight> lost;
	std::optional<Packet> held[2];
	{
		const MutexLock lock(mutex_);
		lost.swap(in_flight_);
		late_ = 0;
		for (unsigned side = 0; side < 2; side++)
			held[side] = std::exchange(held_[side], std::nullopt);
	}
	for (Port *port : ends_)
		port->link_.store(nullptr, std::memory_order_release);
}

void Link::restore(const LinkConfig &config)
{
	{
		const MutexLock lock(mutex_);
		rate_ = config.rate;
		mtu_ = config.mtu;
	}
	set_training(config.training);
	set_faults(config.faults);
	for (Port *port : ends_)
		port->link_.store(this, std::memory_order_release);
	set_plugged(config.up);
}

void Link::set_plugged(bool plugged)
{
	{
		const MutexLock lock(state_mutex_);
		plugged_ = plugged;
		settle_locked();
	}
}

bool Link::plugged() const
{
	const MutexLock lock(state_mutex_);
	return plugged_;
}

void Link::update()
{
	const MutexLock lock(state_mutex_);
	settle_locked();
}

void Link::settle_locked()
{
	bool wanted = plugged_ && ends_[0]->enabled() && ends_[1]->enabled();
	/* The training ports have no common enabled rate. */
	if (wanted && !up_.load(std::memory_order_relaxed) && !negotiated())
		wanted = false;
	if (!wanted)
		in_training_ = false;
	/* If the end of a trunk in the other process goes down, this half is also trained again. */
	if (!wanted || (up_.load(std::memory_order_relaxed) && withheld()))
		trained_ = false;
	if (!trained_ && up_.load(std::memory_order_relaxed))
		change_locked(false);
	if (wanted && !trained_ && !in_training_) {
		in_training_ = training_.count() != 0;
		trained_ = !in_training_;
		if (in_training_) {
			training_ends_ = timeline_.now() + training_;
			look_later_locked();
		}
	}
	come_up_locked();
}

void Link::come_up_locked()
{
	for (Port *port : ends_)
		port->announce_settled(trained_);
	if (trained_ && !up_.load(std::memory_order_relaxed) && !withheld())
		change_locked(true);
}

bool Link::withheld() const
{
	return ends_[0]->withheld() || ends_[1]->withheld();
}

/*
 * Schedules at most one task for each end of a training, however often a training is cancelled and
 * restarted, so that a guest which toggles its port cannot accumulate tasks. If the training time
 * was shortened meanwhile, another task is scheduled for the earlier time.
 */
void Link::look_later_locked()
{
	if (look_at_ && *look_at_ <= training_ends_)
		return;
	look_at_ = training_ends_;
	timeline_.at(training_ends_, [this, when = training_ends_] { look(when); }, this);
}

void Link::look(Clock::time_point when)
{
	const MutexLock lock(state_mutex_);
	if (look_at_ == when)
		look_at_.reset();
	if (!in_training_)
		return;
	if (timeline_.now() < training_ends_)
		return look_later_locked();
	in_training_ = false;
	trained_ = true;
	come_up_locked();
}

std::optional<LinkRate> Link::negotiated() const
{
	return negotiate(rate(), ends_[0]->enabled_rates(), ends_[1]->enabled_rates());
}

void Link::change_locked(bool up)
{
	if (up) {
		const auto agreed = negotiated();
		/* The ports agreed when the training began, and do not agree any more. */
		if (!agreed) {
			trained_ = false;
			return;
		}
		const MutexLock lock(mutex_);
		trained_rate_ = *agreed;
	}
	up_.store(up, std::memory_order_release);
	/* A guest can take its link down and up at any rate, so the log lines are limited. */
	if (const auto taken = log_budget_.take(timeline_.now()); taken.allowed)
		spdlog::info("link {}: {}{}", name_, up ? "up" : "down",
			     withheld_text(taken.withheld));
	for (Port *port : ends_)
		port->announce(up);
}

void Link::retrain()
{
	const MutexLock lock(state_mutex_);
	if (!up_.load(std::memory_order_relaxed))
		return;
	up_.store(false, std::memory_order_release);
	trained_ = false;
	for (Port *port : ends_)
		port->announce(false);
	settle_locked();
}

void Link::await_change() const
{
	const MutexLock lock(state_mutex_);
}

void Link::set_training(std::chrono::nanoseconds time)
{
	const MutexLock lock(state_mutex_);
	training_ = time;
}

std::chrono::nanoseconds Link::training() const
{
	const MutexLock lock(state_mutex_);
	return training_;
}

void Link::set_faults(const Faults &faults)
{
	const MutexLock lock(mutex_);
	faults_ = faults;
	/*
	 * If packets have taken the slow path, the arrival of the last one restores the fast path.
	 */
	if (faults_.any())
		slow_.store(true, std::memory_order_release);
	else
		timeline_.after({}, [this] { deliver_due(); }, this);
}

Faults Link::faults() const
{
	const MutexLock lock(mutex_);
	return faults_;
}

LinkRate Link::rate() const
{
	const MutexLock lock(mutex_);
	return rate_;
}

LinkRate Link::trained_rate() const
{
	const MutexLock lock(mutex_);
	return trained_rate_;
}

ib::Mtu Link::mtu() const
{
	const MutexLock lock(mutex_);
	return mtu_;
}

void Link::set_rate(const LinkRate &rate, ib::Mtu mtu)
{
	{
		const MutexLock lock(mutex_);
		rate_ = rate;
		mtu_ = mtu;
	}
	retrain();
}

void Link::set_capture(std::shared_ptr<Capture> capture)
{
	const MutexLock lock(mutex_);
	captured_.store(capture != nullptr, std::memory_order_release);
	if (capture)
		capture_interface_ = capture->add_interface(name());
	capture_ = std::move(capture);
}

std::shared_ptr<Capture> Link::capture() const
{
	const MutexLock lock(mutex_);
	return capture_;
}

void Link::record(std::span<const std::byte> wire)
{
	std::shared_ptr<Capture> capture;
	unsigned interface;
	{
		const MutexLock lock(mutex_);
		capture = capture_;
		interface = capture_interface_;
	}
	if (capture)
		capture->record(interface, wire);
}

void Link::carry(Port &to, Packet &&packet)
{
	if (slow_.load(std::memory_order_acquire))
		carry_with_faults(to, std::move(packet));
	else
		arrive(to, std::move(packet));
}

void Link::arrive(Port &to, Packet &&packet)
{
	if (captured_.load(std::memory_order_acquire)) {
		/* The packet may be a run, if the capture began after it was sent. */
		Packet rest = packet.clone();
		while (rest.packets() > 1)
			record(rest.take_first().to_wire());
		record(rest.to_wire());
	}
	to.deliver(std::move(packet));
}

bool Link::chance(double probability)
{
	/* A fault that is off uses no random number, so that it does not affect other faults. */
	return probability > 0 && std::uniform_real_distribution<>(0, 1)(random_) < probability;
}

namespace
{

std::chrono::nanoseconds draw_delay(const Faults &faults, std::mt19937_64 &random)
{
	std::chrono::nanoseconds delay = faults.delay;
	if (faults.jitter.count() > 0)
		delay += std::chrono::nanoseconds(
			random() % static_cast<std::uint64_t>(faults.jitter.count() + 1));
	return delay;
}

} // namespace

Link::Fate Link::draw_fate()
{
	Fate fate;
	fate.lost = chance(faults_.loss);
	if (chance(faults_.corruption)) {
		fate.flipped_bits = 1 + static_cast<unsigned>(random_() % 3);
	} else if (chance(faults_.silent_corruption)) {
		fate.flipped_bits = 1;
		fate.silent = true;
	}
	fate.doubled = chance(faults_.duplication);
	fate.held = chance(faults_.reordering);
	fate.delay = draw_delay(faults_, random_);
	return fate;
}

bool Link::apply_cm_faults(Port &to, Packet &packet, bool &doubled)
{
	if (!faults().any_of_cm() || !is_of_cm(packet))
		return true;
	std::array<std::byte, sizeof(ib::Mad)> bytes;
	bool late, corrupted;
	std::chrono::nanoseconds delay;
	{
		const MutexLock lock(mutex_);
		if (chance(faults_.cm_loss))
			return false;
		corrupted = chance(faults_.cm_corruption) &&
			    packet.payload().copy_to(bytes) == bytes.size();
		if (corrupted)
			bytes[random_() % bytes.size()] ^=
				static_cast<std::byte>(1 + random_() % 255);
		doubled = chance(faults_.cm_duplication) || doubled;
		late = chance(faults_.cm_lateness);
		delay = draw_delay({.jitter = faults_.cm_delay}, random_);
	}
	if (corrupted)
		packet.payload_ = Payload::copy_of(bytes);
	if (!late || !fly_late(to, packet.clone(), delay))
		return true;
	/* One of two is late. */
	const bool arrives = std::exchange(doubled, false);
	if (!arrives)
		packet.release_credit();
	return arrives;
}

bool Link::fly_late(Port &to, Packet &&packet, std::chrono::nanoseconds delay)
{
	const MutexLock lock(mutex_);
	if (late_ >= kMostLate)
		return false;
	late_++;
	fly(to, std::move(packet), timeline_.now() + delay, true);
	return true;
}

/*
 * Packets are destroyed only while mutex_ is not held, because a returned credit may make its
 * sender send the next packet on this link.
 */
void Link::carry_with_faults(Port &to, Packet &&arriving)
{
	Packet packet(std::move(arriving));
	/* The packet may stay on the link. */
	packet.keep_credit();
	unsigned side = side_of(to);
	Fate fate;
	{
		const MutexLock lock(mutex_);
		fate = draw_fate();
	}
	if (fate.lost) {
		/* The receiver does not recognise the packet any more (IBA 16.1.3.5). */
		Counters::add(to.counters_.symbol_errors);
		return;
	}
	if (fate.flipped_bits != 0) {
		auto remains = damage(to, packet, fate.flipped_bits, fate.silent);
		if (!remains)
			return;
		std::swap(remains->credit_port_, packet.credit_port_);
		std::swap(remains->credit_vl_, packet.credit_vl_);
		packet = std::move(*remains);
	}
	if (!apply_cm_faults(to, packet, fate.doubled))
		return;
	std::optional<Packet> duplicate;
	if (fate.doubled) {
		duplicate = packet.clone();
		/* A duplicate needs a credit of the receiver like any packet. */
		if (to.take_credit(packet.lrh().vl()))
			duplicate->hold_credit(to, packet.lrh().vl());
		else
			duplicate.reset();
	}

	std::optional<Packet> overtaken;
	bool at_once;
	{
		const MutexLock lock(mutex_);
		if (fate.held && !held_[side]) {
			held_[side] = std::move(packet);
			std::uint64_t number = ++held_number_[side];
			timeline_.after(
				kReorderingDelay,
				[this, side, number] { release_held(side, number); }, this);
			slow_.store(true, std::memory_order_release);
			if (!duplicate)
				return;
			/* The duplicate does not wait. */
			packet = std::move(*duplicate);
			duplicate.reset();
		} else {
			overtaken = std::exchange(held_[side], std::nullopt);
		}
		at_once = fate.delay.count() == 0 && in_flight_.empty();
		if (!at_once) {
			TimePoint due = std::max(timeline_.now() + fate.delay, last_due_[side]);
			last_due_[side] = due;
			fly(to, std::move(packet), due);
			if (duplicate)
				fly(to, std::move(*duplicate), due);
			if (overtaken)
				fly(to, std::move(*overtaken), due);
		}
	}
	if (at_once) {
		arrive(to, std::move(packet));
		if (duplicate)
			arrive(to, std::move(*duplicate));
		if (overtaken)
			arrive(to, std::move(*overtaken));
	}
}

void Link::fly(Port &to, Packet &&packet, TimePoint due, bool late)
{
	in_flight_.emplace(due, InFlight{&to, std::move(packet), late});
	slow_.store(true, std::memory_order_release);
	timeline_.at(due, [this] { deliver_due(); }, this);
}

void Link::deliver_due()
{
	for (;;) {
		std::optional<InFlight> next;
		{
			const MutexLock lock(mutex_);
			auto first = in_flight_.begin();
			if (first == in_flight_.end()) {
				if (!faults_.any() && !held_[0] && !held_[1])
					slow_.store(false, std::memory_order_release);
				return;
			}
			if (first->first > timeline_.now())
				return;
			next.emplace(std::move(first->second));
			in_flight_.erase(first);
			if (next->late)
				late_--;
		}
		if (next->late) {
			const std::uint8_t vl = next->packet.lrh().vl();
			/* The receiver has no room. */
			if (!up() || !next->to->take_credit(vl))
				continue;
			next->packet.hold_credit(*next->to, vl);
		}
		if (up())
			arrive(*next->to, std::move(next->packet));
	}
}

void Link::release_held(unsigned side, std::uint64_t number)
{
	std::optional<Packet> packet;
	{
		const MutexLock lock(mutex_);
		if (held_number_[side] == number)
			packet = std::exchange(held_[side], std::nullopt);
		/* The wait for a packet to overtake it does not count towards the link's delay. */
		const auto delay =
			packet ? draw_delay(faults_, random_) : std::chrono::nanoseconds{};
		if (packet && (delay.count() != 0 || !in_flight_.empty())) {
			const TimePoint due = std::max(timeline_.now() + delay, last_due_[side]);
			last_due_[side] = due;
			fly(*ends_[side], std::move(*packet), due);
			packet.reset();
		}
	}
	if (packet && up())
		arrive(*ends_[side], std::move(*packet));
	deliver_due();
}

std::optional<Packet> Link::damage(Port &to, const Packet &packet, unsigned bits, bool silent)
{
	std::vector<std::byte> wire = packet.to_wire();
	std::size_t protected_bytes = wire.size() - ib::vcrc_bytes;
	{
		const MutexLock lock(mutex_);
		/*
		 * Corruption inside a switch affects the packet that it forwards, but not the LRH.
		 */
		std::size_t first = silent ? sizeof(ib::Lrh) : 0;
		std::size_t range = (silent ? protected_bytes : wire.size()) - first;
		for (unsigned i = 0; i < bits; i++) {
			std::uint64_t bit = random_() % (range * 8);
			wire[first + bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
		}
	}
	const auto *bytes = reinterpret_cast<const std::uint8_t *>(wire.data());
	if (!silent) {
		std::uint16_t vcrc = packet::vcrc_of(bytes, static_cast<unsigned>(protected_bytes));
		if (bytes[protected_bytes] != (vcrc & 0xff) ||
		    bytes[protected_bytes + 1] != vcrc >> 8) {
			if (captured_.load(std::memory_order_acquire))
				record(wire);
			Counters::add(to.counters_.symbol_errors);
			Counters::add(to.counters_.rcv_errors);
			return std::nullopt;
		}
	}
	auto remains = Packet::from_wire(std::span(wire).first(protected_bytes));
	if (!remains) {
		Counters::add(to.counters_.rcv_errors);
		return std::nullopt;
	}
	remains->hops_ = packet.hops_;
	remains->set_ticket(packet.ticket());
	return remains;
}

} // namespace weft::fabric
