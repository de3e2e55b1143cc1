// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "counters.hpp"

namespace connectx
{

/* One number of an attribute of the performance agent. */
struct PortCounter {
	const char *name;
	ib::PerfAttribute attribute;
	u64 (*value)(const u8 *attribute);
};

namespace
{

template<auto Member>
struct MemberOf;
template<class Attribute, class Value, Value Attribute::*Member>
struct MemberOf<Member> {
	static u64 get(const u8 *attribute)
	{
		return u64{(reinterpret_cast<const Attribute *>(attribute)->*Member)};
	}
};

template<auto Member>
constexpr PortCounter plain(const char *name)
{
	return {name, ib::attr_port_counters, MemberOf<Member>::get};
}
template<auto Member>
constexpr PortCounter extended(const char *name)
{
	return {name, ib::attr_port_counters_extended, MemberOf<Member>::get};
}

u8 integrity_overrun(const u8 *attribute)
{
	return reinterpret_cast<const ib::PortCounters *>(attribute)->integrity_overrun;
}

using Plain = ib::PortCounters;
using Extended = ib::PortCountersExtended;

constexpr PortCounter port_counters[] = {
	plain<&Plain::symbol_errors>("symbol_error"),
	plain<&Plain::link_error_recovery>("link_error_recovery"),
	plain<&Plain::link_downed>("link_downed"),
	plain<&Plain::rcv_errors>("port_rcv_errors"),
	plain<&Plain::rcv_remote_physical_errors>("port_rcv_remote_physical_errors"),
	plain<&Plain::rcv_switch_relay_errors>("port_rcv_switch_relay_errors"),
	plain<&Plain::xmit_discards>("port_xmit_discards"),
	plain<&Plain::xmit_constraint_errors>("port_xmit_constraint_errors"),
	plain<&Plain::rcv_constraint_errors>("port_rcv_constraint_errors"),
	{"local_link_integrity_errors", ib::attr_port_counters,
	 [](const u8 *a) -> u64 { return integrity_overrun(a) >> 4; }},
	{"excessive_buffer_overrun_errors", ib::attr_port_counters,
	 [](const u8 *a) -> u64 { return integrity_overrun(a) & 15; }},
	plain<&Plain::vl15_dropped>("VL15_dropped"),
	plain<&Plain::xmit_wait>("port_xmit_wait"),
	extended<&Extended::xmit_data>("port_xmit_data"),
	extended<&Extended::rcv_data>("port_rcv_data"),
	extended<&Extended::xmit_packets>("port_xmit_packets"),
	extended<&Extended::rcv_packets>("port_rcv_packets"),
	extended<&Extended::unicast_xmit_packets>("unicast_xmit_packets"),
	extended<&Extended::unicast_rcv_packets>("unicast_rcv_packets"),
	extended<&Extended::multicast_xmit_packets>("multicast_xmit_packets"),
	extended<&Extended::multicast_rcv_packets>("multicast_rcv_packets"),
};
constexpr size_t counters_per_port = sizeof(port_counters) / sizeof(port_counters[0]);

} // namespace

kern::Result<> CounterFiles::File::add(const kern::sysfs::Directory &directory)
{
	return file_.add(counter_.name, directory);
}

kern::Result<> CounterFiles::File::show(kern::sysfs::Output &out)
{
	const ib::PerfMad mad = TRY(port_.performance(counter_.attribute));
	out.print("%lu\n", counter_.value(mad.data));
	return {};
}

kern::Result<> CounterFiles::add_port(PortFiles &files, Port &port, const char *number,
				      const kern::sysfs::Directory &ports)
{
	files.port = TRY(kern::sysfs::Directory::create(number, ports));
	files.counters = TRY(kern::sysfs::Directory::create("counters", files.port));
	files.files =
		TRY(kern::make_array<kern::Owned<File>>(kern::Gfp::kernel, counters_per_port));
	for (size_t i = 0; i < counters_per_port; i++) {
		files.files[i] = TRY(kern::make<File>(kern::Gfp::kernel, port, port_counters[i]));
		TRY(files.files[i]->add(files.counters));
	}
	return {};
}

kern::Result<kern::Owned<CounterFiles>> CounterFiles::create(Hca &hca, const char *name)
{
	auto files = TRY(kern::make<CounterFiles>(kern::Gfp::kernel));
	// Not "infiniband": the kernel makes a directory of that name for the devices of the class (weft_sysfs).
	files->driver_ = TRY(kern::sysfs::Directory::create("weft", hca.dma_device()));
	files->device_ = TRY(kern::sysfs::Directory::create(name, files->driver_));
	files->ports_directory_ = TRY(kern::sysfs::Directory::create("ports", files->device_));
	static constexpr const char *numbers[] = {"1", "2"};
	for (u32 port = 1; port <= hca.num_ports(); port++)
		TRY(add_port(files->ports_[port - 1], hca.port(port), numbers[port - 1],
			     files->ports_directory_));
	return files;
}

} // namespace connectx
