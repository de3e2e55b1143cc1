// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The RNIC's three fixed queues: requests, replies, and unsolicited events.
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
	/* Takes the bus from the card: it writes no memory any more. Any context. */
	virtual void cut_off() = 0;
	/* Waits for an interrupt that is being handled. May sleep. */
	virtual void synchronize() = 0;
	/* Marks the RNIC as failed. Any context. */
	virtual void failed() = 0;

protected:
	~PciFunction() = default;
};

class Channel
{
public:
	/* All of these must outlive the channel. */
	struct Parts {
		device *dev;
		const kern::Mmio *window; /* part of BAR 4 that begins with the register page */
		QueueLayout layout;
		/* The card must answer a request within this time. */
		unsigned int patience_ms;
		PciFunction *function;
	};

	explicit Channel(Parts parts) : parts_(parts) {}
	/* Passes the addresses of the queues to the card. Errors: ENOMEM, EIO. May sleep. */
	kern::Result<> start();
	/*
	 * Stops the card, which writes nothing more when this has returned. A card that does not
	 * respond loses bus mastering. May sleep.
	 */
	void stop();

	/*
	 * Sends the request, and waits for the reply, which replaces the request. Errors:
	 * errno_of() the card's status; EIO if the card does not reply; no further requests are
	 * then sent to it. May sleep.
	 */
	kern::Result<> call(Message &message, size_t bytes);
	/* Sends a request that has no reply. Errors: EIO. May sleep. */
	kern::Result<> post(Message &message, size_t bytes);

	/* Processes the card's replies. Context: any. */
	void drain_replies();
	/*
	 * Gets the next event; returns false if there is none. Only one caller at a time is
	 * allowed.
	 */
	bool next_event(Message &event);
	/* Returns the number of hints that the card has queued since start(). Context: any. */
	u16 hints() const { return started_.load_acquire() ? word(words().hint_count.value) : 0; }
	bool failed() const { return failed_.load_acquire(); }
	/*
	 * The card has violated the interface, so nothing that it writes is trusted any more.
	 * Context: any.
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
	static constexpr u32 most_calls = 16;
	struct Call {
		Message *message = nullptr; /* null if the entry is free */
		u32 generation = 0;
		kern::Completion answered;
	};
	/*
	 * One of the card's two outgoing queues: its messages in host memory, and the read
	 * position.
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

	/* Returns true if the card has processed TERM. */
	bool has_left();
	kern::Result<> submit(const Message &message, size_t bytes);
	bool has_room() const KERN_REQUIRES(post_lock_);
	/*
	 * Allocates an entry for a call; returns its number, which becomes part of the request's
	 * context.
	 */
	u32 take_call(Message &message);
	void give_call(u32 number);
	enum class Found : u8 { none, message, nonsense };
	Found take_message(Incoming &queue, const FixedQueue &place, const u16 &word,
			   Message &into);
	Found take_reply();
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
	/* Tasks that wait for space for a request, or for a free entry. */
	kern::WaitQueue room_{KERN_LOCK_CLASS("weft_amso1100_room")};

	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("weft_amso1100_replies")};
	Incoming replies_ KERN_GUARDED_BY(lock_);
	Call calls_[most_calls];
	Incoming events_;
};

} // namespace amso1100
