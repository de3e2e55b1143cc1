// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The table of methods. Each finds its object and hands over; what can be said in a line is said here. What the card has not is not in it:
// windows, fast registration, XRC, moderation of completions. Programs have no part yet in which they could use it.
#include "ib_device.hpp"
#include <ib/smp.hpp>
#include <kern/log.hpp>
#include "ah.hpp"
#include "cq.hpp"
#include "mr.hpp"
#include "qp.hpp"
#include "srq.hpp"

namespace infinihost {

namespace {

Hca &hca_of(const ib_device *device)
{
	return *IbDevice::of(const_cast<ib_device *>(device)).hca;
}

/* A create method's common end: what failed to start is gone again. */
template <class Object, class Verbs, class Start>
int create(Verbs *verbs, Start start)
{
	auto &state = Object::construct(verbs, hca_of(verbs->device), *verbs);
	const kern::Result<> started = start(state);
	if (!started)
		Object::destruct(verbs);
	return started.error();
}

int query_device(ib_device *device, ib_device_attr *attr, ib_udata *udata)
{
	if (udata)
		return -EOPNOTSUPP;
	Hca &hca = hca_of(device);
	const Capabilities &cap = hca.capabilities();
	const Firmware &firmware = hca.firmware();
	const auto objects = [](const NumberAllocator &numbers) { return static_cast<int>(numbers.end() - numbers.first()); };
	ib::Smp smp;
	if (const auto got = get_attribute(hca.commands(), 1, ib::attr_node_info, 0, smp); !got)
		return got.error();
	const auto &info = ib::smp_attribute<ib::NodeInfo>(smp);

	attr->fw_ver = u64{firmware.major} << 32 | u64{firmware.minor} << 16 | firmware.subminor;
	attr->sys_image_guid = ib::be64(info.system_image_guid);
	attr->max_mr_size = ~u64{0};
	attr->page_size_cap = ~u64{4095};
	attr->vendor_id = info.vendor_id;
	attr->vendor_part_id = info.device_id;
	attr->hw_ver = info.revision;
	attr->max_qp = objects(hca.qpns());
	attr->max_qp_wr = 1 << cap.log_max_qp_size;
	attr->max_send_sge = static_cast<int>(cap.max_sq_sge);
	attr->max_recv_sge = static_cast<int>(cap.max_rq_sge);
	attr->max_sge_rd = attr->max_send_sge;
	attr->max_cq = objects(hca.cqns());
	// The largest ring of completions is one block of memory.
	const u32 largest_ring = max_queue_bytes / sizeof(wire::Cqe);
	attr->max_cqe = static_cast<int>((1u << cap.log_max_cq_size < largest_ring ? 1u << cap.log_max_cq_size : largest_ring) - 1);
	attr->max_mr = objects(hca.mpts());
	attr->max_pd = objects(hca.pdns());
	attr->max_qp_rd_atom = 1 << hca.layout().log_reads_per_qp;
	attr->max_qp_init_rd_atom = 1 << cap.log_max_requester_reads;
	attr->max_res_rd_atom = attr->max_qp_rd_atom * attr->max_qp;
	attr->max_srq = objects(hca.srqns());
	attr->max_srq_wr = (1 << cap.log_max_srq_size) - 1;
	attr->max_srq_sge = static_cast<int>(cap.max_rq_sge);
	attr->local_ca_ack_delay = static_cast<u8>(cap.local_ack_delay);
	attr->atomic_cap = cap.has(wire::dev_lim_flag::atomics) ? IB_ATOMIC_HCA : IB_ATOMIC_NONE;
	attr->max_pkeys = static_cast<u16>(cap.port.pkeys);
	attr->max_mcast_grp = 1 << hca.layout()[IcmRegion::mcg].log_entries;
	attr->max_mcast_qp_attach = static_cast<int>(hca.multicast().members_per_group());
	attr->max_total_mcast_qp_attach = attr->max_mcast_grp * attr->max_mcast_qp_attach;
	attr->max_ah = 1 << 30;

	const auto offer = [&](bool has, u64 flag) { attr->device_cap_flags |= has ? flag : 0; };
	attr->device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_SHUTDOWN_PORT | IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_N_NOTIFY_CQ;
	offer(cap.has(wire::dev_lim_flag::bad_pkey_counter), IB_DEVICE_BAD_PKEY_CNTR);
	offer(cap.has(wire::dev_lim_flag::bad_qkey_counter), IB_DEVICE_BAD_QKEY_CNTR);
	offer(cap.has(wire::dev_lim_flag::av_port_check), IB_DEVICE_UD_AV_PORT_ENFORCE);
	return 0;
}

/* The card keeps a description of its own, and has no command for another: the node has its name in the answers that pass here. */
int modify_device(ib_device *device, int mask, ib_device_modify *change)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	__builtin_memcpy(device->node_desc, change->node_desc, sizeof(device->node_desc));
	return 0;
}

void get_dev_fw_str(ib_device *device, char *str)
{
	const Firmware &firmware = hca_of(device).firmware();
	kern_format(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u", firmware.major, firmware.minor, firmware.subminor);
}

int get_port_immutable(ib_device *device, u32 port, ib_port_immutable *immutable)
{
	const PortCapabilities &cap = hca_of(device).port(port).capabilities();
	immutable->pkey_tbl_len = static_cast<int>(cap.pkeys);
	immutable->gid_tbl_len = static_cast<int>(cap.gids);
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	immutable->max_mad_size = ib::mad_bytes;
	return 0;
}

int query_gid(ib_device *device, u32 port, int index, ib_gid *gid)
{
	const auto got = hca_of(device).port(port).gid(static_cast<u32>(index));
	if (got)
		*gid = got.value();
	return got.error();
}

int query_pkey(ib_device *device, u32 port, u16 index, u16 *pkey)
{
	const auto got = hca_of(device).port(port).pkey(index);
	if (got)
		*pkey = got.value();
	return got.error();
}

/* What the tables of a port are read from. */
bool is_of_port(u16 attribute)
{
	return attribute == ib::attr_port_info || attribute == ib::attr_guid_info || attribute == ib::attr_pkey_table ||
	       attribute == ib::attr_sl_to_vl;
}

/*
 * The card tells of ports that go up and down, and of nothing else that the subnet manager sets: what passes here is the only way to learn
 * of it. The tables are right before anybody is told; that the port has changed the midlayer sees itself.
 */
int process_mad(ib_device *device, int flags, u32 port_num, const ib_wc *wc, const ib_grh *grh, const ib_mad *in, ib_mad *out, size_t *, u16 *)
{
	Hca &hca = hca_of(device);
	const int result = mellanox::process_mad(hca.commands(), port_num, flags, wc, grh, *in, *out);
	const auto &request = *reinterpret_cast<const ib::Smp *>(in);
	auto &answer = *reinterpret_cast<ib::Smp *>(out);
	if (!(result & IB_MAD_RESULT_REPLY) || !request.header.is_smp())
		return result;
	const bool refused = answer.header.status.value() & ~ib::mad_status_direction;
	if (!refused && request.header.attr_id == ib::attr_node_description)
		__builtin_memcpy(answer.data, device->node_desc, IB_DEVICE_NODE_DESC_MAX);
	if (refused || !request.header.is_method(ib::MadMethod::set) || !is_of_port(request.header.attr_id))
		return result;
	Port &port = hca.port(port_num);
	if (const auto read = port.read_tables(); !read && !hca.failed())
		kern_warning_limited("port %u: its tables cannot be read again (%d)\n", port_num, read.error());
	if (request.header.attr_id == ib::attr_port_info && ib::smp_attribute<ib::PortInfo>(request).client_reregister())
		port.changed(1u << IB_EVENT_CLIENT_REREGISTER);
	return result;
}

int create_ah(ib_ah *ah, rdma_ah_init_attr *init, ib_udata *)
{
	const auto vector = Ah::build(hca_of(ah->device).capabilities(), pd_number(ah->pd), *init->ah_attr);
	if (vector)
		Ah::Object::construct(ah, vector.value(), *init->ah_attr);
	return vector.error();
}

int modify_ah(ib_ah *ah, rdma_ah_attr *attr)
{
	const auto vector = Ah::build(hca_of(ah->device).capabilities(), pd_number(ah->pd), *attr);
	if (vector)
		Ah::of_mutable(ah) = Ah(vector.value(), *attr);
	return vector.error();
}

int alloc_pd(ib_pd *pd, ib_udata *)
{
	auto number = Number::create(hca_of(pd->device).pdns());
	if (!number)
		return number.error() == -ENOSPC ? -ENOMEM : number.error();
	Pd::Object::construct(pd, Pd{number.take()});
	return 0;
}

constexpr ib_device_ops operations = {
	.post_send = [](ib_qp *qp, const ib_send_wr *wr,
			const ib_send_wr **bad) { return Qp::of(qp).post_send(wr, bad); },
	.post_recv = [](ib_qp *qp, const ib_recv_wr *wr,
			const ib_recv_wr **bad) { return Qp::of(qp).post_receive(wr, bad); },
	.poll_cq = Cq::poll,
	.req_notify_cq = Cq::request_notify,
	.post_srq_recv = [](ib_srq *srq, const ib_recv_wr *wr,
			    const ib_recv_wr **bad) { return Srq::of(srq).post(wr, bad); },
	.peek_cq = [](ib_cq *cq, int count) { return Cq::of(cq).peek(count); },

	.create_ah = create_ah,
	.destroy_ah =
		[](ib_ah *ah, u32) {
			Ah::Object::destruct(ah);
			return 0;
		},
	.modify_ah = modify_ah,
	.query_ah =
		[](ib_ah *ah, rdma_ah_attr *attr) {
			*attr = Ah::of(ah).attr();
			return 0;
		},

	.query_device = query_device,
	.modify_device = modify_device,
	.get_dev_fw_str = get_dev_fw_str,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = [](ib_device *, u32) { return IB_LINK_LAYER_INFINIBAND; },
	.query_port = [](ib_device *device, u32 port,
			 ib_port_attr *attr) { return hca_of(device).port(port).query(*attr).error(); },
	.modify_port = [](ib_device *device, u32 port, int mask,
			  ib_port_modify *change) { return hca_of(device).port(port).modify(mask, *change).error(); },
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.process_mad = process_mad,

	.alloc_pd = alloc_pd,
	.dealloc_pd =
		[](ib_pd *pd, ib_udata *) {
			Pd::Object::destruct(pd);
			return 0;
		},

	.create_cq = [](ib_cq *cq, const ib_cq_init_attr *attr,
			ib_udata *) { return create<Cq::Object>(cq, [&](Cq &own) { return own.start(*attr); }); },
	.resize_cq = [](ib_cq *cq, int entries,
			ib_udata *) { return Cq::of(cq).resize(static_cast<unsigned int>(entries)).error(); },
	.destroy_cq =
		[](ib_cq *cq, ib_udata *) {
			Cq::Object::destruct(cq);
			return 0;
		},

	.create_srq = [](ib_srq *srq, ib_srq_init_attr *attr,
			 ib_udata *) { return create<Srq::Object>(srq, [&](Srq &own) { return own.start(*attr); }); },
	.modify_srq = [](ib_srq *srq, ib_srq_attr *attr, ib_srq_attr_mask mask,
			 ib_udata *) { return Srq::of(srq).modify(*attr, mask).error(); },
	.query_srq = [](ib_srq *srq, ib_srq_attr *attr) { return Srq::of(srq).query(*attr).error(); },
	.destroy_srq =
		[](ib_srq *srq, ib_udata *) {
			Srq::Object::destruct(srq);
			return 0;
		},

	.create_qp = [](ib_qp *qp, ib_qp_init_attr *attr,
			ib_udata *) { return create<Qp::Object>(qp, [&](Qp &own) { return own.start(*attr); }); },
	.modify_qp = [](ib_qp *qp, ib_qp_attr *attr, int mask,
			ib_udata *) { return Qp::of(qp).modify(*attr, mask).error(); },
	.query_qp = [](ib_qp *qp, ib_qp_attr *attr, int mask,
		       ib_qp_init_attr *init) { return Qp::of(qp).query(*attr, mask, *init).error(); },
	.destroy_qp =
		[](ib_qp *qp, ib_udata *) {
			const u32 left = Qp::of(qp).stop();
			Qp::Object::destruct(qp);
			return static_cast<int>(left);
		},
	.attach_mcast = [](ib_qp *qp, const ib_gid *gid,
			   u16) { return hca_of(qp->device).multicast().attach(*gid, Qp::of(qp).number(), false).error(); },
	.detach_mcast = [](ib_qp *qp, const ib_gid *gid,
			   u16) { return hca_of(qp->device).multicast().detach(*gid, Qp::of(qp).number()).error(); },

	.get_dma_mr = [](ib_mr *mr, int access) {
		return create<Mr::Object>(mr, [&](Mr &own) { return own.start_dma(access); });
	},
	.dereg_mr =
		[](ib_mr *mr, ib_udata *) {
			Mr::Object::destruct(mr);
			return 0;
		},
	.driver_id = RDMA_DRIVER_UNKNOWN,

	.size_ib_ah = sizeof(Ah::Object),
	.size_ib_cq = sizeof(Cq::Object),
	.size_ib_mr = sizeof(Mr::Object),
	.size_ib_pd = sizeof(Pd::Object),
	.size_ib_qp = sizeof(Qp::Object),
	.size_ib_srq = sizeof(Srq::Object),
};

} // namespace

kern::Result<IbDevice *> IbDevice::create(Hca &hca)
{
	ib::Smp smp;
	TRY(get_attribute(hca.commands(), 1, ib::attr_node_info, 0, smp));
	const u64 node_guid = ib::smp_attribute<ib::NodeInfo>(smp).node_guid;
	TRY(get_attribute(hca.commands(), 1, ib::attr_node_description, 0, smp));

	IbDevice *device = rdma::alloc_device<IbDevice>();
	if (!device)
		return kern::Error{-ENOMEM};
	device->hca = &hca;
	device->ib.phys_port_cnt = hca.num_ports();
	device->ib.num_comp_vectors = static_cast<int>(hca.completion_vectors());
	device->ib.node_guid = ib::be64(node_guid);
	device->ib.node_type = RDMA_NODE_IB_CA;
	__builtin_memcpy(device->ib.node_desc, smp.data, sizeof(device->ib.node_desc));
	ib_set_device_ops(&device->ib, &operations);
	return device;
}

kern::Result<> IbDevice::start()
{
	// From before the first look at the ports: the subnet manager may bring one up while clients are being added, and what
	// the midlayer remembers of it would stay as it was.
	hca->set_event_device(&ib);
	if (const int status = ib_register_device(&ib, "mthca%d", hca->dma_device())) {
		hca->set_event_device(nullptr);
		return kern::Error{status};
	}
	registered = true;
	return {};
}

void IbDevice::stop()
{
	hca->set_event_device(nullptr);
	if (registered)
		ib_unregister_device(&ib);
	registered = false;
}

void IbDevice::tell_fatal()
{
	if (registered)
		rdma::dispatch(IB_EVENT_DEVICE_FATAL, &ib, 0);
	hca->announce_failure();
}

} // namespace infinihost
