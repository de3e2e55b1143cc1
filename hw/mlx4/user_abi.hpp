// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the driver-specific part of the user verbs ABI, which rdma-core's mlx4 provider and the
 * driver exchange with each command. The ABI has version 3; all fields are in host byte order. A
 * later version adds capabilities to the response that opens a device; this driver has none of
 * them.
 */
#pragma once
#include <rdma/types.h>

namespace mlx4::user_abi
{

inline constexpr unsigned long version = 3;

struct ContextResponse {
	/* The provider finds a QP by the low bits of its number in a table of this size. */
	u32 qp_table_size;
	u16 blueflame_register_bytes; /* 0: not supported */
	u16 blueflame_registers_per_page;
};
static_assert(sizeof(ContextResponse) == 8);

/* Response that identifies a protection domain. */
struct Pd {
	u32 number;
};

struct CreateQueue {
	u64 buffer;
	u64 doorbell;
};
static_assert(sizeof(CreateQueue) == 16);

struct ResizeCq {
	u64 buffer;
};
static_assert(sizeof(ResizeCq) == 8);

struct CreateQp {
	u64 buffer;
	u64 doorbell;
	u8 log_sq_size;
	u8 log_sq_stride;
	u8 sq_no_prefetch;
	u8 reserved;
	u32 inline_receive_bytes;
};
static_assert(sizeof(CreateQp) == 24 && __builtin_offsetof(CreateQp, inline_receive_bytes) == 20);

struct QueryDeviceResponse {
	u32 comp_mask; /* bit 0: the device has a clock */
	u32 response_length;
	u64 clock_offset;
	u32 max_inline_receive_bytes;
	u32 reserved;
	u8 rss[16];
	u32 max_tso;
	u32 tso_qp_types;
};
static_assert(sizeof(QueryDeviceResponse) == 48);

} // namespace mlx4::user_abi
