// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "device.hpp"
#include <kern/abi/net.h>
#include <kern/log.hpp>
#include <kern/xarray.hpp>
#include <rdma/ib_device_name.h>
#include <rdma/ib_namespaces.h>

namespace uverbs
{

kern::Result<kern::Ref<Device>> Device::create(ib_device &ib, const kern::DeviceClass &verbs_class,
					       const kern::NodeRegion &region)
{
	if (!ib.ops.alloc_ucontext)
		return kern::Error{-EOPNOTSUPP};
	auto device = KERN_TRY(kern::adopt_ref(new (kern::Gfp::kernel) Device(ib)));
	if (const kern::Result<> started = device->start(verbs_class, region); !started) {
		/* The node may have existed for a moment, and a program may have opened it. */
		device->files_.leave_device();
		device->cgroup_ = {};
		return kern::Error{started.error()};
	}
	return device;
}

Device::~Device()
{
	if (number_ < kern::Node::limit)
		numbers().free(number_);
}

kern::Result<> Device::start(const kern::DeviceClass &verbs_class, const kern::NodeRegion &region)
{
	number_ = KERN_TRY(numbers().alloc(0, kern::Node::limit - 1));
	kern_format(name_, sizeof(name_), "uverbs%u", number_);
	const kern_class_file files[] = {
		{"ibdev", &shown_name_.native()},
		{"abi_version", &shown_version_.native()},
	};
	cgroup_ = KERN_TRY(kern::CgroupDevice::create(ib_.name));
	node_ = KERN_TRY(kern::Node::create(verbs_class, ib_.dma_device, name_, files, region,
					    number_, file_kind(), this));
	published_ = {
		.kind = IB_NODE_UVERBS,
		.device = &ib_,
		.port = 0,
		.name = name_,
		.major = region.major(),
		.minor = region.minor(number_),
		.abi_version = ib_.ops.uverbs_abi_ver,
		.links = {},
	};
	ib_publish_node(&published_);
	node_.announce();
	return {};
}

kern::Result<> Device::show_name(kern::sysfs::Output &out)
{
	char name[IB_DEVICE_NAME_MAX];

	ib_copy_device_name(&ib_, name);
	out.print("%s\n", name);
	return {};
}

kern::Result<> Device::show_version(kern::sysfs::Output &out)
{
	out.print("%lu\n", ib_.ops.uverbs_abi_ver);
	return {};
}

kern::Result<File *> Device::open(kern_file &native)
{
	if (!ib_device_in_net(&ib_, kern_net_number_of_caller()))
		return kern::Error{-EPERM};
	return files_.add(KERN_TRY(File::create(*this, native)));
}

void Device::remove()
{
	ib_withdraw_node(&published_);
	node_ = {};
	/*
	 * The number can be assigned to another device now, although programs may keep this
	 * device's file open for long.
	 */
	numbers().free(std::exchange(number_, kern::Node::limit));
	files_.leave_device();
	cgroup_ = {};
}

} // namespace uverbs
