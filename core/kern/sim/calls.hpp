// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Deferred calls that run in fibers of their own: timers, tasklets, interrupts, work items. Each is
 * identified by the address of the item that the caller owns. The caller may free the item when its
 * call is neither pending nor running, so the simulation's state is kept here and not in the item.
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
	// The item may have been destroyed when it returns.
	std::function<void()> run;
	// The call may run twice at once if it is requested again while it runs.
	bool overlaps = false;
	// Called when the item is queued: immediately, or at the given time.
	std::function<void()> queued = {};
	// The call does not start before this returns true; it is evaluated after each wake() of
	// `turn_of`. Empty: the call starts immediately.
	std::function<bool()> turn = {};
	const void *turn_of = nullptr;
	// Called when the call has run, or was cancelled after it had been queued.
	std::function<void()> ended = {};
};

/* Requests a call. Returns false if the item's call is already due and has not started. */
bool request(const void *item, Call call);
/* Does the same at a given time. */
bool request_at(const void *item, std::uint64_t at, Call call);
/* Cancels the item; returns false if it was not due. A running one continues. */
bool cancel(const void *item);
/* Does the same, and waits for a running call. sleeps: the caller may sleep. */
bool cancel_and_wait(const void *item, bool sleeps);
/* Queues an item now that waits for its time. */
void hasten(const void *item);
/* Waits until calls that are due now, or run, have ended. Returns false if there are none. */
bool flush(const void *item);
bool due(const void *item);
/* Name of an item in the memory that is due, or runs in another fiber; or empty. */
std::string active_within(const void *memory, std::size_t size);
/* Name of an item that is still due at the end, or empty. */
std::string left();
/* A new run begins. */
void reset();

} // namespace sim::calls
