// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Manages a port's device nodes, /dev/infiniband/umadN and issmN, their entries in the class
 * infiniband_mad, and their open files.
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

/* Names and numbers that all ports share. */
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
	 * Creates the nodes; programs may open them from then on. Context: process. Errors: ENOSPC
	 * if all numbers are in use; ENOMEM.
	 */
	static kern::Result<kern::Ref<Port>> create(ib_device &ib, u32 number);
	~Port();

	/*
	 * Called when the device is removed. After it returns, no file uses the port. Context:
	 * process.
	 */
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

	/* The device; valid until it is removed. */
	ib_device &ib_;
	const u32 number_;
	/* The number N in the nodes' names: the lowest free one; Node::limit means none. */
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
