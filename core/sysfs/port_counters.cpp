// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "port_counters.hpp"

namespace ib_sysfs
{

kern::Result<kern::Owned<PortCounters>> PortCounters::create(const ib_port_counters &counters,
							     ib_device &device, u32 port,
							     const kern::sysfs::Directory &parent)
{
	auto made =
		KERN_TRY(kern::adopt(new (kern::Gfp::kernel) PortCounters(counters, device, port)));
	KERN_TRY(made->start(parent));
	return made;
}

kern::Result<> PortCounters::start(const kern::sysfs::Directory &parent)
{
	groups_ = KERN_TRY(kern::make_array<Group>(kern::Gfp::kernel, counters_.directory_count));
	u32 number = 0;
	for (Group &group : groups_) {
		group.directory = KERN_TRY(
			kern::sysfs::Directory::create(counters_.directories[number], parent));
		group.files = KERN_TRY(kern::make_array<File>(kern::Gfp::kernel, counters_.count));
		u32 counter = 0;
		for (File &file : group.files)
			KERN_TRY(file.start(*this, number, counter++, group.directory));
		number++;
	}
	return {};
}

kern::Result<> PortCounters::File::start(const PortCounters &of, u32 group, u32 counter,
					 const kern::sysfs::Directory &directory)
{
	of_ = &of;
	group_ = group;
	counter_ = counter;
	return file_.add(of.counters_.names[counter], directory);
}

kern::Result<> PortCounters::File::show(kern::sysfs::Output &out)
{
	u64 value = 0;

	KERN_TRY_ERRNO(of_->counters_.read(&of_->device_, of_->port_, group_, counter_, &value));
	out.print("%lu\n", value);
	return {};
}

} // namespace ib_sysfs
