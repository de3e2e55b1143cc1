// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "ah.hpp"
#include <ib/types.hpp>

namespace mthca
{

u8 static_rate(const Capabilities &cap, u8 rate, u32 port_tenths)
{
	const u32 wanted =
		rate == IB_RATE_PORT_CURRENT ? 0 : ib::rate_tenths(static_cast<ib::Rate>(rate));
	if (!wanted || wanted >= port_tenths)
		return rate_code::full;
	const u32 part = (port_tenths + wanted - 1) / wanted;
	const u8 code = part <= 2   ? rate_code::half
			: part <= 4 ? rate_code::quarter
				    : rate_code::eighth;
	return cap.static_rates >> code & 1 ? code : rate_code::quarter;
}

kern::Result<wire::AddressVector> Ah::build(const Capabilities &cap, u32 pdn,
					    const rdma_ah_attr &attr)
{
	wire::AddressVector vector{};
	if (attr.port_num < 1 || attr.port_num > cap.num_ports || attr.sl > 15)
		return kern::Error{-EINVAL};
	vector.port_pd = attr.port_num << 24 | pdn;
	vector.grh_path_bits = attr.ib.src_path_bits & 0x7f;
	vector.dlid = attr.ib.dlid;
	// A datagram is one packet of at most 2048 bytes.
	constexpr u8 message_2048 = 3 << 4;
	vector.rate = message_2048 | static_rate(cap, attr.static_rate, sdr_4x_tenths);
	u32 word = u32{attr.sl} << 28;
	if (attr.ah_flags & IB_AH_GRH) {
		if (attr.grh.sgid_index >= cap.port.gids)
			return kern::Error{-EINVAL};
		vector.grh_path_bits |= 0x80;
		vector.sgid_index =
			static_cast<u8>((attr.port_num - 1) * cap.port.gids + attr.grh.sgid_index);
		vector.hop_limit = attr.grh.hop_limit;
		word |= u32{attr.grh.traffic_class} << 20 |
			(attr.grh.flow_label & IB_GRH_FLOWLABEL_MASK);
		__builtin_memcpy(vector.dgid, attr.grh.dgid.raw, sizeof(vector.dgid));
	} else {
		// Firmware requires a value other than zero here, even without a GRH.
		vector.dgid[sizeof(vector.dgid) - 1] = 2;
	}
	vector.sl_class_flow = word;
	return vector;
}

} // namespace mthca
