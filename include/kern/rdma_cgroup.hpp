// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Charges device resources of processes to the rdma controller of control groups.
#pragma once
#include <kern/abi/rdma_cgroup.h>
#include <kern/result.hpp>
#include <utility>

namespace kern
{

/* A device of the rdma controller. It must outlive its charges. Context: process. */
class CgroupDevice
{
public:
	CgroupDevice() = default;
	/* name: see kern_cgroup_device_add(). Errors: ENOMEM. */
	static Result<CgroupDevice> create(char *name)
	{
		kern_cgroup_device *native = kern_cgroup_device_add(name);
		if (!native)
			return Error{-ENOMEM};
		return CgroupDevice(native);
	}
	CgroupDevice(CgroupDevice &&other) noexcept : native_(std::exchange(other.native_, nullptr))
	{
	}
	CgroupDevice &operator=(CgroupDevice &&other) noexcept
	{
		std::swap(native_, other.native_);
		return *this;
	}
	~CgroupDevice()
	{
		if (native_)
			kern_cgroup_device_remove(native_);
	}

	kern_cgroup_device *native() const { return native_; }

private:
	explicit CgroupDevice(kern_cgroup_device *native) : native_(native) {}

	kern_cgroup_device *native_ = nullptr;
};

/* One context or object, charged to the control group of the process that created it. */
class CgroupCharge
{
public:
	CgroupCharge() = default;
	/*
	 * device: nullptr if nothing shall be charged. Context: process. Errors: EAGAIN beyond
	 * rdma.max; ENOMEM.
	 */
	static Result<CgroupCharge> create(kern_cgroup_device *device,
					   kern_cgroup_resource resource)
	{
		rdma_cgroup *charged = nullptr;
		if (device)
			KERN_TRY_ERRNO(kern_cgroup_charge(device, resource, &charged));
		return CgroupCharge(device, resource, charged);
	}
	CgroupCharge(CgroupCharge &&other) noexcept
	    : device_(std::exchange(other.device_, nullptr)), charged_(other.charged_),
	      resource_(other.resource_)
	{
	}
	CgroupCharge &operator=(CgroupCharge &&other) noexcept
	{
		std::swap(device_, other.device_);
		std::swap(charged_, other.charged_);
		std::swap(resource_, other.resource_);
		return *this;
	}
	~CgroupCharge()
	{
		if (device_)
			kern_cgroup_uncharge(device_, resource_, charged_);
	}

	/*
	 * Keeps the charge forever, because the object to which it belongs has been leaked, and its
	 * device may be removed before the object.
	 */
	void lose() { device_ = nullptr; }

private:
	CgroupCharge(kern_cgroup_device *device, kern_cgroup_resource resource,
		     rdma_cgroup *charged)
	    : device_(device), charged_(charged), resource_(resource)
	{
	}

	kern_cgroup_device *device_ = nullptr;
	rdma_cgroup *charged_ = nullptr;
	kern_cgroup_resource resource_ = KERN_CGROUP_HANDLE;
};

} // namespace kern
