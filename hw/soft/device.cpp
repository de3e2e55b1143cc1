// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the software device, its ports, and the functions with which tests control it.
#include "device.hpp"
#include <rdma/ib_hw_counters.h>
#include "rnic.h"

namespace soft
{

constinit kern::Static<Fabric> fabric;

namespace
{

constexpr u64 default_prefix = 0xfe80000000000000;

int query_device(ib_device *ib, ib_device_attr *attr, ib_udata *)
{
	attr->fw_ver = 1;
	attr->max_mr_size = ~u64{0};
	attr->page_size_cap = 0xfffff000;
	attr->max_qp = 1 << 20;
	attr->max_qp_wr = max_wr;
	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_XRC |
				 IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B |
				 IB_DEVICE_PORT_ACTIVE_EVENT;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_BLOCK_MULTICAST_LOOPBACK;
	attr->max_send_sge = attr->max_recv_sge = attr->max_sge_rd = max_sge;
	attr->max_cq = 1 << 20;
	attr->max_cqe = max_cqe;
	attr->max_mr = attr->max_mw = attr->max_pd = attr->max_ah = attr->max_srq = 1 << 20;
	attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
	attr->atomic_cap = attr->masked_atomic_cap = IB_ATOMIC_HCA;
	attr->max_mcast_grp = attr->max_mcast_qp_attach = 1 << 16;
	attr->max_srq_wr = max_wr;
	attr->max_srq_sge = max_sge;
	attr->max_fast_reg_page_list_len = max_pages;
	attr->max_pkeys = 128;
	attr->cq_caps = {.max_cq_moderation_count = 1000, .max_cq_moderation_period = 1000};
	if (of(ib).is_rnic()) {
		attr->device_cap_flags &= ~u64{IB_DEVICE_XRC};
		attr->atomic_cap = attr->masked_atomic_cap = IB_ATOMIC_NONE;
		attr->max_ah = attr->max_mcast_grp = attr->max_mcast_qp_attach = 0;
		attr->max_pkeys = 0;
	}
	return 0;
}

int query_port(ib_device *ib, u32 port_num, ib_port_attr *attr)
{
	SoftDevice &device = of(ib);

	if (int error = device.fault(SOFT_QUERY_PORT))
		return error;
	kern::Guard guard(*device.ports_lock);
	*attr = device.ports[port_num].attr;
	return 0;
}

int query_gid(ib_device *ib, u32 port_num, int index, ib_gid *gid)
{
	SoftDevice &device = of(ib);

	if (int error = device.fault(SOFT_QUERY_GID))
		return error;
	kern::Guard guard(*device.ports_lock);
	*gid = device.ports[port_num].gids[static_cast<size_t>(index)];
	return 0;
}

int query_pkey(ib_device *ib, u32 port_num, u16 index, u16 *pkey)
{
	SoftDevice &device = of(ib);

	if (int error = device.fault(SOFT_QUERY_PKEY))
		return error;
	kern::Guard guard(*device.ports_lock);
	*pkey = device.ports[port_num].pkeys[index];
	return 0;
}

/*
 * Two counters, of the device and of each port: the number of queries so far, and the port number.
 */
const rdma_hw_counters *hw_counters(ib_device *, u32)
{
	static constexpr const char *names[] = {"questions", "port"};
	static constexpr rdma_hw_counters counters = {.names = names, .count = 2};

	return &counters;
}

int get_hw_stats(ib_device *ib, u32 port_num, u64 *values)
{
	SoftDevice &device = of(ib);

	if (int error = device.fault(SOFT_GET_HW_STATS))
		return error;
	values[0] = soft_calls(ib, SOFT_GET_HW_STATS);
	values[1] = port_num;
	return 0;
}

int get_port_immutable(ib_device *ib, u32 port_num, ib_port_immutable *immutable)
{
	const SoftDevice &device = of(ib);
	const ib_port_attr &attr = device.ports[port_num].attr;

	*immutable = {.pkey_tbl_len = attr.pkey_tbl_len,
		      .gid_tbl_len = attr.gid_tbl_len,
		      .core_cap_flags = RDMA_CORE_PORT_IBA_IB & ~device.options.lacks,
		      .max_mad_size = IB_MGMT_MAD_SIZE};
	return 0;
}

kern::Result<> create_port(SoftDevice &device, u32 port_num)
{
	PortState &port = device.ports[port_num];
	const soft_options &options = device.options;

	if (device.is_rnic()) {
		port.attr = {.state = IB_PORT_ACTIVE,
			     .max_mtu = IB_MTU_1024,
			     .active_mtu = IB_MTU_1024,
			     .max_msg_sz = 1u << 31,
			     .active_width = IB_WIDTH_1X,
			     .active_speed = IB_SPEED_SDR,
			     .phys_state = IB_PORT_PHYS_STATE_LINK_UP};
		return {};
	}
	port.gids = KERN_TRY(kern::make_array<ib_gid>(kern::Gfp::kernel, options.gids));
	port.pkeys = KERN_TRY(kern::make_array<u16>(kern::Gfp::kernel, options.pkeys));
	port.gids[0].global.subnet_prefix = default_prefix;
	port.gids[0].global.interface_id = u64{device.ib.node_guid} + port_num;
	port.pkeys[0] = IB_DEFAULT_PKEY_FULL;
	port.attr = {
		.subnet_prefix = default_prefix,
		.state = options.lid ? IB_PORT_ACTIVE : IB_PORT_INIT,
		.max_mtu = IB_MTU_4096,
		.active_mtu = IB_MTU_4096,
		.gid_tbl_len = static_cast<int>(options.gids),
		.port_cap_flags = 0,
		.max_msg_sz = 1u << 31,
		.pkey_tbl_len = static_cast<u16>(options.pkeys),
		.sm_lid = options.lid ? 1u : 0u,
		.lid = options.lid && (!options.is_switch || port_num == 0)
			       ? options.lid + port_num - (options.is_switch ? 0 : 1)
			       : 0,
		.max_vl_num = 1,
		.subnet_timeout = 18,
		.active_width = IB_WIDTH_4X,
		.active_speed = IB_SPEED_QDR,
		.phys_state = IB_PORT_PHYS_STATE_LINK_UP,
	};
	return {};
}

/*
 * Parts of the device that have constructors and are therefore not in the memory that the midlayer
 * allocated.
 */
struct Parts {
	kern::IrqSpinLock ports_lock{KERN_LOCK_CLASS("soft.ports")};
	kern::XArray<ib_qp> qps;
	kern::XArray<Region> regions;
	kern::XArray<ib_srq> srqs;
};

Parts *parts_of(SoftDevice &device)
{
	return reinterpret_cast<Parts *>(device.ports_lock);
}

void free(SoftDevice &device)
{
	for (PortState &port : device.ports)
		port.~PortState();
	kern::destroy(parts_of(device));
	rdma::dealloc_device(&device);
}

void join_fabric(SoftDevice &device)
{
	kern::Guard guard(fabric->lock);
	device.fabric_links = {&fabric->devices, fabric->devices.prev};
	fabric->devices.prev->next = &device.fabric_links;
	fabric->devices.prev = &device.fabric_links;
}

void leave_fabric(SoftDevice &device)
{
	kern::Guard guard(fabric->lock);
	device.fabric_links.prev->next = device.fabric_links.next;
	device.fabric_links.next->prev = device.fabric_links.prev;
	for (PortState &port : device.ports)
		if (port.peer)
			port.peer->ports[port.peer_port].peer = nullptr;
}

kern::Result<ib_device *> create(const soft_options &wanted, bool rnic)
{
	static constinit kern::Atomic<u64> next_guid{0x0002c90000000000};
	auto parts = KERN_TRY(kern::make<Parts>(kern::Gfp::kernel));
	auto *device = rdma::alloc_device<SoftDevice>();
	if (!device)
		return kern::Error{-ENOMEM};

	device->options = wanted;
	soft_options &options = device->options;
	if (options.ports == 0)
		options.ports = 1;
	if (options.vectors == 0)
		options.vectors = 1;
	if (options.gids == 0)
		options.gids = 8;
	if (options.pkeys == 0)
		options.pkeys = 8;
	if (options.behaviour == SOFT_BEHAVIOUR_DEFAULT)
		options.behaviour = fabric->behaviour.load_relaxed();
	Parts *owned = parts.release();
	static_assert(__builtin_offsetof(Parts, ports_lock) == 0);
	device->ports_lock = &owned->ports_lock;
	device->qps = &owned->qps;
	device->regions = &owned->regions;
	device->srqs = &owned->srqs;
	for (PortState &port : device->ports)
		new (&port) PortState{};
	for (Faults &faults : device->faults)
		new (&faults) Faults{};
	device->ib.node_guid = next_guid.fetch_add(0x10000);
	device->ib.node_type = rnic                ? RDMA_NODE_RNIC
			       : options.is_switch ? RDMA_NODE_IB_SWITCH
						   : RDMA_NODE_IB_CA;
	device->ib.is_switch = options.is_switch;
	device->ib.phys_port_cnt = options.ports;
	device->ib.num_comp_vectors = static_cast<int>(options.vectors);
	device->ib.local_dma_lkey = local_dma_lkey;

	kern::Result<> result;
	for (u32 port = options.is_switch ? 0 : 1; port <= options.ports && result.ok(); port++) {
		auto made = create_port(*device, port);
		if (!made) {
			free(*device);
			return kern::Error{made.error()};
		}
	}

	ib_device_ops ops = {};
	ops.query_device = query_device;
	ops.query_port = query_port;
	if (!rnic) {
		ops.query_gid = query_gid;
		ops.query_pkey = query_pkey;
	}
	if (options.lacks)
		ops.get_port_immutable = get_port_immutable;
	ops.process_mad = options.process_mad;
	ops.hw_counters = hw_counters;
	ops.get_hw_stats = get_hw_stats;
	set_memory_methods(ops);
	set_queue_methods(ops);
	set_qp_methods(ops, rnic);
	ib_set_device_ops(&device->ib, &ops);

	join_fabric(*device);
	if (int error = ib_register_device(&device->ib, "soft%d", options.dma_device)) {
		leave_fabric(*device);
		free(*device);
		return kern::Error{error};
	}
	return &device->ib;
}

} // namespace

} // namespace soft

using namespace soft;

extern "C" {

struct ib_device *soft_create(const struct soft_options *options)
{
	if (options->ports > max_ports || options->vectors > max_vectors)
		return rdma::err_ptr<ib_device>(-EINVAL);
	auto device = create(*options, false);
	return device ? device.take() : rdma::err_ptr<ib_device>(device.error());
}

struct ib_device *soft_create_rnic(const struct soft_options *options)
{
	if (options->ports > max_ports || options->vectors > max_vectors || options->is_switch ||
	    options->lid || options->lacks || options->process_mad)
		return rdma::err_ptr<ib_device>(-EINVAL);
	auto device = create(*options, true);
	return device ? device.take() : rdma::err_ptr<ib_device>(device.error());
}

void soft_destroy(struct ib_device *ib)
{
	SoftDevice &device = of(ib);

	ib_unregister_device(ib);
	/*
	 * In every test, an address handle must outlive the requests that use it
	 * (rdma_destroy_ah()).
	 */
	KERN_WARN_ON(device.addresses_lost.load_relaxed() > 0);
	leave_fabric(device);
	free(device);
}

void soft_set_behaviour(enum soft_behaviour behaviour)
{
	fabric->behaviour.store_relaxed(behaviour == SOFT_BEHAVIOUR_DEFAULT ? SOFT_PLAIN
									    : behaviour);
}

unsigned int soft_posted_receives(struct ib_qp *qp)
{
	RecvQueue &queue = Qp::state(qp).recv;

	kern::Guard guard(queue.lock);
	return static_cast<unsigned int>(queue.ring.count());
}

void soft_set_port(struct ib_device *ib, u32 port_num, const struct ib_port_attr *attr)
{
	SoftDevice &device = of(ib);

	kern::Guard guard(*device.ports_lock);
	device.ports[port_num].attr = *attr;
}

void soft_set_gid(struct ib_device *ib, u32 port_num, unsigned int index, const union ib_gid *gid)
{
	SoftDevice &device = of(ib);

	kern::Guard guard(*device.ports_lock);
	device.ports[port_num].gids[index] = *gid;
}

void soft_set_pkey(struct ib_device *ib, u32 port_num, unsigned int index, u16 pkey)
{
	SoftDevice &device = of(ib);

	kern::Guard guard(*device.ports_lock);
	device.ports[port_num].pkeys[index] = pkey;
}

void soft_connect(struct ib_device *a, u32 port_a, struct ib_device *b, u32 port_b)
{
	kern::Guard guard(fabric->lock);
	of(a).ports[port_a].peer = &of(b);
	of(a).ports[port_a].peer_port = port_b;
	of(b).ports[port_b].peer = &of(a);
	of(b).ports[port_b].peer_port = port_a;
}

void soft_fail(struct ib_device *device, enum soft_method method, unsigned int count, int error)
{
	Faults &faults = of(device).faults[method];

	faults.error.store_relaxed(error);
	faults.left.store_release(count);
}

void soft_interpose(struct ib_device *device, enum soft_method method,
		    void (*function)(void *context), void *context)
{
	Faults &faults = of(device).faults[method];

	faults.interposed_context.store_relaxed(context);
	faults.interposed.store_release(function);
}

unsigned long soft_calls(struct ib_device *device, enum soft_method method)
{
	return of(device).faults[method].calls.load_relaxed();
}

void soft_disturb(struct ib_device *ib, unsigned int lost, unsigned int reordered, u64 seed)
{
	SoftDevice &device = of(ib);

	kern::Guard guard(fabric->lock);
	device.lost = lost;
	device.reordered = reordered;
	device.random = seed;
}

void soft_watch(struct ib_device *ib,
		bool (*lose)(void *context, const void *payload, size_t length), void *context)
{
	SoftDevice &device = of(ib);

	kern::Guard guard(fabric->lock);
	device.lose = lose;
	device.lose_context = context;
}

void soft_complete_late(struct ib_device *device, bool late)
{
	of(device).completes_late.store_relaxed(late);
}

void soft_hold_datagrams(struct ib_device *ib, bool hold)
{
	SoftDevice &device = of(ib);

	kern::Guard guard(fabric->lock);
	device.holds_datagrams.store_relaxed(hold);
	device.qps->for_each([](unsigned long, ib_qp &qp) { Qp::state(&qp).kick(); });
}

unsigned long soft_addresses_lost(struct ib_device *device)
{
	return of(device).addresses_lost.load_relaxed();
}

unsigned long soft_interrupts(struct ib_device *device, unsigned int vector)
{
	return vector < max_vectors ? of(device).interrupts[vector].load_relaxed() : 0;
}

int weft_soft_init()
{
	Fabric &made = fabric.construct();
	auto engine = kern::WorkQueue::create("weft-soft", kern::WorkQueue::Kind::ordered);

	if (!engine) {
		fabric.destruct();
		return engine.error();
	}
	made.engine = engine.take();
	return 0;
}

void weft_soft_exit()
{
	fabric.destruct();
}
}
