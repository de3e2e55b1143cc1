// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the layout of the unsolicited messages that the Ammasso 1100 writes to its event queue.
 * Constants are byte offsets in the message.
 */
#pragma once

#include "verbs.hpp"

namespace hw::amso1100
{

enum class EventId : uint8_t {
	remote_shutdown = 0x80,
	connect_result = 0x81,
	connection_request = 0x82,
	close_complete = 0x83,
	terminate_received = 0x84,
	connection_reset = 0x85,
	connection_lost = 0x86,
	segment_size_invalid = 0x87,
	invalid_crc = 0x88,
	bad_fpdu = 0x89,
	invalid_ddp_version = 0x8a,
	invalid_rdma_version = 0x8b,
	unexpected_opcode = 0x8c,
	invalid_queue_number = 0x8d,
	read_not_enabled = 0x8e,
	write_not_enabled = 0x8f,
	read_too_small = 0x90,
	no_last_bit = 0x91,
	tagged_invalid_stag = 0x92,
	tagged_bounds_violation = 0x93,
	tagged_rights_violation = 0x94,
	tagged_invalid_pd = 0x95,
	wrap_error = 0x96,
	bad_close = 0x97,
	bad_llp_close = 0x98,
	invalid_msn_range = 0x99,
	invalid_msn_gap = 0x9a,
	reads_overflow = 0x9b,
	reads_msn_gap = 0x9c,
	reads_msn_range = 0x9d,
	reads_invalid_stag = 0x9e,
	reads_bounds_violation = 0x9f,
	reads_rights_violation = 0xa0,
	reads_invalid_pd = 0xa1,
	reads_wrap_error = 0xa2,
	sq_completion_overflow = 0xa3,
	rq_completion_error = 0xa4,
	srq_request_error = 0xa5,
	local_catastrophic = 0xa6,
	cq_overflow = 0xa7,
	cq_operation_error = 0xa8,
	srq_limit_reached = 0xa9,
	rq_limit_reached = 0xaa,
	srq_catastrophic = 0xab,
	rnic_catastrophic = 0xac,
};

enum class ResourceType : uint32_t {
	none = 0,
	qp = 1,
	endpoint = 2,
	cq = 3,
	srq = 4,
};

namespace event
{
inline constexpr size_t user_context = 0x10; /* context of the resource */
inline constexpr size_t resource_type = 0x18;
inline constexpr size_t resource = 0x1c;
inline constexpr size_t qp_state = 0x20; /* state of the QP after the event */
inline constexpr size_t size = 0x24;
} // namespace event

/* Addresses and ports are in network byte order, as all numbers here. */
namespace connect_result
{
inline constexpr size_t local_address = 0x24;
inline constexpr size_t remote_address = 0x28;
inline constexpr size_t local_port = 0x2c;
inline constexpr size_t remote_port = 0x2e;
inline constexpr size_t private_length = 0x30;
inline constexpr size_t private_data = 0x34;
} // namespace connect_result

namespace connection_request
{
inline constexpr size_t endpoint = 0x24;
inline constexpr size_t local_address = 0x28;
inline constexpr size_t remote_address = 0x2c;
inline constexpr size_t local_port = 0x30;
inline constexpr size_t remote_port = 0x32;
inline constexpr size_t private_length = 0x34;
inline constexpr size_t private_data = 0x38;
} // namespace connection_request
static_assert(connection_request::private_data + most_private_data == message_size);

} // namespace hw::amso1100
