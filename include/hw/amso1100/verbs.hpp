// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the layout of the Ammasso 1100's requests about completion queues, queue pairs, memory
 * and connections, and of the replies. Constants are byte offsets in the message. The first sixteen
 * bytes of a message are the header. Unless stated otherwise, the next four bytes are the RNIC's
 * handle.
 */
#pragma once

#include "messages.hpp"

namespace hw::amso1100
{

/* The range of queue indices, and their position in the second word of a hint. */
inline constexpr uint32_t least_queue_index = 3;
inline constexpr uint32_t most_queue_index = 32767;
inline constexpr unsigned hint_index_shift = 16;

/* Offset of the object's handle in requests about one object. */
inline constexpr size_t object_handle = 0x14;
inline constexpr size_t object_request_size = 0x18;

/* Value for a state or number that must not change. */
inline constexpr uint32_t no_change = 0xffffffff;

inline constexpr unsigned completion_slot_size = 64;

namespace cq_create
{
inline constexpr size_t producer_word = 0x10; /* address of a 16-bit word */
inline constexpr size_t user_context = 0x18;
inline constexpr size_t pool = 0x20; /* an address in host memory */
inline constexpr size_t rnic_handle = 0x28;
inline constexpr size_t slot_size = 0x2c;
inline constexpr size_t depth = 0x30; /* one more than the number of entries */
inline constexpr size_t size = 0x34;
inline constexpr size_t reply_index = 0x10;
inline constexpr size_t reply_shared = 0x14; /* offset from the register page */
inline constexpr size_t reply_handle = 0x18;
inline constexpr size_t reply_size = 0x1c;
} // namespace cq_create

/* Values in a CQ's shared structure (messages.hpp). */
inline constexpr uint8_t armed_yes = 0x01;
inline constexpr uint8_t armed_wait = 0x80; /* until pending completions have been written */
enum class Notification : uint8_t {
	none = 1,
	next = 2,
	next_solicited = 3,
};

namespace qp_create
{
inline constexpr size_t sq_word = 0x10;
inline constexpr size_t rq_word = 0x18;
inline constexpr size_t user_context = 0x20;
inline constexpr size_t rnic_handle = 0x28;
inline constexpr size_t sq_cq = 0x2c;
inline constexpr size_t rq_cq = 0x30;
inline constexpr size_t sq_depth = 0x34; /* one more than the number of entries */
inline constexpr size_t rq_depth = 0x38;
inline constexpr size_t srq = 0x3c;
inline constexpr size_t srq_limit = 0x40;
inline constexpr size_t flags = 0x44;
inline constexpr size_t send_sges = 0x48;
inline constexpr size_t receive_sges = 0x4c;
inline constexpr size_t write_sges = 0x50;
inline constexpr size_t ord = 0x54;
inline constexpr size_t ird = 0x58;
inline constexpr size_t pd = 0x5c;
inline constexpr size_t size = 0x60;
inline constexpr size_t reply_sq_depth = 0x10;
inline constexpr size_t reply_rq_depth = 0x14;
inline constexpr size_t reply_send_sges = 0x18;
inline constexpr size_t reply_receive_sges = 0x1c;
inline constexpr size_t reply_write_sges = 0x20;
inline constexpr size_t reply_ord = 0x24;
inline constexpr size_t reply_ird = 0x28;
inline constexpr size_t reply_sq_slot_size = 0x2c;
inline constexpr size_t reply_sq_index = 0x30;
inline constexpr size_t reply_sq_start = 0x34; /* the shared fields, followed by the slots */
inline constexpr size_t reply_rq_slot_size = 0x38;
inline constexpr size_t reply_rq_index = 0x3c;
inline constexpr size_t reply_rq_start = 0x40;
inline constexpr size_t reply_handle = 0x44;
inline constexpr size_t reply_size = 0x48;
} // namespace qp_create

namespace qp_flag
{
inline constexpr uint32_t rdma_read = 0x01;
inline constexpr uint32_t rdma_write = 0x02; /* the peer may write to this QP's memory */
inline constexpr uint32_t bind = 0x04;
inline constexpr uint32_t zero_stag = 0x08;
inline constexpr uint32_t read_response = 0x20; /* the peer may read this QP's memory */
} // namespace qp_flag

enum class QpState : uint32_t {
	idle = 0x01,
	connecting = 0x02,
	rts = 0x04,
	closing = 0x08,
	terminate = 0x10,
	error = 0x20,
};

namespace qp_modify
{
inline constexpr size_t stream_message = 0x10;
inline constexpr size_t stream_length = 0x18;
inline constexpr size_t rnic_handle = 0x1c;
inline constexpr size_t qp_handle = 0x20;
inline constexpr size_t next_state = 0x24;
inline constexpr size_t ord = 0x28;
inline constexpr size_t ird = 0x2c;
inline constexpr size_t sq_depth = 0x30;
inline constexpr size_t rq_depth = 0x34;
inline constexpr size_t endpoint = 0x38;
inline constexpr size_t size = 0x3c;
inline constexpr size_t reply_ord = 0x10;
inline constexpr size_t reply_ird = 0x14;
inline constexpr size_t reply_sq_depth = 0x18;
inline constexpr size_t reply_rq_depth = 0x1c;
inline constexpr size_t reply_size = 0x38;
} // namespace qp_modify

inline constexpr unsigned most_private_data = 200;

/* No reply: an event reports the result. */
namespace qp_connect
{
inline constexpr size_t qp_handle = 0x14;
inline constexpr size_t remote_address = 0x18;
inline constexpr size_t remote_port = 0x1c;
inline constexpr size_t private_length = 0x20;
inline constexpr size_t private_data = 0x24;
} // namespace qp_connect

/* Access rights and kinds of memory. */
namespace mr_flag
{
inline constexpr uint32_t remote = 0x001;
inline constexpr uint32_t va_based = 0x002;
inline constexpr uint32_t complete = 0x004; /* no page list follows */
inline constexpr uint32_t local_read = 0x008;
inline constexpr uint32_t local_write = 0x010;
inline constexpr uint32_t remote_read = 0x020;
inline constexpr uint32_t remote_write = 0x040;
inline constexpr uint32_t bind = 0x080;
} // namespace mr_flag

/* A page list is an array of addresses. Its length is the number of addresses. */
namespace mr_register
{
inline constexpr size_t va = 0x10;
inline constexpr size_t rnic_handle = 0x18;
inline constexpr size_t flags = 0x1c; /* 16 bits */
inline constexpr size_t key = 0x1e;   /* one byte: the lowest byte of the STag */
inline constexpr size_t pd = 0x20;
inline constexpr size_t total_pages = 0x24;
inline constexpr size_t page_size = 0x28;
inline constexpr size_t first_offset = 0x2c;
inline constexpr size_t length = 0x30;
inline constexpr size_t pages_here = 0x34;
inline constexpr size_t pages = 0x38;
inline constexpr unsigned most_pages = (message_size - pages) / 8;
inline constexpr size_t reply_total_pages = 0x10;
inline constexpr size_t reply_stag = 0x14;
inline constexpr size_t reply_size = 0x18;
} // namespace mr_register

/* Only the last of these messages has a reply. */
namespace mr_page_list
{
inline constexpr size_t flags = 0x14;
inline constexpr size_t stag = 0x18;
inline constexpr size_t pages_here = 0x1c;
inline constexpr size_t pages = 0x20;
inline constexpr unsigned most_pages = (message_size - pages) / 8;
} // namespace mr_page_list
static_assert(mr_register::most_pages == 25 && mr_page_list::most_pages == 28);

namespace stag_alloc
{
inline constexpr size_t total_pages = 0x14;
inline constexpr size_t pd = 0x18;
inline constexpr size_t flags = 0x1c;
inline constexpr size_t size = 0x20;
inline constexpr size_t reply_total_pages = 0x10;
inline constexpr size_t reply_stag = 0x14;
inline constexpr size_t reply_size = 0x18;
} // namespace stag_alloc

namespace listen_create
{
inline constexpr size_t user_context = 0x10;
inline constexpr size_t rnic_handle = 0x18;
inline constexpr size_t address = 0x1c; /* 0: any */
inline constexpr size_t port = 0x20;
inline constexpr size_t backlog = 0x24;
inline constexpr size_t size = 0x28;
inline constexpr size_t reply_handle = 0x10;
inline constexpr size_t reply_port = 0x14;
inline constexpr size_t reply_size = 0x18;
} // namespace listen_create

/* The endpoint is that of the event that has reported the request. */
namespace request_accept
{
inline constexpr size_t qp_handle = 0x14;
inline constexpr size_t endpoint = 0x18;
inline constexpr size_t private_length = 0x1c;
inline constexpr size_t private_data = 0x20;
} // namespace request_accept

} // namespace hw::amso1100
