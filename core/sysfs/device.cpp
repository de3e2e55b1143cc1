// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "device.hpp"
#include <array>
#include <kern/log.hpp>
#include <rdma/ib_device_name.h>

namespace ib_sysfs
{

namespace
{

/*
 * The vendor ID in NodeInfo (IBA 14.2.5.3) of Mellanox, whose boards are named after the PCI device
 * ID of their chip.
 */
constexpr u32 mellanox_oui = 0x0002c9;

void print_guid(kern::sysfs::Output &out, __be64 guid)
{
	const u64 value = guid;

	out.print("%04x:%04x:%04x:%04x\n", static_cast<unsigned int>(value >> 48),
		  static_cast<unsigned int>(value >> 32 & 0xffff),
		  static_cast<unsigned int>(value >> 16 & 0xffff),
		  static_cast<unsigned int>(value & 0xffff));
}

constexpr const char *node_type_name(unsigned int type)
{
	switch (type) {
	case RDMA_NODE_IB_CA:
		return "CA";
	case RDMA_NODE_IB_SWITCH:
		return "switch";
	case RDMA_NODE_IB_ROUTER:
		return "router";
	case RDMA_NODE_RNIC:
		return "RNIC";
	default:
		return "<unknown>";
	}
}

} // namespace

kern::Result<kern::Owned<Device>> Device::create(const kern::DeviceClass &device_class,
						 ib_device &device)
{
	auto shown = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Device(device)));
	KERN_TRY(shown->start(device_class));
	return shown;
}

kern::Result<> Device::start(const kern::DeviceClass &device_class)
{
	std::array<kern_class_file, 8> files = {{
		{"node_type", &node_type_.native()},
		{"node_guid", &node_guid_.native()},
		{"sys_image_guid", &sys_image_guid_.native()},
		{"fw_ver", &firmware_.native()},
		{"node_desc", &description_.native()},
		{"hw_rev", &hardware_revision_.native()},
	}};
	size_t count = 6;
	if (device_.attrs.vendor_id == mellanox_oui)
		files[count++] = {"hca_type", &hca_type_.native()};
	if (device_.board_id[0])
		files[count++] = {"board_id", &board_id_.native()};

	char name[IB_DEVICE_NAME_MAX];

	ib_copy_device_name(&device_, name);
	entry_ = KERN_TRY(kern::ClassDevice::create(device_class, device_.dma_device, name,
						    {files.data(), count}));
	ports_directory_ = KERN_TRY(kern::sysfs::Directory::create("ports", entry_.native()));
	ports_ = KERN_TRY(
		kern::make_array<kern::Owned<Port>>(kern::Gfp::kernel, device_.phys_port_cnt));
	u32 number = rdma_start_port(&device_);
	for (kern::Owned<Port> &port : ports_)
		port = KERN_TRY(Port::create(device_, number++, ports_directory_));
	KERN_TRY(hw_counters_.start(entry_.native()));
	entry_.announce();
	return {};
}

void Device::show(const ib_port_counters *counters)
{
	for (kern::Owned<Port> &port : ports_)
		if (!port->show(counters))
			kern_warning("%s: no memory to show a port's counters\n", device_.name);
}

kern::Result<> Device::node_type(Output &out)
{
	out.print("%u: %s\n", device_.node_type, node_type_name(device_.node_type));
	return {};
}

kern::Result<> Device::node_guid(Output &out)
{
	print_guid(out, device_.node_guid);
	return {};
}

kern::Result<> Device::sys_image_guid(Output &out)
{
	print_guid(out, device_.attrs.sys_image_guid);
	return {};
}

kern::Result<> Device::firmware(Output &out)
{
	char text[IB_FW_VERSION_NAME_MAX];

	ib_get_device_fw_str(&device_, text);
	out.print("%s\n", text);
	return {};
}

kern::Result<> Device::description(Output &out)
{
	out.print("%.64s\n", device_.node_desc);
	return {};
}

/*
 * Sets the node description to the text as written, including a newline. The text may be shorter
 * than the field.
 */
kern::Result<> Device::describe(kern::ConstBytes text)
{
	ib_device_modify change = {};
	const size_t size =
		text.size() < sizeof(change.node_desc) ? text.size() : sizeof(change.node_desc);

	__builtin_memcpy(change.node_desc, text.data(), size);
	return kern::check(ib_modify_device(&device_, IB_DEVICE_MODIFY_NODE_DESC, &change));
}

kern::Result<> Device::hca_type(Output &out)
{
	out.print("MT%u\n", device_.attrs.vendor_part_id);
	return {};
}

kern::Result<> Device::board_id(Output &out)
{
	out.print("%.*s\n", IB_BOARD_ID_MAX, device_.board_id);
	return {};
}

kern::Result<> Device::hardware_revision(Output &out)
{
	out.print("%x\n", device_.attrs.hw_ver);
	return {};
}

} // namespace ib_sysfs
