// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "calls.hpp"
#include <algorithm>
#include <map>
#include <vector>
#include <utility>
#include "failure.hpp"
#include "lock_order.hpp"
#include "scheduler.hpp"

namespace sim::calls
{

namespace
{

struct Item {
	// Serial number of the call that is due; 0 if none is.
	std::uint64_t serial = 0;
	std::uint64_t alarm = 0;
	std::string name;
	std::function<void()> ended;
	std::vector<const Fiber *> runners;
};

// Ordered by address, to find the items within a range of memory.
std::map<const std::byte *, Item> items;
std::uint64_t serials;

const std::byte *key(const void *item)
{
	return static_cast<const std::byte *>(item);
}

Item *find(const void *item)
{
	const auto found = items.find(key(item));

	return found == items.end() ? nullptr : &found->second;
}

void settle(const void *item)
{
	const Item *state = find(item);

	if (state && state->serial == 0 && state->runners.empty())
		items.erase(key(item));
	scheduler().wake(item);
}

void carry_out(const void *item, std::uint64_t serial, const Call &call)
{
	const auto still_due = [&] {
		const Item *state = find(item);
		return state && state->serial == serial;
	};
	Fiber &self = scheduler().current();

	self.begun = false;
	while (still_due() && call.turn && !call.turn())
		scheduler().block(call.turn_of);
	if (!call.overlaps)
		while (still_due() && !find(item)->runners.empty())
			scheduler().block(item);
	if (!still_due())
		return;
	self.begun = true;
	self.section++;
	Item &state = *find(item);
	state.serial = 0;
	state.ended = {};
	state.runners.push_back(&self);
	call.run();
	std::erase(find(item)->runners, &self);
	if (call.ended)
		call.ended();
	settle(item);
}

void begin(const void *item, std::uint64_t serial, Call call)
{
	const Kind kind = call.kind;
	std::string name = call.name;

	if (call.queued)
		call.queued();
	scheduler().start(kind, std::move(name), [item, serial, call = std::move(call)] {
		carry_out(item, serial, call);
	});
}

void wait_for_runners(const void *item)
{
	const Fiber *self = &scheduler().current();

	for (const Item *state = find(item); state && !state->runners.empty(); state = find(item)) {
		if (std::find(state->runners.begin(), state->runners.end(), self) !=
		    state->runners.end())
			fail("a call waits for itself", state->name);
		scheduler().block(item);
	}
}

} // namespace

bool request(const void *item, Call call)
{
	Item &state = items[key(item)];

	if (state.serial)
		return false;
	state.serial = ++serials;
	state.name = call.name;
	state.alarm = 0;
	state.ended = call.ended;
	begin(item, state.serial, std::move(call));
	return true;
}

bool request_at(const void *item, std::uint64_t at, Call call)
{
	Item &state = items[key(item)];

	if (state.serial)
		return false;
	const std::uint64_t serial = state.serial = ++serials;
	state.name = call.name;
	state.ended = {};
	state.alarm = scheduler().set_alarm(at, [item, serial, call = std::move(call)]() mutable {
		Item &expired = *find(item);
		expired.alarm = 0;
		expired.ended = call.ended;
		begin(item, serial, std::move(call));
	});
	return true;
}

bool cancel(const void *item)
{
	Item *state = find(item);

	if (!state || state->serial == 0)
		return false;
	state->serial = 0;
	if (state->alarm)
		scheduler().cancel_alarm(std::exchange(state->alarm, 0));
	if (auto ended = std::exchange(state->ended, {}))
		ended();
	settle(item);
	return true;
}

bool cancel_and_wait(const void *item, bool sleeps)
{
	const bool was_due = cancel(item);

	if (sleeps)
		check_may_sleep("waits for the end of a call");
	wait_for_runners(item);
	return was_due;
}

void hasten(const void *item)
{
	if (const Item *state = find(item); state && state->alarm)
		scheduler().ring_alarm(state->alarm);
}

bool flush(const void *item)
{
	const Item *state = find(item);

	check_may_sleep("waits for the end of a call");
	if (!state)
		return false;
	if (const std::uint64_t serial = state->serial) {
		while ((state = find(item)) && state->serial == serial)
			scheduler().block(item);
	}
	wait_for_runners(item);
	return true;
}

bool due(const void *item)
{
	const Item *state = find(item);

	return state && state->serial != 0;
}

std::string active_within(const void *memory, std::size_t size)
{
	const Fiber *self = scheduler().inside() ? &scheduler().current() : nullptr;

	for (auto it = items.lower_bound(key(memory));
	     it != items.end() && it->first < key(memory) + size; ++it) {
		const Item &item = it->second;
		if (item.serial || std::any_of(item.runners.begin(), item.runners.end(),
					       [&](const Fiber *runner) { return runner != self; }))
			return item.name;
	}
	return {};
}

std::string left()
{
	for (const auto &[address, item] : items)
		if (item.serial)
			return item.name;
	return {};
}

void reset()
{
	items.clear();
	serials = 0;
}

} // namespace sim::calls
