// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "special_packet.hpp"
#include <hw/mellanox_icm/wqe.hpp>
#include "../../core/wire/headers.hpp"

namespace mellanox_icm
{

kern::Result<> SpecialPacket::build(const SpecialSender &sender, Port &port, const ib_ud_wr &wr,
				    const rdma_ah_attr &to)
{
	u64 payload = 0;
	for (int i = 0; i < wr.wr.num_sge; i++)
		payload += wr.wr.sg_list[i].length;
	if (payload > ib::payload_max)
		return kern::Error{-EINVAL};

	packet::Headers headers;
	headers.has_grh = to.ah_flags & IB_AH_GRH;
	permissive_ = sender.smi && to.ib.dlid == ib::lid_permissive;
	headers.lrh.set_sl(to.sl);
	headers.lrh.dlid = to.ib.dlid;
	// The card inserts the port's own LID above the path bits.
	headers.lrh.slid =
		static_cast<u16>(permissive_ ? ib::lid_permissive : to.ib.src_path_bits & 0x7f);
	const bool immediate = wr.wr.opcode == IB_WR_SEND_WITH_IMM;
	headers.bth.opcode =
		static_cast<u8>(immediate ? ib::opcode_ud_send_only_imm : ib::opcode_ud_send_only);
	headers.bth.set_solicited(wr.wr.send_flags & IB_SEND_SOLICITED);
	headers.bth.set_migrated(true);
	headers.bth.set_dest_qp(wr.remote_qpn);
	headers.bth.set_psn(sender.psn);
	// If the top bit is set, the QP's own Q_Key is used (MGMT-05).
	headers.deth.qkey =
		wr.remote_qkey & hw::mellanox_icm::own_qkey ? sender.qkey : wr.remote_qkey;
	headers.deth.src_qp = sender.qpn;
	if (immediate)
		headers.immdt.value = wr.wr.ex.imm_data;
	const u32 sgid_index = headers.has_grh ? to.grh.sgid_index : 0;
	const u32 pkey_index = sender.smi ? 0 : wr.pkey_index;
	const bool known = port.with_tables([&](const PortTables &tables) {
		if (sgid_index >= port.capabilities().gids ||
		    pkey_index >= port.capabilities().pkeys)
			return false;
		headers.lrh.set_vl(sender.smi ? ib::vl_management : tables.sl_to_vl.vl(to.sl));
		headers.bth.pkey = sender.smi ? ib::pkey_default_full : tables.pkeys[pkey_index];
		headers.grh.sgid = ib::Gid::from_parts(tables.gid_prefix, tables.guids[sgid_index]);
		return true;
	});
	if (!known)
		return kern::Error{-EINVAL};
	if (headers.has_grh) {
		headers.grh.set_traffic_class(to.grh.traffic_class);
		headers.grh.set_flow_label(to.grh.flow_label & IB_GRH_FLOWLABEL_MASK);
		headers.grh.hop_limit = to.grh.hop_limit;
		__builtin_memcpy(headers.grh.dgid.raw, to.grh.dgid.raw,
				 sizeof(headers.grh.dgid.raw));
	}
	if (packet::build(headers, static_cast<unsigned>(payload), headers_, sizeof(headers_),
			  &header_bytes_) != packet::Error::none)
		return kern::Error{-EINVAL};
	pad_ = static_cast<u32>(-payload & 3);
	return {};
}

} // namespace mellanox_icm
