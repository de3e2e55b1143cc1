// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Manages a device's node, /dev/infiniband/uverbsN, its entry in the class infiniband_verbs, and
 * its open files.
 */
#pragma once
#include <kern/device_class.hpp>
#include <kern/file.hpp>
#include <kern/rdma_cgroup.hpp>
#include <kern/ref.hpp>
#include <rdma/ib_resources.h>
#include "file.hpp"
#include "xrc.hpp"

namespace uverbs
{

class Device : public kern::RefCounted<Device>
{
public:
	/*
	 * Creates the node; programs may open it from then on. Context: process. Errors: EOPNOTSUPP
	 * for a device that does not support programs; ENOSPC if all numbers are in use; ENOMEM.
	 */
	static kern::Result<kern::Ref<Device>>
	create(ib_device &ib, const kern::DeviceClass &verbs_class, const kern::NodeRegion &region);
	~Device();

	/* Called when the device is removed. Closes the programs' use of it. Context: process. */
	void remove();

	ib_device &ib() const { return ib_; }
	/* Opens the node. */
	kern::Result<File *> open(kern_file &native);
	void forget(File &file) { files_.forget(file); }
	XrcDomains &xrc_domains() { return xrc_domains_; }
	Shares &shares() { return shares_; }
	/*
	 * The device's entry in the rdma control group, to which contexts and objects are charged;
	 * nullptr after the device was removed.
	 */
	kern_cgroup_device *cgroup() const { return cgroup_.native(); }

private:
	explicit Device(ib_device &ib) : ib_(ib), shares_(ib.attrs) {}
	kern::Result<> start(const kern::DeviceClass &verbs_class, const kern::NodeRegion &region);
	kern::Result<> show_name(kern::sysfs::Output &out);
	kern::Result<> show_version(kern::sysfs::Output &out);

	/* The device; valid until it is removed. */
	ib_device &ib_;
	/* The lowest free number; Node::limit means none. */
	unsigned int number_ = kern::Node::limit;
	char name_[16] = {};
	XrcDomains xrc_domains_;
	Shares shares_;
	kern::CgroupDevice cgroup_;
	kern::OpenFiles<File, &File::node> files_{KERN_LOCK_CLASS("uverbs.files")};
	kern::sysfs::File shown_name_{kern::method<&Device::show_name>, this};
	kern::sysfs::File shown_version_{kern::method<&Device::show_version>, this};
	kern::Node node_;
	ib_node published_{};
};

/* Returns the allocator of the device numbers. */
kern::IdAllocator &numbers();

} // namespace uverbs
