// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates a class of devices in /sys/class, and its devices, each of which has files.
//
//	class_ = KERN_TRY(kern::DeviceClass::create("infiniband", {.reports_name = true}));
//	kern::sysfs::File type_{kern::method<&Shown::type>, this};
//	const kern_class_file files[] = {{"node_type", &type_.native()}};
//	entry_ = KERN_TRY(kern::ClassDevice::create(class_, parent, "mlx4_0", files));
//	… directories below entry_.native() …
//	entry_.announce();
#pragma once
#include <span>
#include <utility>
#include <kern/abi/device_class.h>
#include <kern/sysfs.hpp>

namespace kern
{

/* Returns the error code of an error pointer; 0 for a valid pointer. */
inline int pointer_error(const void *pointer)
{
	const auto value = reinterpret_cast<unsigned long>(pointer);
	return value >= -4095ul ? static_cast<int>(static_cast<long>(value)) : 0;
}

class DeviceClass
{
public:
	/* @name must stay valid. May sleep. Errors: EEXIST, ENOMEM. */
	static Result<DeviceClass> create(const char *name, const kern_class_options &options)
	{
		kern_class *native = kern_class_create(name, &options);
		if (const int error = pointer_error(native))
			return Error{error};
		return DeviceClass(native);
	}

	DeviceClass() = default;
	DeviceClass(DeviceClass &&other) noexcept : native_(std::exchange(other.native_, nullptr))
	{
	}
	DeviceClass &operator=(DeviceClass &&other) noexcept
	{
		std::swap(native_, other.native_);
		return *this;
	}
	/* All devices of the class must have been removed. May sleep. */
	~DeviceClass()
	{
		if (native_)
			kern_class_destroy(native_);
	}

	kern_class *native() const { return native_; }

private:
	explicit DeviceClass(kern_class *native) : native_(native) {}

	kern_class *native_ = nullptr;
};

class ClassDevice
{
public:
	/*
	 * The files must outlive the device, so declare the device after them. @parent: may be
	 * nullptr. User space is notified by announce(). May sleep. Errors: EEXIST, ENOMEM.
	 */
	static Result<ClassDevice> create(const DeviceClass &of, device *parent, const char *name,
					  std::span<const kern_class_file> files)
	{
		kern_class_device *native =
			kern_class_device_create(of.native(), parent, name, files.data(),
						 static_cast<unsigned int>(files.size()));
		if (const int error = pointer_error(native))
			return Error{error};
		return ClassDevice(native);
	}

	ClassDevice() = default;
	ClassDevice(ClassDevice &&other) noexcept : native_(std::exchange(other.native_, nullptr))
	{
	}
	ClassDevice &operator=(ClassDevice &&other) noexcept
	{
		std::swap(native_, other.native_);
		return *this;
	}
	/*
	 * All entries below the device must have been removed. Waits for readers of its files. May
	 * sleep.
	 */
	~ClassDevice()
	{
		if (native_)
			kern_class_device_remove(native_);
	}

	/* Announces the complete device to user space. Must be called only once. May sleep. */
	void announce() { kern_class_device_announce(native_); }
	/*
	 * Must be called after announce(). Calls must not run in parallel. May sleep. Errors:
	 * EEXIST, ENOMEM.
	 */
	Result<> rename(const char *name) { return check(kern_class_device_rename(native_, name)); }
	device *native() const { return kern_class_device_native(native_); }

private:
	explicit ClassDevice(kern_class_device *native) : native_(native) {}

	kern_class_device *native_ = nullptr;
};

} // namespace kern
