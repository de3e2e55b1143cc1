// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "ammasso/rnic.hpp"

#include <memory>
#include <utility>

#include <hw/ammasso/registers.hpp>

#include "ammasso/bytes.hpp"
#include "pci/device.hpp"

namespace weft::ammasso
{

namespace wire = hw::ammasso;
using wire::MessageId;
using wire::Status;

namespace
{

// Requests of a turn.
constexpr unsigned kSlice = 16;
// Nobody knows what the board said.
constexpr std::uint32_t kPartNumber = 1100;
// Any number but 0.
constexpr std::uint32_t kHandle = 0x01000000;

} // namespace

void Rnic::reset()
{
	open_.reset();
	queues.reset();
}

bool Rnic::serve(PciHost &host)
{
	for (unsigned i = 0; i < kSlice; ++i) {
		const auto request = queues.next_request(host);
		if (!request)
			return false;
		const auto id = static_cast<MessageId>((*request)[wire::header::id]);
		if (id == MessageId::init || id == MessageId::term) {
			open_.reset();
			continue;
		}
		Message reply{};
		reply[wire::header::result] =
			static_cast<std::byte>(carry_out(host, *request, reply));
		reply[wire::header::id] = (*request)[wire::header::id];
		const auto context = load_be<std::uint64_t>(*request, wire::header::context);
		store_be<std::uint64_t>(reply, wire::header::context, context);
		if (context)
			queues.reply(host, reply);
	}
	return true;
}

Status Rnic::carry_out(PciHost &host, const Message &request, Message &reply)
{
	const auto id = static_cast<MessageId>(request[wire::header::id]);
	if (id == MessageId::rnic_open)
		return open(host, request, reply);
	if (id != MessageId::rnic_query && id != MessageId::rnic_setconfig &&
	    id != MessageId::rnic_close)
		return Status::not_implemented;
	if (!open_ || load_be<std::uint32_t>(request, wire::rnic_handle) != kHandle)
		return Status::invalid_rnic;
	if (id == MessageId::rnic_setconfig)
		return configure(request);
	if (id == MessageId::rnic_query)
		query(reply);
	else
		open_.reset();
	return Status::ok;
}

Status Rnic::open(PciHost &host, const Message &request, Message &reply)
{
	if (open_)
		return Status::in_use;
	open_.emplace(host.loop(), load_be<std::uint64_t>(request, wire::rnic_open::user_context),
		      address_, [this](tcp::Bytes frame) {
			      send_(std::make_shared<const ethernet::Frame>(std::move(frame)));
		      });
	store_be<std::uint32_t>(reply, wire::rnic_open::reply_handle, kHandle);
	return Status::ok;
}

// What there is none of yet is 0.
void Rnic::query(Message &reply) const
{
	store_be<std::uint64_t>(reply, wire::rnic_query::user_context, open_->user_context);
	store_be<std::uint32_t>(reply, wire::rnic_query::vendor_id, wire::pci_vendor_id);
	store_be<std::uint32_t>(reply, wire::rnic_query::part_number, kPartNumber);
	store_be<std::uint32_t>(reply, wire::rnic_query::firmware_major, 1);
}

Status Rnic::configure(const Message &request)
{
	const auto option = static_cast<wire::ConfigOption>(
		load_be<std::uint32_t>(request, wire::rnic_setconfig::option));
	const auto address = load_be<std::uint32_t>(request, wire::rnic_setconfig::address);
	const auto mask = load_be<std::uint32_t>(request, wire::rnic_setconfig::mask);
	switch (option) {
	case wire::ConfigOption::add_address:
		if (!address || address >> 28 >= 14)
			return Status::invalid_address;
		if (open_->addresses.contains(address))
			return Status::address_in_use;
		if (!open_->stack.add_address(address, mask))
			return Status::insufficient_resources;
		open_->addresses.emplace(address, mask);
		return Status::ok;
	case wire::ConfigOption::delete_address:
		if (!open_->addresses.erase(address))
			return Status::address_not_available;
		open_->stack.remove_address(address);
		return Status::ok;
	}
	return Status::invalid_modifier;
}

void Rnic::receive(const ethernet::Frame &frame)
{
	if (open_)
		open_->stack.receive(frame);
}

} // namespace weft::ammasso
