// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fake_device.hpp"

namespace
{

constexpr ib_device_ops ops = {
	.post_send = [](ib_qp *, const ib_send_wr *, const ib_send_wr **) { return -EINVAL; },
	.post_recv = [](ib_qp *, const ib_recv_wr *, const ib_recv_wr **) { return -EINVAL; },
	.poll_cq = [](ib_cq *, int, ib_wc *) { return 0; },
	.req_notify_cq = [](ib_cq *, ib_cq_notify_flags) { return 0; },
	.create_ah = [](ib_ah *, rdma_ah_init_attr *, ib_udata *) { return 0; },
	.destroy_ah = [](ib_ah *, u32) { return 0; },
	.query_device =
		[](ib_device *, ib_device_attr *attr, ib_udata *) {
			attr->max_pkeys = 1;
			attr->vendor_id = 0x1234;
			return 0;
		},
	.get_port_immutable =
		[](ib_device *, u32, ib_port_immutable *immutable) {
			immutable->gid_tbl_len = 1;
			immutable->pkey_tbl_len = 1;
			immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
			immutable->max_mad_size = 256;
			return 0;
		},
	.query_port =
		[](ib_device *device, u32, ib_port_attr *attr) {
			auto *fake = rdma::device_of<FakeDevice>(device);
			*attr = {};
			attr->state = static_cast<ib_port_state>(fake->port_state.load_acquire());
			attr->lid = fake->lid.load_acquire();
			attr->max_mtu = attr->active_mtu = IB_MTU_2048;
			attr->gid_tbl_len = 1;
			attr->pkey_tbl_len = 1;
			return 0;
		},
	.query_gid =
		[](ib_device *, u32 port, int, ib_gid *gid) {
			*gid = {};
			gid->raw[0] = 0xfe;
			gid->raw[1] = 0x80;
			gid->raw[15] = static_cast<u8>(port);
			return 0;
		},
	.query_pkey =
		[](ib_device *, u32, u16, u16 *pkey) {
			*pkey = 0xffff;
			return 0;
		},
	.alloc_pd = [](ib_pd *, ib_udata *) { return 0; },
	.dealloc_pd = [](ib_pd *, ib_udata *) { return 0; },
	.create_cq = [](ib_cq *, const ib_cq_init_attr *, ib_udata *) { return 0; },
	.destroy_cq = [](ib_cq *, ib_udata *) { return 0; },
	.create_qp = [](ib_qp *, ib_qp_init_attr *, ib_udata *) { return 0; },
	.modify_qp = [](ib_qp *, ib_qp_attr *, int, ib_udata *) { return 0; },
	.query_qp = [](ib_qp *, ib_qp_attr *, int, ib_qp_init_attr *) { return 0; },
	.destroy_qp = [](ib_qp *, ib_udata *) { return 0; },
	.get_dma_mr = [](ib_mr *, int) { return 0; },
	.dereg_mr = [](ib_mr *, ib_udata *) { return 0; },
	.size_ib_ah = sizeof(ib_ah),
	.size_ib_cq = sizeof(ib_cq),
	.size_ib_mr = sizeof(ib_mr),
	.size_ib_pd = sizeof(ib_pd),
	.size_ib_qp = sizeof(ib_qp),
};

} // namespace

FakeDeviceOwner::FakeDeviceOwner(u32 ports) : device_(rdma::alloc_device<FakeDevice>())
{
	if (!device_)
		return;
	device_->ib.phys_port_cnt = ports;
	device_->ib.num_comp_vectors = 1;
	device_->ib.node_type = RDMA_NODE_IB_CA;
	device_->port_state.store_relaxed(IB_PORT_DOWN);
	ib_set_device_ops(ib(), &ops);
}

FakeDeviceOwner::~FakeDeviceOwner()
{
	remove();
	if (device_)
		rdma::dealloc_device(device_);
}

int FakeDeviceOwner::add(const char *name)
{
	const int status = device_ ? ib_register_device(ib(), name, nullptr) : -ENOMEM;

	registered_ = status == 0;
	return status;
}

void FakeDeviceOwner::remove()
{
	if (registered_)
		ib_unregister_device(ib());
	registered_ = false;
}
