// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/rnic.hpp"

#include <memory>
#include <utility>

#include <hw/amso1100/registers.hpp>

#include "cards/amso1100/bytes.hpp"
#include "bus/pci/device.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;
using wire::MessageId;
using wire::Status;

namespace
{

// Number of requests per slice of the loop.
constexpr unsigned kMessagesPerSlice = 16;
// The value that real boards report is unknown.
constexpr std::uint32_t kPartNumber = 1100;
// The host allocates PD numbers, and the card does not count them.
constexpr std::uint32_t kMostPds = 16384;
constexpr std::uint32_t kOverflowDetected = 0x40; // completion queue overflow
// The MTU of jumbo frames, which the host's interface may also have. A peer with a smaller MTU
// announces it by its MSS when a connection is opened (RFC 9293 section 3.7.1).
constexpr std::size_t kMtu = 9000;
// Any value except 0.
constexpr std::uint32_t kHandle = 0x01000000;

} // namespace

Rnic::Open::Open(PciHost &host, MessageQueues &queues, std::uint64_t context, bool privileged,
		 tcp::Mac mac, std::function<void(tcp::Bytes)> send)
    : user_context(context), stack(host.loop(), {.mac = mac, .mtu = kMtu}, std::move(send)),
      verbs(host, queues, stack, context, privileged)
{
}

void Rnic::attach(PciHost &host)
{
	host_ = &host;
	queues.attach(host);
}

void Rnic::reset()
{
	open_.reset();
	queues.reset();
}

bool Rnic::serve()
{
	const bool more = open_ && open_->verbs.serve();
	for (unsigned i = 0; i < kMessagesPerSlice; ++i) {
		const auto request = queues.next_request();
		if (!request)
			return more;
		answer(*request);
	}
	return true;
}

void Rnic::answer(const Message &request)
{
	const auto id = static_cast<MessageId>(request[wire::header::id]);
	if (id == MessageId::init || id == MessageId::term)
		return open_.reset();
	Message reply{};
	Verbs::Answer answer;
	if (!Verbs::knows(id))
		answer.status = carry_out(request, reply);
	else if (!open_ || load_be<std::uint32_t>(request, Verbs::rnic_handle(id)) != kHandle)
		answer = {.status = Status::invalid_rnic, .none = id == MessageId::qp_connect};
	else
		answer = open_->verbs.carry_out(request, reply);
	reply[wire::header::result] = static_cast<std::byte>(answer.status);
	reply[wire::header::id] = request[wire::header::id];
	const auto context = load_be<std::uint64_t>(request, wire::header::context);
	store_be<std::uint64_t>(reply, wire::header::context, context);
	if (context && !answer.none)
		queues.reply(reply, answer.after);
}

void Rnic::ring(std::uint32_t hint)
{
	if (open_)
		open_->verbs.ring(hint);
}

void Rnic::read(std::uint64_t offset, std::span<std::byte> data)
{
	if (open_)
		open_->verbs.read(offset, data);
}

void Rnic::write(std::uint64_t offset, std::span<const std::byte> data)
{
	if (open_)
		open_->verbs.write(offset, data);
}

Status Rnic::carry_out(const Message &request, Message &reply)
{
	const auto id = static_cast<MessageId>(request[wire::header::id]);
	if (id == MessageId::rnic_open)
		return open(request, reply);
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

Status Rnic::open(const Message &request, Message &reply)
{
	namespace field = wire::rnic_open;
	if (open_)
		return Status::in_use;
	const bool privileged = load_be<std::uint16_t>(request, field::flags) & field::privileged;
	open_.emplace(*host_, queues, load_be<std::uint64_t>(request, field::user_context),
		      privileged, address_, [this](tcp::Bytes frame) {
			      send_(std::make_shared<const ethernet::Frame>(std::move(frame)));
		      });
	store_be<std::uint32_t>(reply, field::reply_handle, kHandle);
	return Status::ok;
}

// Reports 0 for values that the card does not have.
void Rnic::query(Message &reply) const
{
	namespace field = wire::rnic_query;
	store_be<std::uint64_t>(reply, field::user_context, open_->user_context);
	const std::pair<std::size_t, std::uint64_t> values[] = {
		{field::vendor_id, wire::pci_vendor_id},
		{field::part_number, kPartNumber},
		{field::hardware_version, 1},
		{field::firmware_major, 1},
		{field::firmware_minor, 2},
		{field::firmware_patch, 1},
		{field::max_qps, QueuePair::kMost},
		{field::max_qp_depth, QueuePair::kMostDepth - 1},
		{field::max_send_sges, kMostSges},
		{field::max_rdma_sges, kMostSges},
		{field::max_cqs, CompletionQueue::kMost},
		{field::max_cq_depth, CompletionQueue::kMostDepth - 1},
		{field::max_mrs, MemoryRegions::kMostRegions},
		{field::max_page_list, MemoryRegions::kMostPages},
		{field::max_pds, kMostPds},
		{field::max_global_ird, QueuePair::kMost * QueuePair::kMostReads},
		{field::max_global_ord, QueuePair::kMost * QueuePair::kMostReads},
		{field::max_qp_ird, QueuePair::kMostReads},
		{field::max_qp_ord, QueuePair::kMostReads},
		{field::flags, kOverflowDetected}};
	for (const auto &[at, value] : values)
		store_be<std::uint32_t>(reply, at, static_cast<std::uint32_t>(value));
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

} // namespace weft::amso1100
