// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "resources.hpp"
#include <kern/log.hpp>
#include <rdma/ib_resources.h>
#include "checks.hpp"

namespace verbs
{

namespace
{

void report(const ib_device &device, const char *kind, const char *owner, unsigned int count)
{
	if (!tell_observer(Rule::lock_10, owner, kind))
		kern_error("%s: %s left %u %s%s behind\n", device.name, owner, count, kind, count > 1 ? "s" : "");
}

void forget(Record &record)
{
	if (record.process)
		kern_process_put(std::exchange(record.process, nullptr));
}

bool same(const char *one, const char *other)
{
	return __builtin_strcmp(one, other) == 0;
}

} // namespace

kern::Result<> ResourceTable::add(ib_resource &resource, const ib_udata *udata)
{
	Record &record = Record::of(resource);

	/* The greatest number is nobody's, so that there is one behind each. */
	TRY_ERRNO(kern_xa_alloc_cyclic(&all_, &record.number, &record, 0, ~u32{0} - 1, &next_, static_cast<unsigned int>(kern::Gfp::kernel)));
	resource.user = udata;
	record.context = IB_NO_RESOURCE;
	if (udata) {
		record.process = kern_process_get();
		if (udata->context)
			record.context = Record::of(udata->context->res).number;
	}
	kern::Guard guard(lock_);
	move(record, Record::State::numbered);
	return {};
}

void ResourceTable::remove(ib_resource &resource)
{
	Record &record = Record::of(resource);
	{
		kern::Guard guard(lock_);
		move(record, Record::State::unnumbered);
		kern_xa_erase(&all_, record.number);
	}
	forget(record);
}

void ResourceTable::show(ib_resource &resource, const char *owner)
{
	kern::Guard guard(lock_);
	resource.owner = owner;
	move(Record::of(resource), Record::State::shown);
}

void ResourceTable::hide(ib_resource &resource)
{
	Record &record = Record::of(resource);
	{
		kern::Guard guard(lock_);
		move(record, Record::State::numbered);
		if (record.readers == 0)
			return;
	}
	released_.wait([&] {
		kern::Guard guard(lock_);
		return record.readers == 0;
	});
}

void ResourceTable::move(Record &record, Record::State to)
{
	const int step = static_cast<int>(to) - static_cast<int>(record.state);

	kern_assert(step == 1 || step == -1);
	shown_ += (to == Record::State::shown) - (record.state == Record::State::shown);
	record.state = to;
}

Record *ResourceTable::hold(u32 from)
{
	kern::Guard guard(lock_);
	for (Record *found = find(from); found; found = find(u64{found->number} + 1))
		if (found->state == Record::State::shown) {
			found->readers++;
			return found;
		}
	return nullptr;
}

void ResourceTable::release(Record &record)
{
	kern::Guard guard(lock_);
	/* Whoever ends it may free it once the lock is given up, not before. */
	if (--record.readers == 0 && record.state != Record::State::shown)
		released_.wake_all();
}

u32 ResourceTable::count()
{
	kern::Guard guard(lock_);
	return shown_;
}

void ResourceTable::report_leaks(const ib_device &device, const char *kind)
{
	/* One owner at a time: that of the first object, with all others of the same owner. */
	while (const Record *first = find(0)) {
		const char *owner = first->resource->owner;
		unsigned int count = 0;

		for (Record *record = find(0), *next; record; record = next) {
			next = find(u64{record->number} + 1);
			if (!same(owner, record->resource->owner))
				continue;
			kern_xa_erase(&all_, record->number);
			forget(*record);
			count++;
		}
		report(device, kind, owner, count);
	}
}

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
	while (true) {
		const char *owner = nullptr;
		unsigned int count = 0;
		{
			kern::Guard guard(lock_);
			ring_any_of<ib_resource, &ib_resource::links>(head_, [&](ib_resource &resource) {
				if (!owner)
					owner = resource.owner;
				if (same(owner, resource.owner)) {
					ring_remove(resource.links);
					count++;
				}
				return false;
			});
		}
		if (count == 0)
			return;
		report(device, kind, owner, count);
	}
}

} // namespace verbs
