// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements an open file of /dev/infiniband/umadN: a program's agents on a port, its outstanding
 * sends, and the MADs that wait to be read.
 *
 * When the file is closed or the port is removed, the agents are unregistered. This waits for the
 * midlayer, but never for the program, because no lock is held while the program's memory is read
 * or written.
 *
 * Locks: agents_lock_ is the outermost one, followed by those of the midlayer. lock_ is innermost,
 * and the only lock that is taken by handlers that the midlayer calls.
 */
#pragma once
#include <kern/atomic.hpp>
#include <kern/file.hpp>
#include <kern/lock.hpp>
#include "agent.hpp"
#include "message.hpp"

namespace umad
{

class Port;

class File : public kern::RefCounted<File>
{
public:
	/* Maximum number of agents of one file. */
	static constexpr unsigned int agents_max = 32;

	/* Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Ref<File>> create(Port &port, kern_file &native);
	~File();

	/*
	 * Called when the port is removed. After it returns, the file does not use the port.
	 * Context: process.
	 */
	void leave_device();

	/* The next two functions are called by the agents' handlers. */
	/* failed: the send has failed for any reason. */
	void on_sent(Send &send, bool failed);
	/* asked: the send to which the MAD is the response; nullptr for an unsolicited MAD. */
	void on_received(const Agent &agent, const ib_mad_agent &mad, Send *asked,
			 ib_mad_recv_wc *received);

	/* File operations. */
	kern::Result<size_t> read(u64 to, size_t count, bool wait);
	kern::Result<size_t> write(u64 from, size_t count);
	kern::Result<> control(unsigned int command, u64 argument);
	unsigned int poll(kern::Poll &poll);
	void release();

	/* In the list of its port. */
	kern::ListNode node;

private:
	/* The state changes only in this order. */
	enum class State : u8 {
		opened,
		device_gone, // all calls except close() fail
		closed,
	};
	/* The size of message headers, which is fixed when the first agent is registered. */
	enum class Form : u8 {
		open_short, // without a P_Key index, unless the program requests it
		open_long,  // with a P_Key index
		settled_short,
		settled_long,
	};

	File(Port &owner, kern_file &native);
	State state() const { return static_cast<State>(state_.load_acquire()); }
	/*
	 * The only function that changes the state; unregisters the agents in state device_gone and
	 * closed.
	 */
	void become(State next);

	Form form() const { return static_cast<Form>(form_.load_acquire()); }
	size_t header_size() const;
	/* Fixes the size of message headers. Called when the first agent is registered. */
	void settle(bool with_pkey);

	kern::Result<> enable_pkey();
	kern::Result<u32> add_agent(const Registration &what, bool with_pkey);
	kern::Result<> remove_agent(u32 id);
	kern::Result<> register_agent(u64 argument);
	kern::Result<> register_agent2(u64 argument);
	/*
	 * Returns the agent's number to the program. If that fails, the agent is removed, because
	 * the program cannot use it.
	 */
	kern::Result<> answer_agent(u64 to, u32 id);

	kern::Result<> post(kern::Owned<Send> send, const Agent &agent);
	kern::Owned<Send> take(Send &send);

	/*
	 * Queues the message if there is space. There always is for the outcome of a send that
	 * consists of one MAD. @over: the send that the message completes, or nullptr.
	 */
	bool push(kern::Owned<Unread> &message, Send *over);
	void put_back(kern::Owned<Unread> message);
	kern::Owned<Unread> pop();
	void count_locked(const Unread &message) KERN_REQUIRES(lock_);
	void discount_locked(const Unread &message) KERN_REQUIRES(lock_);
	kern::Result<size_t> show(const Unread &message, u64 to, size_t count) const;

	const kern::Ref<Port> owner_;
	kern_file &native_;

	kern::RwLock agents_lock_{KERN_LOCK_CLASS("umad.agents")};
	/* A State and a Form. Changed with agents_lock_ held exclusively. */
	kern::Atomic<u8> state_{static_cast<u8>(State::opened)};
	kern::Atomic<u8> form_{static_cast<u8>(Form::open_short)};
	kern::Owned<Agent> agents_[agents_max] KERN_GUARDED_BY(agents_lock_);

	kern::SpinLock lock_{KERN_LOCK_CLASS("umad.file")};
	kern::List<Send, &Send::node> sends_ KERN_GUARDED_BY(lock_);
	kern::List<Unread, &Unread::node> unread_ KERN_GUARDED_BY(lock_);
	/*
	 * Numbers of MADs in outstanding sends and in unread messages. For each outcome of a send,
	 * one MAD is not included in unread_mads_, but counted by unread_outcomes_.
	 */
	unsigned int sent_mads_ KERN_GUARDED_BY(lock_) = 0;
	unsigned int unread_mads_ KERN_GUARDED_BY(lock_) = 0;
	unsigned int unread_outcomes_ KERN_GUARDED_BY(lock_) = 0;
	kern::WaitQueue readers_{KERN_LOCK_CLASS("umad.readers")};
};

kern::FileKind<File> &file_kind();

} // namespace umad
