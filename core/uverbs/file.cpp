// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "file.hpp"
#include "device.hpp"
#include "methods.hpp"

/* Defined in module.c: takes a permanent reference to the module. */
extern "C" void weft_uverbs_stay();

namespace uverbs
{

namespace
{

constinit kern::FileKind<File> kind;

} // namespace

kern::FileKind<File> &file_kind()
{
	return kind;
}

kern::Result<kern::CgroupCharge> File::charge_context()
{
	return kern::CgroupCharge::create(owner_->cgroup(), KERN_CGROUP_HANDLE);
}

kern::Result<kern::Ref<File>> File::create(Device &device, kern_file &native)
{
	auto share = KERN_TRY(device.shares().enter(kern_current_user()));
	return kern::adopt_ref(new (kern::Gfp::kernel_account)
				       File(device, native, std::move(share)));
}

File::File(Device &owner, kern_file &native, Shares::Member share)
    : owner_(kern::Ref<Device>::share(owner)), share_(std::move(share)), device_(&owner.ib()),
      native_(&native), objects_(*share_, owner.cgroup())
{
}

File::~File() = default;

void File::become(State next)
{
	if (!KERN_WARN_ON(next <= state()))
		state_.store_release(static_cast<u8>(next));
}

void File::handle_event(ib_event_handler *handler, ib_event *event)
{
	File &file = *reinterpret_cast<File *>(reinterpret_cast<char *>(handler) -
					       __builtin_offsetof(File, handler_));

	file.notify_all(event->element.port_num, event->event);
}

void File::end(State next)
{
	kern::Guard guard(commands_);
	const State before = state();

	if (before >= next)
		return;
	if (before < State::device_gone) {
		/*
		 * Remove the program's mappings first. A file that is being closed has none left.
		 */
		if (next == State::device_gone)
			kern_file_revoke(native_);
		const bool all = objects_.end_all();
		if (!all) {
			/*
			 * Leaked objects may still call their handlers, so this module must stay
			 * loaded. They may also use the registers of the context, so those must not
			 * be reassigned.
			 */
			weft_uverbs_stay();
			context_charge_.lose();
			context_cgroup_charge_.lose();
		}
		if (ib_ucontext *context = context_.load_relaxed()) {
			ib_unregister_event_handler(&handler_);
			context_.store_release(nullptr);
			if (all) {
				ib_dealloc_ucontext(context);
				context_charge_ = {};
				context_cgroup_charge_ = {};
			}
			if (next == State::device_gone)
				notify_all(0, IB_EVENT_DEVICE_FATAL);
		}
		close_channels();
	}
	if (next == State::closed)
		objects_.clear();
	become(next);
}

void File::leave_device()
{
	end(State::device_gone);
}

void File::release()
{
	end(State::closed);
	/*
	 * This must be the last access to the device, because the removal of the device waits for
	 * it.
	 */
	owner_->forget(*this);
	/* Drop the reference that Device::open() took for the file. */
	kern::Ref<File>::adopt(this);
}

void File::add_event_file(EventFile &file)
{
	kern::Guard guard(event_files_lock_);
	event_files_.push_back(file);
}

void File::remove_event_file(EventFile &file)
{
	kern::Guard guard(event_files_lock_);
	file.node.unlink();
}

kern::Ref<EventFile> File::events()
{
	kern::Guard guard(event_files_lock_);
	return events_;
}

void File::use_for_events(const kern::Ref<EventFile> &events)
{
	kern::Guard guard(event_files_lock_);
	if (!events_)
		events_ = events;
}

void File::notify_all(u32 port, ib_event_type type)
{
	kern::Guard guard(event_files_lock_);
	for (EventFile &file : event_files_)
		file.push_port(port, type);
}

void File::close_channels()
{
	kern::Guard guard(event_files_lock_);
	for (EventFile &file : event_files_)
		file.close();
}

Present File::present() const
{
	const State now = state();

	return {.context = now == State::ready, .device = now < State::device_gone};
}

kern::Result<size_t> File::write(u64 from, size_t count)
{
	kern::SharedGuard guard(commands_);

	KERN_TRY(run_command(*this, from, count, present()));
	return count;
}

kern::Result<> File::control(unsigned int command, u64 argument)
{
	if (command != abi::verbs_ioctl)
		return kern::Error{-ENOSYS};
	kern::SharedGuard guard(commands_);
	return run_method(*this, argument, present());
}

/*
 * The kernel does not call this function after the mappings have been revoked, and the context
 * exists until then.
 */
kern::Result<kern_mapping> File::map(u64 page_offset, size_t length)
{
	ib_ucontext *context = context_.load_acquire();
	ib_user_mapping mapping;

	if (!context)
		return kern::Error{-EINVAL};
	KERN_TRY_ERRNO(ib_mmap_ucontext(context, page_offset, length, &mapping));
	if (mapping.length != length)
		return kern::Error{-EINVAL};
	return kern_mapping{.pfn = mapping.pfn,
			    .write_combining = mapping.caching == IB_USER_WRITE_COMBINING,
			    .writable = mapping.writable};
}

} // namespace uverbs
