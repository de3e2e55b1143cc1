// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements measurements between two ends of weft_talk: the round-trip time of a message or a
 * Write, and the time that many of them take. For round trips of Writes, both ends poll memory; all
 * other measurements wait for events. The client sends the address of its memory and receives the
 * address of the server's. Then it sends the kind, number and size of the messages, and begins when
 * the server has accepted them.
 */
#pragma once
#include "../../../mlx4/tests/traffic/arguments.hpp"
#include "end.hpp"

namespace talk::meter
{

enum class What : u32 { echo_send, echo_write, send, write };

/* The peer writes one half of the memory, and the other half contains the data to send. */
constexpr u32 half = memory_bytes / 2;
/*
 * Number of messages in flight, of posted receives, and of messages after which the peer confirms.
 */
constexpr u32 window = 16, receives = 256, confirmed = 64;

struct Plan {
	What what;
	u32 count;
	u32 size;
	/* Memory of the peer. */
	u64 address;
	u32 key;
};

/* The last byte of a Write, which identifies the round. */
constexpr u8 mark(u32 round)
{
	return static_cast<u8>(round % 255 + 1);
}

inline kern::Result<> wait_for_mark(End &end, u32 size, u32 round)
{
	const u8 *const last = end.memory.as<u8>() + size - 1;
	const auto deadline = kern::Deadline::in_ms(end.wait_ms);
	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != mark(round)) {
		kern::cond_resched();
		if (deadline.passed())
			return kern::Error{-ETIMEDOUT};
	}
	return {};
}

inline kern::Result<> write(End &end, const Plan &plan, u32 round)
{
	end.memory.as<u8>()[half + plan.size - 1] = mark(round);
	KERN_TRY(end.post(IB_WR_RDMA_WRITE, end.sge(half, plan.size), plan.address, plan.key));
	return end.sent();
}

inline kern::Result<> send(End &end, const Plan &plan)
{
	return end.post(IB_WR_SEND, end.sge(half, plan.size));
}

/* Measures round trips. */
inline kern::Result<> ask_echo(End &end, const Plan &plan)
{
	for (u32 round = 0; round < plan.count; round++) {
		if (plan.what == What::echo_write) {
			KERN_TRY(write(end, plan, round));
			KERN_TRY(wait_for_mark(end, plan.size, round));
			continue;
		}
		KERN_TRY(end.receive(end.sge(0, plan.size)));
		KERN_TRY(send(end, plan));
		KERN_TRY(end.sent());
		KERN_TRY(end.received());
	}
	return {};
}

inline kern::Result<> serve_echo(End &end, const Plan &plan)
{
	for (u32 round = 0; round < plan.count; round++) {
		if (plan.what == What::echo_write) {
			KERN_TRY(wait_for_mark(end, plan.size, round));
			KERN_TRY(write(end, plan, round));
			continue;
		}
		KERN_TRY(end.received());
		KERN_TRY(end.receive(end.sge(0, plan.size)));
		KERN_TRY(send(end, plan));
		KERN_TRY(end.sent());
	}
	return {};
}

/* Keeps up to `window` messages in flight, and then waits until the peer has confirmed all. */
inline kern::Result<> ask_stream(End &end, const Plan &plan)
{
	const bool writes = plan.what == What::write;
	u32 credit = receives;
	for (u32 i = 0; i < 4; i++)
		KERN_TRY(end.receive());
	for (u32 done = 0, posted = 0; done < plan.count;) {
		if (posted < plan.count && posted == credit && !writes) {
			KERN_TRY(end.received());
			KERN_TRY(end.receive());
			credit += confirmed;
		} else if (posted < plan.count && posted - done < window) {
			KERN_TRY(writes ? end.post(IB_WR_RDMA_WRITE, end.sge(half, plan.size),
						   plan.address, plan.key)
					: send(end, plan));
			posted++;
			continue;
		}
		if (posted > done) {
			KERN_TRY(end.sent());
			done++;
		}
	}
	if (writes) {
		KERN_TRY(end.say(0, 0, 0));
		return end.received();
	}
	/* Wait for the remaining confirmations. */
	for (; credit < receives + plan.count / confirmed * confirmed; credit += confirmed)
		KERN_TRY(end.received());
	return {};
}

inline kern::Result<> serve_stream(End &end, const Plan &plan)
{
	if (plan.what == What::write) {
		KERN_TRY(end.received());
		return end.say(0, 0, 0);
	}
	for (u32 i = 1; i <= plan.count; i++) {
		KERN_TRY(end.received());
		KERN_TRY(end.receive(end.sge(0, plan.size)));
		if (i % confirmed == 0)
			KERN_TRY(end.say(0, 0, 0));
	}
	return {};
}

constexpr bool is_echo(What what)
{
	return what == What::echo_send || what == What::echo_write;
}

/* Runs the server. The connection is closed when it returns. */
inline kern::Result<> serve(End &end)
{
	KERN_TRY(end.received());
	const Note memory = end.note(1).swapped();
	KERN_TRY(end.report(end.memory.address(), half));
	KERN_TRY(end.received());
	const Note asked = end.note(1).swapped();
	if (asked.size == 0 || asked.size > half ||
	    asked.address > static_cast<u64>(static_cast<u32>(What::write)))
		return kern::Error{-EINVAL};
	const Plan plan{static_cast<What>(asked.address), asked.key, asked.size, memory.address,
			memory.key};
	end.spins = plan.what == What::echo_write;
	if (plan.what == What::write)
		KERN_TRY(end.receive());
	else
		for (u32 i = 0; i < (is_echo(plan.what) ? 2 : receives); i++)
			KERN_TRY(end.receive(end.sge(0, plan.size)));
	KERN_TRY(end.say(0, 0, 0));
	KERN_TRY(is_echo(plan.what) ? serve_echo(end, plan) : serve_stream(end, plan));
	/* Waits until the peer disconnects, which flushes the remaining receives. */
	end.spins = false;
	KERN_TRY(end.receive());
	return end.received();
}

/* Runs the client, and returns the elapsed nanoseconds. */
inline kern::Result<u64> ask(End &end, const traffic::Arguments &arguments)
{
	Plan plan{};
	plan.count = static_cast<u32>(arguments.number("count", 1000));
	plan.size = static_cast<u32>(arguments.number("size", 64));
	plan.what = arguments.is("what", "echo-send")    ? What::echo_send
		    : arguments.is("what", "echo-write") ? What::echo_write
		    : arguments.is("what", "send")       ? What::send
							 : What::write;
	if (plan.size == 0 || plan.size > half)
		return kern::Error{-EINVAL};
	KERN_TRY(end.report(end.memory.address(), half));
	KERN_TRY(end.received());
	plan.address = end.note(1).swapped().address;
	plan.key = end.note(1).swapped().key;
	KERN_TRY(end.receive());
	KERN_TRY(end.say(static_cast<u32>(plan.what), plan.count, plan.size));
	KERN_TRY(end.received());
	end.spins = plan.what == What::echo_write;
	const u64 start = kern::now_ns();
	KERN_TRY(is_echo(plan.what) ? ask_echo(end, plan) : ask_stream(end, plan));
	return kern::now_ns() - start;
}

} // namespace talk::meter
