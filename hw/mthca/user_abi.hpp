// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the driver-specific part of the user verbs ABI, which rdma-core's mthca provider and the
// driver exchange with each command. The ABI has version 1; all fields are in host byte order.
#pragma once
#include <rdma/types.h>

namespace mthca::user_abi
{

inline constexpr unsigned long version = 1;

struct ContextResponse {
	/* The provider finds a QP by the low bits of its number in a table of this size. */
	u32 qp_table_size;
	u32 record_table_bytes; /* 0 for a card with its own memory */
};
static_assert(sizeof(ContextResponse) == 8);

/* Response that identifies a domain, a CQ or an SRQ. */
struct Number {
	u32 value;
	u32 reserved;
};
static_assert(sizeof(Number) == 8);

/*
 * A buffer is identified by the key of the region that the provider has registered for it, which
 * starts at address 0. A doorbell record is identified by its index and the address of its page.
 */
struct CreateCq {
	u32 lkey;
	u32 pdn;
	u64 arm_page;
	u64 index_page;
	u32 arm_record;
	u32 index_record;
};
static_assert(sizeof(CreateCq) == 32);

struct ResizeCq {
	u32 lkey;
	u32 reserved;
};
static_assert(sizeof(ResizeCq) == 8);

struct CreateSrq {
	u32 lkey;
	u32 record;
	u64 page;
};
static_assert(sizeof(CreateSrq) == 16);

struct CreateQp {
	u32 lkey;
	u32 reserved;
	u64 sq_page;
	u64 rq_page;
	u32 sq_record;
	u32 rq_record;
};
static_assert(sizeof(CreateQp) == 32);

} // namespace mthca::user_abi
