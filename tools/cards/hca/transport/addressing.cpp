// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/addressing.hpp"

namespace weft::hca::transport
{

namespace
{

ib::Lid source_lid(const CardPort &port, unsigned path_bits)
{
	return static_cast<ib::Lid>(port.lid() | (path_bits & ((1u << port.lmc()) - 1)));
}

} // namespace

void address_connected(const CardPort &port, const AddressPath &path, packet::Headers &headers)
{
	headers.lrh.set_vl(port.vl(path.sl));
	headers.lrh.set_sl(path.sl);
	headers.lrh.dlid = path.remote_lid;
	headers.lrh.slid = source_lid(port, path.source_path_bits);
	headers.has_grh = path.grh;
	if (path.grh) {
		headers.grh.set_traffic_class(path.traffic_class);
		headers.grh.set_flow_label(path.flow_label);
		headers.grh.hop_limit = path.hop_limit;
		headers.grh.sgid = port.gid(path.sgid_index);
		headers.grh.dgid = path.remote_gid;
	}
	headers.bth.pkey = port.pkey(path.pkey_index);
}

void address_datagram(const CardPort &port, const Datagram &address, unsigned pkey_index,
		      packet::Headers &headers)
{
	headers.lrh.set_vl(port.vl(address.sl));
	headers.lrh.set_sl(address.sl);
	headers.lrh.dlid = address.dlid;
	headers.lrh.slid = source_lid(port, address.path_bits);
	headers.has_grh = address.grh;
	if (headers.has_grh) {
		headers.grh.set_traffic_class(address.traffic_class);
		headers.grh.set_flow_label(address.flow_label);
		headers.grh.hop_limit = address.hop_limit;
		headers.grh.sgid = port.gid(address.sgid_index);
		headers.grh.dgid = address.dgid;
	}
	headers.bth.pkey = port.pkey(pkey_index);
}

void address_smp(const CardPort &port, const Datagram &address, packet::Headers &headers)
{
	headers.lrh.set_vl(ib::vl_management);
	headers.lrh.set_sl(0);
	headers.lrh.dlid = address.dlid;
	headers.lrh.slid = address.dlid == ib::lid_permissive ? ib::lid_permissive
							      : source_lid(port, address.path_bits);
	headers.bth.pkey = ib::pkey_default_full;
}

void address_reply(const CardPort &port, const fabric::Packet &request, packet::Headers &headers)
{
	const ib::Lrh &lrh = request.lrh();
	headers.lrh.set_vl(lrh.vl());
	headers.lrh.set_sl(lrh.sl());
	headers.lrh.dlid = lrh.slid;
	headers.lrh.slid = lrh.dlid;
	headers.has_grh = request.grh() != nullptr;
	if (headers.has_grh) {
		headers.grh = *request.grh();
		headers.grh.dgid = request.grh()->sgid;
		headers.grh.sgid = port.gid(0);
		headers.grh.hop_limit = 0xff;
	}
	headers.bth.pkey = request.bth().pkey;
}

} // namespace weft::hca::transport
