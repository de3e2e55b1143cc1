/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines GIDs, global route headers and address vectors (IBA 4.1, 8.3, 11.2.2). */
#pragma once
#include <rdma/types.h>

/**
 * union ib_gid - a global identifier (IBA 4.1)
 * @raw: the 16 bytes as on the wire
 * @global.subnet_prefix: upper half
 * @global.interface_id: lower half; the GUID of a port for its GIDs
 */
union ib_gid {
	u8 raw[16];
	struct {
		__be64 subnet_prefix;
		__be64 interface_id;
	} global;
};

enum ib_gid_type {
	IB_GID_TYPE_IB,
	IB_GID_TYPE_ROCE,
	IB_GID_TYPE_ROCE_UDP_ENCAP,
	IB_GID_TYPE_SIZE,
};

/**
 * struct ib_grh - a global route header as on the wire (IBA 8.3)
 * @version_tclass_flow: IP version (4 bits), traffic class (8 bits), flow label (20 bits)
 * @paylen: number of bytes after this header
 * @next_hdr: next header
 * @hop_limit: routers that the packet may pass
 * @sgid: source
 * @dgid: destination
 */
struct ib_grh {
	__be32 version_tclass_flow;
	__be16 paylen;
	u8 next_hdr;
	u8 hop_limit;
	union ib_gid sgid;
	union ib_gid dgid;
};

enum {
	IB_GRH_BYTES = 40,
	IB_GRH_FLOWLABEL_MASK = 0x000fffff,
	IB_QPN_MASK = 0x00ffffff,
	IB_MULTICAST_QPN = 0x00ffffff,
};

/* LIDs in host order; the names without _HOST are big-endian as on Linux. */
#define IB_LID_PERMISSIVE_HOST 0xffffu
#define IB_MULTICAST_LID_BASE_HOST 0xc000u
#ifdef __cplusplus
#define IB_LID_PERMISSIVE (ib::be16(IB_LID_PERMISSIVE_HOST))
#define IB_MULTICAST_LID_BASE (ib::be16(IB_MULTICAST_LID_BASE_HOST))
#else
#define IB_LID_PERMISSIVE ((__be16)__builtin_bswap16(IB_LID_PERMISSIVE_HOST))
#define IB_MULTICAST_LID_BASE ((__be16)__builtin_bswap16(IB_MULTICAST_LID_BASE_HOST))
#endif

enum ib_ah_flags {
	IB_AH_GRH = 1,
};

/**
 * struct ib_global_route - the GRH of an address vector (IBA 8.3)
 * @dgid: destination
 * @flow_label: flow label, 20 bits
 * @sgid_index: index of the source in the port's GID table
 * @hop_limit: routers that a packet may pass
 * @traffic_class: traffic class
 */
struct ib_global_route {
	union ib_gid dgid;
	u32 flow_label;
	u8 sgid_index;
	u8 hop_limit;
	u8 traffic_class;
};

enum rdma_ah_attr_type {
	RDMA_AH_ATTR_TYPE_UNDEFINED,
	RDMA_AH_ATTR_TYPE_IB,
	RDMA_AH_ATTR_TYPE_ROCE,
	RDMA_AH_ATTR_TYPE_OPA,
};

/**
 * struct ib_ah_attr - the part of an address vector that only InfiniBand has
 * @dlid: destination LID, host order
 * @src_path_bits: low bits of the source LID, as many as the port's LMC
 */
struct ib_ah_attr {
	u16 dlid;
	u8 src_path_bits;
};

/**
 * struct rdma_ah_attr - an address vector (IBA 11.2.2)
 * @grh: the global route; used if @ah_flags has IB_AH_GRH
 * @sl: service level, 0 to 15
 * @static_rate: enum ib_rate; IB_RATE_PORT_CURRENT for no limit
 * @port_num: the port that sends
 * @ah_flags: enum ib_ah_flags
 * @type: the member of the union that is valid; the midlayer fills in RDMA_AH_ATTR_TYPE_IB if it is
 * RDMA_AH_ATTR_TYPE_UNDEFINED
 * @ib: LID and path bits
 */
struct rdma_ah_attr {
	struct ib_global_route grh;
	u8 sl;
	u8 static_rate;
	u32 port_num;
	u8 ah_flags;
	enum rdma_ah_attr_type type;
	union {
		struct ib_ah_attr ib;
	};
};

enum rdma_create_ah_flags {
	/* The caller may sleep, so create_ah may sleep, too. */
	RDMA_CREATE_AH_SLEEPABLE = 1 << 0,
};

enum rdma_destroy_ah_flags {
	/* The caller may sleep, so destroy_ah may sleep, too. */
	RDMA_DESTROY_AH_SLEEPABLE = 1 << 0,
};

/**
 * struct rdma_ah_init_attr - arguments of the driver's method create_ah
 * @ah_attr: the address
 * @flags: enum rdma_create_ah_flags
 */
struct rdma_ah_init_attr {
	struct rdma_ah_attr *ah_attr;
	u32 flags;
};

/**
 * rdma_ah_set_dlid - set the destination LID of an address vector (IBA 4.1.3)
 * @attr: the address vector
 * @dlid: destination LID, host order; the upper 16 bits are dropped
 *
 * Context: any.
 */
static inline void rdma_ah_set_dlid(struct rdma_ah_attr *attr, u32 dlid)
{
	attr->ib.dlid = (u16)dlid;
}

/**
 * rdma_ah_get_dlid - get the destination LID of an address vector (IBA 4.1.3)
 * @attr: the address vector
 *
 * Context: any. Return: the destination LID, host order.
 */
static inline u32 rdma_ah_get_dlid(const struct rdma_ah_attr *attr)
{
	return attr->ib.dlid;
}

/**
 * rdma_ah_set_sl - set the service level of an address vector
 * @attr: the address vector
 * @sl: service level, 0 to 15
 *
 * Context: any.
 */
static inline void rdma_ah_set_sl(struct rdma_ah_attr *attr, u8 sl)
{
	attr->sl = sl;
}

/**
 * rdma_ah_get_sl - get the service level of an address vector
 * @attr: the address vector
 *
 * Context: any. Return: the service level.
 */
static inline u8 rdma_ah_get_sl(const struct rdma_ah_attr *attr)
{
	return attr->sl;
}

/**
 * rdma_ah_set_path_bits - set the low bits of the source LID of an address vector (IBA 4.1.3)
 * @attr: the address vector
 * @src_path_bits: low bits of the source LID, as many as the port's LMC
 *
 * Context: any.
 */
static inline void rdma_ah_set_path_bits(struct rdma_ah_attr *attr, u8 src_path_bits)
{
	attr->ib.src_path_bits = src_path_bits;
}

/**
 * rdma_ah_get_path_bits - get the low bits of the source LID of an address vector (IBA 4.1.3)
 * @attr: the address vector
 *
 * Context: any. Return: the path bits.
 */
static inline u8 rdma_ah_get_path_bits(const struct rdma_ah_attr *attr)
{
	return attr->ib.src_path_bits;
}

/**
 * rdma_ah_set_port_num - set the sending port of an address vector
 * @attr: the address vector
 * @port_num: number of the port
 *
 * Context: any.
 */
static inline void rdma_ah_set_port_num(struct rdma_ah_attr *attr, u32 port_num)
{
	attr->port_num = port_num;
}

/**
 * rdma_ah_get_port_num - get the sending port of an address vector
 * @attr: the address vector
 *
 * Context: any. Return: the number of the port.
 */
static inline u32 rdma_ah_get_port_num(const struct rdma_ah_attr *attr)
{
	return attr->port_num;
}

/**
 * rdma_ah_set_static_rate - set the static rate of an address vector (IBA 9.11)
 * @attr: the address vector
 * @static_rate: enum ib_rate
 *
 * Context: any.
 */
static inline void rdma_ah_set_static_rate(struct rdma_ah_attr *attr, u8 static_rate)
{
	attr->static_rate = static_rate;
}

/**
 * rdma_ah_get_static_rate - get the static rate of an address vector (IBA 9.11)
 * @attr: the address vector
 *
 * Context: any. Return: the enum ib_rate.
 */
static inline u8 rdma_ah_get_static_rate(const struct rdma_ah_attr *attr)
{
	return attr->static_rate;
}

/**
 * rdma_ah_set_ah_flags - set the flags of an address vector
 * @attr: the address vector
 * @flags: enum ib_ah_flags
 *
 * Context: any.
 */
static inline void rdma_ah_set_ah_flags(struct rdma_ah_attr *attr, enum ib_ah_flags flags)
{
	attr->ah_flags = (u8)flags;
}

/**
 * rdma_ah_get_ah_flags - get the flags of an address vector
 * @attr: the address vector
 *
 * Context: any. Return: the flags.
 */
static inline enum ib_ah_flags rdma_ah_get_ah_flags(const struct rdma_ah_attr *attr)
{
	return (enum ib_ah_flags)attr->ah_flags;
}

/**
 * rdma_ah_read_grh - get the global route of an address vector, to read it (IBA 8.3)
 * @attr: the address vector
 *
 * Context: any. Return: a pointer into @attr; the route is used only with IB_AH_GRH.
 */
static inline const struct ib_global_route *rdma_ah_read_grh(const struct rdma_ah_attr *attr)
{
	return &attr->grh;
}

/**
 * rdma_ah_retrieve_grh - get the global route of an address vector, to change it (IBA 8.3)
 * @attr: the address vector
 *
 * Context: any. Return: a pointer into @attr; the route is used only with IB_AH_GRH.
 */
static inline struct ib_global_route *rdma_ah_retrieve_grh(struct rdma_ah_attr *attr)
{
	return &attr->grh;
}

/**
 * rdma_ah_set_grh - set the global route of an address vector (IBA 8.3)
 * @attr: the address vector; IB_AH_GRH is set in it
 * @dgid: destination, or NULL to leave it as it is
 * @flow_label: flow label, 20 bits
 * @sgid_index: index of the source in the port's GID table
 * @hop_limit: hop limit
 * @traffic_class: traffic class
 *
 * Context: any.
 */
static inline void rdma_ah_set_grh(struct rdma_ah_attr *attr, const union ib_gid *dgid,
				   u32 flow_label, u8 sgid_index, u8 hop_limit, u8 traffic_class)
{
	attr->ah_flags = IB_AH_GRH;
	if (dgid)
		attr->grh.dgid = *dgid;
	attr->grh.flow_label = flow_label;
	attr->grh.sgid_index = sgid_index;
	attr->grh.hop_limit = hop_limit;
	attr->grh.traffic_class = traffic_class;
}

/**
 * rdma_is_zero_gid - test for an unused GID (IBA 4.1.1)
 * @gid: the GID
 *
 * Context: any. Return: true if all of its bytes are 0.
 */
static inline bool rdma_is_zero_gid(const union ib_gid *gid)
{
	u8 bits = 0;

	for (unsigned int i = 0; i < sizeof(gid->raw); i++)
		bits |= gid->raw[i];
	return bits == 0;
}

/**
 * rdma_is_multicast_gid - test for the GID of a multicast group (IBA 4.1.1)
 * @gid: the GID
 *
 * Context: any. Return: true if it is one of ff00::/8.
 */
static inline bool rdma_is_multicast_gid(const union ib_gid *gid)
{
	return gid->raw[0] == 0xff;
}

#ifdef __cplusplus
static_assert(sizeof(ib_gid) == 16);
static_assert(sizeof(ib_grh) == IB_GRH_BYTES);

inline bool operator==(const ib_gid &a, const ib_gid &b)
{
	return __builtin_memcmp(a.raw, b.raw, sizeof(a.raw)) == 0;
}
#endif
