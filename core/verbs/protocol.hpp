/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Describes the differences between transports, which are properties of devices, and between
 * protocols, which are properties of ports. The transport determines the QPs: InfiniBand has a QP
 * type for each service, and the QPs of iWARP are TCP connections (RFC 5040). The protocol
 * determines addresses and tables. In InfiniBand, the subnet manager fills the P_Key and GID
 * tables. iWARP has neither tables nor address handles. RoCE would be a third protocol, with
 * InfiniBand's transport: its tables are not filled by a subnet manager, and its addresses have a
 * GRH and a MAC address.
 */
#pragma once
#include <rdma/iwarp.h>

namespace verbs
{

enum class Transport : u8 { infiniband, iwarp };
inline constexpr unsigned int transport_count = 2;

enum class Protocol : u8 { infiniband, iwarp };
inline constexpr unsigned int protocol_count = 2;

struct ProtocolTraits {
	const char *name;
	Transport transport;
	/*
	 * port_flag: the flag that a port must have. usual_port_flags: additional flags of ports
	 * whose driver reports no flags.
	 */
	u32 port_flag;
	u32 usual_port_flags;
	u32 max_mad_size;
	/* Minimum number of entries in the GID and P_Key tables of a port. */
	int least_gids;
	int least_pkeys;
	/* Type of the address vectors; UNDEFINED if the protocol has none. */
	rdma_ah_attr_type address;
	rdma_link_layer link_layer;
};

inline constexpr ProtocolTraits protocol_traits[protocol_count] = {
	{.name = "InfiniBand",
	 .transport = Transport::infiniband,
	 .port_flag = RDMA_CORE_CAP_PROT_IB,
	 .usual_port_flags = RDMA_CORE_PORT_IBA_IB,
	 .max_mad_size = 256,
	 .least_gids = 1,
	 .least_pkeys = 1,
	 .address = RDMA_AH_ATTR_TYPE_IB,
	 .link_layer = IB_LINK_LAYER_INFINIBAND},
	{.name = "iWARP",
	 .transport = Transport::iwarp,
	 .port_flag = RDMA_CORE_CAP_PROT_IWARP,
	 .usual_port_flags = RDMA_CORE_PORT_IWARP,
	 .max_mad_size = 0,
	 .least_gids = 0,
	 .least_pkeys = 0,
	 .address = RDMA_AH_ATTR_TYPE_UNDEFINED,
	 .link_layer = IB_LINK_LAYER_ETHERNET},
};

/* The flags of all protocols that a port can report. */
inline constexpr u32 all_protocol_flags = RDMA_CORE_CAP_PROT_IB | RDMA_CORE_CAP_PROT_IWARP |
					  RDMA_CORE_CAP_PROT_ROCE |
					  RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP;

constexpr const ProtocolTraits &traits_of(Protocol protocol)
{
	return protocol_traits[static_cast<unsigned int>(protocol)];
}

/*
 * Sets the protocol of a port with these flags. Returns false if the flags contain no protocol or
 * several, or one that is not supported.
 */
constexpr bool protocol_of(u32 core_cap_flags, Protocol &protocol)
{
	for (unsigned int i = 0; i < protocol_count; i++)
		if ((core_cap_flags & all_protocol_flags) == protocol_traits[i].port_flag) {
			protocol = static_cast<Protocol>(i);
			return true;
		}
	return false;
}

/*
 * Returns the protocol of ports whose driver reports no flags: the one with the transport's name.
 */
constexpr Protocol usual_protocol(Transport transport)
{
	return transport == Transport::iwarp ? Protocol::iwarp : Protocol::infiniband;
}

/* Sets the transport of a node type. Returns false if the node type is not supported. */
constexpr bool transport_of(u8 node_type, Transport &transport)
{
	switch (node_type) {
	case RDMA_NODE_IB_CA:
	case RDMA_NODE_IB_SWITCH:
	case RDMA_NODE_IB_ROUTER:
		transport = Transport::infiniband;
		return true;
	case RDMA_NODE_RNIC:
		transport = Transport::iwarp;
		return true;
	default:
		return false;
	}
}

/* Returns true if a QP may go from one state to the other with these attributes. */
bool transition_is_ok(Transport transport, ib_qp_state from, ib_qp_state to, ib_qp_type type,
		      int mask);

} // namespace verbs
