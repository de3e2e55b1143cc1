// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Shows the counters that another module keeps for a port in the port's sysfs directories
 * (rdma/ib_port_counters.h).
 */
#pragma once
#include <kern/memory.hpp>
#include <kern/sysfs.hpp>
#include <rdma/ib_port_counters.h>

namespace ib_sysfs
{

class PortCounters
{
public:
	/* Creates all directories and files. Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Owned<PortCounters>> create(const ib_port_counters &counters,
							      ib_device &device, u32 port,
							      const kern::sysfs::Directory &parent);

private:
	struct Group;

	class File
	{
	public:
		kern::Result<> start(const PortCounters &of, u32 group, u32 counter,
				     const kern::sysfs::Directory &directory);

	private:
		kern::Result<> show(kern::sysfs::Output &out);

		const PortCounters *of_ = nullptr;
		u32 group_ = 0;
		u32 counter_ = 0;
		kern::sysfs::File file_{kern::method<&File::show>, this};
	};

	struct Group {
		kern::sysfs::Directory directory;
		kern::OwnedArray<File> files;
	};

	PortCounters(const ib_port_counters &counters, ib_device &device, u32 port)
	    : counters_(counters), device_(device), port_(port)
	{
	}
	kern::Result<> start(const kern::sysfs::Directory &parent);

	const ib_port_counters &counters_;
	ib_device &device_;
	const u32 port_;
	kern::OwnedArray<Group> groups_;
};

} // namespace ib_sysfs
