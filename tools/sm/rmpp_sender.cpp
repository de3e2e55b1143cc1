// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/rmpp_sender.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace weft::sm
{

namespace
{

using namespace std::chrono_literals;
using ib::RmppHeader;

constexpr auto kResponseTimeout = 500ms;
constexpr unsigned kRetriesMax = 6;
/* Maximum number of transfers. Beyond it, requesters must repeat their requests later. */
constexpr std::size_t kTransfersMax = 1024;
/* Maximum number of segments in flight, even if the receiver's window is larger. */
constexpr std::uint32_t kWindowMax = 64;
/* The SA header is repeated in each segment and counts as payload, IBA 15.2.1.1. */
constexpr std::uint32_t kSaHeader = ib::rmpp_mad_data_bytes - ib::sa_data_bytes;

} // namespace

void RmppSender::start(const fabric::MadAddress &to, std::uint64_t requester, const ib::SaMad &head,
		       RecordSet records)
{
	const Key key{to.dlid, head.header.tid};
	/*
	 * The requester has repeated its request while the answer is being sent. The transfer
	 * continues.
	 */
	if (transfers_.contains(key))
		return;
	/* Transfers are counted per port, because a port may have many LIDs. */
	const auto known = requesters_.find(requester);
	const Requester its = known == requesters_.end() ? Requester{} : known->second;
	const std::size_t size = records.bytes().size();
	if (transfers_.size() >= kTransfersMax || its.transfers >= kTransfersOfOne ||
	    (its.bytes != 0 && its.bytes + size > kBytesOfOne) ||
	    (bytes_ != 0 && bytes_ + size > kBytesMax)) {
		client_.log().warn(to.dlid, client_.now(),
				   "LID {} asks for too many tables at once", to.dlid);
		return;
	}
	Transfer &transfer = transfers_[key];
	transfer.to = to;
	transfer.requester = requester;
	transfer.head = head;
	transfer.segments = std::max(
		1u, (static_cast<std::uint32_t>(size) + ib::sa_data_bytes - 1) / ib::sa_data_bytes);
	transfer.records = std::move(records);
	requesters_[requester].transfers++;
	requesters_[requester].bytes += size;
	bytes_ += size;
	/* The window is one segment until the receiver opens it. */
	send_segment(transfer, ++transfer.sent);
	set_due(key, transfer, client_.now() + kResponseTimeout);
}

std::uint32_t RmppSender::window_end(const Transfer &transfer) const
{
	return std::min(
		{transfer.segments, transfer.window_last, transfer.acknowledged + kWindowMax});
}

void RmppSender::set_due(const Key &key, Transfer &transfer, Clock::time_point due)
{
	due_.remove(transfer.due, key);
	transfer.due = due;
	due_.add(due, key);
}

/* Lets run() send the segments that the window permits. If there are none, restarts the timeout. */
void RmppSender::begin_sending(const Key &key, Transfer &transfer)
{
	if (transfer.sending)
		return;
	if (transfer.sent >= window_end(transfer))
		return set_due(key, transfer, client_.now() + kResponseTimeout);
	set_due(key, transfer, Clock::time_point::max());
	transfer.sending = true;
	Requester &requester = requesters_.at(transfer.requester);
	if (requester.sending.empty())
		sending_.push_back(transfer.requester);
	requester.sending.push_back(key);
}

void RmppSender::end(Transfers::iterator transfer)
{
	const auto &[key, ended] = *transfer;
	due_.remove(ended.due, key);
	const auto requester = requesters_.find(ended.requester);
	const std::size_t size = ended.records.bytes().size();
	bytes_ -= size;
	requester->second.bytes -= size;
	if (ended.sending) {
		std::erase(requester->second.sending, key);
		if (requester->second.sending.empty())
			std::erase(sending_, ended.requester);
	}
	if (--requester->second.transfers == 0)
		requesters_.erase(requester);
	transfers_.erase(transfer);
}

void RmppSender::run(Clock::time_point now, Work &work)
{
	while (work.left()) {
		if (const auto key = due_.take_due(now))
			expire(*key, work);
		else if (!sending_.empty())
			send_next(work);
		else
			return;
	}
}

void RmppSender::send_next(Work &work)
{
	const std::uint64_t next = sending_.front();
	sending_.pop_front();
	Requester &requester = requesters_.at(next);
	const Key key = requester.sending.front();
	requester.sending.pop_front();
	Transfer &transfer = transfers_.at(key);
	send_segment(transfer, ++transfer.sent);
	work.charge(cost::kMadSent);
	if (transfer.sent < window_end(transfer)) {
		requester.sending.push_back(key);
	} else {
		transfer.sending = false;
		set_due(key, transfer, client_.now() + kResponseTimeout);
	}
	if (!requester.sending.empty())
		sending_.push_back(next);
}

void RmppSender::send_segment(const Transfer &transfer, std::uint32_t segment)
{
	ib::SaMad mad = transfer.head;
	const std::span<const std::uint8_t> bytes = transfer.records.bytes();
	auto size = static_cast<std::uint32_t>(bytes.size());
	std::uint32_t from = (segment - 1) * ib::sa_data_bytes;
	std::uint32_t part = std::min(size - from, ib::sa_data_bytes);
	bool first = segment == 1;
	bool last = segment == transfer.segments;
	mad.rmpp.version = RmppHeader::current_version;
	mad.rmpp.type = RmppHeader::data;
	mad.rmpp.time_flags = RmppHeader::make_time_flags(
		RmppHeader::no_response_time, unsigned{RmppHeader::active} |
						      (first ? unsigned{RmppHeader::first} : 0u) |
						      (last ? unsigned{RmppHeader::last} : 0u));
	mad.rmpp.status = 0;
	mad.rmpp.segment = segment;
	/* The first segment contains the total length, and the last one its own. */
	mad.rmpp.length_or_window = last    ? kSaHeader + part
				    : first ? size + transfer.segments * kSaHeader
					    : 0u;
	std::memset(mad.data, 0, sizeof(mad.data));
	if (part != 0)
		std::memcpy(mad.data, bytes.data() + from, part);
	client_.send(transfer.to, reinterpret_cast<const ib::Mad &>(mad));
}

void RmppSender::abort(const Transfer &transfer, ib::RmppStatus status)
{
	ib::SaMad mad = transfer.head;
	mad.rmpp.version = RmppHeader::current_version;
	mad.rmpp.type = RmppHeader::abort;
	mad.rmpp.time_flags =
		RmppHeader::make_time_flags(RmppHeader::no_response_time, RmppHeader::active);
	mad.rmpp.status = status;
	mad.rmpp.segment = 0u;
	mad.rmpp.length_or_window = 0u;
	client_.send(transfer.to, reinterpret_cast<const ib::Mad &>(mad));
}

void RmppSender::handle(const fabric::AddressedMad &mad)
{
	const auto &sa = reinterpret_cast<const ib::SaMad &>(mad.mad);
	auto found = transfers_.find({mad.address.slid, sa.header.tid});
	if (found == transfers_.end())
		return;
	Transfer &transfer = found->second;
	if (sa.rmpp.version != RmppHeader::current_version) {
		abort(transfer, ib::rmpp_status_unsupported_version);
		end(found);
		return;
	}
	switch (sa.rmpp.type) {
	case RmppHeader::stop:
	case RmppHeader::abort:
		end(found);
		return;
	case RmppHeader::ack:
		break;
	default:
		abort(transfer, ib::rmpp_status_bad_type);
		end(found);
		return;
	}
	std::uint32_t segment = sa.rmpp.segment;
	std::uint32_t window_last = sa.rmpp.length_or_window;
	if (segment > transfer.sent) {
		abort(transfer, ib::rmpp_status_segment_too_big);
		end(found);
		return;
	}
	if (window_last < transfer.window_last && segment >= transfer.acknowledged) {
		abort(transfer, ib::rmpp_status_new_window_too_small);
		end(found);
		return;
	}
	/* Ignore an old ACK that arrives after a later one. */
	if (segment < transfer.acknowledged)
		return;
	/* An ACK without progress does not extend the receiver's timeout. */
	if (segment == transfer.acknowledged && window_last == transfer.window_last)
		return;
	if (segment > transfer.acknowledged)
		transfer.retries = 0;
	transfer.acknowledged = segment;
	transfer.window_last = window_last;
	if (transfer.acknowledged == transfer.segments) {
		end(found);
		return;
	}
	begin_sending(found->first, transfer);
}

/* Handles a timeout. The key was already removed from the index. */
void RmppSender::expire(const Key &key, Work &work)
{
	const auto found = transfers_.find(key);
	Transfer &transfer = found->second;
	transfer.due = Clock::time_point::max();
	work.charge(cost::kCompared);
	if (++transfer.retries > kRetriesMax) {
		client_.log().warn(transfer.to.dlid, client_.now(),
				   "LID {} does not acknowledge segment {} of {}", transfer.to.dlid,
				   transfer.acknowledged + 1, transfer.segments);
		abort(transfer, ib::rmpp_status_too_many_retries);
		work.charge(cost::kMadSent);
		return end(found);
	}
	transfer.sent = transfer.acknowledged;
	begin_sending(key, transfer);
}

Clock::time_point RmppSender::due() const
{
	return sending_.empty() ? due_.first() : Clock::time_point::min();
}

} // namespace weft::sm
