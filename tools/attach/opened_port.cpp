// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "attach/opened_port.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "attach/mad_class.hpp"
#include "attach/node_port.hpp"

namespace weft::attach
{

namespace
{

using namespace std::chrono_literals;

// Maximum wait for an ACK from the receiver of an RMPP message. If the program's timeout is
// shorter, it is used instead.
constexpr Clock::duration kAckTime = 2s;
// Number of sends that are repeated or failed before the loop runs other tasks.
constexpr unsigned kExpireSlice = 64;
constexpr std::size_t kLeastBytes = sizeof(ib::MadHeader) + sizeof(ib::RmppHeader);

bool is_directed(const ib::Mad &mad)
{
	return mad.header.cls() == ib::MgmtClass::subn_directed_route;
}

// Builds the GRH for the address that the program has specified.
ib::Grh grh_of(const UserMad &header, const ib::Gid &own)
{
	ib::Grh grh{};
	grh.set_version(ib::Grh::ip_version);
	grh.set_traffic_class(header.traffic_class);
	grh.set_flow_label(header.flow_label & 0xfffff);
	grh.next_header = ib::Grh::next_header_bth;
	grh.hop_limit = header.hop_limit;
	grh.sgid = own;
	std::memcpy(grh.dgid.raw, header.gid, sizeof(grh.dgid.raw));
	return grh;
}

} // namespace

OpenedPort::OpenedPort(Loop &loop, std::shared_ptr<NodePort> port, std::function<void()> output)
    : loop_(loop), port_(std::move(port)), output_(std::move(output)),
      timer_(loop, [this] { expire(); }), expire_more_(loop, [this] { expire(); })
{
}

OpenedPort::~OpenedPort()
{
	for (const auto &agent : agents_)
		if (agent)
			port_->remove_claim(agent->claim.hi_tid);
}

int OpenedPort::add_agent(const AgentRequest &request, std::uint32_t &id)
{
	if (const int error = Claim::check(request))
		return error;
	if (request.qpn == ib::qpn_smi && !port_->trusted())
		return EPERM;
	const auto place = std::ranges::find_if(agents_, [](const auto &agent) { return !agent; });
	if (place == agents_.end())
		return ENOMEM;
	Agent agent;
	agent.claim = Claim::of(request);
	agent.does_rmpp = request.rmpp_version != 0 && (request.flags & kUserRmpp) == 0;
	if (!port_->add_claim(agent.claim, *this))
		return EINVAL;
	*place = agent;
	id = static_cast<std::uint32_t>(place - agents_.begin());
	return 0;
}

int OpenedPort::remove_agent(std::uint32_t id)
{
	if (id >= kMostAgents || !agents_[id])
		return EINVAL;
	port_->remove_claim(agents_[id]->claim.hi_tid);
	agents_[id].reset();
	for (auto each = sends_.begin(); each != sends_.end();) {
		const auto next = std::next(each);
		if (each->second.agent == id)
			end(each);
		each = next;
	}
	return 0;
}

bool OpenedPort::may_take() const
{
	return sends_.size() + outcomes_ < kMostSends && sent_bytes_ < kMostSentBytes;
}

void OpenedPort::take(const Message &message)
{
	if (const int error = start(message))
		refuse(message, error);
}

void OpenedPort::refuse(const Message &message, int error)
{
	if (message.header.timeout_ms == 0)
		return;
	Message outcome{message.header, message.bytes, true};
	outcome.bytes.resize(sizeof(ib::MadHeader));
	outcome.header.status = static_cast<std::uint32_t>(error);
	outcome.header.length = sizeof(UserMad) + sizeof(ib::MadHeader);
	push(std::move(outcome));
}

int OpenedPort::address_of(const Agent &agent, const UserMad &header, fabric::MadAddress &to) const
{
	const fabric::PortView &view = *port_->view();
	to.dlid = header.lid;
	to.sl = header.sl & 0xf;
	to.src_qp = agent.claim.qpn;
	to.dest_qp = header.qpn & 0xffffff;
	to.qkey = header.qkey;
	if (agent.claim.qpn == ib::qpn_smi)
		return to.dest_qp == ib::qpn_smi ? 0 : EINVAL;
	if (header.pkey_index >= view.pkeys.size() || view.pkeys[header.pkey_index] == 0)
		return EINVAL;
	to.pkey = view.pkeys[header.pkey_index];
	if (header.grh_present) {
		if (header.gid_index >= view.guids.size())
			return EINVAL;
		to.grh = grh_of(header, ib::Gid::from_parts(view.port.gid_prefix,
							    view.guids[header.gid_index]));
	}
	return 0;
}

int OpenedPort::start(const Message &message)
{
	const UserMad &header = message.header;
	const std::size_t size = message.bytes.size();
	if (header.agent >= kMostAgents || !agents_[header.agent] || !port_->view() ||
	    size < kLeastBytes || size > kMostBytes)
		return EINVAL;
	const Agent &agent = *agents_[header.agent];
	Send send;
	send.agent = header.agent;
	send.header = header;
	send.awaits_answer = header.timeout_ms != 0;
	std::memcpy(&send.mad, message.bytes.data(), std::min(size, sizeof(send.mad)));
	if (send.mad.header.is_smp() != (agent.claim.qpn == ib::qpn_smi))
		return EINVAL;
	if (const int error = address_of(agent, header, send.to))
		return error;
	const bool rmpp = agent.does_rmpp && is_rmpp_active(send.mad);
	if (rmpp) {
		const std::size_t headers = header_bytes(send.mad.header.mgmt_class);
		if (size < headers)
			return EINVAL;
		send.data.assign(message.bytes.begin() + static_cast<std::ptrdiff_t>(headers),
				 message.bytes.end());
		const std::size_t room = sizeof(ib::Mad) - headers;
		send.rmpp.emplace(static_cast<std::uint32_t>(
			std::max<std::size_t>(1, (send.data.size() + room - 1) / room)));
	} else if (size > sizeof(send.mad)) {
		return EINVAL;
	}
	if (!send.mad.header.is_response())
		send.mad.header.tid = std::uint64_t{agent.claim.hi_tid} << 32 |
				      (send.mad.header.tid.value() & 0xffffffff);
	// A program that implements RMPP itself sends segments and ACKs with the same transaction
	// ID.
	const bool alone = rmpp || !is_rmpp_active(send.mad);
	if (alone && (send.awaits_answer || rmpp) && is_duplicate(send))
		return EINVAL;
	send.tries_left = send.awaits_answer || rmpp ? header.retries : 0;
	begin(std::move(send));
	return 0;
}

bool OpenedPort::is_duplicate(const Send &send) const
{
	const auto [first, last] = sends_.equal_range(send.mad.header.tid);
	return std::any_of(first, last, [&](const auto &each) {
		const Send &other = each.second;
		const bool response = send.mad.header.is_response();
		return other.mad.header.mgmt_class == send.mad.header.mgmt_class &&
		       other.mad.header.is_response() == response &&
		       (!response || other.to.dlid == send.to.dlid);
	});
}

void OpenedPort::begin(Send &&send)
{
	if (!send.awaits_answer && !send.rmpp)
		return transmit(send);
	sent_bytes_ += send.data.size();
	const auto place = sends_.emplace(send.mad.header.tid.value(), std::move(send));
	place->second.self = place;
	transmit(place->second);
	arm();
}

// Sends a MAD, or as many segments as the receiver's window permits, and starts the timeout.
void OpenedPort::transmit(Send &send)
{
	fabric::LocalAccess &access = port_->access();
	Clock::duration time = std::chrono::milliseconds(send.header.timeout_ms);
	if (!send.rmpp) {
		access.send_mad(send.to, send.header.path_bits, send.mad);
	} else {
		while (const std::uint32_t segment = send.rmpp->next()) {
			access.send_mad(send.to, send.header.path_bits, segment_of(send, segment));
			send.rmpp->sent();
		}
		if (!send.awaits_answer || time > kAckTime)
			time = kAckTime;
	}
	if (send.awaits_answer || send.rmpp)
		set_due(send, loop_.now() + time);
}

ib::Mad OpenedPort::segment_of(const Send &send, std::uint32_t segment) const
{
	ib::Mad mad{};
	const std::uint8_t mgmt_class = send.mad.header.mgmt_class;
	const std::size_t headers = header_bytes(mgmt_class);
	const std::uint32_t count = send.rmpp->count();
	const std::size_t room = sizeof(mad) - headers, from = (segment - 1) * room;
	const std::size_t part = std::min(room, send.data.size() - from);
	const bool first = segment == 1, last = segment == count;
	std::memcpy(&mad, &send.mad, headers);
	if (part != 0)
		std::memcpy(reinterpret_cast<std::byte *>(&mad) + headers, send.data.data() + from,
			    part);
	ib::RmppHeader &rmpp = rmpp_of(mad);
	rmpp.version = ib::RmppHeader::current_version;
	rmpp.type = ib::RmppHeader::data;
	rmpp.time_flags = ib::RmppHeader::make_time_flags(
		rmpp_of(send.mad).response_time(),
		unsigned{ib::RmppHeader::active} | (first ? unsigned{ib::RmppHeader::first} : 0u) |
			(last ? unsigned{ib::RmppHeader::last} : 0u));
	rmpp.status = ib::rmpp_status_normal;
	rmpp.segment = segment;
	// The header of the class is part of each segment.
	const std::uint32_t own = class_header_bytes(mgmt_class);
	rmpp.length_or_window =
		last ? own + static_cast<std::uint32_t>(part)
		     : (first ? static_cast<std::uint32_t>(send.data.size()) + count * own : 0u);
	return mad;
}

void OpenedPort::set_due(Send &send, Clock::time_point due)
{
	due_.erase({send.due, &send});
	send.due = due;
	due_.emplace(due, &send);
}

void OpenedPort::arm()
{
	const auto sends = due_.empty() ? Clock::time_point::max() : due_.begin()->first;
	const auto due = std::min(sends, receptions_.due());
	if (due == Clock::time_point::max())
		timer_.cancel();
	else
		timer_.arm_at(due);
}

void OpenedPort::end(Sends::iterator send)
{
	due_.erase({send->second.due, &send->second});
	sent_bytes_ -= send->second.data.size();
	sends_.erase(send);
	output_();
}

void OpenedPort::fail(Sends::iterator send, int error)
{
	if (send->second.awaits_answer) {
		Message outcome{send->second.header, {}, true};
		outcome.header.status = static_cast<std::uint32_t>(error);
		outcome.header.length = sizeof(UserMad) + sizeof(ib::MadHeader);
		const auto bytes = std::as_bytes(std::span(&send->second.mad.header, 1));
		outcome.bytes.assign(bytes.begin(), bytes.end());
		push(std::move(outcome));
	}
	end(send);
}

void OpenedPort::expire()
{
	const auto now = loop_.now();
	const auto is_due = [&] { return !due_.empty() && due_.begin()->first <= now; };
	for (unsigned left = kExpireSlice; left && is_due(); --left) {
		Send &send = *due_.begin()->second;
		if (send.tries_left == 0) {
			fail(send.self, ETIMEDOUT);
			continue;
		}
		--send.tries_left;
		if (send.rmpp)
			send.rmpp->rewind();
		transmit(send);
	}
	receptions_.expire(now);
	if (is_due())
		expire_more_.signal();
	else
		arm();
}

std::uint32_t OpenedPort::agent_of(std::uint32_t hi_tid) const
{
	std::uint32_t id = 0;
	while (id < kMostAgents && !(agents_[id] && agents_[id]->claim.hi_tid == hi_tid))
		++id;
	return id;
}

// Returns the send to which a response, or the ACK of an RMPP message, belongs.
OpenedPort::Sends::iterator OpenedPort::find(const fabric::AddressedMad &mad)
{
	const auto [first, last] = sends_.equal_range(mad.mad.header.tid);
	const auto found = std::find_if(first, last, [&](const auto &each) {
		const Send &send = each.second;
		return send.mad.header.mgmt_class == mad.mad.header.mgmt_class &&
		       send.mad.header.is_response() != mad.mad.header.is_response() &&
		       (is_directed(mad.mad) || send.to.grh || send.to.dlid == mad.address.slid);
	});
	return found == last ? sends_.end() : found;
}

void OpenedPort::receive(std::uint32_t hi_tid, const fabric::AddressedMad &mad)
{
	const std::uint32_t id = agent_of(hi_tid);
	if (id == kMostAgents)
		return;
	const bool segment = is_rmpp_active(mad.mad);
	if (segment && agents_[id]->does_rmpp)
		return receive_rmpp(id, mad);
	const auto bytes = std::as_bytes(std::span(&mad.mad, 1));
	if (!mad.mad.header.is_response())
		return deliver(id, mad, bytes);
	const auto send = find(mad);
	// Segments and ACKs that the program handles itself need not match a request.
	if (send == sends_.end() && !segment)
		return;
	deliver(id, mad, bytes);
	if (send != sends_.end())
		end(send);
	arm();
}

void OpenedPort::receive_rmpp(std::uint32_t id, const fabric::AddressedMad &mad)
{
	const ib::RmppHeader &rmpp = rmpp_of(mad.mad);
	const bool ends = rmpp.type == ib::RmppHeader::stop || rmpp.type == ib::RmppHeader::abort;
	// STOP and ABORT are not answered, because two peers that refuse each other would never
	// stop.
	if (rmpp.version != ib::RmppHeader::current_version && !ends)
		return answer_rmpp(mad, ib::RmppHeader::abort, ib::rmpp_status_unsupported_version,
				   0, 0);
	switch (rmpp.type) {
	case ib::RmppHeader::data:
		return receive_data(id, mad);
	case ib::RmppHeader::ack:
	case ib::RmppHeader::stop:
	case ib::RmppHeader::abort:
		return receive_ack(mad);
	default:
		return answer_rmpp(mad, ib::RmppHeader::abort, ib::rmpp_status_bad_type, 0, 0);
	}
}

void OpenedPort::receive_data(std::uint32_t id, const fabric::AddressedMad &mad)
{
	const bool response = mad.mad.header.is_response();
	const auto send = response ? find(mad) : sends_.end();
	if (response && send == sends_.end() && !receptions_.knows(mad))
		return;
	Receptions::Taken taken = receptions_.take(mad, loop_.now());
	if (taken.discarded)
		return;
	if (taken.receipt.aborts()) {
		answer_rmpp(mad, ib::RmppHeader::abort, taken.receipt.status, 0, 0);
	} else if (taken.receipt.acknowledge) {
		answer_rmpp(mad, ib::RmppHeader::ack, ib::rmpp_status_normal, taken.received,
			    taken.window_last);
	}
	if (!taken.message.empty()) {
		deliver(id, mad, taken.message);
		if (send != sends_.end())
			end(send);
	} else if (send != sends_.end()) {
		// Do not repeat the request while its response is arriving.
		set_due(send->second, loop_.now() + kReceptionSilence);
	}
	arm();
}

void OpenedPort::receive_ack(const fabric::AddressedMad &mad)
{
	const ib::RmppHeader &rmpp = rmpp_of(mad.mad);
	if (rmpp.type == ib::RmppHeader::abort)
		receptions_.give_up(mad);
	const auto found = find(mad);
	if (found == sends_.end() || !found->second.rmpp)
		return;
	Send &send = found->second;
	if (rmpp.type != ib::RmppHeader::ack)
		return fail(found, ECONNABORTED);
	std::uint8_t status = ib::rmpp_status_normal;
	switch (send.rmpp->on_ack(rmpp.segment, rmpp.length_or_window, status)) {
	case mad::RmppAck::stale:
		break;
	case mad::RmppAck::progress:
		send.tries_left = send.header.retries;
		transmit(send);
		break;
	case mad::RmppAck::finished:
		if (!send.awaits_answer)
			return end(found);
		send.tries_left = 0;
		set_due(send, loop_.now() + std::chrono::milliseconds(send.header.timeout_ms));
		break;
	case mad::RmppAck::violation:
		answer_rmpp(mad, ib::RmppHeader::abort, status, 0, 0);
		return fail(found, ECONNABORTED);
	}
	arm();
}

void OpenedPort::answer_rmpp(const fabric::AddressedMad &mad, ib::RmppHeader::Type type,
			     std::uint8_t status, std::uint32_t segment, std::uint32_t window)
{
	ib::Mad answer{};
	answer.header = mad.mad.header;
	// The roles are exchanged between a request and its response (IBA 13.6.4).
	answer.header.method ^= ib::mad_response_bit;
	ib::RmppHeader &rmpp = rmpp_of(answer);
	rmpp.version = ib::RmppHeader::current_version;
	rmpp.type = type;
	rmpp.time_flags = ib::RmppHeader::make_time_flags(ib::RmppHeader::no_response_time,
							  ib::RmppHeader::active);
	rmpp.status = status;
	rmpp.segment = segment;
	rmpp.length_or_window = window;
	// The class's own header is returned unchanged.
	std::memcpy(answer.data + sizeof(rmpp), mad.mad.data + sizeof(rmpp),
		    class_header_bytes(answer.header.mgmt_class));
	const std::uint8_t path_bits = describe(mad).path_bits;
	port_->access().send_mad(mad.address.reversed(), path_bits, answer);
}

UserMad OpenedPort::describe(const fabric::AddressedMad &mad) const
{
	UserMad header{};
	header.qpn = mad.address.src_qp;
	header.lid = mad.address.slid;
	header.sl = mad.address.sl;
	const fabric::PortView *view = port_->view();
	if (!view)
		return header;
	if (!is_directed(mad.mad))
		header.path_bits = static_cast<std::uint8_t>(mad.address.dlid &
							     ((1u << view->port.lmc()) - 1));
	const auto pkey = std::ranges::find_if(
		view->pkeys, [&](ib::Pkey own) { return ib::pkey_match(own, mad.address.pkey); });
	if (pkey != view->pkeys.end())
		header.pkey_index = static_cast<std::uint16_t>(pkey - view->pkeys.begin());
	if (mad.address.grh) {
		const ib::Grh &grh = *mad.address.grh;
		header.grh_present = 1;
		header.hop_limit = grh.hop_limit;
		header.traffic_class = grh.traffic_class();
		header.flow_label = grh.flow_label();
		std::memcpy(header.gid, grh.sgid.raw, sizeof(header.gid));
		const auto own = std::ranges::find(view->guids, grh.dgid.interface_id());
		if (own != view->guids.end())
			header.gid_index = static_cast<std::uint8_t>(own - view->guids.begin());
	}
	return header;
}

void OpenedPort::deliver(std::uint32_t id, const fabric::AddressedMad &mad,
			 std::span<const std::byte> bytes)
{
	Message message{describe(mad), {bytes.begin(), bytes.end()}, mad.mad.header.is_response()};
	message.header.agent = id;
	message.header.length = static_cast<std::uint32_t>(sizeof(UserMad) + bytes.size());
	push(std::move(message));
}

void OpenedPort::push(Message &&message)
{
	const bool full = unread_bytes_ >= kMostUnreadBytes;
	if (!message.outcome && (full || unread_.size() - outcomes_ >= kMostUnread))
		return;
	if (full && message.bytes.size() > sizeof(ib::Mad)) {
		message.bytes.resize(sizeof(ib::MadHeader));
		message.header.status = ENOBUFS;
		message.header.length = sizeof(UserMad) + sizeof(ib::MadHeader);
	}
	outcomes_ += message.outcome;
	unread_bytes_ += message.bytes.size();
	unread_.push_back(std::move(message));
	output_();
}

void OpenedPort::received_first()
{
	outcomes_ -= unread_.front().outcome;
	unread_bytes_ -= unread_.front().bytes.size();
	unread_.pop_front();
}

} // namespace weft::attach
