// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/tcp/stack.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace weft::tcp
{

namespace
{

constexpr std::uint8_t kEchoReply = 0, kEchoRequest = 8;
constexpr std::size_t kEchoHeader = 8;
// The dynamic ports, which are not assigned to any service (RFC 6335).
constexpr std::uint16_t kFirstPort = 49152;
constexpr std::uint16_t kPorts = 16384;
// Class D and above: groups, reserved addresses, and the broadcast address.
constexpr Ip kFirstGroup = 0xe0000000;

} // namespace

Stack::Stack(Loop &loop, const Config &config, std::function<void(Bytes frame)> send)
    : loop_(loop), config_(config), send_(std::move(send)),
      neighbours_(
	      loop,
	      [this](Ip wanted) {
		      const auto source = source_towards(wanted);
		      if (source)
			      send_(encode({kBroadcast, config_.mac, kTypeArp},
					   Arp{false, config_.mac, 0, *source, wanted}));
	      },
	      [this](Ip address) { unreachable(address); }),
      destruction_(loop, [this] { to_destroy_.clear(); }),
      own_wakeup_(loop, [this] { receive_own(); })
{
}

Stack::~Stack()
{
	while (!connections_.empty()) {
		const ConnectionPtr connection = connections_.begin()->second;
		connections_.erase(connections_.begin());
		connection->set_user(nullptr);
		connection->fail(End::aborted);
	}
}

bool Stack::add_address(Ip address, Ip mask)
{
	if (owns(address))
		return true;
	if (!address || addresses_.size() == kMostAddresses)
		return false;
	addresses_.push_back({address, mask});
	// Announces the address, so that hosts with an outdated entry correct it (RFC 5227 section
	// 2.3).
	send_(encode({kBroadcast, config_.mac, kTypeArp},
		     Arp{false, config_.mac, 0, address, address}));
	return true;
}

void Stack::remove_address(Ip address)
{
	if (!std::erase_if(addresses_,
			   [&](const Address &each) { return each.address == address; }))
		return;
	std::vector<ConnectionPtr> ending;
	for (const auto &[pair, connection] : connections_)
		if (pair.local.address == address)
			ending.push_back(connection);
	for (const ConnectionPtr &connection : ending)
		connection->fail(End::unreachable);
}

bool Stack::owns(Ip address) const
{
	return std::ranges::any_of(addresses_,
				   [&](const Address &each) { return each.address == address; });
}

// Returns false for addresses that cannot belong to a single host on the host's own networks.
bool Stack::is_host(Ip address) const
{
	return address && address < kFirstGroup &&
	       std::ranges::none_of(
		       addresses_,
		       [&](const Address &each) {
			       return ~each.mask > 1 && address == (each.address | ~each.mask);
		       });
}

std::optional<Ip> Stack::source_towards(Ip destination) const
{
	for (const Address &each : addresses_)
		if ((each.address & each.mask) == (destination & each.mask))
			return each.address;
	return std::nullopt;
}

bool Stack::listen(const Endpoint &local, std::function<void(const ConnectionPtr &)> accept)
{
	if (!local.port || listeners_.size() == kMostListeners)
		return false;
	return listeners_.try_emplace(local, Listener{std::move(accept)}).second;
}

void Stack::stop_listening(const Endpoint &local)
{
	if (!listeners_.erase(local))
		return;
	std::vector<ConnectionPtr> ending;
	for (const Pair &pair : unfinished_)
		if (!listener_of(pair.local))
			if (const auto found = connections_.find(pair); found != connections_.end())
				ending.push_back(found->second);
	for (const ConnectionPtr &connection : ending)
		connection->abort();
}

Stack::Listener *Stack::listener_of(const Endpoint &local)
{
	for (const Endpoint &each : {local, Endpoint{0, local.port}})
		if (const auto found = listeners_.find(each); found != listeners_.end())
			return &found->second;
	return nullptr;
}

// Starts the search at a random port, so that ports, like the first sequence number, cannot be
// guessed (RFC 6056, RFC 6528).
std::uint16_t Stack::unused_port(Ip local, const Endpoint &remote)
{
	const auto first = static_cast<std::uint32_t>(loop_.random());
	for (std::uint32_t i = 0; i < kPorts; ++i) {
		const auto port = static_cast<std::uint16_t>(kFirstPort + (first + i) % kPorts);
		if (!connections_.contains({{local, port}, remote}) && !listener_of({local, port}))
			return port;
	}
	return 0;
}

ConnectionPtr Stack::connect(const Endpoint &remote, User &user)
{
	const auto local = source_towards(remote.address);
	if (!local || !remote.port || !may_add_connection())
		return nullptr;
	const std::uint16_t port = unused_port(*local, remote);
	if (!port)
		return nullptr;
	const Pair pair{{*local, port}, remote};
	const auto connection = std::make_shared<Connection>(loop_, setup_for(pair), nullptr);
	connection->set_user(&user);
	connections_.emplace(pair, connection);
	return connection;
}

Connection::Setup Stack::setup_for(const Pair &pair)
{
	return {.pair = pair,
		.mss = static_cast<std::uint16_t>(config_.mtu - kIpHeader - kTcpHeader),
		.first_sequence = static_cast<std::uint32_t>(loop_.random()),
		.send =
			[this, pair](const Segment &segment) {
				const bool answers =
					(segment.flags & kRst) ||
					(segment.flags & (kSyn | kAck)) == (kSyn | kAck);
				send_segment(pair, segment,
					     answers ? Neighbours::For::answer
						     : Neighbours::For::self);
			},
		.share =
			[this] {
				return kMostHeld / std::max<std::size_t>(connections_.size(), 1);
			},
		.established =
			[this, pair] {
				std::erase(unfinished_, pair);
				const ConnectionPtr connection = connections_.at(pair);
				if (Listener *const listener = listener_of(pair.local)) {
					// Copy the callback, which may stop listening.
					const auto accept = listener->accept;
					accept(connection);
				} else
					connection->abort();
			},
		.over = [this, pair] { destroy_later(pair); }};
}

void Stack::destroy_later(const Pair &pair)
{
	std::erase(unfinished_, pair);
	const auto found = connections_.find(pair);
	if (found == connections_.end())
		return;
	to_destroy_.push_back(std::move(found->second));
	connections_.erase(found);
	destruction_.signal();
}

void Stack::receive(View frame)
{
	const auto ethernet = parse_ethernet(frame);
	if (!ethernet ||
	    (ethernet->destination != config_.mac && ethernet->destination != kBroadcast))
		return;
	const View payload = frame.subspan(kEthernetHeader);
	if (ethernet->type == kTypeArp) {
		if (const auto arp = parse_arp(payload))
			take_arp(*arp);
		return;
	}
	// Broadcast frames do not belong to connections.
	if (ethernet->type != kTypeIp || ethernet->destination == kBroadcast)
		return;
	const auto packet = parse_packet(payload);
	if (!packet || !owns(packet->destination) || !is_host(packet->source) ||
	    !source_towards(packet->source))
		return;
	if (packet->protocol == kProtocolTcp)
		take_segment(*packet);
	else if (packet->protocol == kProtocolIcmp)
		take_echo(*packet);
}

void Stack::take_arp(const Arp &arp)
{
	if (owns(arp.sender))
		return;
	if (!owns(arp.target))
		return neighbours_.learn(arp.sender, arp.sender_mac);
	if (arp.reply)
		return neighbours_.learn(arp.sender, arp.sender_mac);
	// An answer to a group's address would reach all hosts, so the request is ignored.
	if (!is_unicast(arp.sender_mac))
		return;
	if (source_towards(arp.sender) && is_host(arp.sender))
		neighbours_.learn_anew(arp.sender, arp.sender_mac);
	send_(encode({arp.sender_mac, config_.mac, kTypeArp},
		     Arp{true, config_.mac, arp.sender_mac, arp.target, arp.sender}));
}

void Stack::take_echo(const Packet &packet)
{
	if (packet.payload.size() < kEchoHeader || packet.payload[0] != kEchoRequest ||
	    checksum(packet.payload))
		return;
	Bytes reply(packet.payload.begin(), packet.payload.end());
	reply[0] = kEchoReply;
	reply[2] = reply[3] = 0;
	const std::uint16_t sum = checksum(reply);
	reply[2] = static_cast<std::uint8_t>(sum >> 8);
	reply[3] = static_cast<std::uint8_t>(sum);
	send_packet({packet.destination, packet.source, kProtocolIcmp, reply},
		    Neighbours::For::answer);
}

void Stack::take_segment(const Packet &packet)
{
	const auto segment = parse_segment(packet);
	if (!segment)
		return;
	const Pair pair{{packet.destination, segment->destination},
			{packet.source, segment->source}};
	if (const auto found = connections_.find(pair); found != connections_.end()) {
		// Keep a reference, because the connection may be removed while it handles the
		// segment.
		const ConnectionPtr connection = found->second;
		return connection->take(*segment);
	}
	const bool opens = (segment->flags & (kSyn | kAck | kRst)) == kSyn;
	if (opens && segment->source && listener_of(pair.local))
		return open_passively(pair, *segment);
	refuse(pair, *segment);
}

void Stack::open_passively(const Pair &pair, const Segment &syn)
{
	make_room_for_unfinished();
	if (!may_add_connection())
		return;
	connections_.emplace(pair, std::make_shared<Connection>(loop_, setup_for(pair), &syn));
	unfinished_.push_back(pair);
}

void Stack::make_room_for_unfinished()
{
	if (unfinished_.size() < kMostUnfinished)
		return;
	// Per address: true if no host is known to have it, and its number of connections.
	std::map<Ip, std::pair<bool, std::size_t>> callers;
	for (const Pair &pair : unfinished_) {
		const Ip address = pair.remote.address;
		auto &caller =
			callers.try_emplace(address, !neighbours_.knows(address), 0).first->second;
		++caller.second;
	}
	const auto first = std::ranges::max(callers | std::views::values);
	const auto oldest = std::ranges::find_if(unfinished_, [&](const Pair &pair) {
		return callers.at(pair.remote.address) == first;
	});
	const ConnectionPtr connection = connections_.at(*oldest);
	connection->fail(End::timed_out);
}

// Returns true if another connection may be created. At the limit, drops one in TIME_WAIT for it.
bool Stack::may_add_connection()
{
	if (connections_.size() < kMostConnections)
		return true;
	for (const auto &[pair, connection] : connections_)
		if (connection->state() == State::time_wait) {
			const ConnectionPtr closed = connection;
			closed->fail(End::closed);
			return true;
		}
	return false;
}

void Stack::refuse(const Pair &pair, const Segment &segment)
{
	if (segment.flags & kRst)
		return;
	Segment answer;
	answer.source = pair.local.port;
	answer.destination = pair.remote.port;
	answer.flags = kRst;
	if (segment.flags & kAck) {
		answer.sequence = segment.acknowledgement;
	} else {
		answer.flags |= kAck;
		answer.acknowledgement = segment.sequence + segment.length();
	}
	send_segment(pair, answer, Neighbours::For::answer);
}

void Stack::send_segment(const Pair &pair, const Segment &segment, Neighbours::For what)
{
	const Bytes bytes = encode(pair.local.address, pair.remote.address, segment);
	send_packet({pair.local.address, pair.remote.address, kProtocolTcp, bytes}, what);
}

void Stack::send_packet(const Packet &packet, Neighbours::For what)
{
	if (!source_towards(packet.destination) || packet.payload.size() + kIpHeader > config_.mtu)
		return;
	// A packet to the host itself is queued and not sent on the cable. Delivering it here would
	// reenter the sender.
	if (owns(packet.destination)) {
		if (own_.size() < kMostOwn)
			own_.push_back(encode({config_.mac, config_.mac, kTypeIp}, packet));
		return own_wakeup_.signal();
	}
	Bytes frame = encode({0, config_.mac, kTypeIp}, packet);
	// @send is called at most once.
	neighbours_.reach(packet.destination, what,
			  [this, frame = std::move(frame)](Mac mac) mutable {
				  for (std::size_t i = 0; i < 6; ++i)
					  frame[i] = static_cast<std::uint8_t>(mac >> (40 - 8 * i));
				  send_(std::move(frame));
			  });
}

// Delivers queued packets to the host itself. Packets that are sent meanwhile are handled after
// other work of the loop.
void Stack::receive_own()
{
	for (std::size_t left = own_.size(); left; --left) {
		const Bytes frame = std::move(own_.front());
		own_.pop_front();
		receive(frame);
	}
}

// Ends the connections that were never answered. The neighbour may answer the other ones again
// before they time out.
void Stack::unreachable(Ip neighbour)
{
	std::vector<ConnectionPtr> ending;
	for (const auto &[pair, connection] : connections_)
		if (connection->state() == State::syn_sent && pair.remote.address == neighbour)
			ending.push_back(connection);
	for (const ConnectionPtr &connection : ending)
		connection->fail(End::unreachable);
}

} // namespace weft::tcp
