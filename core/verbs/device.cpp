// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Devices and ports (IBA 11.2.1): attaching to the midlayer, queries.
#include "cache.hpp"
#include "checks.hpp"
#include "cq.hpp"
#include "device.hpp"
#include "verbs.hpp"

using namespace verbs;

namespace
{

constexpr const char *kind_names[] = {
	"PD", "XRC domain", "address handle", "CQ", "SRQ", "QP", "MR", "memory window",
};
static_assert(sizeof(kind_names) / sizeof(kind_names[0]) == kind_count);

/* A driver that has one method of an object has those without which the object is of no use. */
bool has_obligatory_methods(const ib_device_ops &ops)
{
	return ops.post_send && ops.post_recv && ops.poll_cq && ops.req_notify_cq && ops.query_port &&
	       ops.query_gid && ops.query_pkey && ops.alloc_pd && ops.dealloc_pd && ops.create_cq &&
	       ops.destroy_cq && ops.create_qp && ops.modify_qp && ops.destroy_qp &&
	       ops.size_ib_pd >= sizeof(ib_pd) && ops.size_ib_cq >= sizeof(ib_cq) &&
	       ops.size_ib_qp >= sizeof(ib_qp) && (!ops.create_ah || ops.size_ib_ah >= sizeof(ib_ah)) &&
	       (!ops.create_srq || (ops.size_ib_srq >= sizeof(ib_srq) && ops.destroy_srq && ops.post_srq_recv)) &&
	       (!(ops.get_dma_mr || ops.alloc_mr || ops.reg_user_mr) ||
		(ops.size_ib_mr >= sizeof(ib_mr) && ops.dereg_mr)) &&
	       (!ops.alloc_mr || ops.map_mr_sg) &&
	       (!ops.alloc_mw || (ops.size_ib_mw >= sizeof(ib_mw) && ops.dealloc_mw)) &&
	       (!ops.alloc_xrcd || (ops.size_ib_xrcd >= sizeof(ib_xrcd) && ops.dealloc_xrcd));
}

/* What is constant about a port; the driver need not say, if it is a plain InfiniBand port. */
int read_immutable(ib_device &device, u32 port_num, ib_port_immutable &immutable)
{
	if (device.ops.get_port_immutable) {
		if (int error = device.ops.get_port_immutable(&device, port_num, &immutable))
			return error;
	} else {
		ib_port_attr attr = {};
		if (int error = device.ops.query_port(&device, port_num, &attr))
			return error;
		immutable = {.pkey_tbl_len = attr.pkey_tbl_len,
			     .gid_tbl_len = attr.gid_tbl_len,
			     .core_cap_flags = RDMA_CORE_PORT_IBA_IB,
			     .max_mad_size = 256};
	}
	return immutable.pkey_tbl_len > 0 && immutable.pkey_tbl_len <= 0xffff && immutable.gid_tbl_len > 0 &&
			       immutable.gid_tbl_len <= 0xffff
		       ? 0
		       : -EINVAL;
}

kern::Result<> read_device(ib_device &device, ib_device_verbs &verbs)
{
	if (device.ops.query_device)
		TRY_ERRNO(device.ops.query_device(&device, &device.attrs, nullptr));

	const u32 numbers = rdma_end_port(&device) + 1;
	verbs.ports = TRY(kern::make_array<Port>(kern::Gfp::kernel, numbers));
	verbs.immutable = TRY(kern::make_array<ib_port_immutable>(kern::Gfp::kernel, numbers));
	device.port_immutable = verbs.immutable.data();
	u32 port_num;
	rdma_for_each_port(&device, port_num) {
		TRY_ERRNO(read_immutable(device, port_num, verbs.immutable[port_num]));
		TRY(refresh_port(device, verbs, port_num));
	}
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
	TRY(init_pollers());
	init_checks();
	return {};
}

void verbs::exit()
{
	exit_checks();
	exit_pollers();
	/* Old blocks of the cache go by code of this module. */
	kern::rcu::barrier();
}

kern::Result<> verbs::attach_device(ib_device &device)
{
	if (!has_obligatory_methods(device.ops) || device.num_comp_vectors < 1 ||
	    (device.phys_port_cnt < 1 && !device.is_switch))
		return kern::Error{-EINVAL};

	auto verbs = TRY(kern::make<ib_device_verbs>(kern::Gfp::kernel));
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
	forget(device);
}

extern "C" {

int ib_query_port(struct ib_device *device, u32 port_num, struct ib_port_attr *port_attr)
{
	may_sleep(device, "ib_query_port");
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	*port_attr = {};
	if (int error = device->ops.query_port(device, port_num, port_attr))
		return error;
	/* The prefix is the upper half of the first GID; few drivers have it apart. */
	if (port_attr->subnet_prefix == 0) {
		ib_gid gid = {};
		if (device->ops.query_gid(device, port_num, 0, &gid) == 0)
			port_attr->subnet_prefix = gid.global.subnet_prefix;
	}
	return 0;
}

int ib_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey)
{
	may_sleep(device, "ib_query_pkey");
	if (!rdma_is_port_valid(device, port_num) || index >= device->port_immutable[port_num].pkey_tbl_len)
		return -EINVAL;
	return device->ops.query_pkey(device, port_num, index, pkey);
}

int ib_find_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num, u16 *index)
{
	u32 port;

	may_sleep(device, "ib_find_gid");
	rdma_for_each_port(device, port) {
		for (int i = 0; i < device->port_immutable[port].gid_tbl_len; i++) {
			ib_gid entry = {};
			if (int error = device->ops.query_gid(device, port, i, &entry))
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
		if (int error = device->ops.query_pkey(device, port_num, static_cast<u16>(i), &entry))
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

int ib_modify_device(struct ib_device *device, int device_modify_mask, struct ib_device_modify *device_modify)
{
	may_sleep(device, "ib_modify_device");
	if (!device->ops.modify_device)
		return -EOPNOTSUPP;
	if (device_modify_mask & ~(IB_DEVICE_MODIFY_SYS_IMAGE_GUID | IB_DEVICE_MODIFY_NODE_DESC))
		return -EINVAL;
	return device->ops.modify_device(device, device_modify_mask, device_modify);
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
	return device->ops.modify_port(device, port_num, port_modify_mask, port_modify);
}

void ib_get_device_fw_str(struct ib_device *device, char *str)
{
	str[0] = '\0';
	if (device->ops.get_dev_fw_str)
		device->ops.get_dev_fw_str(device, str);
}

enum rdma_link_layer rdma_port_get_link_layer(struct ib_device *device, u32 port_num)
{
	return device->ops.get_link_layer ? device->ops.get_link_layer(device, port_num)
					  : IB_LINK_LAYER_INFINIBAND;
}

}
