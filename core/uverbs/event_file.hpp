// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Files that a program reads events from: completion channels (CHAN-02), and one for asynchronous
 * events.
 *
 * No event needs memory: unread events are recorded in an EventSource of the object or the
 * port. For a CQ it has the number of its completion events, one for each time it was armed;
 * otherwise the types, in the order of their last occurrence: an event that comes again before
 * it has been read is read once. So the unread events of a program are bounded by the number of
 * its objects.
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

	/* Returned to the program in each event. */
	u64 element_ = 0;
	/* Number of events that wait to be read, and that were read. */
	u32 waiting_ = 0;
	u32 read_ = 0;
	/* The types of waiting asynchronous events, oldest first. */
	u8 type_[types] = {};
	/* In the queue of its file while events wait. */
	kern::ListNode node_;
};

class EventFile : public kern::RefCounted<EventFile>
{
public:
	enum class Kind : u8 { completion, asynchronous };

	~EventFile();

	/*
	 * Both create the object and the file that the program reads, which the caller installs.
	 * Context: process. Errors: EDQUOT; those of NewFile::create().
	 */
	struct Created {
		kern::Ref<EventFile> events;
		kern::NewFile file;
	};
	static kern::Result<Created> create_channel(File &maker);
	/* Creates it with a source for each port of the device, and one for the device. */
	static kern::Result<Created> create_asynchronous(File &maker);

	/* Adds an event. type: of an asynchronous event. Context: any. */
	void push(EventSource &source, ib_event_type type = {});
	/* Does the same for a port, or for the device if @port is 0. Has no effect on channels. */
	void push_port(u32 port, ib_event_type type);
	/*
	 * Removes the unread events of a source; returns the number of its events that were read.
	 * Context: process.
	 */
	u32 forget(EventSource &source);
	/*
	 * Closes a channel: no more events are added, and readers get an error after the remaining
	 * ones. Context: process.
	 */
	void close();

	/* The caller must hold the file. */
	bool is(Kind kind, const File &maker) const
	{
		return kind_ == kind && maker_.get() == &maker;
	}

	/* The file's calls. */
	kern::Result<size_t> read(u64 to, size_t count, bool wait);
	unsigned int poll(kern::Poll &poll);
	void release();

	/* In the list of the file that created it. */
	kern::ListNode node;

private:
	explicit EventFile(Kind kind);
	static kern::Result<Created> finish(kern::Ref<EventFile> events, File &maker);

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
	 * Both are valid while the program has the file open. The charge is to the user of the file
	 * that created it.
	 */
	kern::Ref<File> maker_;
	kern::Charge charge_;
	kern::OwnedArray<EventSource> ports_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("uverbs.events")};
	kern::List<EventSource, &EventSource::node_> queue_ KERN_GUARDED_BY(lock_);
	bool closed_ KERN_GUARDED_BY(lock_) = false;
	/* nullptr after the program has closed it. */
	kern_file *file_ KERN_GUARDED_BY(lock_) = nullptr;
	kern::WaitQueue readers_{KERN_LOCK_CLASS("uverbs.readers")};
};

/* The kind of file behind the descriptors of such files. */
kern::FileKind<EventFile> &event_file_kind();

} // namespace uverbs
