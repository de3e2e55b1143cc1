// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The command interface: one register (HCR). Commands are polled during initialisation; later,
// events report completions and many commands can be outstanding.
#pragma once
#include <kern/atomic.hpp>
#include <kern/completion.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/mmio.hpp>
#include <kern/trace.hpp>
#include <kern/wait_queue.hpp>
#include <hw/mellanox_icm/commands.hpp>
#include "mailbox.hpp"

namespace mellanox_icm
{

/*
 * A card acknowledges a command by GO alone, or by GO and the toggle bit that was written with the
 * command.
 */
enum class GoBit : u8 { go, go_and_toggle };

/* The way in which a command completes once the card delivers events. */
enum class Answer : u8 {
	/*
	 * Completes after all events that the card has raised before. The caller sleeps, and other
	 * tasks can issue commands.
	 */
	event,
	/*
	 * Polled in the register, which no other command can use in the meantime. For commands that
	 * the card executes faster than the caller could sleep and be woken, about an object that
	 * has no events.
	 */
	at_once,
};

/*
 * The registers of one command. in_param contains the address of a mailbox or an immediate value.
 */
struct Command {
	hw::mellanox_icm::Opcode opcode;
	u32 in_modifier = 0;
	u8 op_modifier = 0;
	u64 in_param = 0;
	u64 out_param = 0;
	Answer answer = Answer::event;
	/*
	 * True if the caller needs out_param, which takes two reads of the register.
	 */
	bool immediate = true;
};

/*
 * Called by each task that detects that the card can no longer be used, in any context, also
 * concurrently. After any of these calls returns, the card does not access memory any more.
 */
class FailureListener
{
public:
	virtual void card_failed(const char *why) = 0;

protected:
	~FailureListener() = default;
};

/*
 * Lock order: post_lock_ (mutex, held while the HCR is written) may be taken with any lock of the
 * verbs' control path held; nothing is taken inside it. contexts_lock_ is a leaf, taken in hard
 * interrupts.
 */
class CommandInterface
{
public:
	/* Maximum number of concurrent commands. */
	static constexpr unsigned int max_slots = 64;

	/*
	 * bar0: where the HCR is. Right after a reset of the card: the toggle bit, if it has one,
	 * starts at 0. May sleep. Errors: ENOMEM.
	 */
	static kern::Result<kern::Owned<CommandInterface>> create(const kern::Mmio &bar0,
								  struct device *device,
								  GoBit go_bit,
								  FailureListener &listener);

	/*
	 * Runs a command and returns what the card left in out_param (of use only where that is an
	 * immediate).
	 * Errors: EIO if the card does not answer or has failed before; otherwise the errno of the
	 * status. May sleep.
	 */
	kern::Result<u64> execute(const Command &command);

	/*
	 * Does the same with mailboxes for input and output. The mailbox of a command that did not
	 * complete is leaked.
	 */
	kern::Result<> execute_in(Command command, Mailbox &in);
	kern::Result<> execute_out(Command command, Mailbox &out);
	kern::Result<> execute_in_out(Command command, Mailbox &in, Mailbox &out);
	kern::Result<u64> execute_in_immediate(Command command, Mailbox &in);

	/*
	 * For commands that end the use of an object: a refusal means that the card still uses
	 * memory that is about to be freed, so it counts as a failure of the card. The exception is
	 * the status that is allowed, which means that the object is in use.
	 */
	kern::Result<> execute_closing(const Command &command, int allowed = 0);

	/*
	 * used: the number of bytes that the card will read, which are zeroed. Errors: ENOMEM. May
	 * sleep.
	 */
	kern::Result<Mailbox> mailbox(size_t used = hw::mellanox_icm::mailbox_max)
	{
		return pool_.get(used);
	}

	/*
	 * From now on the card answers by events; to be called when the event queue for them works.
	 * May sleep.
	 */
	kern::Result<> use_events(unsigned int log_max_commands);
	/* Back to polling; returns when no command is in flight. May sleep. */
	void use_polling();
	/* The asynchronous event queue got an answer. Hard interrupt. */
	void completed(u16 token, u8 status, u64 out_param);

	/*
	 * No more commands are issued; those in flight return EIO. Callers may free the memory of
	 * objects that a command should have destroyed, because the card cannot access memory any
	 * more. Context: any.
	 */
	void fail();
	bool failed() const { return attention_.load_relaxed() & has_failed; }
	/*
	 * True if, after a doorbell, there is more to do: failed() or watched(). Any context. A
	 * single read for both, because each call of the data path does it.
	 */
	bool wants_attention() const { return attention_.load_relaxed() != 0; }
	/* Returns true if each doorbell must be reported by kern_trace_doorbell(). */
	bool watched() const { return attention_.load_relaxed() & is_watched; }

	/* The number of executed commands, for statistics. */
	u64 count() const { return count_.load_relaxed(); }

private:
	/* A command in flight in event mode. */
	struct Slot {
		kern::Completion done;
		u16 token = 0;
		bool pending = false;
		u8 status = 0;
		u64 out_param = 0;
	};

	static constexpr unsigned int timeout_ms = 10000;
	static constexpr u16 polling_token = 0xffff;

	CommandInterface(const kern::Mmio &bar0, struct device *device, GoBit go_bit,
			 FailureListener &listener);

	kern::Result<u64> execute_polling(const Command &command);
	kern::Result<u64> execute_with_event(const Command &command);
	/* Waits until the card has taken the last command, and writes this one. */
	kern::Result<> post(const Command &command, u16 token, bool event)
		KERN_REQUIRES(post_lock_);
	/* Returns the register's value when idle. */
	kern::Result<u32> wait_idle() KERN_REQUIRES(post_lock_);
	kern::Result<> check_status(const Command &command, u8 status);
	kern::Error give_up(const Command &command, const char *why);
	int take_slot();
	void return_slot(unsigned int index);
	void watch(bool watched);

	const kern::Mmio &bar0_;
	struct device *device_;
	const GoBit go_bit_;
	FailureListener &listener_;
	MailboxPool pool_;
	kern::Mutex post_lock_;
	u32 next_toggle_ KERN_GUARDED_BY(post_lock_) = 1;
	/* The last command completed in the register, so it need not be checked for being free. */
	bool known_idle_ KERN_GUARDED_BY(post_lock_) = false;
	static constexpr u8 has_failed = 1, is_watched = 2;
	kern::Atomic<u8> attention_{0};
	kern::Atomic<u64> count_{0};

	kern::IrqSpinLock slots_lock_;
	kern::WaitQueue slot_freed_;
	kern::OwnedArray<Slot> slots_ KERN_GUARDED_BY(slots_lock_);
	u64 free_slots_ KERN_GUARDED_BY(slots_lock_) = 0;
	unsigned int in_use_ KERN_GUARDED_BY(slots_lock_) = 0;
	bool events_ KERN_GUARDED_BY(slots_lock_) = false;
	/* Declared last, because its constructor may call back immediately. */
	kern::TraceListener doorbells_watched_{KERN_TRACE_DOORBELL,
					       kern::method<&CommandInterface::watch>, this};
};

} // namespace mellanox_icm
