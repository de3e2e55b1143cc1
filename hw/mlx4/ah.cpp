// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "ah.hpp"
#include <ib/types.hpp>

namespace mlx4
{

namespace
{

constexpr u8 rate_offset = 5;

} // namespace

u8 static_rate(const Capabilities &cap, u8 rate)
{
	if (rate == IB_RATE_PORT_CURRENT)
		return 0;
	const unsigned int wanted = ib::rate_tenths(static_cast<ib::Rate>(rate));
	u8 best = 0;
	unsigned int best_tenths = 0;
	// Bit n of the 16-bit capability is set if the card supports rate n - 5. The result has
	// four bits.
	for (u8 code = rate_offset + IB_RATE_2_5_GBPS; code < 16; code++) {
		const unsigned int tenths =
			ib::rate_tenths(static_cast<ib::Rate>(code - rate_offset));
		if ((cap.static_rates >> code & 1) && tenths <= wanted && tenths > best_tenths) {
			best = code;
			best_tenths = tenths;
		}
	}
	return best;
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
	vector.static_rate = static_rate(cap, attr.static_rate);
	u32 word = u32{attr.sl} << 28;
	if (attr.ah_flags & IB_AH_GRH) {
		vector.grh_path_bits |= 0x80;
		vector.sgid_index = attr.grh.sgid_index & 0x7f;
		vector.hop_limit = attr.grh.hop_limit;
		word |= u32{attr.grh.traffic_class} << 20 |
			(attr.grh.flow_label & IB_GRH_FLOWLABEL_MASK);
		__builtin_memcpy(vector.dgid, attr.grh.dgid.raw, sizeof(vector.dgid));
	}
	vector.sl_class_flow = word;
	return vector;
}

} // namespace mlx4
