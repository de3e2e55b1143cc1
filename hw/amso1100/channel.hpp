// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the RNIC's three fixed queues, which carry requests, replies and unsolicited events
// between the driver and the card.
#pragma once
#include <kern/completion.hpp>
#include <kern/dma.hpp>
#include <kern/lock.hpp>
#include <kern/wait_queue.hpp>
#include "queue_layout.hpp"

namespace amso1100
{

/* Functions that the RNIC needs from its PCI device. */
class PciFunction
{
public:
	/*
	 * Disables the card's bus mastering, so that it does not write to memory any more. Context:
	 * any.
	 */
	virtual void disable_bus_mastering() = 0;
	/* Waits until a running interrupt handler has returned. May sleep. */
	virtual void synchronize() = 0;
	/* Called when the RNIC has failed. Context: any. */
	virtual void failed() = 0;

protected:
	~PciFunction() = default;
};

class Channel
{
public:
	/* Resources of the channel, which must outlive it. */
	struct Parts {
		device *dev;
		const kern::Mmio *window; /* part of BAR 4 that begins with the register page */
		QueueLayout layout;
		/* The card must reply to a request within this time. */
		unsigned int reply_timeout_ms;
		PciFunction *function;
	};

	explicit Channel(Parts parts) : parts_(parts) {}
	/* Passes the addresses of the queues to the card. Errors: ENOMEM, EIO. May sleep. */
	kern::Result<> start();
	/*
	 * Stops the card, which does not write to memory any more when this returns. If the card
	 * does not respond, its bus mastering is disabled. May sleep.
	 */
	void stop();

	/*
	 * Sends a request, and waits for the reply, which replaces the request in `message`. May
	 * sleep. Errors: errno_of() the card's status; EIO if the card does not reply. After that,
	 * no requests are sent to it.
	 */
	kern::Result<> call(Message &message, size_t bytes);
	/* Sends a request that has no reply. Errors: EIO. May sleep. */
	kern::Result<> post(Message &message, size_t bytes);

	/* Processes the card's replies. Context: any. */
	void drain_replies();
	/*
	 * Returns the next event in `event`, or false if there is none. Must not be called
	 * concurrently.
	 */
	bool next_event(Message &event);
	/* Returns the number of hints that the card has queued since start(). Context: any. */
	u16 hints() const { return started_.load_acquire() ? word(words().hint_count.value) : 0; }
	bool failed() const { return failed_.load_acquire(); }
	/*
	 * Called when the card has violated the interface: nothing that it writes is trusted any
	 * more. Context: any.
	 */
	void fail(const char *why);

	/*
	 * The memory that the card writes, for a test that simulates the card. Valid after start().
	 */
	struct CardMemory {
		u8 *replies, *events;
		u32 reply_bytes, event_bytes; /* size of a slot */
		u16 *hint_word, *request_word, *reply_word, *event_word;
	};
	CardMemory card_memory();

private:
	static constexpr u32 max_calls = 16;
	struct Call {
		Message *message = nullptr; /* nullptr if the entry is free */
		u32 generation = 0;
		kern::Completion answered;
	};
	/*
	 * One of the card's two outgoing queues: its messages in host memory, and the read index.
	 */
	struct Incoming {
		kern::DmaBuffer pool;
		u32 consumer = 0;
	};
	struct Words {
		/* Each word has its own cache line. */
		struct alignas(64) Word {
			u16 value;
		} hint_count, requests, replies, events;
	};

	/* Waits for the card to accept TERM. Returns false if it does not. */
	bool accepted_term();
	kern::Result<> submit(const Message &message, size_t bytes);
	bool has_space() const KERN_REQUIRES(post_lock_);
	/*
	 * Allocates an entry for a call. Returns its index, which becomes part of the request's
	 * context.
	 */
	u32 allocate_call(Message &message);
	void free_call(u32 number);
	enum class Found : u8 { none, message, invalid };
	Found read_message(Incoming &queue, const FixedQueue &place, const u16 &word,
			   Message &into);
	Found read_reply();
	static u16 word(const u16 &value)
	{
		return swap_be(__atomic_load_n(&value, __ATOMIC_ACQUIRE));
	}
	Words &words() const { return *words_.as<Words>(); }

	const Parts parts_;
	kern::DmaBuffer words_;
	kern::Atomic<bool> failed_{false};
	kern::Atomic<bool> started_{false};

	kern::Mutex post_lock_{KERN_LOCK_CLASS("weft_amso1100_post")};
	u32 producer_ KERN_GUARDED_BY(post_lock_) = 0;
	/* Tasks that wait for space in the request queue, or for a free entry. */
	kern::WaitQueue space_{KERN_LOCK_CLASS("weft_amso1100_space")};

	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("weft_amso1100_replies")};
	Incoming replies_ KERN_GUARDED_BY(lock_);
	Call calls_[max_calls];
	Incoming events_;
};

} // namespace amso1100
