// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "port.hpp"
#include <rdma/ib_cache.h>

namespace ib_sysfs
{

namespace
{

constexpr const char *state_names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
constexpr const char *phys_state_names[] = {
	nullptr,
	"Sleep",
	"Polling",
	"Disabled",
	"PortConfigurationTraining",
	"LinkUp",
	"LinkErrorRecovery",
	"Phy Test",
};

template<size_t count>
const char *name_of(const char *const (&names)[count], unsigned int value)
{
	return value < count && names[value] ? names[value] : "<unknown>";
}

/*
 * The rate of a lane in units of 100 Mbit/s, and its usual name. Unknown speeds are treated as the
 * slowest one.
 */
struct Speed {
	unsigned int rate;
	const char *name;
};
constexpr Speed speed_of(unsigned int speed)
{
	switch (speed) {
	case IB_SPEED_DDR:
		return {50, " DDR"};
	case IB_SPEED_QDR:
		return {100, " QDR"};
	case IB_SPEED_FDR10:
		return {100, " FDR10"};
	case IB_SPEED_FDR:
		return {140, " FDR"};
	case IB_SPEED_EDR:
		return {250, " EDR"};
	case IB_SPEED_HDR:
		return {500, " HDR"};
	case IB_SPEED_NDR:
		return {1000, " NDR"};
	default:
		return {25, " SDR"};
	}
}

} // namespace

kern::Result<> show_gid(ib_device &device, u32 port, int index, Output &out)
{
	ib_gid gid;

	KERN_TRY_ERRNO(rdma_query_gid(&device, port, index, &gid));
	for (unsigned int i = 0; i < sizeof(gid.raw); i += 2)
		out.print("%02x%02x%c", gid.raw[i], gid.raw[i + 1],
			  i + 2 < sizeof(gid.raw) ? ':' : '\n');
	return {};
}

kern::Result<> show_pkey(ib_device &device, u32 port, int index, Output &out)
{
	u16 pkey;

	KERN_TRY_ERRNO(ib_get_cached_pkey(&device, port, index, &pkey));
	out.print("0x%04x\n", pkey);
	return {};
}

kern::Result<> show_gid_type(ib_device &device, u32 port, int index, Output &out)
{
	ib_gid gid;

	KERN_TRY_ERRNO(rdma_query_gid(&device, port, index, &gid));
	if (gid == ib_gid{})
		return kern::Error{-EINVAL};
	// InfiniBand and RoCE version 1 have the same type name.
	out.print("IB/RoCE v1\n");
	return {};
}

kern::Result<> show_gid_interface(ib_device &, u32, int, Output &)
{
	// Only GIDs of RoCE belong to a network interface.
	return kern::Error{-EINVAL};
}

void Port::state(const ib_port_attr &attr, Output &out)
{
	out.print("%d: %s\n", attr.state, name_of(state_names, attr.state));
}

void Port::phys_state(const ib_port_attr &attr, Output &out)
{
	out.print("%u: %s\n", attr.phys_state, name_of(phys_state_names, attr.phys_state));
}

void Port::rate(const ib_port_attr &attr, Output &out)
{
	const Speed speed = speed_of(attr.active_speed);
	const int lanes = ib_width_enum_to_int(static_cast<ib_port_width>(attr.active_width));
	const unsigned int width = lanes > 0 ? static_cast<unsigned int>(lanes) : 1;
	const unsigned int rate = speed.rate * width;

	out.print("%u%s Gb/sec (%uX%s)\n", rate / 10, rate % 10 ? ".5" : "", width, speed.name);
}

kern::Result<> Port::link_layer(Output &out)
{
	switch (rdma_port_get_link_layer(&device_, number_)) {
	case IB_LINK_LAYER_INFINIBAND:
		out.print("InfiniBand\n");
		return {};
	case IB_LINK_LAYER_ETHERNET:
		out.print("Ethernet\n");
		return {};
	default:
		out.print("Unknown\n");
		return {};
	}
}

kern::Result<kern::Owned<Port>> Port::create(ib_device &device, u32 number,
					     const kern::sysfs::Directory &ports)
{
	auto port = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Port(device, number)));
	KERN_TRY(port->start(ports));
	return port;
}

kern::Result<> Port::show(const ib_port_counters *counters)
{
	others_.reset();
	if (counters && counters->has(&device_, number_))
		others_ = KERN_TRY(PortCounters::create(*counters, device_, number_, directory_));
	return {};
}

kern::Result<> Port::start(const kern::sysfs::Directory &ports)
{
	kern_format(name_, sizeof(name_), "%u", number_);
	directory_ = KERN_TRY(kern::sysfs::Directory::create(name_, ports));
	KERN_TRY(state_.add("state", directory_));
	KERN_TRY(phys_state_.add("phys_state", directory_));
	KERN_TRY(rate_.add("rate", directory_));
	KERN_TRY(lid_.add("lid", directory_));
	KERN_TRY(sm_lid_.add("sm_lid", directory_));
	KERN_TRY(lid_mask_count_.add("lid_mask_count", directory_));
	KERN_TRY(sm_sl_.add("sm_sl", directory_));
	KERN_TRY(cap_mask_.add("cap_mask", directory_));
	KERN_TRY(link_layer_.add("link_layer", directory_));
	const ib_port_immutable &fixed = device_.port_immutable[number_];
	KERN_TRY(gids_.start("gids", directory_, fixed.gid_tbl_len));
	KERN_TRY(pkeys_.start("pkeys", directory_, fixed.pkey_tbl_len));
	gid_attributes_ = KERN_TRY(kern::sysfs::Directory::create("gid_attrs", directory_));
	KERN_TRY(gid_types_.start("types", gid_attributes_, fixed.gid_tbl_len));
	KERN_TRY(gid_interfaces_.start("ndevs", gid_attributes_, fixed.gid_tbl_len));
	KERN_TRY(hw_counters_.start(directory_));
	return counters_.start(directory_);
}

} // namespace ib_sysfs
