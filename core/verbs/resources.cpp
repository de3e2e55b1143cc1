// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "resources.hpp"
#include <kern/log.hpp>
#include <rdma/ib_resources.h>
#include "checks.hpp"
#include "verbs.hpp"

namespace verbs
{

namespace
{

bool same(const char *one, const char *other)
{
	return __builtin_strcmp(one, other) == 0;
}

} // namespace

void report_leak(const ib_device &device, const char *kind, const char *owner, unsigned int count)
{
	if (!notify_observer(Rule::lock_10, owner, kind))
		kern_error("%s: %s left %u %s%s behind\n", device.name, owner, count, kind,
			   count > 1 ? "s" : "");
}

ResourceTable::~ResourceTable()
{
	ring_any_of<NumberBlock, &NumberBlock::links>(blocks_, [](NumberBlock &block) {
		delete &block;
		return false;
	});
}

void ResourceTable::unlink_block(NumberBlock &block)
{
	ring_remove(block.links);
	if (found_ == &block)
		found_ = nullptr;
}

bool ResourceTable::next_block(kern::Owned<NumberBlock> &fresh)
{
	NumberBlock *const former = current_;
	const u32 number = !former                              ? first_
			   : former->number < NumberBlock::last ? former->number + 1
								: 0;
	/* The block is inserted after the previous one, or first if the numbers wrap around. */
	ib_list_head *behind = former && number ? former->links.next : blocks_.next;

	/*
	 * All numbers of the previous block have been released, so its memory is reused for the
	 * next block.
	 */
	if (former && !former->taken) {
		if (behind == &former->links)
			behind = behind->next;
		unlink_block(*former);
		fresh = kern::Owned<NumberBlock>::adopt(former);
	}
	if (behind != &blocks_ &&
	    whole_of<NumberBlock, &NumberBlock::links>(*behind).number == number) {
		current_ = &whole_of<NumberBlock, &NumberBlock::links>(*behind);
	} else {
		NumberBlock *const block = fresh.release();
		if (!block)
			return false;
		block->number = number;
		ring_push(*behind, block->links);
		current_ = block;
	}
	next_ = 0;
	return true;
}

Record *ResourceTable::find(u32 from)
{
	const u32 number = from / NumberBlock::size;
	ib_list_head *links = found_ && found_->number <= number ? &found_->links : blocks_.next;

	for (; links != &blocks_; links = links->next) {
		NumberBlock &block = whole_of<NumberBlock, &NumberBlock::links>(*links);
		if (block.number < number)
			continue;
		const u64 left = block.number == number
					 ? block.taken & ~u64{0} << from % NumberBlock::size
					 : block.taken;
		if (left) {
			found_ = &block;
			return block.records[__builtin_ctzll(left)];
		}
	}
	return nullptr;
}

[[gnu::noinline]] kern::Result<> ResourceTable::assign_from_new_block(Record &record)
{
	/*
	 * Declared outside of the locked section, so that an unused block is freed without the
	 * lock.
	 */
	kern::Owned<NumberBlock> fresh;

	while (true) {
		{
			kern::Guard guard(lock_);
			do {
				if (place(record))
					return {};
			} while (next_block(fresh));
		}
		fresh = KERN_TRY(kern::make<NumberBlock>(kern::Gfp::kernel));
	}
}

void ResourceTable::wait_for_readers(const Record &record)
{
	released_.wait([&] { return record.tracking.is_free(); });
}

Record *ResourceTable::hold(u32 from)
{
	/* The block cannot be freed before the number is released, which takes the lock. */
	kern::Guard guard(lock_);
	for (Record *found = find(from); found; found = find(found->number + 1))
		if (found->tracking.hold())
			return found;
	return nullptr;
}

void ResourceTable::release(Record &record)
{
	/*
	 * After release(), the task that destroys the object may free it. The table still exists,
	 * because it belongs to the caller's device.
	 */
	if (record.tracking.release())
		released_.wake_all();
}

void ResourceTable::report_leaks(const ib_device &device, const char *kind)
{
	/* Each iteration removes the first object and all other objects of the same owner. */
	while (true) {
		const char *owner = nullptr;
		unsigned int count = 0;
		u32 from = 0;

		while (true) {
			kern::Owned<NumberBlock> empty;
			Record *record;
			{
				kern::Guard guard(lock_);
				record = find(from);
				if (!record)
					break;
				if (!owner)
					owner = record->resource->owner;
				from = record->number + 1;
				if (!same(owner, record->resource->owner))
					continue;
				empty = release_number(*record);
			}
			forget(*record);
			count++;
		}
		if (count == 0)
			return;
		report_leak(device, kind, owner, count);
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
			ring_any_of<ib_resource, &ib_resource::links>(
				head_, [&](ib_resource &resource) {
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
		report_leak(device, kind, owner, count);
	}
}

} // namespace verbs
