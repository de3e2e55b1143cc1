// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "management.hpp"

namespace mellanox_icm
{

namespace
{

/* Returns true for the management classes that have an agent in the card. */
bool has_agent(u8 mgmt_class)
{
	switch (static_cast<ib::MgmtClass>(mgmt_class)) {
	case ib::MgmtClass::subn_lid_routed:
	case ib::MgmtClass::subn_directed_route:
	case ib::MgmtClass::perf:
	case ib::MgmtClass::congestion:
		return true;
	default:
		// Two vendor-defined classes.
		return mgmt_class == 0x09 || mgmt_class == 0x0a;
	}
}

/*
 * Returns true for methods and attributes that the card's agents process; consumers process the
 * others.
 */
bool is_for_agent(const ib_mad_hdr &header)
{
	if (!has_agent(header.mgmt_class))
		return false;
	const bool smp = header.mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED ||
			 header.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
	if (header.method != IB_MGMT_METHOD_GET && header.method != IB_MGMT_METHOD_SET &&
	    !(smp && header.method == IB_MGMT_METHOD_TRAP_REPRESS))
		return false;
	return !(smp && header.attr_id == static_cast<u16>(ib::attr_sm_info));
}

} // namespace

kern::Result<> ask_agent(CommandInterface &commands, u32 port, u8 flags, const MadOrigin *origin,
			 const void *request, void *answer)
{
	using Ifc = hw::mellanox_icm::MadIfc;
	auto in = KERN_TRY(commands.mailbox());
	auto out = KERN_TRY(commands.mailbox());
	u32 modifier = Ifc::in_modifier_port.in(port);

	__builtin_memcpy(in.bytes(), request, Ifc::mad_size);
	if (origin && origin->wc) {
		const ib_wc &wc = *origin->wc;
		flags |= Ifc::op_extended;
		modifier |= Ifc::in_modifier_slid.in(wc.slid);
		Ifc::my_qpn.set(in.bytes(), wc.qp ? wc.qp->qp_num : 0);
		Ifc::remote_qpn.set(in.bytes(), wc.src_qp);
		Ifc::sl.set(in.bytes(), wc.sl);
		Ifc::path_bits.set(in.bytes(), wc.dlid_path_bits);
		Ifc::pkey_index.set(in.bytes(), wc.pkey_index);
		if (origin->grh && (wc.wc_flags & IB_WC_GRH)) {
			Ifc::grh_present.set(in.bytes(), 1);
			__builtin_memcpy(in.bytes() + 0x140, origin->grh, sizeof(ib_grh));
		}
	}
	KERN_TRY(commands.execute_in_out({.opcode = hw::mellanox_icm::Opcode::mad_ifc,
					  .in_modifier = modifier,
					  .op_modifier = flags},
					 in, out));
	__builtin_memcpy(answer, out.bytes(), Ifc::mad_size);
	return {};
}

kern::Result<> get_attribute(CommandInterface &commands, u32 port, ib::SmAttribute attribute,
			     u32 modifier, ib::Smp &smp)
{
	using Ifc = hw::mellanox_icm::MadIfc;
	smp = {};
	smp.header.base_version = ib::mad_base_version;
	smp.header.mgmt_class = static_cast<u8>(ib::MgmtClass::subn_lid_routed);
	smp.header.class_version = 1;
	smp.header.method = static_cast<u8>(ib::MadMethod::get);
	smp.header.attr_id = attribute;
	smp.header.attr_mod = modifier;
	KERN_TRY(ask_agent(commands, port, Ifc::op_ignore_mkey | Ifc::op_ignore_bkey, nullptr, &smp,
			   &smp));
	if (smp.header.status.value() & ~ib::mad_status_direction)
		return kern::Error{-EIO};
	return {};
}

int process_mad(CommandInterface &commands, u32 port, int flags, const ib_wc *wc, const ib_grh *grh,
		const ib_mad &in, ib_mad &out)
{
	using Ifc = hw::mellanox_icm::MadIfc;
	if (!is_for_agent(in.mad_hdr))
		return IB_MAD_RESULT_SUCCESS;
	const u8 card_flags =
		static_cast<u8>((flags & IB_MAD_IGNORE_MKEY ? Ifc::op_ignore_mkey : 0) |
				(flags & IB_MAD_IGNORE_BKEY ? Ifc::op_ignore_bkey : 0));
	const MadOrigin origin{wc, grh};
	if (!ask_agent(commands, port, card_flags, &origin, &in, &out))
		return IB_MAD_RESULT_FAILURE;
	// A directed-route response returns on the same path.
	if (in.mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		out.mad_hdr.status =
			static_cast<u16>(out.mad_hdr.status | ib::mad_status_direction);
	if (in.mad_hdr.method == IB_MGMT_METHOD_TRAP_REPRESS)
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

} // namespace mellanox_icm
