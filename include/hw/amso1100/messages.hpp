// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the Ammasso 1100's message queues, and the messages that open and query its RNIC and set
 * its addresses. All fields are big-endian, except contexts and handles, which are opaque.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace hw::amso1100
{

/*
 * Shared fields of a queue in the card's memory: the index that the host writes, and the fields of
 * a CQ.
 */
namespace shared
{
inline constexpr size_t armed = 2;
inline constexpr size_t notification = 3;
inline constexpr size_t index = 8;
inline constexpr size_t size = 64;
} // namespace shared

/* The fixed queues: requests, replies and events. Hints contain these indices. */
enum class Queue : uint32_t {
	requests = 0,
	replies = 1,
	events = 2,
};
inline constexpr unsigned message_size = 256;
inline constexpr unsigned request_entries = 64;
inline constexpr unsigned reply_entries = 128;
inline constexpr unsigned event_entries = 256;

enum class MessageId : uint8_t {
	rnic_open = 1,
	rnic_query = 2,
	rnic_setconfig = 3,
	rnic_close = 5,
	cq_create = 6,
	cq_destroy = 9,
	qp_connect = 10,
	qp_create = 17,
	qp_query = 18,
	qp_modify = 19,
	qp_destroy = 20,
	stag_alloc = 21,
	mr_register = 22,
	mr_page_list = 23,
	stag_dealloc = 24,
	listen_create = 38,
	listen_destroy = 39,
	request_accept = 41,
	request_reject = 42,
	term = 44,
	init = 50,
};

enum class Status : uint8_t {
	ok = 0,
	insufficient_resources = 1,
	invalid_modifier = 2,
	in_use = 4,
	invalid_rnic = 5,
	invalid_cq = 8,
	not_implemented = 10,
	invalid_pd = 13,
	invalid_srq = 14,
	invalid_address = 15,
	invalid_qp = 17,
	invalid_qp_state = 18,
	invalid_wr_type = 20,
	invalid_sgl_length = 21,
	invalid_sq_depth = 22,
	invalid_rq_depth = 23,
	invalid_ord = 24,
	invalid_ird = 25,
	invalid_stag = 27,
	qp_in_use = 28,
	outstanding_wrs = 29,
	stag_in_use = 30,
	invalid_cq_depth = 34,
	invalid_private_data_length = 35,
	invalid_endpoint = 36,
	flushed = 38,
	local_catastrophic = 40,
	remote_termination = 41,
	bounds_violation = 42,
	access_violation = 43,
	zero_read_resources = 47,
	stag_state_not_invalid = 49,
	invalid_page_size = 50,
	invalid_first_offset = 53,
	invalid_length = 54,
	page_list_too_big = 56,
	total_length_too_big = 60,
	address_in_use = 62,
	address_not_available = 63,
	network_unreachable = 65,
	connection_reset = 67, /* as the result of a connect: rejected */
	connection_timed_out = 69,
	connection_refused = 70,
	host_unreachable = 71,
	invalid_send_sgl_depth = 72,
	invalid_receive_sgl_depth = 73,
	invalid_write_sgl_depth = 74,
	pending = 98, /* a posted work request that has not completed */
};

/* The header of every message. */
namespace header
{
inline constexpr size_t id = 4;
inline constexpr size_t result = 5;
inline constexpr size_t context = 8; /* 0: the sender expects no reply */
inline constexpr size_t size = 16;
} // namespace header

/* Addresses in host memory: of 16-bit words, and of message pools. */
namespace init
{
inline constexpr size_t hint_count = 0x10;
inline constexpr size_t request_word = 0x18;
inline constexpr size_t reply_word = 0x20;
inline constexpr size_t reply_pool = 0x28;
inline constexpr size_t event_word = 0x30;
inline constexpr size_t event_pool = 0x38;
} // namespace init

namespace rnic_open
{
inline constexpr size_t user_context = 0x10;
inline constexpr size_t flags = 0x18;
inline constexpr uint16_t privileged = 0x80;
inline constexpr size_t reply_handle = 0x10;
inline constexpr size_t reply_size = 20;
} // namespace rnic_open

/* Offset of the RNIC's handle in all other messages. */
inline constexpr size_t rnic_handle = 0x10;

namespace rnic_query
{
inline constexpr size_t user_context = 0x10;
inline constexpr size_t vendor_id = 0x18;
inline constexpr size_t part_number = 0x1c;
inline constexpr size_t hardware_version = 0x20;
inline constexpr size_t firmware_major = 0x24;
inline constexpr size_t firmware_minor = 0x28;
inline constexpr size_t firmware_patch = 0x2c;
inline constexpr size_t max_qps = 0x70;
inline constexpr size_t max_qp_depth = 0x74;
inline constexpr size_t max_send_sges = 0x7c;
inline constexpr size_t max_rdma_sges = 0x80;
inline constexpr size_t max_cqs = 0x84;
inline constexpr size_t max_cq_depth = 0x88;
inline constexpr size_t max_mrs = 0x90;
inline constexpr size_t max_page_list = 0x94;
inline constexpr size_t max_pds = 0x98;
inline constexpr size_t max_global_ird = 0x9c;
inline constexpr size_t max_global_ord = 0xa0;
inline constexpr size_t max_qp_ird = 0xa4;
inline constexpr size_t max_qp_ord = 0xa8;
inline constexpr size_t flags = 0xac;
inline constexpr size_t max_windows = 0xb0;
inline constexpr size_t reply_size = 196;
} // namespace rnic_query

namespace rnic_setconfig
{
inline constexpr size_t option = 0x14;
inline constexpr size_t address = 0x18;
inline constexpr size_t mask = 0x1c;
} // namespace rnic_setconfig
enum class ConfigOption : uint32_t {
	add_address = 1,
	delete_address = 2,
};

} // namespace hw::amso1100
