// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts addresses between the kernel's form and the user-space ABIs. Address handles, QP paths
// and MADs each have a structure with the same members in a different order.
#pragma once
#include <rdma/ib_verbs.h>

namespace rdma
{

/*
 * The address vector of an address handle, in the ABIs of user verbs and of the RDMA connection
 * manager.
 */
struct UserAddress {
	u8 dgid[16];
	u32 flow_label;
	u8 sgid_index;
	u8 hop_limit;
	u8 traffic_class;
	u8 reserved1;
	u16 dlid;
	u8 sl;
	u8 src_path_bits;
	u8 static_rate;
	u8 is_global;
	u8 port_num;
	u8 reserved2;
};
static_assert(sizeof(UserAddress) == 32);

/* Converts an address of a program, with the members of UserAddress. The midlayer checks it. */
template<class Record>
rdma_ah_attr address_of(const Record &record)
{
	rdma_ah_attr attr = {};

	attr.type = RDMA_AH_ATTR_TYPE_IB;
	attr.sl = record.sl;
	attr.static_rate = record.static_rate;
	attr.port_num = record.port_num;
	rdma_ah_set_dlid(&attr, record.dlid);
	rdma_ah_set_path_bits(&attr, record.src_path_bits);
	if (record.is_global) {
		ib_gid dgid;
		__builtin_memcpy(dgid.raw, record.dgid, sizeof(dgid.raw));
		rdma_ah_set_grh(&attr, &dgid, record.flow_label, record.sgid_index,
				record.hop_limit, record.traffic_class);
	}
	return attr;
}

/* Fills in a zeroed address for a program. Without a GRH, the members of the GRH stay zero. */
template<class Record>
void fill_address(const rdma_ah_attr &attr, Record &record)
{
	if (attr.ah_flags & IB_AH_GRH) {
		__builtin_memcpy(record.dgid, attr.grh.dgid.raw, sizeof(record.dgid));
		record.flow_label = attr.grh.flow_label;
		record.sgid_index = attr.grh.sgid_index;
		record.hop_limit = attr.grh.hop_limit;
		record.traffic_class = attr.grh.traffic_class;
		record.is_global = 1;
	}
	record.dlid = static_cast<u16>(rdma_ah_get_dlid(&attr));
	record.sl = attr.sl;
	record.src_path_bits = rdma_ah_get_path_bits(&attr);
	record.static_rate = attr.static_rate;
	record.port_num = static_cast<u8>(attr.port_num);
}

} // namespace rdma
