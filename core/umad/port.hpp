// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A port's nodes, /dev/infiniband/umadN and issmN, their entries in the class infiniband_mad, and
 * their open files.
 */
#pragma once
#include <kern/device_class.hpp>
#include <kern/file.hpp>
#include <kern/ref.hpp>
#include <kern/xarray.hpp>
#include <rdma/ib_resources.h>
#include "file.hpp"
#include "manager.hpp"

namespace umad
{

/* Shared by all ports. */
struct Names {
	kern::IdAllocator numbers;
	kern::NodeRegion umad;
	kern::NodeRegion issm;
	kern::DeviceClass mad_class;
};
/* Exists while there is a port. */
Names &names();

class Port : public kern::RefCounted<Port>
{
public:
	/*
	 * Programs may open it from now on. Context: process. Errors: ENOSPC when all numbers are
	 * taken; ENOMEM.
	 */
	static kern::Result<kern::Ref<Port>> create(ib_device &ib, u32 number);
	~Port();

	/* The device is removed. After the return nothing refers to it. Context: process. */
	void leave_device();

	ib_device &ib() const { return ib_; }
	u32 number() const { return number_; }
	/* Opens the node umadN. */
	kern::Result<File *> open(kern_file &native);
	void forget(File &file) { files_.forget(file); }

private:
	Port(ib_device &ib, u32 number) : ib_(ib), number_(number) {}
	kern::Result<> start();
	void publish(ib_node &node, ib_node_kind kind, const char *name,
		     const kern::NodeRegion &region);
	kern::Result<> show_device(kern::sysfs::Output &out);
	kern::Result<> show_number(kern::sysfs::Output &out);

	/* Valid until the device is removed. */
	ib_device &ib_;
	const u32 number_;
	/* N: the lowest free; none if it is not below the node's limit. */
	unsigned int name_ = kern::Node::limit;
	char umad_name_[16] = {};
	char issm_name_[16] = {};
	kern::OpenFiles<File, &File::node> files_{KERN_LOCK_CLASS("umad.files")};
	kern::Ref<Manager> manager_;
	kern::sysfs::File shown_device_{kern::method<&Port::show_device>, this};
	kern::sysfs::File shown_number_{kern::method<&Port::show_number>, this};
	kern::Node umad_;
	kern::Node issm_;
	ib_node published_umad_{};
	ib_node published_issm_{};
};

} // namespace umad
