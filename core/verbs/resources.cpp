// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/log.hpp>
#include "checks.hpp"
#include "device.hpp"

namespace verbs
{

void ResourceList::add(ib_resource &resource, const char *owner)
{
	resource.owner = owner;
	kern::Guard guard(lock_);
	ring_push(head_, resource.links);
}

void ResourceList::remove(ib_resource &resource)
{
	kern::Guard guard(lock_);
	ring_remove(resource.links);
}

void ResourceList::report_leaks(const ib_device &device, const char *kind)
{
	/* One owner at a time: that of the first object, with all others of the same owner. */
	while (true) {
		const char *owner = nullptr;
		unsigned int count = 0;
		{
			kern::Guard guard(lock_);
			ring_any_of<ib_resource, &ib_resource::links>(head_, [&](ib_resource &resource) {
				if (!owner)
					owner = resource.owner;
				if (__builtin_strcmp(owner, resource.owner) == 0) {
					ring_remove(resource.links);
					count++;
				}
				return false;
			});
		}
		if (count == 0)
			return;
		if (tell_observer(Rule::lock_10, owner, kind))
			continue;
		kern_error("%s: %s left %u %s%s behind\n", device.name, owner, count, kind, count > 1 ? "s" : "");
	}
}

} // namespace verbs
