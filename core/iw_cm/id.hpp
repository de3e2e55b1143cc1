// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines an ID of the iWARP connection manager: its state, and the events that have not been
 * reported to its handler yet.
 *
 * The consumer has one reference, which is dropped when the ID is destroyed. Destroying an ID waits
 * until the driver has reported all outstanding events of the ID. A listener exists at least until
 * its unreported connection requests have been handled.
 */
#pragma once

#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/ref.hpp>
#include <kern/wait_queue.hpp>
#include <kern/work.hpp>
#include <rdma/iw_cm.h>

#include "states.hpp"

namespace iw_cm
{

class Id : public iw_cm_id, public kern::RefCounted<Id>
{
public:
	/* Errors: ENODEV, ENOMEM. */
	static kern::Result<kern::Ref<Id>> create(ib_device *device, iw_cm_handler handler,
						  void *context);
	static Id &of(iw_cm_id *id) { return *static_cast<Id *>(id); }
	~Id();

	/* See rdma/iw_cm.h for each function. */
	kern::Result<> listen(unsigned int backlog);
	void stop_listening();
	kern::Result<> connect(const iw_cm_param &param);
	kern::Result<> accept(const iw_cm_param &param);
	kern::Result<> reject(const void *data, u8 length);
	kern::Result<> disconnect(bool abrupt);
	/*
	 * Destroys the ID, and drops the consumer's reference. Must not be called from the ID's own
	 * work item.
	 */
	void end();

	kern::ListNode reap_node;

private:
	/*
	 * An event that has not been reported to the consumer yet: a connect reply or an
	 * established event, and a close.
	 */
	struct Notice {
		iw_cm_event_type event;
		int status;
	};
	static constexpr u32 most_notices = 3;

	Id(ib_device *device, const iw_cm_ops &ops, iw_cm_handler handler, void *context);

	static int handle_event(iw_cm_id *id, const iw_cm_event *event);
	int handle_request(const iw_cm_event &event);
	int handle_reply(const iw_cm_event &event, Event step);
	bool take(Event event) KERN_REQUIRES(lock_);
	kern::Result<> begin(Event event);
	void post(iw_cm_event_type type, int status) KERN_REQUIRES(lock_);
	void run();
	bool next(iw_cm_event &event);
	void remember(const iw_cm_event &event);
	/*
	 * Makes the driver close the connection as the state requires, and waits for the driver's
	 * last event.
	 */
	void release_stream(State from);

	const iw_cm_ops &ops_;
	kern::SpinLock lock_{KERN_LOCK_CLASS("iw_cm.id")};
	State state_ KERN_GUARDED_BY(lock_) = State::idle;
	Notice notices_[most_notices] KERN_GUARDED_BY(lock_) = {};
	u32 posted_ KERN_GUARDED_BY(lock_) = 0, reported_ KERN_GUARDED_BY(lock_) = 0;
	bool promised_ KERN_GUARDED_BY(lock_) = false; /* the driver will report another event */
	/*
	 * Only for a listener: the number of requests that have not been reported yet, and its
	 * limit.
	 */
	u32 unreported_ KERN_GUARDED_BY(lock_) = 0, backlog_ = 0;
	kern::WaitQueue changed_{KERN_LOCK_CLASS("iw_cm.changed")};
	/*
	 * Only for a request that has not been reported yet: the listener whose handler will be
	 * called.
	 */
	kern::Ref<Id> listener_;
	u8 data_[IW_CM_PRIVATE_DATA_SIZE];
	u8 data_length_ = 0;
	kern::Work work_{kern::method<&Id::run>, this};
};

} // namespace iw_cm
