// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Shows the hardware counters of a device or a port in its directory `hw_counters`, with one file
 * each. The file `lifespan` contains the number of milliseconds for which values are cached, so
 * that a program that reads all files causes only one query.
 */
#pragma once
#include <kern/memory.hpp>
#include <kern/sysfs.hpp>
#include <rdma/ib_hw_counters.h>

namespace ib_sysfs
{

class HwCounters
{
public:
	/* port: 0 for the device. */
	HwCounters(ib_device &device, u32 port) : device_(device), port_(port) {}

	/*
	 * Must be called once. Creates the directory, if there are counters. @parent: a directory,
	 * or the device in sysfs. Context: process. Errors: ENOMEM.
	 */
	template<class Parent>
	kern::Result<> start(const Parent &parent)
	{
		counters_ = ib_hw_counters(&device_, port_);
		if (!counters_)
			return {};
		directory_ = KERN_TRY(kern::sysfs::Directory::create("hw_counters", parent));
		return fill();
	}

private:
	class File
	{
	public:
		kern::Result<> start(HwCounters &of, u32 counter);

	private:
		kern::Result<> show(kern::sysfs::Output &out);

		HwCounters *of_ = nullptr;
		u32 counter_ = 0;
		kern::sysfs::File file_{kern::method<&File::show>, this};
	};

	kern::Result<> fill();
	kern::Result<> show_lifespan(kern::sysfs::Output &out);
	kern::Result<> set_lifespan(kern::ConstBytes text);

	ib_device &device_;
	const u32 port_;
	const rdma_hw_counters *counters_ = nullptr;

	kern::sysfs::Directory directory_;
	kern::sysfs::File lifespan_{kern::method<&HwCounters::show_lifespan>,
				    kern::method<&HwCounters::set_lifespan>, this};
	kern::OwnedArray<File> files_;
};

} // namespace ib_sysfs
