// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the command interface of mlx4 and mthca cards, which is one register (HCR). Commands
// are polled during initialisation; later, events report completions and many commands can be
// outstanding.
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
 * The bits that tell whether the card has read a command: only GO, or GO and the toggle bit that
 * was written with the command.
 */
enum class GoBit : u8 { go, go_and_toggle };

/* How a command completes when the card delivers events. Until then, all commands are polled. */
enum class Answer : u8 {
	/*
	 * By an event, which arrives after all events that the card has raised before. The caller
	 * sleeps, and other tasks can issue commands.
	 */
	event,
	/*
	 * By polling the register, which no other command can use in the meantime. For commands
	 * that the card executes faster than a sleeping caller could be woken, on an object without
	 * events.
	 */
	at_once,
};

/* The register values of a command. in_param is an immediate value or the address of a mailbox. */
struct Command {
	hw::mellanox_icm::Opcode opcode;
	u32 in_modifier = 0;
	u8 op_modifier = 0;
	u64 in_param = 0;
	u64 out_param = 0;
	Answer answer = Answer::event;
	/*
	 * The caller needs out_param. Reading it takes two register reads if the command is polled.
	 */
	bool immediate = true;
};

/*
 * Notified by each task that detects that the card cannot be used any more, in any context,
 * possibly concurrently. When a call returns, the card does not access memory any more.
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
 * control path held; no lock is taken inside it, except slots_lock_. slots_lock_ is a leaf, which
 * is also taken in hard interrupts.
 */
class CommandInterface
{
public:
	/* Maximum number of concurrent commands. */
	static constexpr unsigned int max_slots = 64;

	/*
	 * bar0: contains the HCR. Must be called directly after a reset of the card, because the
	 * toggle bit, if the card has one, starts at 0. May sleep. Errors: ENOMEM.
	 */
	static kern::Result<kern::Owned<CommandInterface>> create(const kern::Mmio &bar0,
								  struct device *device,
								  GoBit go_bit,
								  FailureListener &listener);

	/*
	 * Executes a command, and returns out_param, which is valid only if the command returns an
	 * immediate value. May sleep.
	 * Errors: EIO if the card does not respond or has failed before; otherwise the errno for
	 * the command's status.
	 */
	kern::Result<u64> execute(const Command &command);

	/*
	 * Execute a command with mailboxes for input and output. If the card has failed, the
	 * mailboxes are not reused until the pool is destroyed.
	 */
	kern::Result<> execute_in(Command command, Mailbox &in);
	kern::Result<> execute_out(Command command, Mailbox &out);
	kern::Result<> execute_in_out(Command command, Mailbox &in, Mailbox &out);
	kern::Result<u64> execute_in_immediate(Command command, Mailbox &in);

	/*
	 * Executes a command that ends the card's use of memory that the caller will free. If the
	 * card refuses the command, it counts as failed, because it might still use the memory. The
	 * exception is the error `allowed`, which means that the object is in use.
	 */
	kern::Result<> execute_closing(const Command &command, int allowed = 0);

	/*
	 * Returns a mailbox. used: the number of bytes that the card will read; they are zeroed.
	 * Errors: ENOMEM. May sleep.
	 */
	kern::Result<Mailbox> mailbox(size_t used = hw::mellanox_icm::mailbox_max)
	{
		return pool_.get(used);
	}

	/* Switches to completion by events. The event queue for them must work. May sleep. */
	kern::Result<> use_events(unsigned int log_max_commands);
	/* Switches back to polling; returns when no command is in flight. May sleep. */
	void use_polling();
	/*
	 * Called when the asynchronous event queue has received the completion of a command.
	 * Context: hard interrupt.
	 */
	void completed(u16 token, u8 status, u64 out_param);

	/*
	 * Issues no more commands; those in flight return EIO. Callers may free the memory of
	 * objects that a command should have destroyed, because the card cannot access memory any
	 * more. Context: any.
	 */
	void fail();
	bool failed() const { return attention_.load_relaxed() & has_failed; }
	/*
	 * Returns true if failed() or watched() is true, which must be handled after a doorbell.
	 * One read for both, because each call of the data path checks them. Context: any.
	 */
	bool wants_attention() const { return attention_.load_relaxed() != 0; }
	/* Returns true if each doorbell must be reported by kern_trace_doorbell(). */
	bool watched() const { return attention_.load_relaxed() & is_watched; }

	/* Returns the number of executed commands, for statistics. */
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
	/* Waits until the card has read the previous command, and writes this one. */
	kern::Result<> post(const Command &command, u16 token, bool event)
		KERN_REQUIRES(post_lock_);
	/* Returns the register's value when the card has read the last command. */
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
	/*
	 * The last command has completed in the register, so the next one need not check that it is
	 * free.
	 */
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
