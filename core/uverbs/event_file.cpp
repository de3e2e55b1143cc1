// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "event_file.hpp"
#include <kern/user.hpp>
#include "file.hpp"

namespace uverbs
{

namespace
{

constinit kern::FileKind<EventFile> kind;

} // namespace

kern::FileKind<EventFile> &event_file_kind()
{
	return kind;
}

EventFile::EventFile(Kind kind) : kind_(kind) {}

EventFile::~EventFile()
{
	/* Only the sources of the ports and of the device are left; objects have removed theirs. */
	kern::Guard guard(lock_);
	while (queue_.pop_front())
		;
}

kern::Result<EventFile::Created> EventFile::finish(kern::Ref<EventFile> events, File &creator)
{
	auto charge = KERN_TRY(creator.share().event_files.take());
	auto file = KERN_TRY(kern::NewFile::create(kind, "[infinibandevent]", events.get()));
	/* This reference belongs to the file; release() drops it. */
	kern::Ref<EventFile> held = events;
	EventFile *self = held.release();
	{
		kern::Guard guard(self->lock_);
		self->file_ = file.native();
	}
	self->creator_ = kern::Ref<File>::share(creator);
	self->charge_ = std::move(charge);
	creator.add_event_file(*self);
	return Created{std::move(events), std::move(file)};
}

kern::Result<EventFile::Created> EventFile::create_channel(File &creator)
{
	auto events = KERN_TRY(
		kern::adopt_ref(new (kern::Gfp::kernel_account) EventFile(Kind::completion)));
	return finish(std::move(events), creator);
}

kern::Result<EventFile::Created> EventFile::create_asynchronous(File &creator)
{
	const u32 ports = creator.device().phys_port_cnt;
	auto events = KERN_TRY(
		kern::adopt_ref(new (kern::Gfp::kernel_account) EventFile(Kind::asynchronous)));
	events->ports_ = KERN_TRY(
		kern::make_array<EventSource>(kern::Gfp::kernel_account, size_t{ports} + 1));
	for (u32 port = 0; port <= ports; port++)
		events->ports_[port].element_ = port;
	return finish(std::move(events), creator);
}

void EventFile::push(EventSource &source, ib_event_type type)
{
	kern::Guard guard(lock_);

	if (kind_ == Kind::asynchronous) {
		/* Remove an earlier event of this type, and add the type as the latest one. */
		u32 kept = 0;
		for (u32 i = 0; i < source.waiting_; i++)
			if (source.type_[i] != type)
				source.type_[kept++] = source.type_[i];
		source.type_[kept] = static_cast<u8>(type);
		source.waiting_ = kept;
	}
	source.waiting_++;
	if (!source.node_.linked())
		queue_.push_back(source);
	readers_.wake();
	if (file_)
		kern_file_signal(file_);
}

void EventFile::push_port(u32 port, ib_event_type type)
{
	if (port < ports_.size())
		push(ports_[port], type);
}

u32 EventFile::forget(EventSource &source)
{
	kern::Guard guard(lock_);

	source.node_.unlink();
	source.waiting_ = 0;
	return source.read_;
}

void EventFile::close()
{
	if (kind_ == Kind::asynchronous)
		return;
	{
		kern::Guard guard(lock_);
		closed_ = true;
	}
	readers_.wake_all();
}

/*
 * Removes and returns the next event. If its source has more events, it is moved to the end of the
 * list.
 */
bool EventFile::pop(Record &record)
{
	kern::Guard guard(lock_);
	EventSource *source = queue_.pop_front();

	if (!source)
		return false;
	record = {.element = source->element_, .type = source->type_[0], .reserved = 0};
	source->read_++;
	source->waiting_--;
	if (kind_ == Kind::asynchronous)
		for (u32 i = 0; i < source->waiting_; i++)
			source->type_[i] = source->type_[i + 1];
	if (source->waiting_)
		queue_.push_back(*source);
	return true;
}

kern::Result<size_t> EventFile::read(u64 to, size_t count, bool wait)
{
	Record record;

	if (count < record_size())
		return kern::Error{-EINVAL};
	while (!pop(record)) {
		bool closed;
		{
			kern::Guard guard(lock_);
			closed = closed_;
		}
		if (closed)
			return kern::Error{-EIO};
		if (!wait)
			return kern::Error{-EAGAIN};
		KERN_TRY(readers_.wait_interruptible([&] {
			kern::Guard guard(lock_);
			return closed_ || !queue_.empty();
		}));
	}
	KERN_TRY(kern::copy_out(to, &record, record_size()));
	return record_size();
}

unsigned int EventFile::poll(kern::Poll &poll)
{
	poll.wait(readers_);
	kern::Guard guard(lock_);
	if (!queue_.empty())
		return KERN_POLL_READABLE;
	return closed_ ? KERN_POLL_ERROR : 0;
}

void EventFile::release()
{
	{
		kern::Guard guard(lock_);
		file_ = nullptr;
	}
	if (kern::Ref<File> creator = std::move(creator_)) {
		creator->remove_event_file(*this);
		charge_ = {};
	}
	/* Drop the reference that finish() took for the file. */
	kern::Ref<EventFile>::adopt(this);
}

} // namespace uverbs
