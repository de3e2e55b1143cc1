// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Runs deferred calls, each in a fiber of its own: timers, tasklets, interrupts, work items. Each
 * is identified by the address of an item that the caller owns. The caller may free the item when
 * its call is neither pending nor running, so the state is stored here and not in the item.
 */
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include "fiber.hpp"

namespace sim::calls
{

struct Call {
	Kind kind;
	std::string name;
	// The function to call. It may destroy the item.
	std::function<void()> run;
	// A call that is requested while it is running may run a second time in parallel.
	bool overlaps = false;
	// Called when the call is queued: immediately, or at the given time.
	std::function<void()> queued = {};
	// The call does not start before this returns true; it is evaluated after each wake() of
	// `turn_of`. If it is empty, the call starts immediately.
	std::function<bool()> turn = {};
	const void *turn_of = nullptr;
	// Called when the call has returned, or was cancelled after it had been queued.
	std::function<void()> ended = {};
};

/* Requests a call. Returns false if the call is already due and has not started. */
bool request(const void *item, Call call);
/* Requests a call at the given time. */
bool request_at(const void *item, std::uint64_t at, Call call);
/* Cancels the call; returns false if it was not due. If it is running, it continues. */
bool cancel(const void *item);
/* Cancels the call, and waits if it is running. @sleeps: the caller may sleep. */
bool cancel_and_wait(const void *item, bool sleeps);
/* Queues a call immediately that waits for its time. */
void hasten(const void *item);
/*
 * Waits until the calls that are now due or running have returned. Returns false if there are none.
 */
bool flush(const void *item);
bool due(const void *item);
/*
 * Returns the name of an item in this memory whose call is due, or is running in another fiber;
 * empty if there is none.
 */
std::string active_within(const void *memory, std::size_t size);
/*
 * Returns the name of an item whose call is still due at the end of the run; empty if there is
 * none.
 */
std::string left();
/* Called when a new run begins. */
void reset();

} // namespace sim::calls
