// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/port.hpp"

#include <algorithm>
#include <cassert>
#include <thread>
#include <utility>

#include "base/process_barrier.hpp"
#include "net/fabric/link.hpp"
#include "net/fabric/sink_calls.hpp"

namespace weft::fabric
{

/*
 * A call into the sink that is in progress. It is ordered against detach(), which removes the sink
 * and then checks for calls: either the call sees that the sink was removed, or detach() sees the
 * call.
 */
class Port::SinkCall
{
public:
	explicit SinkCall(Port &port) : port_(port), call_(SinkCalls::begin(port))
	{
		if (!call_) [[unlikely]]
			port_.sink_calls_.fetch_add(1, std::memory_order_seq_cst);
		sink_ = port_.sink_.load(std::memory_order_seq_cst);
	}
	~SinkCall()
	{
		if (call_) [[likely]]
			SinkCalls::end(call_);
		else
			port_.sink_calls_.fetch_sub(1, std::memory_order_release);
	}
	SinkCall(const SinkCall &) = delete;
	SinkCall &operator=(const SinkCall &) = delete;

	explicit operator bool() const { return sink_ != nullptr; }
	PortSink *operator->() const { return sink_; }

private:
	Port &port_;
	/* Null if the call could not be recorded, and is counted in the port. */
	const SinkCalls::Call call_;
	PortSink *sink_;
};

namespace
{

/*
 * Returns the highest bit that is set in both values and is at most @limit, or 0 if there is none.
 */
std::uint8_t best_bit(unsigned a, unsigned b, unsigned limit)
{
	unsigned best = 0;
	for (unsigned bit = 1; bit <= limit; bit <<= 1)
		if ((a & b & bit) != 0)
			best = bit;
	return static_cast<std::uint8_t>(best);
}

} // namespace

std::optional<LinkRate> negotiate(const LinkRate &cable, const EnabledRates &a,
				  const EnabledRates &b)
{
	LinkRate rate = cable;
	rate.width = best_bit(a.widths, b.widths, cable.width);
	rate.speed_ext = best_bit(a.speeds_ext, b.speeds_ext, cable.speed_ext);
	/* An extended speed has precedence over other speeds. */
	if (rate.speed_ext == ib::speed_ext_none)
		rate.speed = best_bit(a.speeds, b.speeds, cable.speed);
	if (rate.width == 0 || rate.speed == 0)
		return std::nullopt;
	return rate;
}

Port::Port(std::string name, Timeline &timeline, int credits_per_vl)
    : name_(std::move(name)), timeline_(timeline)
{
	for (auto &credits : credits_)
		credits.store(credits_per_vl, std::memory_order_relaxed);
}

Port::~Port() = default;

void Port::attach(PortSink &sink)
{
	enable_rates({});
	withhold(false);
	limit_mtu(ib::Mtu::mtu_4096);
	lends_credits_.store(sink.borrows_credits(), std::memory_order_release);
	[[maybe_unused]] PortSink *before = sink_.exchange(&sink, std::memory_order_seq_cst);
	assert(before == nullptr);
}

void Port::detach()
{
	disable();
	sink_.store(nullptr, std::memory_order_seq_cst);
	ProcessBarrier::issue();
	while (sink_calls_.load(std::memory_order_seq_cst) != 0 || SinkCalls::in_progress(*this))
		std::this_thread::yield();
	lends_credits_.store(false, std::memory_order_release);
}

void Port::enable()
{
	enabled_.store(true, std::memory_order_release);
	if (Link *l = link())
		l->update();
}

void Port::disable()
{
	enabled_.store(false, std::memory_order_release);
	if (Link *l = link())
		l->update();
}

void Port::enable_rates(const EnabledRates &rates)
{
	enabled_rates_.store(rates, std::memory_order_release);
	/* Without a common rate, the ports keep trying. */
	if (Link *l = link(); l && !l->up())
		l->update();
}

void Port::retrain()
{
	if (Link *l = link())
		l->retrain();
}

void Port::await_link_change() const
{
	if (const Link *l = link())
		l->await_change();
}

bool Port::link_up() const
{
	Link *l = link();
	return l && l->up();
}

LinkRate Port::rate() const
{
	Link *l = link();
	return l ? l->trained_rate() : LinkRate{};
}

ib::Mtu Port::mtu_cap() const
{
	Link *l = link();
	return l ? std::min(l->mtu(), l->other(*this).mtu_limit_.load(std::memory_order_acquire))
		 : ib::Mtu::mtu_4096;
}

void Port::settle()
{
	if (Link *l = link())
		l->update();
}

Port *Port::peer() const
{
	Link *l = link();
	return l ? &l->other(*this) : nullptr;
}

bool Port::peer_forwards() const
{
	Port *const other = peer();
	if (!other)
		return false;
	const SinkCall sink(*other);
	return sink && sink->forwards();
}

Sent Port::send(Packet &packet)
{
	Link *l = link();
	if (!l || !l->up()) {
		Counters::add(counters_.xmit_discards, packet.packets());
		Packet dropped(std::move(packet));
		return Sent::link_down;
	}
	Port &to = l->other(*this);
	std::uint8_t vl = packet.lrh().vl();
	for (;;) {
		const bool borrowed = to.may_borrow_credit(vl);
		if (!borrowed && !to.take_credit(vl)) {
			if (vl != ib::vl_management) {
				Counters::add(counters_.xmit_wait);
				return Sent::no_credit;
			}
			Counters::add(to.counters_.vl15_dropped);
			Packet dropped(std::move(packet));
			return Sent::done;
		}
		bool part = packet.packets() > 1 && l->looks_at_packets();
		Packet moved = part ? packet.take_first() : std::move(packet);
		counters_.count_sent(moved.packets(), moved.wire_words(),
				     ib::lid_is_multicast(moved.lrh().dlid));
		moved.hold_credit(to, vl, borrowed);
		l->carry(to, std::move(moved));
		if (!part)
			return Sent::done;
	}
}

bool Port::may_borrow_credit(std::uint8_t vl) const
{
	/* VL15 may be used without flow control, so its packets always take their credits. */
	return lends_credits_.load(std::memory_order_acquire) && vl != ib::vl_management &&
	       credits_[vl].load(std::memory_order_acquire) > 0;
}

bool Port::take_credit(std::uint8_t vl)
{
	auto &credits = credits_[vl];
	auto take = [&] {
		int have = credits.load(std::memory_order_seq_cst);
		while (have > 0)
			if (credits.compare_exchange_weak(have, have - 1,
							  std::memory_order_seq_cst))
				return true;
		return false;
	};
	if (take())
		return true;
	if (vl == ib::vl_management)
		return false;
	/*
	 * Announce the wait before the second check. A credit that is returned between the two
	 * checks has either been seen here, or its return sees the announcement. An unnecessary
	 * announcement causes one superfluous call.
	 */
	starved_[vl].store(true, std::memory_order_seq_cst);
	return take();
}

void Port::return_credits(std::uint8_t vl, int count)
{
	credits_[vl].fetch_add(count, std::memory_order_seq_cst);
	if (!starved_[vl].load(std::memory_order_seq_cst) ||
	    !starved_[vl].exchange(false, std::memory_order_seq_cst))
		return;
	Port *sender = peer();
	if (!sender)
		return;
	if (SinkCall sink(*sender); sink)
		sink->credit_available(vl);
}

void Port::deliver(Packet &&packet)
{
	SinkCall sink(*this);
	if (!sink)
		return;
	/* The node may be another one than when the packet was sent. */
	if (!lends_credits_.load(std::memory_order_relaxed))
		packet.keep_credit();
	counters_.count_received(packet.packets(), packet.wire_words(),
				 ib::lid_is_multicast(packet.lrh().dlid));
	if (packet.icrc_error() && !sink->forwards()) {
		Counters::add(counters_.rcv_errors);
		return;
	}
	sink->receive(std::move(packet));
}

void Port::announce(bool up)
{
	if (!up)
		Counters::add(counters_.link_downed);
	if (SinkCall sink(*this); sink)
		sink->link_changed(up);
}

void Port::announce_settled(bool trained)
{
	if (SinkCall sink(*this); sink)
		sink->link_settled(trained);
}

} // namespace weft::fabric
