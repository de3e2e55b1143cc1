// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the NAPI functions of include/kern/abi/netdev.h. A poll runs as a soft interrupt, one
// at a time for each NAPI instance. Disabling waits for a running poll, and waits forever if NAPI
// is disabled already.
#include <kern/abi/memory.h>
#include <kern/abi/netdev.h>
#include <kern/abi/rcu.h>
#include <utility>
#include "calls.hpp"
#include "failure.hpp"
#include "lock_order.hpp"
#include "memory.hpp"
#include "scheduler.hpp"

using namespace sim;

namespace
{

constexpr int budget_of_poll = 64;

struct Native {
	int (*poll)(kern_napi *napi, int budget);
	const Fiber *poller;
	// A poll is pending or running.
	bool scheduled;
	// A poll was requested while one was running.
	bool missed;
	bool enabled;
	// A fiber in kern_napi_disable() waits for the last poll.
	bool ending;
	// The instance polls for completed transmissions.
	bool transmits;
};
static_assert(sizeof(Native) <= sizeof(kern_napi));

Native &native(kern_napi *napi)
{
	return *reinterpret_cast<Native *>(napi);
}

void request(kern_napi *napi);

void run(kern_napi *napi)
{
	Native &self = native(napi);

	self.poller = &scheduler().current();
	const int work = self.poll(napi, budget_of_poll);
	self.poller = nullptr;
	if (work > budget_of_poll)
		fail("a poll exceeded its budget", describe(scheduler().current().place));
	/* Completed transmissions must not count against the budget. */
	if (self.transmits && work != 0 && work != budget_of_poll)
		fail("completed transmissions are charged to the NAPI budget",
		     describe(scheduler().current().place));
	if (work < budget_of_poll)
		return;
	/* The budget is used up, so poll again, unless NAPI is being disabled. */
	if (self.ending) {
		self.scheduled = false;
		scheduler().wake(napi);
	} else {
		request(napi);
	}
}

void request(kern_napi *napi)
{
	calls::request(
		napi, {.kind = Kind::soft_interrupt, .name = "poll", .run = [napi] { run(napi); }});
}

} // namespace

extern "C" {

void kern_napi_add(struct net_device *, struct kern_napi *napi,
		   int (*poll)(struct kern_napi *napi, int budget), bool transmit)
{
	native(napi) = {.poll = poll,
			.poller = nullptr,
			.scheduled = false,
			.missed = false,
			.enabled = false,
			.ending = false,
			.transmits = transmit};
}

void kern_napi_del(struct kern_napi *napi)
{
	SIM_STEP(napi);
	check_may_sleep("ends NAPI");
	if (native(napi).enabled)
		fail("NAPI is deleted while it is enabled", describe(scheduler().current().place));
}

void kern_napi_enable(struct kern_napi *napi)
{
	SIM_STEP(napi);
	if (std::exchange(native(napi).enabled, true))
		fail("NAPI is enabled twice", describe(scheduler().current().place));
	SIM_STEP(napi);
}

void kern_napi_pause(struct kern_napi *napi)
{
	Native &self = native(napi);

	SIM_STEP(napi);
	check_may_sleep("waits for the last poll");
	if (!self.enabled)
		fail("NAPI is disabled twice, which waits forever",
		     describe(scheduler().current().place));
	self.ending = true;
	while (self.scheduled)
		scheduler().block(napi);
	self.enabled = self.ending = false;
}

void kern_napi_disable(struct kern_napi *napi)
{
	kern_napi_pause(napi);
	/* Wait for the rest of a poll function that has called napi_complete_done(). */
	kern_rcu_synchronize();
}

bool kern_napi_schedule(struct kern_napi *napi)
{
	Native &self = native(napi);

	SIM_STEP(napi);
	if (self.ending)
		return false;
	if (self.scheduled || !self.enabled) {
		self.missed = true;
		return false;
	}
	self.scheduled = true;
	request(napi);
	SIM_STEP(napi);
	return true;
}

bool kern_napi_schedule_from_task(struct kern_napi *napi)
{
	return kern_napi_schedule(napi);
}

bool kern_napi_complete_done(struct kern_napi *napi, int)
{
	Native &self = native(napi);

	SIM_STEP(napi);
	if (self.poller != &scheduler().current())
		fail("a poll is completed by another fiber", describe(scheduler().current().place));
	if (std::exchange(self.missed, false)) {
		request(napi);
		return false;
	}
	self.scheduled = false;
	scheduler().wake(napi);
	SIM_STEP(napi);
	return true;
}

/*
 * Reads the packet like the network stack, so that invalid memory is detected, and then drops it.
 */
bool kern_napi_receive(struct kern_napi *napi, struct net_device *,
		       const struct kern_rx_packet *packet)
{
	u8 sum = 0;

	SIM_STEP(napi);
	if (native(napi).poller != &scheduler().current())
		fail("a packet is passed to the stack outside of the poll function",
		     describe(scheduler().current().place));
	if (memory::fails(KERN_GFP_ATOMIC, __builtin_return_address(0)))
		return false;
	for (unsigned int i = 0; i < packet->copied; i++)
		sum = static_cast<u8>(sum + packet->data[i]);
	asm volatile("" : : "r"(sum));
	if (packet->copied < packet->length)
		kern_put_page(packet->page);
	return true;
}

bool kern_napi_receive_copy(struct kern_napi *napi, struct net_device *dev,
			    const struct kern_rx_packet *packet)
{
	struct kern_rx_packet linear = *packet;

	linear.copied = linear.length;
	return kern_napi_receive(napi, dev, &linear);
}
}
