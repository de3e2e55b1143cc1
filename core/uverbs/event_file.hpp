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
	/* Events that wait to be read, and that have been. */
	u32 waiting_ = 0;
	u32 read_ = 0;
	/* Asynchronous events: which, the oldest first. */
	u8 type_[types] = {};
	/* In its file's queue as long as something waits. */
	kern::ListNode node_;
};

class EventFile : public kern::RefCounted<EventFile>
{
public:
	enum class Kind : u8 { completion, asynchronous };

	~EventFile();

	/*
	 * Both with the file that a program will read, once that is installed. Context: process.
	 * Errors: EDQUOT; those of NewFile::create().
	 */
	struct Created {
		kern::Ref<EventFile> events;
		kern::NewFile file;
	};
	static kern::Result<Created> create_channel(File &maker);
	/* With sources for each port of the device, and for the device itself. */
	static kern::Result<Created> create_asynchronous(File &maker);

	/* Something has happened. type: of an asynchronous event. Any context. */
	void push(EventSource &source, ib_event_type type = {});
	/* The same, of a port, or 0 for the device, if it is for asynchronous events. */
	void push_port(u32 port, ib_event_type type);
	/* Takes out what has not been read; how many events have. Context: process. */
	u32 forget(EventSource &source);
	/*
	 * Closes a channel: no more events are added, and readers get an error after the remaining
	 * ones. Context: process.
	 */
	void close();

	/* While its caller has the file. */
	bool is(Kind kind, const File &maker) const
	{
		return kind_ == kind && maker_.get() == &maker;
	}

	/* The file's calls. */
	kern::Result<size_t> read(u64 to, size_t count, bool wait);
	unsigned int poll(kern::Poll &poll);
	void release();

	/* In the list of its maker. */
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
	 * As long as the program has the file, both: it is charged to the user of its maker.
	 */
	kern::Ref<File> maker_;
	kern::Charge charge_;
	kern::OwnedArray<EventSource> ports_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("uverbs.events")};
	kern::List<EventSource, &EventSource::node_> queue_ KERN_GUARDED_BY(lock_);
	bool closed_ KERN_GUARDED_BY(lock_) = false;
	/* nullptr once the program has closed it. */
	kern_file *file_ KERN_GUARDED_BY(lock_) = nullptr;
	kern::WaitQueue readers_{KERN_LOCK_CLASS("uverbs.readers")};
};

/* The kind of file behind the descriptors of such files. */
kern::FileKind<EventFile> &event_file_kind();

} // namespace uverbs
