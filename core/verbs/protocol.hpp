/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Differences between the protocols of devices, in one table. InfiniBand has subnets, whose manager
 * fills the P_Key and GID tables, its own addresses, and a QP type for each service. iWARP's QPs
 * are TCP connections (RFC 5040): one type, no address handles, no tables. RoCE would be a third
 * row: tables that no subnet manager fills, and addresses with a GRH and a MAC address.
 */
#pragma once
#include <rdma/iwarp.h>

namespace verbs
{

enum class Protocol : u8 { infiniband, iwarp };
inline constexpr unsigned int protocol_count = 2;

struct ProtocolTraits {
	const char *name;
	/*
	 * Port flags that a port must have, and further ones for ports whose driver reports no
	 * flags.
	 */
	u32 port_flag;
	u32 usual_port_flags;
	u32 max_mad_size;
	/* Minimum number of entries in the GID and P_Key tables of a port. */
	int least_gids;
	int least_pkeys;
	/* Type of its address vectors; UNDEFINED where there are none. */
	rdma_ah_attr_type address;
	rdma_link_layer link_layer;
};

inline constexpr ProtocolTraits protocol_traits[protocol_count] = {
	{.name = "InfiniBand",
	 .port_flag = RDMA_CORE_CAP_PROT_IB,
	 .usual_port_flags = RDMA_CORE_PORT_IBA_IB,
	 .max_mad_size = 256,
	 .least_gids = 1,
	 .least_pkeys = 1,
	 .address = RDMA_AH_ATTR_TYPE_IB,
	 .link_layer = IB_LINK_LAYER_INFINIBAND},
	{.name = "iWARP",
	 .port_flag = RDMA_CORE_CAP_PROT_IWARP,
	 .usual_port_flags = RDMA_CORE_PORT_IWARP,
	 .max_mad_size = 0,
	 .least_gids = 0,
	 .least_pkeys = 0,
	 .address = RDMA_AH_ATTR_TYPE_UNDEFINED,
	 .link_layer = IB_LINK_LAYER_ETHERNET},
};

/* All protocols that a port can report. */
inline constexpr u32 all_protocol_flags = RDMA_CORE_CAP_PROT_IB | RDMA_CORE_CAP_PROT_IWARP |
					  RDMA_CORE_CAP_PROT_ROCE |
					  RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP;

/* Protocol of a node type. False for a node type that is not supported. */
constexpr bool protocol_of(u8 node_type, Protocol &protocol)
{
	switch (node_type) {
	case RDMA_NODE_IB_CA:
	case RDMA_NODE_IB_SWITCH:
	case RDMA_NODE_IB_ROUTER:
		protocol = Protocol::infiniband;
		return true;
	case RDMA_NODE_RNIC:
		protocol = Protocol::iwarp;
		return true;
	default:
		return false;
	}
}

/* May a QP go from one state to another with these attributes? */
bool transition_is_ok(Protocol protocol, ib_qp_state from, ib_qp_state to, ib_qp_type type,
		      int mask);

} // namespace verbs
