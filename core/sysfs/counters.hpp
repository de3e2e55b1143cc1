// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Shows the counters of a port in its directory `counters`, with one file each. A read queries the
 * port's performance management agent (IBA 16.1.3). Names and units are Linux's: port_xmit_data and
 * port_rcv_data count words of four bytes.
 */
#pragma once
#include <kern/memory.hpp>
#include <kern/sysfs.hpp>
#include <rdma/ib_verbs.h>

namespace ib_sysfs
{

struct Counter;

class Counters
{
public:
	Counters(ib_device &device, u32 port) : device_(device), port_(port) {}

	/*
	 * Must be called once. Counters are created only for a port whose agent is in the device.
	 * Context: process. Errors: ENOMEM.
	 */
	kern::Result<> start(const kern::sysfs::Directory &port);

private:
	class File
	{
	public:
		kern::Result<> start(const Counters &of, const Counter &counter);

	private:
		kern::Result<> show(kern::sysfs::Output &out);

		const Counters *of_ = nullptr;
		const Counter *counter_ = nullptr;
		kern::sysfs::File file_{kern::method<&File::show>, this};
	};

	ib_device &device_;
	const u32 port_;
	kern::sysfs::Directory directory_;
	kern::OwnedArray<File> files_;
};

} // namespace ib_sysfs
