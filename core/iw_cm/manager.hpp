// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds state that all IDs of the iWARP connection manager share: the methods of each device, and
// the work queue in which handlers run.
#pragma once

#include <kern/reaper.hpp>

#include "id.hpp"

namespace iw_cm
{

class Manager
{
public:
	/* Errors: ENOMEM. */
	static kern::Result<> start();
	/* There must be no IDs and no devices. */
	static void stop();
	static Manager &get();

	kern::Result<> add(ib_device *device, const iw_cm_ops *ops);
	void remove(ib_device *device);
	/* Returns nullptr if the device has no methods. */
	const iw_cm_ops *find(const ib_device *device);
	kern::WorkQueue &queue() { return queue_; }
	/* Destroys an ID that its handler has released. The ID's own work item cannot do that. */
	void reap(Id &id) { reaper_.add(id); }

	Manager() = default;

private:
	struct Provider {
		ib_device *device;
		const iw_cm_ops *ops;
		kern::ListNode node;
	};

	kern::WorkQueue queue_;
	kern::Mutex lock_{KERN_LOCK_CLASS("iw_cm.manager")};
	kern::List<Provider, &Provider::node> providers_ KERN_GUARDED_BY(lock_);
	kern::Reaper<Id, &Id::reap_node, &Id::end> reaper_{KERN_LOCK_CLASS("iw_cm.reaper"), queue_};
};

} // namespace iw_cm
