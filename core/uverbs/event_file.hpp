// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the files from which a program reads events: completion channels (CHAN-02), and files
 * for asynchronous events.
 *
 * Reporting an event needs no memory: unread events are recorded in an EventSource of the object or
 * the port. The source of a CQ's completion events counts them, one for each time that the CQ was
 * armed. Other sources store the types of the unread events, in the order of their last occurrence:
 * an event that occurs again before it has been read is read only once. So the number of unread
 * events is limited by the number of the program's objects.
 */
#pragma once
#include <kern/file.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/quota.hpp>
#include <kern/ref.hpp>
#include <rdma/ib_verbs.h>

namespace uverbs
{

class File;

class EventSource
{
public:
	EventSource() = default;
	explicit EventSource(u64 element) : element_(element) {}

private:
	friend class EventFile;
	static constexpr unsigned int types = IB_EVENT_WQ_FATAL + 1;

	/* Value that identifies the object or port to the program in each event. */
	u64 element_ = 0;
	/* Number of events that wait to be read, and number that have been read. */
	u32 waiting_ = 0;
	u32 read_ = 0;
	/* The types of waiting asynchronous events, oldest first. */
	u8 type_[types] = {};
	/* In the list of its file while events wait. */
	kern::ListNode node_;
};

class EventFile : public kern::RefCounted<EventFile>
{
public:
	enum class Kind : u8 { completion, asynchronous };

	~EventFile();

	/*
	 * create_channel() and create_asynchronous() create the object and the file from which the
	 * program reads. The caller installs the file. Context: process. Errors: EDQUOT; those of
	 * NewFile::create().
	 */
	struct Created {
		kern::Ref<EventFile> events;
		kern::NewFile file;
	};
	static kern::Result<Created> create_channel(File &creator);
	/* Also creates a source for each port of the device, and one for the device itself. */
	static kern::Result<Created> create_asynchronous(File &creator);

	/* Adds an event. @type: for asynchronous events only. Context: any. */
	void push(EventSource &source, ib_event_type type = {});
	/*
	 * Like push(), for an event of a port, or of the device if @port is 0. Has no effect on
	 * channels.
	 */
	void push_port(u32 port, ib_event_type type);
	/*
	 * Removes the unread events of a source; returns the number of events that have been read.
	 * Context: process.
	 */
	u32 forget(EventSource &source);
	/*
	 * Closes a channel whose CQs have been destroyed: a reader gets the remaining events, and
	 * then an error. Context: process.
	 */
	void close();

	/*
	 * Returns true if this file is of that kind and was created by @creator. The caller must
	 * hold the file.
	 */
	bool is(Kind kind, const File &creator) const
	{
		return kind_ == kind && creator_.get() == &creator;
	}

	/* File operations. */
	kern::Result<size_t> read(u64 to, size_t count, bool wait);
	unsigned int poll(kern::Poll &poll);
	void release();

	/* In the list of the uverbs file that created it. */
	kern::ListNode node;

private:
	explicit EventFile(Kind kind);
	static kern::Result<Created> finish(kern::Ref<EventFile> events, File &creator);

	struct Record {
		u64 element;
		u32 type;
		u32 reserved;
	};
	size_t record_size() const
	{
		return kind_ == Kind::completion ? sizeof(u64) : sizeof(Record);
	}
	bool pop(Record &record);

	const Kind kind_;
	/*
	 * creator_ and charge_ are valid while the program has the file open. The charge belongs to
	 * the user of the uverbs file that created it.
	 */
	kern::Ref<File> creator_;
	kern::Charge charge_;
	kern::OwnedArray<EventSource> ports_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("uverbs.events")};
	kern::List<EventSource, &EventSource::node_> queue_ KERN_GUARDED_BY(lock_);
	bool closed_ KERN_GUARDED_BY(lock_) = false;
	/* nullptr after the program has closed the file. */
	kern_file *file_ KERN_GUARDED_BY(lock_) = nullptr;
	kern::WaitQueue readers_{KERN_LOCK_CLASS("uverbs.readers")};
};

/* The file type that recognises descriptors of event files. */
kern::FileKind<EventFile> &event_file_kind();

} // namespace uverbs
