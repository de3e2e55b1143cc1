// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Delivers datagrams of UD, SMI and GSI QPs: unicast, multicast, and directed-route SMPs, which go
// to the port at the other end of the cable.
#include "engine.hpp"

namespace soft
{

/* A datagram in flight. The payload follows the structure. */
struct Datagram {
	SoftDevice *source;
	u32 source_port;
	/*
	 * Number of the sending QP, which does not receive its own multicasts if block_loopback is
	 * set.
	 */
	u32 source_qp;
	bool block_loopback;
	u32 slid;
	u32 dlid;
	u8 sl;
	bool has_grh;
	bool solicited;
	bool has_imm;
	ib_grh grh;
	__be32 imm;
	u32 dest_qp;
	u32 qkey;
	u16 pkey;
	u32 length;

	u8 *payload() { return reinterpret_cast<u8 *>(this + 1); }
};

namespace
{

void deliver_to_qp(Datagram &datagram, ib_qp *qp, u32 port_num)
{
	SoftDevice &device = of(qp->device);
	QpState &state = Qp::state(qp);
	RecvEntry entry;

	if (state.state != IB_QPS_RTR && state.state != IB_QPS_RTS && state.state != IB_QPS_SQD &&
	    state.state != IB_QPS_SQE)
		return;
	if (qp->qp_type != IB_QPT_SMI && state.attr.qkey != datagram.qkey)
		return;
	if (qp->qp_type != IB_QPT_SMI && qp->qp_type != IB_QPT_GSI) {
		if (qp->qp_type != IB_QPT_UD || state.attr.port_num != port_num)
			return;
	}
	u16 pkey_index = 0;
	if (qp->qp_type != IB_QPT_SMI) {
		/*
		 * The P_Keys must be equal except for the membership bit, which at least one of
		 * them must have (IBA 10.9.3).
		 */
		kern::Guard guard(*device.ports_lock);
		const PortState &port = device.ports[device.home(port_num)];
		bool found = false;
		for (size_t i = 0; i < port.pkeys.size() && !found; i++) {
			if (qp->qp_type == IB_QPT_UD && i != state.attr.pkey_index)
				continue;
			const u16 pkey = port.pkeys[i];
			found = (pkey & 0x7fff) && ((pkey ^ datagram.pkey) & 0x7fff) == 0 &&
				((pkey | datagram.pkey) & 0x8000);
			pkey_index = static_cast<u16>(i);
		}
		if (!found)
			return;
	}
	if (!take_recv(state, qp->srq, entry))
		return;

	ib_wc wc = {};
	const size_t bytes = IB_GRH_BYTES + datagram.length;
	bool fits = bytes <= total(entry.sges, entry.num_sge);
	if (fits && datagram.has_grh)
		fits = copy_to_local(device, *qp->pd, entry.sges, entry.num_sge, 0, &datagram.grh,
				     IB_GRH_BYTES, IB_ACCESS_LOCAL_WRITE);
	if (fits && !copy_to_local(device, *qp->pd, entry.sges, entry.num_sge, IB_GRH_BYTES,
				   datagram.payload(), datagram.length, IB_ACCESS_LOCAL_WRITE)) {
		fail_recv(state, entry, IB_WC_LOC_PROT_ERR);
		return;
	}
	if (!fits) {
		fail_recv(state, entry, IB_WC_LOC_LEN_ERR);
		return;
	}
	wc.status = IB_WC_SUCCESS;
	wc.opcode = IB_WC_RECV;
	wc.byte_len = static_cast<u32>(bytes);
	wc.src_qp = datagram.source_qp;
	wc.slid = datagram.slid;
	wc.sl = datagram.sl;
	wc.pkey_index = pkey_index;
	/*
	 * The port number in a completion is valid only for a switch, but SOFT_PLAIN always reports
	 * it.
	 */
	wc.port_num = device.ib.is_switch || !device.like_a_card() ? port_num : 0;
	if (datagram.has_grh)
		wc.wc_flags |= IB_WC_GRH;
	if (datagram.has_imm) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = datagram.imm;
	}
	{
		kern::Guard guard(*device.ports_lock);
		wc.dlid_path_bits = static_cast<u8>(
			datagram.dlid & ((1u << device.ports[device.home(port_num)].attr.lmc) - 1));
	}
	complete_recv(state, entry, wc, datagram.solicited);
}

void deliver_to_port(Datagram &datagram, SoftDevice &device, u32 port_num)
{
	ib_qp *qp = datagram.dest_qp < 2
			    ? device.ports[device.home(port_num)].special[datagram.dest_qp]
			    : device.qps->load(datagram.dest_qp);

	if (qp)
		deliver_to_qp(datagram, qp, port_num);
}

void deliver_to_group(Datagram &datagram)
{
	for (ib_list_head *links = fabric->devices.next; links != &fabric->devices;
	     links = links->next) {
		SoftDevice &device = device_at(links);
		device.qps->for_each([&](unsigned long number, ib_qp &qp) {
			if (datagram.block_loopback && &device == datagram.source &&
			    number == datagram.source_qp)
				return;
			ib_list_head &head = Qp::state(&qp).groups;
			for (ib_list_head *at = head.next; at != &head; at = at->next) {
				auto *group = reinterpret_cast<McastGroup *>(at);
				if (group->lid == datagram.dlid &&
				    group->gid == datagram.grh.dgid) {
					deliver_to_qp(datagram, &qp, Qp::state(&qp).attr.port_num);
					return;
				}
			}
		});
	}
}

void deliver(Datagram &datagram)
{
	u32 port_num;

	if (datagram.dlid == IB_LID_PERMISSIVE_HOST) {
		const PortState &port = datagram.source->ports[datagram.source_port];
		if (port.peer)
			deliver_to_port(datagram, *port.peer, port.peer_port);
	} else if (datagram.dlid >= IB_MULTICAST_LID_BASE_HOST) {
		deliver_to_group(datagram);
	} else if (SoftDevice *device = find_port(datagram.dlid, port_num)) {
		deliver_to_port(datagram, *device, port_num);
	}
}

} // namespace

void release_held(QpState &qp)
{
	if (qp.held) {
		deliver(*qp.held);
		kern_free(std::exchange(qp.held, nullptr));
	}
}

ib_wc_status send_datagram(QpState &qp, const SendEntry &entry)
{
	SoftDevice &device = of(qp.qp->device);
	const ib_ud_wr &wr = entry.ud;
	const size_t length = total(entry.sges, wr.wr.num_sge);

	if (!wr.ah || length > 4096)
		return IB_WC_LOC_QP_OP_ERR;
	/*
	 * Some cards (InfiniHost) read the address handle when they execute the request. For other
	 * cards, the driver copies the address into the request when it is posted.
	 */
	rdma_ah_attr address = entry.address;
	if (device.like_a_card())
		entry.handle->query(address);
	const bool special = qp.qp->qp_type == IB_QPT_SMI || qp.qp->qp_type == IB_QPT_GSI;
	const u32 port_num = special ? qp.init.port_num : qp.attr.port_num;
	PortState &port = device.ports[port_num];
	if (device.ib.is_switch && wr.port_num > device.options.ports)
		return IB_WC_LOC_QP_OP_ERR;

	auto *datagram = static_cast<Datagram *>(
		kern_alloc(sizeof(Datagram) + length,
			   static_cast<unsigned int>(kern::Gfp::kernel | kern::Gfp::zero)));
	if (!datagram)
		return IB_WC_LOC_QP_OP_ERR;
	datagram->source = &device;
	datagram->source_port = device.ib.is_switch ? wr.port_num : port_num;
	datagram->source_qp = qp.qp->qp_num;
	datagram->block_loopback = qp.init.create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	datagram->dlid = rdma_ah_get_dlid(&address);
	datagram->sl = address.sl;
	datagram->solicited = wr.wr.send_flags & IB_SEND_SOLICITED;
	datagram->has_imm = wr.wr.opcode == IB_WR_SEND_WITH_IMM;
	datagram->imm = wr.wr.ex.imm_data;
	datagram->dest_qp = wr.remote_qpn;
	/* MGMT-05 */
	datagram->qkey = wr.remote_qkey & IB_QP_SET_QKEY ? qp.attr.qkey : wr.remote_qkey;
	datagram->length = static_cast<u32>(length);
	{
		kern::Guard guard(*device.ports_lock);
		const u16 index = special ? wr.pkey_index : qp.attr.pkey_index;
		datagram->pkey = index < port.pkeys.size() ? port.pkeys[index] : 0;
		/*
		 * A port without a LID, or a datagram to the permissive LID, uses the permissive
		 * LID as its SLID (IBA 14.2.2.2).
		 */
		datagram->slid = port.attr.lid && datagram->dlid != IB_LID_PERMISSIVE_HOST
					 ? port.attr.lid | rdma_ah_get_path_bits(&address)
					 : IB_LID_PERMISSIVE_HOST;
		datagram->has_grh = rdma_ah_get_ah_flags(&address) & IB_AH_GRH;
		if (datagram->has_grh) {
			datagram->grh.version_tclass_flow =
				6u << 28 | static_cast<u32>(address.grh.traffic_class) << 20 |
				address.grh.flow_label;
			datagram->grh.paylen = static_cast<u16>(length);
			datagram->grh.next_hdr = 0x1b;
			datagram->grh.hop_limit = address.grh.hop_limit;
			datagram->grh.sgid = port.gids[address.grh.sgid_index];
			datagram->grh.dgid = address.grh.dgid;
		}
	}
	if (!copy_from_local(device, *qp.qp->pd, entry, datagram->payload(), length)) {
		kern_free(datagram);
		return IB_WC_LOC_PROT_ERR;
	}
	if (disturbed(device, datagram->payload(), length)) {
		kern_free(datagram);
		return IB_WC_SUCCESS;
	}
	if (!qp.held && chance(device, device.reordered)) {
		qp.held = datagram;
		return IB_WC_SUCCESS;
	}
	deliver(*datagram);
	kern_free(datagram);
	release_held(qp);
	return IB_WC_SUCCESS;
}

} // namespace soft
