// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The Ammasso 1100's message queues, and the messages by which its RNIC is opened, asked and told
 * addresses. All is big-endian, but for contexts and handles, which nobody converts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace hw::ammasso
{

/* What is shared of a queue in the card's memory: the index that the host writes. */
namespace shared
{
inline constexpr size_t armed = 2;
inline constexpr size_t notification = 3;
inline constexpr size_t index = 8;
inline constexpr size_t size = 64;
} // namespace shared

/* The fixed queues: requests, replies, events. Their indices are those that hints name. */
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
	term = 44,
	init = 50,
};

enum class Status : uint8_t {
	ok = 0,
	insufficient_resources = 1,
	invalid_modifier = 2,
	in_use = 4,
	invalid_rnic = 5,
	not_implemented = 10,
	invalid_address = 15,
	address_in_use = 62,
	address_not_available = 63,
};

/* Of every message. */
namespace header
{
inline constexpr size_t id = 4;
inline constexpr size_t result = 5;
inline constexpr size_t context = 8; /* 0: no reply */
inline constexpr size_t size = 16;
} // namespace header

/* Addresses in host memory: words of 16 bits, and pools of messages. */
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
inline constexpr size_t reply_handle = 0x10;
inline constexpr size_t reply_size = 20;
} // namespace rnic_open

/* Where the other messages have the RNIC's handle. */
inline constexpr size_t rnic_handle = 0x10;

namespace rnic_query
{
inline constexpr size_t user_context = 0x10;
inline constexpr size_t vendor_id = 0x18;
inline constexpr size_t part_number = 0x1c;
inline constexpr size_t firmware_major = 0x24;
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

} // namespace hw::ammasso
