// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Addresses as programs say them, of an address handle or of a QP's path: the same members, in two
// orders.
#pragma once
#include <rdma/ib_verbs.h>

namespace uverbs
{

/* Said: abi::AhAttr, abi::QpAddress. Whether it can be is the midlayer's to say. */
template<class Said>
rdma_ah_attr address_of(const Said &said)
{
	rdma_ah_attr attr = {};

	attr.type = RDMA_AH_ATTR_TYPE_IB;
	attr.sl = said.sl;
	attr.static_rate = said.static_rate;
	attr.port_num = said.port_num;
	rdma_ah_set_dlid(&attr, said.dlid);
	rdma_ah_set_path_bits(&attr, said.src_path_bits);
	if (said.is_global) {
		ib_gid dgid;
		__builtin_memcpy(dgid.raw, said.dgid, sizeof(dgid.raw));
		rdma_ah_set_grh(&attr, &dgid, said.flow_label, said.sgid_index, said.hop_limit,
				said.traffic_class);
	}
	return attr;
}

} // namespace uverbs
