// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vhost-user/session.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "base/loop.hpp"
#include "bus/pci/endpoint.hpp"

namespace weft::vhost_user
{

static_assert(kMaxRegions <= pci::kMaxMessageFds);

namespace
{

// Maximum length of a chain: a command with the largest data and the largest reply.
constexpr std::uint64_t kMaxChain = sizeof(Command) + 2ull * kMaxTransfer;

// The loop handles other events after this many commands, because each may write megabytes.
constexpr unsigned kSlice = 8;

pci::Framing::Extent measure(std::span<const std::byte> head)
{
	Header header;
	std::memcpy(&header, head.data(), sizeof(header));
	if ((header.flags & kVersionMask) != kVersion)
		return {sizeof(Header), "a message of another version of the protocol"};
	if (header.flags & kFlagReply)
		return {sizeof(Header), "a reply to a request that was never made"};
	if (header.size > kMaxPayload)
		return {sizeof(Header), "a longer message than any of those that are served"};
	return {sizeof(Header) + header.size, nullptr};
}

template<typename T>
T payload(const Message &message)
{
	T value;
	std::memcpy(&value, message.payload.data(), sizeof(value));
	return value;
}

} // namespace

constinit const pci::Framing kFraming{sizeof(Header), kMaxMessage, measure, true};

// A request with its minimum payload and the maximum number of descriptors it may carry.
struct Session::Entry {
	Request request;
	const char *name;
	std::uint32_t smallest_payload;
	std::size_t most_fds;
	Handler handler;
};

constexpr Session::Entry Session::kEntries[] = {
	{Request::get_features, "GET_FEATURES", 0, 0, &Session::get_features},
	{Request::set_features, "SET_FEATURES", sizeof(Integer), 0, &Session::set_features},
	{Request::get_protocol_features, "GET_PROTOCOL_FEATURES", 0, 0,
	 &Session::get_protocol_features},
	{Request::set_protocol_features, "SET_PROTOCOL_FEATURES", sizeof(Integer), 0,
	 &Session::set_protocol_features},
	{Request::set_owner, "SET_OWNER", 0, 0, &Session::set_owner},
	{Request::set_mem_table, "SET_MEM_TABLE", sizeof(MemoryTable), kMaxRegions,
	 &Session::set_mem_table},
	{Request::set_vring_num, "SET_VRING_NUM", sizeof(VringState), 0, &Session::set_vring_num},
	{Request::set_vring_addr, "SET_VRING_ADDR", sizeof(VringAddresses), 0,
	 &Session::set_vring_addr},
	{Request::set_vring_base, "SET_VRING_BASE", sizeof(VringState), 0,
	 &Session::set_vring_base},
	{Request::set_vring_enable, "SET_VRING_ENABLE", sizeof(VringState), 0,
	 &Session::set_vring_enable},
	{Request::set_backend_request_fd, "SET_BACKEND_REQ_FD", 0, 1,
	 &Session::set_backend_request_fd},
	{Request::vring_kick, "VRING_KICK", sizeof(VringState), 0, &Session::vring_kick},
};

Session::Session(pci::Endpoint &endpoint, Interrupts &interrupts,
		 std::shared_ptr<spdlog::logger> log)
    : endpoint_(endpoint), interrupts_(interrupts), log_(std::move(log)), commands_(endpoint),
      more_commands_(endpoint.loop(),
		     [this] {
			     if (!ended())
				     run_commands();
		     }),
      rings_{Ring(endpoint.dma()), Ring(endpoint.dma())}
{
	interrupts_.connect(*this);
}

Session::~Session()
{
	interrupts_.disconnect(*this);
}

std::span<const std::byte> Session::handle(Message &message)
{
	if (ended())
		return {};
	const auto request = message.header<Header>();
	reply_.reset();
	const int error = dispatch(message);
	if (ended())
		return {};
	if (error)
		log_->warn("request {} of {} bytes refused: {}", request.request, request.size,
			   std::strerror(error));
	if (reply_)
		return reply(request, *reply_);
	if (request.flags & kFlagNeedReply && protocol_features_ & kProtocolReplyAck)
		return reply(request, static_cast<std::uint64_t>(error));
	if (error)
		end(fmt::format("its request {} is refused ({}), which cannot be reported to it",
				request.request, std::strerror(error)));
	return {};
}

std::span<const std::byte> Session::reply(const Header &request, std::uint64_t value)
{
	const Header header{request.request, kVersion | kFlagReply, sizeof(value)};
	buffer_.resize(sizeof(header) + sizeof(value));
	std::memcpy(buffer_.data(), &header, sizeof(header));
	std::memcpy(buffer_.data() + sizeof(header), &value, sizeof(value));
	return buffer_;
}

int Session::dispatch(Message &message)
{
	const auto header = message.header<Header>();
	const auto entry = std::ranges::find_if(kEntries, [&](const Entry &candidate) {
		return static_cast<std::uint32_t>(candidate.request) == header.request;
	});
	if (entry == std::end(kEntries))
		return ENOSYS;
	if (message.payload.size() < entry->smallest_payload ||
	    message.fds.size() > entry->most_fds)
		return EINVAL;
	return (this->*entry->handler)(message);
}

int Session::get_features(Message &)
{
	reply_ = kFeatures;
	return 0;
}

// Without VIRTIO_F_VERSION_1, rings would have another layout.
int Session::set_features(Message &message)
{
	const auto features = payload<Integer>(message).value;
	return features & ~kFeatures || !(features & kFeatureVersion1) ? EINVAL : 0;
}

int Session::get_protocol_features(Message &)
{
	reply_ = kProtocolFeatures;
	return 0;
}

int Session::set_protocol_features(Message &message)
{
	const auto features = payload<Integer>(message).value;
	if (features & ~kProtocolFeatures)
		return EINVAL;
	protocol_features_ = features;
	return 0;
}

int Session::set_owner(Message &)
{
	return 0;
}

// The table describes all memory of the guest, so the previous one is dropped even if the new one
// is refused.
int Session::set_mem_table(Message &message)
{
	if (std::ranges::any_of(rings_, &Ring::enabled))
		return EBUSY;
	regions_.clear();
	message.charge_unmapped(endpoint_.lender()->bytes());
	endpoint_.unmap_all();
	const auto table = payload<MemoryTable>(message);
	const auto entries = message.payload.subspan(sizeof(MemoryTable));
	// UML always sends space for two regions.
	if (table.count > kMaxRegions || entries.size() < table.count * sizeof(MemoryRegion) ||
	    message.fds.size() != table.count)
		return EINVAL;
	std::vector<MemoryRegion> regions(table.count);
	std::ranges::copy(entries.first(table.count * sizeof(MemoryRegion)),
			  std::as_writable_bytes(std::span(regions)).begin());
	int error = 0;
	for (std::size_t i = 0; i < regions.size() && !error; ++i) {
		const MemoryRegion &region = regions[i];
		if ((region.guest_address | region.size | region.offset) % pci::kPageSize ||
		    region.client_address + region.size < region.client_address)
			error = EINVAL;
		else
			error = map(region, message.fds[i].get());
	}
	if (error) {
		endpoint_.unmap_all();
		return error;
	}
	regions_ = std::move(regions);
	return 0;
}

int Session::map(const MemoryRegion &region, int fd)
{
	try {
		switch (endpoint_.map({region.guest_address, region.size, region.offset}, fd)) {
		case GuestMemory::MapResult::mapped:
			log_->debug("memory {:#x} + {:#x}", region.guest_address, region.size);
			return 0;
		case GuestMemory::MapResult::overlap:
			return EEXIST;
		case GuestMemory::MapResult::invalid:
			break;
		}
	} catch (const std::system_error &error) {
		return error.code().value();
	}
	return EINVAL;
}

Ring *Session::find_ring(std::uint32_t index)
{
	return index < rings_.size() ? &rings_[index] : nullptr;
}

std::optional<std::uint64_t> Session::guest_address(std::uint64_t client_address) const
{
	for (const MemoryRegion &region : regions_)
		if (client_address - region.client_address < region.size)
			return region.guest_address + (client_address - region.client_address);
	return std::nullopt;
}

int Session::set_vring_num(Message &message)
{
	const auto state = payload<VringState>(message);
	Ring *ring = find_ring(state.index);
	return ring && ring->set_entries(state.number) ? 0 : EINVAL;
}

int Session::set_vring_addr(Message &message)
{
	const auto places = payload<VringAddresses>(message);
	Ring *ring = find_ring(places.index);
	const auto descriptors = guest_address(places.descriptors);
	const auto available = guest_address(places.available);
	const auto used = guest_address(places.used);
	if (!ring || places.flags || !descriptors || !available || !used)
		return EINVAL;
	return ring->set_addresses({*descriptors, *available, *used}) ? 0 : EINVAL;
}

int Session::set_vring_base(Message &message)
{
	const auto state = payload<VringState>(message);
	Ring *ring = find_ring(state.index);
	return ring && state.number <= UINT16_MAX &&
			       ring->set_next(static_cast<std::uint16_t>(state.number))
		       ? 0
		       : EINVAL;
}

// Without these, neither side would be notified of the other's buffers.
int Session::set_vring_enable(Message &message)
{
	const auto state = payload<VringState>(message);
	Ring *ring = find_ring(state.index);
	if (!ring || state.number > 1)
		return EINVAL;
	if (state.number && (!(protocol_features_ & kProtocolInbandNotifications) || !channel_))
		return ENOTSUP;
	return ring->enable(state.number) ? 0 : EINVAL;
}

int Session::set_backend_request_fd(Message &message)
{
	if (!(protocol_features_ & kProtocolBackendRequests))
		return ENOTSUP;
	if (message.fds.size() != 1)
		return EINVAL;
	try {
		auto channel = Channel::take(std::move(message.fds.front()),
					     endpoint_.loop().environment());
		if (!channel)
			return EINVAL;
		channel_ = std::move(channel);
	} catch (const std::system_error &error) {
		return error.code().value();
	}
	return 0;
}

int Session::vring_kick(Message &message)
{
	switch (payload<VringState>(message).index) {
	case kCommandQueue:
		message.cost += run_commands();
		return 0;
	case kMessageQueue:
		interrupts_.flush();
		return 0;
	default:
		return EINVAL;
	}
}

unsigned Session::run_commands()
{
	Ring &ring = rings_[kCommandQueue];
	bool posted = false;
	unsigned done = 0;
	const auto broken = [&](std::string trouble) {
		end(std::move(trouble));
		return done;
	};
	const unsigned slice = endpoint_.loop().environment().stands() ? ring.entries() : kSlice;
	for (;; ++done) {
		if (done == slice) {
			more_commands_.signal();
			break;
		}
		const auto taken = ring.take(chain_, kMaxChain);
		if (taken == Ring::Taken::broken)
			return broken(ring.trouble());
		if (taken == Ring::Taken::nothing)
			break;
		buffer_.resize(sizeof(Command) + kMaxTransfer);
		const auto size = gather(endpoint_.dma(), chain_.readable, buffer_);
		if (!size)
			return broken("a command is not in its memory");
		std::size_t room = 0;
		for (const Descriptor &part : chain_.writable)
			room += part.length;
		const auto answer = commands_.execute(std::span(buffer_).first(*size), room);
		if (!scatter(endpoint_.dma(), chain_.writable, answer))
			return broken("it takes an answer where it has no memory");
		if (!ring.return_chain(chain_, static_cast<std::uint32_t>(answer.size())))
			return broken(ring.trouble());
		posted |= chain_.writable.empty();
	}
	// The guest polls for answers, but needs a call to free posted commands.
	if (posted && ring.wants_call())
		call(kCommandQueue);
	return done;
}

bool Session::send_message(std::uint64_t address, std::uint32_t data)
{
	Ring &ring = rings_[kMessageQueue];
	Ring::Chain &chain = message_chain_;
	const auto taken = ring.take(chain, kMaxChain);
	if (taken == Ring::Taken::broken)
		end(ring.trouble());
	if (taken != Ring::Taken::chain)
		return false;
	std::array<std::byte, sizeof(Command) + sizeof(data)> message;
	const Command head{static_cast<std::uint8_t>(Operation::msi), 0, 0, sizeof(data), address};
	std::memcpy(message.data(), &head, sizeof(head));
	std::memcpy(message.data() + sizeof(head), &data, sizeof(data));
	if (!scatter(endpoint_.dma(), chain.writable, message)) {
		end("a buffer for messages is too small or not in its memory");
		return false;
	}
	if (!ring.return_chain(chain, message.size())) {
		end(ring.trouble());
		return false;
	}
	if (ring.wants_call())
		call(kMessageQueue);
	return true;
}

void Session::call(std::uint32_t queue)
{
	if (!channel_->call(queue))
		end("it does not answer a call");
}

} // namespace weft::vhost_user
