// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the table of verbs methods. Methods that the card does not support are omitted: address
 * handles, atomics, SRQs, and everything that is specific to InfiniBand.
 */
#include "ib_device.hpp"

#include <kern/log.hpp>
#include <rdma/iwarp.h>
#include "cq.hpp"
#include "listener.hpp"
#include "mr.hpp"
#include "pd.hpp"
#include "qp.hpp"

namespace amso1100
{
namespace
{

Rnic &rnic_of(const ib_device *device)
{
	return IbDevice::rnic_of(device);
}

int query_device(ib_device *device, ib_device_attr *attr, ib_udata *)
{
	const Limits &limits = rnic_of(device).limits();
	attr->fw_ver = limits.firmware;
	attr->sys_image_guid = device->node_guid;
	attr->max_mr_size = 0xffffffff;
	attr->page_size_cap = 4096;
	attr->vendor_id = limits.vendor;
	attr->vendor_part_id = limits.part;
	attr->hw_ver = limits.hardware;
	attr->max_qp = static_cast<int>(limits.qps);
	attr->max_qp_wr = static_cast<int>(limits.qp_depth);
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->max_send_sge = attr->max_recv_sge = static_cast<int>(limits.sges);
	attr->max_sge_rd = 1;
	attr->max_cq = static_cast<int>(limits.cqs);
	attr->max_cqe = static_cast<int>(limits.cq_depth);
	attr->max_mr = static_cast<int>(limits.mrs);
	attr->max_pd = static_cast<int>(limits.pds);
	attr->max_qp_rd_atom = static_cast<int>(limits.ird);
	attr->max_qp_init_rd_atom = static_cast<int>(limits.ord);
	attr->max_res_rd_atom = attr->max_qp_rd_atom * attr->max_qp;
	return 0;
}

void get_dev_fw_str(ib_device *device, char *str)
{
	const u64 firmware = rnic_of(device).limits().firmware;
	kern_format(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u", static_cast<u32>(firmware >> 32),
		    static_cast<u32>(firmware >> 16) & 0xffff, static_cast<u32>(firmware) & 0xffff);
}

/*
 * The card does not report the state of the link. It has one GID: the address of its own network
 * stack.
 */
int query_port(ib_device *, u32, ib_port_attr *attr)
{
	attr->state = IB_PORT_ACTIVE;
	attr->max_mtu = attr->active_mtu = IB_MTU_1024;
	attr->gid_tbl_len = 1;
	attr->max_msg_sz = 0xffffffff;
	attr->active_width = IB_WIDTH_1X;
	attr->active_speed = IB_SPEED_SDR;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	return 0;
}

int query_gid(ib_device *device, u32, int, ib_gid *gid)
{
	*gid = {};
	__builtin_memcpy(gid->raw, rnic_of(device).address(), 6);
	return 0;
}

int get_port_immutable(ib_device *, u32, ib_port_immutable *immutable)
{
	*immutable = {.pkey_tbl_len = 0,
		      .gid_tbl_len = 1,
		      .core_cap_flags = RDMA_CORE_PORT_IWARP,
		      .max_mad_size = 0};
	return 0;
}

int alloc_pd(ib_pd *pd, ib_udata *)
{
	Rnic &rnic = rnic_of(pd->device);
	const auto number = rnic.pds().alloc(1, rnic.limits().pds);
	if (!number)
		return number.error() == -ENOSPC ? -ENOMEM : number.error();
	Pd::Object::construct(pd, Pd{number.value()});
	return 0;
}

int dealloc_pd(ib_pd *pd, ib_udata *)
{
	rnic_of(pd->device).pds().free(Pd::of(pd).number);
	Pd::Object::destruct(pd);
	return 0;
}

/* Creates an object, and destroys it again if it cannot be started. */
template<class State, class Target, class Start>
int create(Target *target, Start start)
{
	auto &state = State::Object::construct(target, rnic_of(target->device), *target);
	const kern::Result<> started = start(state);
	if (!started)
		State::Object::destruct(target);
	return started.error();
}

constexpr ib_device_ops operations = {
	.post_send = [](ib_qp *qp, const ib_send_wr *wr,
			const ib_send_wr **bad) { return Qp::of(qp).post_send(wr, bad); },
	.post_recv = [](ib_qp *qp, const ib_recv_wr *wr,
			const ib_recv_wr **bad) { return Qp::of(qp).post_receive(wr, bad); },
	.poll_cq = [](ib_cq *cq, int count, ib_wc *wc) { return Cq::of(cq).poll(count, wc); },
	.req_notify_cq = [](ib_cq *cq,
			    ib_cq_notify_flags flags) { return Cq::of(cq).request_notify(flags); },
	.peek_cq = [](ib_cq *cq, int count) { return Cq::of(cq).peek(count); },
	.query_device = query_device,
	.get_dev_fw_str = get_dev_fw_str,
	.get_port_immutable = get_port_immutable,
	.query_port = query_port,
	.query_gid = query_gid,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_cq =
		[](ib_cq *cq, const ib_cq_init_attr *attr, ib_udata *) {
			return create<Cq>(cq, [&](Cq &made) { return made.start(*attr); });
		},
	.destroy_cq =
		[](ib_cq *cq, ib_udata *) {
			Cq::Object::destruct(cq);
			return 0;
		},
	.create_qp =
		[](ib_qp *qp, ib_qp_init_attr *init, ib_udata *) {
			return create<Qp>(qp, [&](Qp &made) { return made.start(*init); });
		},
	.modify_qp = [](ib_qp *qp, ib_qp_attr *attr, int mask,
			ib_udata *) { return Qp::of(qp).modify(*attr, mask).error(); },
	.query_qp = [](ib_qp *qp, ib_qp_attr *attr, int,
		       ib_qp_init_attr *init) { return Qp::of(qp).query(*attr, *init).error(); },
	.destroy_qp =
		[](ib_qp *qp, ib_udata *) {
			const u32 left = Qp::of(qp).stop();
			Qp::Object::destruct(qp);
			return static_cast<int>(left);
		},
	.get_dma_mr =
		[](ib_mr *mr, int access) {
			return create<Mr>(mr, [&](Mr &made) { return made.start_dma(access); });
		},
	.dereg_mr =
		[](ib_mr *mr, ib_udata *) {
			const kern::Result<> stopped = Mr::of(mr).stop();
			if (stopped)
				Mr::Object::destruct(mr);
			return stopped.error();
		},
	.size_ib_cq = sizeof(Cq::Object),
	.size_ib_mr = sizeof(Mr::Object),
	.size_ib_pd = sizeof(Pd::Object),
	.size_ib_qp = sizeof(Qp::Object),
};

} // namespace

kern::Result<IbDevice *> IbDevice::create(Rnic &rnic)
{
	IbDevice *const device = rdma::alloc_device<IbDevice>();
	if (!device)
		return kern::Error{-ENOMEM};
	device->rnic = &rnic;
	device->ib.phys_port_cnt = 1;
	device->ib.num_comp_vectors = 1;
	device->ib.local_dma_lkey = 0;
	device->ib.node_type = RDMA_NODE_RNIC;
	u64 guid = 0;
	for (const u8 byte : rnic.address())
		guid = guid << 8 | byte;
	device->ib.node_guid = ib::be64(guid << 16);
	kern_format(device->ib.node_desc, sizeof(device->ib.node_desc), "Ammasso 1100");
	ib_set_device_ops(&device->ib, &operations);
	/*
	 * Must precede the registration, because clients connect as soon as they are notified of
	 * the device.
	 */
	if (const int status = iw_cm_add_device(&device->ib, &connection_ops)) {
		rdma::dealloc_device(device);
		return kern::Error{status};
	}
	if (const int status = ib_register_device(&device->ib, "amso1100%d", rnic.dma_device())) {
		iw_cm_remove_device(&device->ib);
		rdma::dealloc_device(device);
		return kern::Error{status};
	}
	return device;
}

void IbDevice::destroy(IbDevice *device)
{
	ib_unregister_device(&device->ib);
	iw_cm_remove_device(&device->ib);
	rdma::dealloc_device(device);
}

} // namespace amso1100
