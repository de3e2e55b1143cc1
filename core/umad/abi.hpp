// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the interface between programs and this module. The sizes and offsets are those of
 * libibumad's ABI 5.
 */
#pragma once
#include <ib/endian.hpp>
#include <rdma/ib_mad.h>

namespace umad::abi
{

/* Contents of the file abi_version of the class. */
inline constexpr char version[] = "5";
inline constexpr u64 version_as_number = 5;

/* The ioctl() commands, which contain the sizes of their arguments. */
enum Command : unsigned int {
	register_agent = 0xc01c1b01,
	unregister_agent = 0x40041b02,
	enable_pkey = 0x1b03,
	register_agent2 = 0xc0281b04,
};

struct RegisterAgent {
	u32 id; // output
	u32 method_mask[4];
	u8 qpn;
	u8 mgmt_class;
	u8 mgmt_class_version;
	u8 oui[3];
	u8 rmpp_version;
	u8 reserved;
};
static_assert(sizeof(RegisterAgent) == 28);

struct RegisterAgent2 {
	u32 id; // output
	u32 qpn;
	u8 mgmt_class;
	u8 mgmt_class_version;
	u16 reserved1;
	u32 flags;
	u64 method_mask[2];
	u32 oui; // 24-bit number
	u8 rmpp_version;
	u8 reserved2[3];
};
static_assert(sizeof(RegisterAgent2) == 40);

/* The only flag of RegisterAgent2. */
inline constexpr u32 user_rmpp = 1 << 0;

/* Precedes each MAD that is read or written. */
struct Header {
	u32 id;
	/* 0, or the errno of a send without a response. */
	u32 status;
	u32 timeout_ms;
	u32 retries;
	/* Size of this header and the MAD together, set in messages that are read. */
	u32 length;
	ib::be32 qpn;
	ib::be32 qkey;
	ib::be16 lid;
	u8 sl;
	u8 path_bits;
	u8 grh_present;
	u8 gid_index;
	u8 hop_limit;
	u8 traffic_class;
	u8 gid[16];
	ib::be32 flow_label;
	/* Present only for programs that have requested it (see File::Form). */
	u16 pkey_index;
	u8 reserved[6];
};
static_assert(sizeof(Header) == 64 && __builtin_offsetof(Header, pkey_index) == 56);
inline constexpr size_t header_without_pkey = __builtin_offsetof(Header, pkey_index);

} // namespace umad::abi
