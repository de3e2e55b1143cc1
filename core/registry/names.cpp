// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates the names of devices, and renames devices.
#include <rdma/ib_device_name.h>
#include "registry.hpp"

namespace registry
{

bool valid_name(const char *name, unsigned int most_numbers)
{
	unsigned int length = 0, numbers = 0;

	for (const char *at = name; *at; at++, length++) {
		if (*at <= ' ' || *at > '~' || *at == '/')
			return false;
		if (*at == '%') {
			if (at[1] != 'd' || ++numbers > most_numbers)
				return false;
			length += 8;
		}
	}
	// These two names exist in every directory.
	if (__builtin_strcmp(name, ".") == 0 || __builtin_strcmp(name, "..") == 0)
		return false;
	return length > 0 && length < IB_DEVICE_NAME_MAX;
}

bool Registry::name_free(const char *name)
{
	if (former_name_ && __builtin_strcmp(former_name_, name) == 0)
		return false;
	for (ib_device_registry &device : devices_)
		if (__builtin_strcmp(device.device.name, name) == 0)
			return false;
	return true;
}

/*
 * Chooses a free name. The pattern, which has been checked, contains at most one %d, which is
 * replaced by the lowest free number.
 */
bool Registry::choose_name(ib_device &device, const char *pattern)
{
	for (unsigned int number = 0;; number++) {
		char *to = device.name, *const end = device.name + sizeof(device.name) - 1;
		bool numbered = false;
		for (const char *from = pattern; *from && to < end; from++) {
			if (*from != '%') {
				*to++ = *from;
				continue;
			}
			numbered = true;
			from++;
			char digits[10];
			unsigned int count = 0, rest = number;
			do {
				digits[count++] = static_cast<char>('0' + rest % 10);
				rest /= 10;
			} while (rest);
			while (count > 0 && to < end)
				*to++ = digits[--count];
		}
		*to = '\0';
		if (name_free(device.name))
			return true;
		if (!numbered)
			return false;
	}
}

kern::Result<> Registry::rename(ib_device &device, const char *name)
{
	kern::Guard renaming(names_lock_);
	char former[sizeof(device.name)];
	{
		kern::Guard guard(lock_);
		if (__builtin_strcmp(device.name, name) == 0)
			return {};
		if (!name_free(name))
			return kern::Error{-EEXIST};
		// The name is changed first, so that a program that finds the new name in sysfs can
		// use it everywhere. The old name stays visible until then, and is restored if the
		// notifier fails, so no other device may get it meanwhile.
		__builtin_memcpy(former, device.name, sizeof(former));
		former_name_ = former;
		__builtin_memcpy(device.name, name, __builtin_strlen(name) + 1);
	}
	const auto shown =
		kern::check(rename_notifier_ ? rename_notifier_->rename(&device, name) : 0);

	kern::Guard guard(lock_);
	former_name_ = nullptr;
	if (!shown)
		__builtin_memcpy(device.name, former, sizeof(former));
	return shown;
}

kern::Result<> Registry::set_rename_notifier(const ib_rename_notifier *notifier)
{
	kern::Guard renaming(names_lock_);
	if (notifier && rename_notifier_)
		return kern::Error{-EBUSY};
	rename_notifier_ = notifier;
	return {};
}

void Registry::copy_name(const ib_device &device, char *name)
{
	kern::Guard guard(lock_);
	__builtin_memcpy(name, device.name, IB_DEVICE_NAME_MAX);
}

} // namespace registry

extern "C" {

int ib_set_rename_notifier(const ib_rename_notifier *notifier)
{
	KERN_MIGHT_SLEEP();
	return registry::instance->set_rename_notifier(notifier).error();
}

int ib_rename_device(ib_device *device, const char *name)
{
	KERN_MIGHT_SLEEP();
	if (!registry::valid_name(name, 0))
		return -EINVAL;
	return registry::instance->rename(*device, name).error();
}

void ib_copy_device_name(const ib_device *device, char *name)
{
	KERN_MIGHT_SLEEP();
	registry::instance->copy_name(*device, name);
}

} // extern "C"
