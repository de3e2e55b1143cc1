// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements an open file of /dev/infiniband/uverbsN: a program's context of the device, and the
 * objects that it has created.
 *
 * Commands run in parallel. Closing the file, or removing the device, waits for running commands
 * and admits no more. Both destroy the mappings, then the objects, and then the context. After
 * device removal a program still has handles, which it can destroy, and descriptors, from which it
 * can read events.
 *
 * Locks: commands_ is outermost. With commands_ held for reading, the program's memory is read,
 * written and pinned, so map(), which is called under mmap_lock, does not take commands_. The locks
 * inside commands_ are making_, the lock of ObjectTable, and those of the midlayer.
 * event_files_lock_ and, inside of it, the lock of EventFile are innermost.
 */
#pragma once
#include <kern/atomic.hpp>
#include <kern/file.hpp>
#include <kern/lock.hpp>
#include <kern/rdma_cgroup.hpp>
#include <kern/ref.hpp>
#include <rdma/ib_verbs.h>
#include "event_file.hpp"
#include "object.hpp"
#include "share.hpp"

namespace uverbs
{

class Device;
struct Present;

class File : public kern::RefCounted<File>
{
public:
	/* Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Ref<File>> create(Device &device, kern_file &native);
	~File();

	/*
	 * Called when the device is removed. After it returns, the program has no objects on the
	 * device. Context: process.
	 */
	void leave_device();

	/* These may be called only by commands, which run only while the device exists. */
	Device &owner() { return *owner_; }
	ib_device &device() const { return *device_; }
	ib_ucontext *context() const { return context_.load_acquire(); }
	ObjectTable &objects() { return objects_; }
	Share &share() const { return *share_; }
	/*
	 * Returns the file for asynchronous events of objects that specify no file; empty until the
	 * program has requested one.
	 */
	kern::Ref<EventFile> events();
	/*
	 * Implements GET_CONTEXT: creates the context, unless `respond` fails. Errors: EINVAL if
	 * there is a context already; EDQUOT; EAGAIN beyond the limit of a control group.
	 */
	template<class Respond>
	kern::Result<> make_context(ib_udata &udata, Respond respond);
	/* Sets the file that events() returns, unless it is set already. */
	void use_for_events(const kern::Ref<EventFile> &events);

	void add_event_file(EventFile &file);
	void remove_event_file(EventFile &file);

	/* File operations. */
	kern::Result<size_t> write(u64 from, size_t count);
	kern::Result<> control(unsigned int command, u64 argument);
	kern::Result<kern_mapping> map(u64 page_offset, size_t length);
	void release();

	/* In the list of the device. */
	kern::ListNode node;

private:
	/* The state changes only in this order. */
	enum class State : u8 {
		opened,      // no context: only commands that need none are permitted
		ready,       // all commands are permitted
		device_gone, // only commands that destroy objects are permitted
		closed, // the program has closed its last descriptor, so no commands are possible
	};

	File(Device &owner, kern_file &native, Shares::Member share);
	State state() const { return static_cast<State>(state_.load_acquire()); }
	/* The only function that changes the state. */
	void become(State next);
	kern::Result<kern::CgroupCharge> charge_context();
	/* Waits for running commands, destroys all objects, and changes the state. */
	void end(State next) KERN_EXCLUDES(commands_);
	void close_channels();
	/*
	 * Adds an event of a port, or of the device if @port is 0, to all files for asynchronous
	 * events. Context: any.
	 */
	void notify_all(u32 port, ib_event_type type);
	Present present() const;
	static void handle_event(ib_event_handler *handler, ib_event *event);

	const kern::Ref<Device> owner_;
	/* Declared first, because it must outlive everything that is charged to it. */
	const Shares::Member share_;
	ib_device *const device_;
	/* Valid until the file is closed. */
	kern_file *const native_;

	kern::RwLock commands_{KERN_LOCK_CLASS("uverbs.commands")};
	/*
	 * A State. Read with commands_ held. Written with commands_ held for writing, except for
	 * the change to `ready`, which the command that creates the context makes.
	 */
	kern::Atomic<u8> state_{static_cast<u8>(State::opened)};
	/* Held by the command that creates the context. */
	kern::Mutex making_{KERN_LOCK_CLASS("uverbs.making")};
	kern::Atomic<ib_ucontext *> context_{nullptr};
	kern::Charge context_charge_;
	kern::CgroupCharge context_cgroup_charge_;
	ib_event_handler handler_{};
	ObjectTable objects_;
	/*
	 * Taken only by tasks, so interrupts are enabled while the list is walked. Each event
	 * file's own lock disables them for one event only.
	 */
	kern::SpinLock event_files_lock_{KERN_LOCK_CLASS("uverbs.event_files")};
	/*
	 * The event files that the program has open. events_ holds the first file for asynchronous
	 * events, which stays valid after the program has closed it.
	 */
	kern::List<EventFile, &EventFile::node> event_files_ KERN_GUARDED_BY(event_files_lock_);
	kern::Ref<EventFile> events_ KERN_GUARDED_BY(event_files_lock_);
};

kern::FileKind<File> &file_kind();

template<class Respond>
kern::Result<> File::make_context(ib_udata &udata, Respond respond)
{
	kern::Guard guard(making_);
	if (state() != State::opened)
		return kern::Error{-EINVAL};

	auto charge = KERN_TRY(share_->contexts.take());
	auto cgroup_charge = KERN_TRY(charge_context());
	ib_ucontext *const context = ib_alloc_ucontext(device_, &udata);
	KERN_TRY_ERRNO(kern::pointer_error(context));
	if (const kern::Result<> responded = respond(); !responded) {
		ib_dealloc_ucontext(context);
		return responded;
	}
	context_charge_ = std::move(charge);
	context_cgroup_charge_ = std::move(cgroup_charge);
	context_.store_release(context);
	INIT_IB_EVENT_HANDLER(&handler_, device_, handle_event);
	ib_register_event_handler(&handler_);
	become(State::ready);
	return {};
}

} // namespace uverbs
