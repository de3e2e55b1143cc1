// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Answers requests about devices, their ports and device nodes, and about settings that apply to
// all devices.
#include <kern/abi/module.h>
#include <rdma/ib_device_name.h>
#include <rdma/ib_namespaces.h>
#include <rdma/iwarp.h>
#include "operations.hpp"

namespace nldev
{

namespace
{

u32 last_port(const ib_device &device)
{
	return rdma_end_port(&device);
}

void put_device(const Device &device, Message &message, u16 operation)
{
	char firmware[IB_FW_VERSION_NAME_MAX];

	message.begin(abi::type_of(operation));
	device.name(message);
	message.put(abi::PORT_INDEX, last_port(*device));
	message.put(abi::CAP_FLAGS, device->attrs.device_cap_flags);
	ib_get_device_fw_str(&*device, firmware);
	if (firmware[0])
		message.put(abi::FW_VERSION, firmware);
	message.put(abi::NODE_GUID, u64{device->node_guid});
	message.put(abi::SYS_IMAGE_GUID, u64{device->attrs.sys_image_guid});
	message.put(abi::DEV_NODE_TYPE, device->node_type);
	message.put(abi::DEV_DIM, u8{0});
	message.put(abi::DEV_PROTOCOL,
		    rdma_protocol_iwarp(&*device, rdma_start_port(&*device)) ? "iw" : "ib");
	message.end();
}

/*
 * Writes the attributes of a port. The response to a query of one port has the message type of a
 * response about a device, because programs expect that; in a dump, the type is that of ports.
 */
kern::Result<> put_port(const Device &device, u32 port, Message &message, u16 operation)
{
	ib_port_attr attr;

	KERN_TRY_ERRNO(ib_query_port(&*device, port, &attr));
	message.begin(abi::type_of(operation));
	device.name(message);
	message.put(abi::PORT_INDEX, port);
	message.put(abi::CAP_FLAGS, attr.port_cap_flags | u64{attr.port_cap_flags2} << 32);
	message.put(abi::SUBNET_PREFIX, u64{attr.subnet_prefix});
	message.put(abi::LID, u32{attr.lid});
	message.put(abi::SM_LID, u32{attr.sm_lid});
	message.put(abi::LMC, u8{attr.lmc});
	message.put(abi::PORT_STATE, static_cast<u8>(attr.state));
	message.put(abi::PORT_PHYS_STATE, static_cast<u8>(attr.phys_state));
	message.end();
	return {};
}

struct NodeKind {
	const char *name;
	/* The alias of the module that creates nodes of this kind. */
	const char *module;
	ib_node_kind kind;
	bool of_device;
	bool of_port;
};
constexpr NodeKind node_kinds[] = {
	{"uverbs", "rdma-client-uverbs", IB_NODE_UVERBS, true, false},
	{"umad", "rdma-client-umad", IB_NODE_UMAD, true, true},
	{"issm", "rdma-client-issm", IB_NODE_ISSM, true, true},
	{"rdma_cm", "rdma-client-rdma_cm", IB_NODE_RDMA_CM, false, false},
};

const NodeKind *kind_of(const char *name)
{
	for (const NodeKind &kind : node_kinds)
		if (__builtin_strcmp(kind.name, name) == 0)
			return &kind;
	return nullptr;
}

/* Encodes a device number as programs expect it. */
u64 encoded(u32 major, u32 minor)
{
	return (minor & 0xff) | u64{major} << 8 | u64{minor & ~0xffu} << 12;
}

kern::Result<> put_node(const NodeKind &kind, const ib_device *device, u32 port, Message &message)
{
	ib_node_info node;

	if (ib_find_node(kind.kind, device, port, &node)) {
		// The module that creates the node may not be loaded yet.
		(void)kern_request_module(kind.module);
		if (ib_find_node(kind.kind, device, port, &node))
			return kern::Error{-EOPNOTSUPP};
	}
	message.begin(abi::type_of(abi::GET_CHARDEV));
	message.put(abi::CHARDEV_NAME, node.name);
	message.put(abi::CHARDEV_ABI, node.abi_version);
	message.put(abi::CHARDEV, encoded(node.major, node.minor));
	if (kind.kind == IB_NODE_UVERBS)
		message.put(abi::UVERBS_DRIVER_ID, static_cast<u32>(device->ops.driver_id));
	message.end();
	return {};
}

} // namespace

kern::Result<Device> Device::of(const Request &request)
{
	u32 index;

	if (!request.get(abi::DEV_INDEX, index))
		return kern::Error{-EINVAL};
	Device device = from(index, request);
	if (!device || ib_device_index(device.native_) != index)
		return kern::Error{-EINVAL};
	return device;
}

kern::Result<u32> Device::port(const Request &request) const
{
	u32 port;

	if (!request.get(abi::PORT_INDEX, port) || !rdma_is_port_valid(native_, port))
		return kern::Error{-EINVAL};
	return port;
}

void Device::name(Message &message) const
{
	message.put(abi::DEV_INDEX, ib_device_index(native_));
	char name[IB_DEVICE_NAME_MAX];

	ib_copy_device_name(native_, name);
	message.put(abi::DEV_NAME, name);
}

kern::Result<> get_device(const Request &request, Message &message)
{
	put_device(KERN_TRY(Device::of(request)), message, abi::GET);
	return {};
}

kern::Result<Rest> dump_devices(const Request &request, Message &message, Place &place)
{
	return fill(message, place.device, [&](u32 from, u32 &found) {
		const Device device = Device::from(from, request);
		if (!device)
			return false;
		found = ib_device_index(&*device);
		put_device(device, message, abi::GET);
		return true;
	});
}

/*
 * Sets the device's name or its network namespace. If there are several attributes, only the first
 * has an effect.
 */
kern::Result<> set_device(const Request &request, Message &)
{
	const Device device = KERN_TRY(Device::of(request));
	char name[IB_DEVICE_NAME_MAX];
	u32 descriptor;

	if (!request.has(abi::DEV_NAME)) {
		if (!request.get(abi::NET_NS_FD, descriptor))
			return kern::Error{request.has(abi::DEV_DIM) ? -EOPNOTSUPP : -EINVAL};
		const kern::netlink::Net to = KERN_TRY(request.net_of(descriptor));
		return kern::check(ib_move_device(&*device, request.net(), to.number()));
	}
	if (!request.get(abi::DEV_NAME, name) || !name[0])
		return kern::Error{-EINVAL};
	return kern::check(ib_rename_device(&*device, name));
}

kern::Result<> get_port(const Request &request, Message &message)
{
	const Device device = KERN_TRY(Device::of(request));

	return put_port(device, KERN_TRY(device.port(request)), message, abi::GET);
}

kern::Result<> check_device(const Request &request)
{
	KERN_TRY(Device::of(request));
	return {};
}

kern::Result<Rest> dump_ports(const Request &request, Message &message, Place &place)
{
	const Device device = KERN_TRY(Device::of(request));

	return fill(message, place.number, [&](u32 from, u32 &found) {
		found = from > rdma_start_port(&*device) ? from : rdma_start_port(&*device);
		/* Skip ports whose state cannot be queried. */
		while (found <= last_port(*device) &&
		       !put_port(device, found, message, abi::PORT_GET))
			found++;
		return found <= last_port(*device);
	});
}

kern::Result<> get_system(const Request &, Message &message)
{
	message.begin(abi::type_of(abi::SYS_GET));
	message.put(abi::SYS_ATTR_NETNS_MODE, u8{ib_devices_are_shared()});
	/* fork() copies the pages that are registered, because they are pinned. */
	message.put(abi::SYS_ATTR_COPY_ON_FORK, u8{1});
	message.put(abi::SYS_ATTR_PRIVILEGED_QKEY_MODE, u8{0});
	message.end();
	return {};
}

kern::Result<> set_system(const Request &request, Message &)
{
	u8 mode;

	if (request.get(abi::SYS_ATTR_NETNS_MODE, mode))
		return kern::check(mode > 1 ? -EINVAL : ib_share_devices(mode));
	/* Setting the current value succeeds. */
	if (request.get(abi::SYS_ATTR_PRIVILEGED_QKEY_MODE, mode))
		return kern::check(mode == 0 ? 0 : mode == 1 ? -EOPNOTSUPP : -EINVAL);
	return kern::Error{-EINVAL};
}

kern::Result<> get_node(const Request &request, Message &message)
{
	char name[32];

	if (!request.get(abi::CHARDEV_TYPE, name))
		return kern::Error{-EINVAL};
	const NodeKind *kind = kind_of(name);
	if (!kind)
		return kern::Error{-EOPNOTSUPP};
	if (!kind->of_port && request.has(abi::PORT_INDEX))
		return kern::Error{-EINVAL};
	if (!kind->of_device)
		return put_node(*kind, nullptr, 0, message);
	const Device device = KERN_TRY(Device::of(request));
	return put_node(*kind, &*device, kind->of_port ? KERN_TRY(device.port(request)) : 0,
			message);
}

} // namespace nldev
