// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs for devices and ports (IBA 11.2.1): attaches a device to the midlayer, and
// answers queries.
#include <kern/log.hpp>
#include "cache.hpp"
#include "checks.hpp"
#include "cq.hpp"
#include "device.hpp"
#include "verbs.hpp"

using namespace verbs;

namespace
{

constexpr const char *kind_names[] = {
	"PD", "XRC domain", "CQ", "SRQ", "QP", "MR", "memory window", "user context",
};
static_assert(sizeof(kind_names) / sizeof(kind_names[0]) == kind_count);

/*
 * A member of ib_device_ops that a driver must set: a method, or the size of an object, which is at
 * least the size of the verbs' structure.
 */
struct RequiredMethod {
	const char *name;
	size_t at;
	size_t least;
	/* The member is required only if the driver has this method, too. */
	size_t if_at;
	/* Transports for whose devices the member is required. */
	unsigned int transports;
};
constexpr size_t for_all = ~size_t{0};
constexpr unsigned int bit(Transport transport)
{
	return 1u << static_cast<unsigned int>(transport);
}
constexpr unsigned int any_transport = (1u << transport_count) - 1;
#define AT(member) __builtin_offsetof(ib_device_ops, member)
#define METHOD(member) {#member, AT(member), 1, for_all, any_transport}
#define METHOD_OF(transport, member) {#member, AT(member), 1, for_all, bit(Transport::transport)}
#define SIZE(type) {"size_" #type, AT(size_##type), sizeof(type), for_all, any_transport}
#define METHOD_IF(has, member) {#member, AT(member), 1, AT(has), any_transport}
#define SIZE_IF(has, type) {"size_" #type, AT(size_##type), sizeof(type), AT(has), any_transport}
constexpr RequiredMethod required_methods[] = {
	METHOD(post_send),
	METHOD(post_recv),
	METHOD(poll_cq),
	METHOD(req_notify_cq),
	METHOD(query_port),
	/* Tables that a subnet manager fills. */
	METHOD_OF(infiniband, query_gid),
	METHOD_OF(infiniband, query_pkey),
	METHOD(alloc_pd),
	METHOD(dealloc_pd),
	SIZE(ib_pd),
	METHOD(create_cq),
	METHOD(destroy_cq),
	SIZE(ib_cq),
	METHOD(create_qp),
	METHOD(modify_qp),
	METHOD(destroy_qp),
	SIZE(ib_qp),
	/* A driver that can create an object needs the methods that use and destroy it. */
	SIZE_IF(create_ah, ib_ah),
	SIZE_IF(create_srq, ib_srq),
	METHOD_IF(create_srq, destroy_srq),
	METHOD_IF(create_srq, post_srq_recv),
	SIZE_IF(get_dma_mr, ib_mr),
	METHOD_IF(get_dma_mr, dereg_mr),
	SIZE_IF(reg_user_mr, ib_mr),
	METHOD_IF(reg_user_mr, dereg_mr),
	SIZE_IF(alloc_mr, ib_mr),
	METHOD_IF(alloc_mr, dereg_mr),
	METHOD_IF(alloc_mr, map_mr_sg),
	SIZE_IF(alloc_mw, ib_mw),
	METHOD_IF(alloc_mw, dealloc_mw),
	SIZE_IF(alloc_xrcd, ib_xrcd),
	METHOD_IF(alloc_xrcd, dealloc_xrcd),
	SIZE_IF(alloc_ucontext, ib_ucontext),
	METHOD_IF(alloc_ucontext, dealloc_ucontext),
};
#undef AT
#undef METHOD
#undef METHOD_OF
#undef SIZE
#undef METHOD_IF
#undef SIZE_IF

/* Returns a method, or a size, as an integer; 0 if it is not set. */
size_t member_of(const ib_device_ops &ops, size_t at)
{
	static_assert(sizeof(ops.post_send) == sizeof(size_t));
	size_t value;

	__builtin_memcpy(&value, reinterpret_cast<const char *>(&ops) + at, sizeof(value));
	return value;
}

/*
 * Returns the name of the first required member that the driver has not set, or nullptr. Sets the
 * transport of the device.
 */
const char *missing_method(const ib_device &device, Transport &transport)
{
	if (!transport_of(device.node_type, transport))
		return "node_type";
	for (const RequiredMethod &one : required_methods)
		if ((one.transports & bit(transport)) &&
		    (one.if_at == for_all || member_of(device.ops, one.if_at)) &&
		    member_of(device.ops, one.at) < one.least)
			return one.name;
	if (device.num_comp_vectors < 1)
		return "num_comp_vectors";
	if (device.phys_port_cnt < 1 && !device.is_switch)
		return "phys_port_cnt";
	return nullptr;
}

/*
 * Checks the length of a port's table: it must have at least the protocol's minimum, and its
 * indices must fit into 16 bits. A table with entries needs a method that queries them.
 */
constexpr bool valid_length(int length, int least, bool can_be_asked)
{
	return length >= least && length <= 0xffff && (length == 0 || can_be_asked);
}

/*
 * Queries a port's constant properties and its protocol, which must belong to the device's
 * transport. A driver need not provide them for an ordinary port of its transport.
 */
int read_immutable(ib_device &device, Transport transport, u32 port_num,
		   ib_port_immutable &immutable, Protocol &protocol)
{
	if (device.ops.get_port_immutable) {
		if (int error =
			    VERBS_CALL(&device, get_port_immutable, &device, port_num, &immutable))
			return error;
	} else {
		const ProtocolTraits &usual = traits_of(usual_protocol(transport));
		ib_port_attr attr = {};
		if (int error = VERBS_CALL(&device, query_port, &device, port_num, &attr))
			return error;
		immutable = {.pkey_tbl_len = attr.pkey_tbl_len,
			     .gid_tbl_len = attr.gid_tbl_len,
			     .core_cap_flags = usual.usual_port_flags,
			     .max_mad_size = usual.max_mad_size};
	}
	if (!protocol_of(immutable.core_cap_flags, protocol) ||
	    traits_of(protocol).transport != transport) {
		if (!notify_observer(Rule::mandatory_attribute, device.name, "core_cap_flags"))
			kern_error(
				"%s: port %u does not use exactly one protocol of its device's node_type\n",
				device.name, port_num);
		return -EINVAL;
	}
	const ProtocolTraits &traits = traits_of(protocol);
	return valid_length(immutable.pkey_tbl_len, traits.least_pkeys, device.ops.query_pkey) &&
			       valid_length(immutable.gid_tbl_len, traits.least_gids,
					    device.ops.query_gid)
		       ? 0
		       : -EINVAL;
}

kern::Result<> read_device(ib_device &device, ib_device_verbs &verbs)
{
	if (device.ops.query_device)
		KERN_TRY_ERRNO(VERBS_CALL(&device, query_device, &device, &device.attrs, nullptr));

	const u32 numbers = rdma_end_port(&device) + 1;
	verbs.ports = KERN_TRY(kern::make_array<Port>(kern::Gfp::kernel, numbers));
	verbs.immutable = KERN_TRY(kern::make_array<ib_port_immutable>(kern::Gfp::kernel, numbers));
	device.port_immutable = verbs.immutable.data();
	u32 port_num;
	rdma_for_each_port(&device, port_num)
	{
		KERN_TRY_ERRNO(read_immutable(device, verbs.transport, port_num,
					      verbs.immutable[port_num],
					      verbs.ports[port_num].protocol));
		KERN_TRY(refresh_port(device, verbs, port_num));
	}
	if (device.ops.hw_counters && device.ops.get_hw_stats) {
		verbs.hw_stats = KERN_TRY(kern::make_array<HwStats>(kern::Gfp::kernel, numbers));
		for (u32 number = 0; number < numbers; number++)
			KERN_TRY(verbs.hw_stats[number].start(device, number));
	}
	verbs.trace = KERN_TRY(kern::make<DeviceTrace>(kern::Gfp::kernel, device));
	return {};
}

void forget(ib_device &device)
{
	ib_device_verbs *verbs = device.verbs;

	free_cache(*verbs);
	device.port_immutable = nullptr;
	device.verbs = nullptr;
	kern::destroy(verbs);
}

} // namespace

kern::Result<> verbs::init()
{
	KERN_TRY(init_pollers());
	init_checks();
	init_resource_tracking();
	return {};
}

void verbs::exit()
{
	exit_resource_tracking();
	exit_checks();
	exit_pollers();
	/*
	 * Wait for RCU callbacks that free old blocks of the cache, because their code is part of
	 * this module.
	 */
	kern::rcu::barrier();
}

kern::Result<> verbs::attach_device(ib_device &device)
{
	Transport transport;
	if (const char *unmet = missing_method(device, transport)) {
		if (!notify_observer(Rule::mandatory_attribute, device.name, unmet))
			kern_error("%s: its driver does not set %s, which is mandatory\n",
				   device.name, unmet);
		return kern::Error{-EINVAL};
	}

	auto verbs = KERN_TRY(kern::make<ib_device_verbs>(kern::Gfp::kernel, transport));
	device.verbs = verbs.release();
	auto result = read_device(device, *device.verbs);
	if (!result)
		forget(device);
	return result;
}

void verbs::detach_device(ib_device &device)
{
	for (unsigned int kind = 0; kind < kind_count; kind++)
		device.verbs->resources[kind].report_leaks(device, kind_names[kind]);
	device.verbs->address_handles.report_leaks(device, "address handle");
	forget(device);
}

extern "C" {

int ib_query_port(struct ib_device *device, u32 port_num, struct ib_port_attr *port_attr)
{
	may_sleep(device, "ib_query_port");
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	*port_attr = {};
	if (int error = VERBS_CALL(device, query_port, device, port_num, port_attr))
		return error;
	/*
	 * The subnet prefix is the upper half of the first GID. Few drivers report it separately.
	 */
	if (port_attr->subnet_prefix == 0 && device->port_immutable[port_num].gid_tbl_len > 0) {
		ib_gid gid = {};
		if (VERBS_CALL(device, query_gid, device, port_num, 0, &gid) == 0)
			port_attr->subnet_prefix = gid.global.subnet_prefix;
	}
	return 0;
}

int ib_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey)
{
	may_sleep(device, "ib_query_pkey");
	if (!rdma_is_port_valid(device, port_num) ||
	    index >= device->port_immutable[port_num].pkey_tbl_len)
		return -EINVAL;
	return VERBS_CALL(device, query_pkey, device, port_num, index, pkey);
}

int ib_find_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num, u16 *index)
{
	u32 port;

	may_sleep(device, "ib_find_gid");
	rdma_for_each_port(device, port)
	{
		for (int i = 0; i < device->port_immutable[port].gid_tbl_len; i++) {
			ib_gid entry = {};
			if (int error = VERBS_CALL(device, query_gid, device, port, i, &entry))
				return error;
			if (entry == *gid) {
				*port_num = port;
				if (index)
					*index = static_cast<u16>(i);
				return 0;
			}
		}
	}
	return -ENOENT;
}

int ib_find_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index)
{
	may_sleep(device, "ib_find_pkey");
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	int partial = -1;
	for (int i = 0; i < device->port_immutable[port_num].pkey_tbl_len; i++) {
		u16 entry = 0;
		if (int error = VERBS_CALL(device, query_pkey, device, port_num,
					   static_cast<u16>(i), &entry))
			return error;
		if ((entry & 0x7fff) != (pkey & 0x7fff))
			continue;
		if (entry & 0x8000) {
			*index = static_cast<u16>(i);
			return 0;
		}
		if (partial < 0)
			partial = i;
	}
	if (partial < 0)
		return -ENOENT;
	*index = static_cast<u16>(partial);
	return 0;
}

int ib_modify_device(struct ib_device *device, int device_modify_mask,
		     struct ib_device_modify *device_modify)
{
	may_sleep(device, "ib_modify_device");
	if (!device->ops.modify_device)
		return -EOPNOTSUPP;
	if (device_modify_mask & ~(IB_DEVICE_MODIFY_SYS_IMAGE_GUID | IB_DEVICE_MODIFY_NODE_DESC))
		return -EINVAL;
	return VERBS_CALL(device, modify_device, device, device_modify_mask, device_modify);
}

int ib_modify_port(struct ib_device *device, u32 port_num, int port_modify_mask,
		   struct ib_port_modify *port_modify)
{
	may_sleep(device, "ib_modify_port");
	if (!device->ops.modify_port)
		return -EOPNOTSUPP;
	if (!rdma_is_port_valid(device, port_num) ||
	    port_modify_mask & ~(IB_PORT_SHUTDOWN | IB_PORT_INIT_TYPE | IB_PORT_RESET_QKEY_CNTR))
		return -EINVAL;
	return VERBS_CALL(device, modify_port, device, port_num, port_modify_mask, port_modify);
}

void ib_get_device_fw_str(struct ib_device *device, char *str)
{
	may_sleep(device, "ib_get_device_fw_str");
	str[0] = '\0';
	if (device->ops.get_dev_fw_str)
		VERBS_CALL(device, get_dev_fw_str, device, str);
}

enum rdma_link_layer rdma_port_get_link_layer(struct ib_device *device, u32 port_num)
{
	return device->ops.get_link_layer ? device->ops.get_link_layer(device, port_num)
					  : traits_of(*device, port_num).link_layer;
}
}
