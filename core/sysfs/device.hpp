// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Shows a device in /sys/class/infiniband. The names and formats are those that libibverbs,
 * libibumad and udev's rules read. Every read queries the current value; a removed file disappears
 * when its last reader is done.
 */
#pragma once
#include <kern/device_class.hpp>
#include <kern/list.hpp>
#include <kern/memory.hpp>
#include <rdma/ib_verbs.h>
#include "hw_counters.hpp"
#include "port.hpp"

namespace ib_sysfs
{

class Device
{
public:
	/*
	 * Creates the entries, and notifies user space. Context: process. Errors: EEXIST, ENOMEM.
	 */
	static kern::Result<kern::Owned<Device>> create(const kern::DeviceClass &device_class,
							ib_device &device);

	/* Calls Port::show() for each port. A port for which there is no memory is not shown. */
	void show(const ib_port_counters *counters);

	bool is(const ib_device &device) const { return &device_ == &device; }
	/* Calls must not run in parallel. Errors: EEXIST, ENOMEM. */
	kern::Result<> rename(const char *name) { return entry_.rename(name); }

	kern::ListNode node; /* among all (init.cpp) */

private:
	using Output = kern::sysfs::Output;

	explicit Device(ib_device &device) : device_(device) {}
	kern::Result<> start(const kern::DeviceClass &device_class);

	kern::Result<> node_type(Output &out);
	kern::Result<> node_guid(Output &out);
	kern::Result<> sys_image_guid(Output &out);
	kern::Result<> firmware(Output &out);
	kern::Result<> description(Output &out);
	kern::Result<> describe(kern::ConstBytes text);
	kern::Result<> hca_type(Output &out);
	kern::Result<> board_id(Output &out);
	kern::Result<> hardware_revision(Output &out);

	ib_device &device_;
	kern::sysfs::File node_type_{kern::method<&Device::node_type>, this};
	kern::sysfs::File node_guid_{kern::method<&Device::node_guid>, this};
	kern::sysfs::File sys_image_guid_{kern::method<&Device::sys_image_guid>, this};
	kern::sysfs::File firmware_{kern::method<&Device::firmware>, this};
	kern::sysfs::File description_{kern::method<&Device::description>,
				       kern::method<&Device::describe>, this};
	kern::sysfs::File hca_type_{kern::method<&Device::hca_type>, this};
	kern::sysfs::File board_id_{kern::method<&Device::board_id>, this};
	kern::sysfs::File hardware_revision_{kern::method<&Device::hardware_revision>, this};
	kern::ClassDevice entry_;
	HwCounters hw_counters_{device_, 0};
	kern::sysfs::Directory ports_directory_;
	kern::OwnedArray<kern::Owned<Port>> ports_;
};

} // namespace ib_sysfs
