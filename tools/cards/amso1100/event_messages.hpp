// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds the event messages that the card sends to its driver.
#pragma once

#include <algorithm>
#include <cstdint>

#include <hw/amso1100/events.hpp>

#include "cards/amso1100/bytes.hpp"
#include "cards/amso1100/message_queues.hpp"
#include "net/iwarp/bytes.hpp"
#include "net/tcp/connection.hpp"

namespace weft::amso1100
{

// The object to which an event refers.
struct Resource {
	hw::amso1100::ResourceType type;
	std::uint32_t handle;
	std::uint64_t user_context;
};

// @context is the user context of RNIC_OPEN. @state is the state of a queue pair after the event.
inline Message event_message(hw::amso1100::EventId id, std::uint64_t context,
			     const Resource &resource, std::uint32_t state = 0)
{
	namespace wire = hw::amso1100;
	Message message{};
	message[wire::header::id] = static_cast<std::byte>(id);
	store_be<std::uint64_t>(message, wire::header::context, context);
	store_be<std::uint64_t>(message, wire::event::user_context, resource.user_context);
	store_be<std::uint32_t>(message, wire::event::resource_type,
				static_cast<std::uint32_t>(resource.type));
	store_be<std::uint32_t>(message, wire::event::resource, resource.handle);
	store_be<std::uint32_t>(message, wire::event::qp_state, state);
	return message;
}

// Writes the two endpoints and up to most_private_data bytes of private data at @at. Both messages
// that have these fields use this layout.
inline void put_connection(Message &message, std::size_t at, const tcp::Pair &pair,
			   iwarp::View private_data)
{
	store_be<std::uint32_t>(message, at, pair.local.address);
	store_be<std::uint32_t>(message, at + 4, pair.remote.address);
	store_be<std::uint16_t>(message, at + 8, pair.local.port);
	store_be<std::uint16_t>(message, at + 10, pair.remote.port);
	store_be<std::uint32_t>(message, at + 12, static_cast<std::uint32_t>(private_data.size()));
	std::ranges::copy(std::as_bytes(private_data),
			  message.begin() + static_cast<std::ptrdiff_t>(at + 16));
}
static_assert(hw::amso1100::connect_result::private_data ==
		      hw::amso1100::connect_result::local_address + 16 &&
	      hw::amso1100::connection_request::private_data ==
		      hw::amso1100::connection_request::local_address + 16);

} // namespace weft::amso1100
