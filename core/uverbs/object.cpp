// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "object.hpp"
#include <kern/log.hpp>
#include "share.hpp"

namespace uverbs
{

/* Returns false while the object is being created or destroyed. */
bool Object::hold()
{
	int users = users_.load_relaxed();

	do {
		if (users == alone)
			return false;
	} while (!users_.compare_exchange(users, users + 1));
	return true;
}

kern::Result<Object *> ObjectTable::look_up(u32 handle, Kind kind)
{
	Object *object = by_handle_.load(handle);

	if (!object)
		return kern::Error{-ENOENT};
	if (object->kind_ != kind)
		return kern::Error{-EINVAL};
	return object;
}

kern::Result<Object *> ObjectTable::find_held(u32 handle, Kind kind)
{
	kern::Guard guard(lock_);
	Object *object = KERN_TRY(look_up(handle, kind));

	if (!object->hold())
		return kern::Error{-EBUSY};
	return object;
}

kern::Result<Object *> ObjectTable::claim_held(u32 handle, Kind kind)
{
	kern::Guard guard(lock_);
	Object *object = KERN_TRY(look_up(handle, kind));
	int no_users = 0;

	if (!object->users_.compare_exchange(no_users, Object::alone))
		return kern::Error{-EBUSY};
	return object;
}

kern::Result<> ObjectTable::add(Object &object)
{
	object.charge_ = KERN_TRY(share_.of(object.kind_).take());
	object.cgroup_charge_ = KERN_TRY(kern::CgroupCharge::create(cgroup_, KERN_CGROUP_OBJECT));
	kern::Guard guard(lock_);
	/* A program cannot reach 2^31 objects: memory is used up long before. */
	object.handle_ = KERN_TRY(by_handle_.alloc(&object, 0, 0x7fffffff));
	objects_.push_back(object);
	return {};
}

void ObjectTable::move_to_end(Object &object)
{
	kern::Guard guard(lock_);

	object.node_.unlink();
	objects_.push_back(object);
}

void ObjectTable::remove(Object &object)
{
	{
		kern::Guard guard(lock_);
		by_handle_.erase(object.handle_);
		object.node_.unlink();
	}
	kern::destroy(&object);
}

ObjectTable::Pass ObjectTable::end_each()
{
	Pass pass;

	for (Object &object : objects_.reversed()) {
		if (object.ended())
			continue;
		if (!object.end(Reason::gone)) {
			pass.complete = false;
			continue;
		}
		pass.progress = true;
		object.cgroup_charge_ = {};
	}
	return pass;
}

bool ObjectTable::end_all()
{
	kern::Guard guard(lock_);
	Pass pass;

	/*
	 * A memory window that was created before the region to which it is bound prevents the
	 * destruction of the region in the first pass, so passes are repeated while they make
	 * progress.
	 */
	do
		pass = end_each();
	while (!pass.complete && pass.progress);
	if (pass.complete)
		return true;

	for (Object &object : objects_) {
		if (object.ended())
			continue;
		kern_error_limited(
			"the device does not give back an object of kind %u, which is lost\n",
			static_cast<unsigned int>(object.kind_));
		by_handle_.erase(object.handle_);
		object.node_.unlink();
	}
	return false;
}

void ObjectTable::clear()
{
	kern::Guard guard(lock_);

	while (Object *last = objects_.pop_back()) {
		kern_assert(last->ended());
		by_handle_.erase(last->handle_);
		kern::destroy(last);
	}
}

} // namespace uverbs
