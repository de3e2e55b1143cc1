// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the layout of the Ammasso 1100's work requests and completions. Constants are byte
 * offsets in a slot. The first sixteen bytes of a slot are the message header.
 */
#pragma once

#include "verbs.hpp"

namespace hw::amso1100
{

enum class WorkId : uint8_t {
	send = 1,
	send_invalidate = 2,
	send_solicited = 3,
	send_solicited_invalidate = 4,
	rdma_write = 5,
	rdma_read = 6,
	rdma_read_invalidate = 7,
	bind = 8,
	fast_register = 9,
	invalidate = 10,
	receive = 11,
	nop = 12,
};

/* Header fields of a work request, in addition to id and context, which the card returns. */
namespace work
{
/* in a completion: number of preceding requests without a completion */
inline constexpr size_t silent_count = 0;
inline constexpr size_t sge_count = 6;
inline constexpr size_t flags = 7;
inline constexpr uint8_t signaled = 0x01;
inline constexpr uint8_t read_fence = 0x02;
inline constexpr uint8_t fence = 0x04;
} // namespace work

namespace sge
{
inline constexpr size_t stag = 0;
inline constexpr size_t length = 4;
inline constexpr size_t offset = 8;
inline constexpr size_t size = 16;
} // namespace sge

namespace send
{
inline constexpr size_t total = 0x10;
inline constexpr size_t remote_stag = 0x14;
inline constexpr size_t sges = 0x18;
} // namespace send

namespace rdma_write
{
inline constexpr size_t remote_offset = 0x10;
inline constexpr size_t remote_stag = 0x18;
inline constexpr size_t total = 0x1c;
inline constexpr size_t sges = 0x20;
} // namespace rdma_write

namespace rdma_read
{
inline constexpr size_t local_offset = 0x10;
inline constexpr size_t remote_offset = 0x18;
inline constexpr size_t local_stag = 0x20;
inline constexpr size_t remote_stag = 0x24;
inline constexpr size_t length = 0x28;
inline constexpr size_t size = 0x2c;
} // namespace rdma_read

namespace fast_register
{
inline constexpr size_t va = 0x10;
inline constexpr size_t key = 0x18;
inline constexpr size_t stag = 0x1c;
inline constexpr size_t page_size = 0x20;
inline constexpr size_t first_offset = 0x24;
inline constexpr size_t length = 0x28;
inline constexpr size_t pages_here = 0x2c;
inline constexpr size_t pages = 0x30;
} // namespace fast_register

namespace invalidate
{
inline constexpr size_t key = 0x10;
inline constexpr size_t stag = 0x14;
inline constexpr size_t size = 0x18;
} // namespace invalidate

namespace receive_request
{
inline constexpr size_t sges = 0x10;
} // namespace receive_request

/* An entry of a completion queue, in a slot of completion_slot_size bytes. */
namespace completion
{
inline constexpr size_t qp_context = 0x10; /* 0: the entry is invalid */
inline constexpr size_t qp_state = 0x18;
inline constexpr size_t qp_handle = 0x1c;
inline constexpr size_t bytes = 0x20; /* length of a received message */
inline constexpr size_t stag = 0x24;  /* STag that a message has invalidated, or 0 */
inline constexpr size_t size = 0x28;
} // namespace completion

} // namespace hw::amso1100
