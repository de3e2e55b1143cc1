/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* GIDs, global route headers and address vectors (IBA 4.1, 8.3, 11.2.2). */
#pragma once
#include <rdma/types.h>

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
 * struct ib_global_route - what an address vector needs for a GRH
 * @dgid: destination
 * @flow_label: 20 bits
 * @sgid_index: which of the port's GIDs is the source
 * @hop_limit: as in the header
 * @traffic_class: as in the header
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

struct ib_ah_attr {
	u16 dlid;
	u8 src_path_bits;
};

/**
 * struct rdma_ah_attr - an address vector
 * @grh: used if @ah_flags has IB_AH_GRH
 * @sl: service level, 0 to 15
 * @static_rate: an enum ib_rate; IB_RATE_PORT_CURRENT for no limit
 * @port_num: the port that sends
 * @ah_flags: enum ib_ah_flags
 * @type: which member of the union holds; the midlayer fills in RDMA_AH_ATTR_TYPE_IB where it is
 * undefined
 * @ib: LID, in host order, and the low bits of the source LID
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
	/* The caller may sleep, and so may create_ah. */
	RDMA_CREATE_AH_SLEEPABLE = 1 << 0,
};

enum rdma_destroy_ah_flags {
	/* The caller may sleep, and so may destroy_ah. */
	RDMA_DESTROY_AH_SLEEPABLE = 1 << 0,
};

struct rdma_ah_init_attr {
	struct rdma_ah_attr *ah_attr;
	u32 flags;
};

static inline void rdma_ah_set_dlid(struct rdma_ah_attr *attr, u32 dlid)
{
	attr->ib.dlid = (u16)dlid;
}

static inline u32 rdma_ah_get_dlid(const struct rdma_ah_attr *attr)
{
	return attr->ib.dlid;
}

static inline void rdma_ah_set_sl(struct rdma_ah_attr *attr, u8 sl)
{
	attr->sl = sl;
}

static inline u8 rdma_ah_get_sl(const struct rdma_ah_attr *attr)
{
	return attr->sl;
}

static inline void rdma_ah_set_path_bits(struct rdma_ah_attr *attr, u8 src_path_bits)
{
	attr->ib.src_path_bits = src_path_bits;
}

static inline u8 rdma_ah_get_path_bits(const struct rdma_ah_attr *attr)
{
	return attr->ib.src_path_bits;
}

static inline void rdma_ah_set_port_num(struct rdma_ah_attr *attr, u32 port_num)
{
	attr->port_num = port_num;
}

static inline u32 rdma_ah_get_port_num(const struct rdma_ah_attr *attr)
{
	return attr->port_num;
}

static inline void rdma_ah_set_static_rate(struct rdma_ah_attr *attr, u8 static_rate)
{
	attr->static_rate = static_rate;
}

static inline u8 rdma_ah_get_static_rate(const struct rdma_ah_attr *attr)
{
	return attr->static_rate;
}

static inline void rdma_ah_set_ah_flags(struct rdma_ah_attr *attr, enum ib_ah_flags flags)
{
	attr->ah_flags = (u8)flags;
}

static inline enum ib_ah_flags rdma_ah_get_ah_flags(const struct rdma_ah_attr *attr)
{
	return (enum ib_ah_flags)attr->ah_flags;
}

static inline const struct ib_global_route *rdma_ah_read_grh(const struct rdma_ah_attr *attr)
{
	return &attr->grh;
}

static inline struct ib_global_route *rdma_ah_retrieve_grh(struct rdma_ah_attr *attr)
{
	return &attr->grh;
}

/**
 * rdma_ah_set_grh - give an address vector a global route
 * @attr: the address vector; IB_AH_GRH is set in it
 * @dgid: destination, or NULL to leave it as it is
 * @flow_label: 20 bits
 * @sgid_index: index of the source GID
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

static inline bool rdma_is_zero_gid(const union ib_gid *gid)
{
	u8 bits = 0;

	for (unsigned int i = 0; i < sizeof(gid->raw); i++)
		bits |= gid->raw[i];
	return bits == 0;
}

/* Multicast GIDs are those of ff00::/8. */
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
