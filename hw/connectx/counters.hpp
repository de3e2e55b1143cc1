// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The ports' counters in sysfs.
#pragma once
#include <kern/sysfs.hpp>
#include "hca.hpp"

namespace connectx {

struct PortCounter;

/*
 * weft/NAME/ports/N/counters/… below the PCI device, names and units as Linux has them: each read asks the port's performance agent.
 * Words of port_xmit_data and port_rcv_data have four bytes (IBA 16.1.3.5). From the device's registration until before its end.
 */
class CounterFiles {
public:
	/* name: of the InfiniBand device. May sleep. Errors: ENOMEM, EEXIST. */
	static kern::Result<kern::Owned<CounterFiles>> create(Hca &hca, const char *name);

private:
	class File {
	public:
		File(Port &port, const PortCounter &counter) : port_(port), counter_(counter) {}
		kern::Result<> add(const kern::sysfs::Directory &directory);

	private:
		kern::Result<> show(kern::sysfs::Output &out);

		Port &port_;
		const PortCounter &counter_;
		kern::sysfs::File file_{kern::method<&File::show>, this};
	};
	struct PortFiles {
		kern::sysfs::Directory port, counters;
		kern::OwnedArray<kern::Owned<File>> files;
	};
	static kern::Result<> add_port(PortFiles &files, Port &port, const char *number,
				       const kern::sysfs::Directory &ports);

	kern::sysfs::Directory driver_, device_, ports_directory_;
	PortFiles ports_[2];
};

} // namespace connectx
