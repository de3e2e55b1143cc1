// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Simulates a card in memory for tests: it replies to requests, and completes work as the test
// directs.
#pragma once
#include <hw/amso1100/events.hpp>
#include <kern/kunit.hpp>
#include <kern/kunit_fixture.hpp>
#include <kern/thread.hpp>
#include <rdma/objects.hpp>
#include "../cq.hpp"
#include "../ib_device.hpp"

namespace amso1100
{

class Card final : public PciFunction
{
public:
	static constexpr size_t window_bytes = 1 << 20;
	static constexpr u32 most_qps = 64;
	/* Offsets in the memory window. */
	static constexpr u32 shared_at = 0x1000, pool_at = 0x2000, queues_at = 0x10000;
	static constexpr u32 entries =
		8; /* depth of each fixed queue, small enough to wrap around soon */

	struct Ring {
		u32 start = 0, slot_bytes = 0, depth = 0, consumer = 0;
	};
	struct CardQp {
		u64 context = 0;
		Ring sq, rq;
		Cq *send_cq = nullptr, *recv_cq = nullptr;
	};

	explicit Card(unsigned int reply_timeout_ms = 20000);
	~Card();
	/*
	 * Starts the driver on the RNIC, and registers the device unless a test uses the driver
	 * directly.
	 */
	bool start(bool registered = true);
	bool ok() const { return started_; }

	void disable_bus_mastering() override { cut.fetch_add(1); }
	void synchronize() override { synchronized.fetch_add(1); }
	void failed() override { failures.fetch_add(1); }

	/* The number of requests of a kind, and the last one. */
	unsigned int asked(wire::MessageId id) const
	{
		return asked_[static_cast<u8>(id)].load_acquire();
	}
	const Message &last(wire::MessageId id) const { return last_[static_cast<u8>(id)]; }
	/*
	 * Sets the status of the replies to one kind of request. With Status::pending the card does
	 * not reply.
	 */
	void answers(wire::MessageId id, wire::Status status)
	{
		answers_[static_cast<u8>(id)] = static_cast<u8>(status);
	}

	void interrupt()
	{
		registers.write32(wire::reg::disr, wire::disr_hints);
		rnic->interrupt();
	}
	/* Registers the CQ that belongs to a handle that the card has assigned. */
	void knows(Cq &cq) { cqs_[cq.handle() - first_handle] = &cq; }
	CardQp &qp(u32 number) { return qps_[number]; }

	/* Completes the oldest request of a queue. */
	bool complete_send(u32 qp, wire::Status status = wire::Status::ok, u32 silent = 0,
			   bool solicited = false);
	bool complete_receive(u32 qp, u32 bytes, wire::Status status = wire::Status::ok,
			      bool solicited = false);
	/* Writes an entry unchanged, without regard to the posted requests. */
	void add_entry(Cq &cq, const u8 (&entry)[wire::completion::size], bool solicited = false);
	/* Adds an event without raising the interrupt. */
	void say(const Message &event);
	/* Adds an event, and raises the interrupt. */
	void report(Message &event)
	{
		say(event);
		interrupt();
	}
	/* Adds an event, raises the interrupt, and waits until the event has been recorded. */
	void report_and_wait(Message &event)
	{
		report(event);
		rnic->flush_events();
	}

	kern::kunit::FakeDevice device{"weft-amso1100"};
	kern::OwnedArray<u64> memory, register_memory;
	kern::Mmio window, registers;
	RegisterPage page{};
	kern::Owned<Rnic> rnic;
	IbDevice *ib = nullptr;
	kern::Atomic<unsigned int> cut{0}, failures{0}, synchronized{0};
	/* If set, the card accepts no requests. */
	kern::Atomic<bool> holding{false};
	u32 next_queue_index = 3;   /* index of the next queue that the card creates */
	bool accepts_term = true;   /* the card accepts TERM */
	u32 reply_depth_offset = 0; /* added to the depths in its replies */

private:
	static constexpr u32 first_handle = 100;

	int serve();
	void carry_out(Message &message);
	void leave();
	void create_qp(Message &reply);
	void flush(CardQp &qp);
	void reply(const Message &message);
	bool complete(CardQp &qp, bool receive, u32 bytes, wire::Status status, u32 silent,
		      bool solicited);
	u16 shared_index(u32 at) const { return swap_be(window.read16(at + wire::shared::index)); }

	const unsigned int reply_timeout_ms_;
	bool started_ = false;
	u32 consumer_ = 0, replied_ = 0, reported_ = 0;
	u32 cqs_given_ = 0, qps_given_ = 0, next_place_ = queues_at;
	Cq *cqs_[8] = {};
	CardQp qps_[most_qps];
	u8 answers_[256] = {};
	kern::Atomic<unsigned int> asked_[64];
	Message last_[64];
	kern::Thread thread_;
};

} // namespace amso1100
