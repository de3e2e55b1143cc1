// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "counters.hpp"
#include <ib/mad.hpp>
#include <ib/pma.hpp>
#include <rdma/ib_mad.h>

namespace ib_sysfs
{

/* Counter widths that an agent supports (IBA 16.1.3.1); each is one bit. */
enum class Width : u8 {
	plain = 1,
	extended_by_four = 2,
	extended = 4,
};

/* A field of an attribute of the performance management agent. */
struct Counter {
	const char *name;
	ib::PerfAttribute attribute;
	u64 (*value)(const u8 *attribute);
	/* Widths of the agents that have the counter. */
	u8 widths;
};

namespace
{

constexpr u8 operator|(Width one, Width other)
{
	return static_cast<u8>(one) | static_cast<u8>(other);
}
constexpr u8 operator|(u8 some, Width other)
{
	return some | static_cast<u8>(other);
}

/* Combinations for Counter::widths. */
constexpr u8 narrow = static_cast<u8>(Width::plain);
constexpr u8 wide = Width::extended_by_four | Width::extended;
constexpr u8 widest = static_cast<u8>(Width::extended);
constexpr u8 all = wide | Width::plain;

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
constexpr Counter plain(const char *name, u8 widths = all)
{
	return {name, ib::attr_port_counters, MemberOf<Member>::get, widths};
}
template<auto Member>
constexpr Counter extended(const char *name, u8 widths)
{
	return {name, ib::attr_port_counters_extended, MemberOf<Member>::get, widths};
}

u8 integrity_overrun(const u8 *attribute)
{
	return reinterpret_cast<const ib::PortCounters *>(attribute)->integrity_overrun;
}

using Plain = ib::PortCounters;
using Extended = ib::PortCountersExtended;

constexpr Counter table[] = {
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
	 [](const u8 *a) -> u64 { return integrity_overrun(a) >> 4; }, all},
	{"excessive_buffer_overrun_errors", ib::attr_port_counters,
	 [](const u8 *a) -> u64 { return integrity_overrun(a) & 15; }, all},
	plain<&Plain::vl15_dropped>("VL15_dropped"),
	plain<&Plain::xmit_wait>("port_xmit_wait"),
	plain<&Plain::xmit_data>("port_xmit_data", narrow),
	plain<&Plain::rcv_data>("port_rcv_data", narrow),
	plain<&Plain::xmit_packets>("port_xmit_packets", narrow),
	plain<&Plain::rcv_packets>("port_rcv_packets", narrow),
	extended<&Extended::xmit_data>("port_xmit_data", wide),
	extended<&Extended::rcv_data>("port_rcv_data", wide),
	extended<&Extended::xmit_packets>("port_xmit_packets", wide),
	extended<&Extended::rcv_packets>("port_rcv_packets", wide),
	extended<&Extended::unicast_xmit_packets>("unicast_xmit_packets", widest),
	extended<&Extended::unicast_rcv_packets>("unicast_rcv_packets", widest),
	extended<&Extended::multicast_xmit_packets>("multicast_xmit_packets", widest),
	extended<&Extended::multicast_rcv_packets>("multicast_rcv_packets", widest),
};

/* Errors: EINVAL if the agent reports an error or the device has no agent. */
kern::Result<ib::PerfMad> ask(ib_device &device, u32 port, u16 attribute)
{
	ib::PerfMad question{}, answer{};
	static_assert(sizeof(question) == sizeof(ib_mad));
	size_t size = sizeof(answer);
	u16 pkey_index = 0;

	question.header.base_version = ib::mad_base_version;
	question.header.mgmt_class = static_cast<u8>(ib::MgmtClass::perf);
	question.header.class_version = ib::perf_class_version;
	question.header.method = static_cast<u8>(ib::MadMethod::get);
	question.header.attr_id = attribute;
	/*
	 * PortSelect is the second byte of all attributes with counters (IBA 16.1.3). Other
	 * attributes ignore it.
	 */
	question.data[1] = static_cast<u8>(port);
	const int result = ib_process_mad(&device, IB_MAD_IGNORE_ALL, port, nullptr, nullptr,
					  reinterpret_cast<const ib_mad *>(&question),
					  reinterpret_cast<ib_mad *>(&answer), &size, &pkey_index);
	constexpr int answered = IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
	if ((result & answered) != answered || answer.header.status)
		return kern::Error{-EINVAL};
	return answer;
}

u8 width_of(const ib::PerfMad &class_port_info)
{
	const u16 can =
		reinterpret_cast<const ib::ClassPortInfo *>(class_port_info.data)->capability_mask;

	return static_cast<u8>(can & ib::perf_cap_extended_width           ? Width::extended
			       : can & ib::perf_cap_extended_width_no_ietf ? Width::extended_by_four
									   : Width::plain);
}

} // namespace

kern::Result<> Counters::start(const kern::sysfs::Directory &port)
{
	if (!device_.ops.process_mad)
		return {};
	const kern::Result<ib::PerfMad> info = ask(device_, port_, ib::attr_class_port_info);
	if (!info)
		return {};
	const u8 width = width_of(info.value());
	size_t count = 0;
	for (const Counter &counter : table)
		count += (counter.widths & width) != 0;

	directory_ = KERN_TRY(kern::sysfs::Directory::create("counters", port));
	files_ = KERN_TRY(kern::make_array<File>(kern::Gfp::kernel, count));
	File *file = files_.data();
	for (const Counter &counter : table)
		if (counter.widths & width)
			KERN_TRY((file++)->start(*this, counter));
	return {};
}

kern::Result<> Counters::File::start(const Counters &of, const Counter &counter)
{
	of_ = &of;
	counter_ = &counter;
	return file_.add(counter.name, of.directory_);
}

kern::Result<> Counters::File::show(kern::sysfs::Output &out)
{
	const ib::PerfMad answer = KERN_TRY(ask(of_->device_, of_->port_, counter_->attribute));

	out.print("%lu\n", counter_->value(answer.data));
	return {};
}

} // namespace ib_sysfs
