// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides two simulated guests, each with a card and a minimal driver, and a link between the
// cards, in virtual time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "cards/amso1100/testing/driver.hpp"
#include "net/ethernet/link.hpp"

namespace weft::amso1100::testing
{

// A card's cable, which is connected to a port of the link.
struct Plug {
	Plug(Loop &loop, const char *name)
	    : port(name,
		   [this](const ethernet::FramePtr &frame) {
			   // Posted, because the receiver may reply while it is called.
			   pending.post([this, frame] { end.send(frame); });
		   }),
	      pending(loop), end(channel, ethernet::Channel::kNetwork, loop,
				 [this](const ethernet::FramePtr &frame) { port.send(frame); })
	{
	}

	const std::shared_ptr<ethernet::Channel> channel = std::make_shared<ethernet::Channel>();
	ethernet::Port port;
	Loop &pending;
	ethernet::Channel::End end;
};

constexpr std::uint32_t kAddressA = 0x0a000001, kAddressB = 0x0a000002;
constexpr std::uint16_t kPort = 7174;

struct TwoCards {
	TwoCards()
	{
		a.bring_up(kAddressA);
		b.bring_up(kAddressB);
	}

	void set(const fabric::Faults &faults, bool up = true) { link.set({up, faults}); }
	bool until(const std::function<bool()> &done,
		   Clock::duration time = std::chrono::minutes(10))
	{
		return loop.run_until(done, time);
	}
	void pass(Clock::duration time)
	{
		bool over = false;
		Timer timer(loop, [&] { over = true; });
		timer.arm(time);
		until([&] { return over; }, time + std::chrono::seconds(1));
	}

	VirtualEnvironment environment;
	Reactor reactor{"test", Reactor::Drive::manual, environment};
	Loop loop{"cable", reactor};
	Plug plug_a{loop, "a"}, plug_b{loop, "b"};
	ethernet::Link link{loop, plug_a.port, plug_b.port, {}, 1};
	Driver a{reactor, 1, plug_a.channel}, b{reactor, 2, plug_b.channel};
};

} // namespace weft::amso1100::testing
