// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/rmpp_sender.hpp"

#include <algorithm>
#include <cstring>

#include <spdlog/spdlog.h>

namespace weft::sm
{

namespace
{

using namespace std::chrono_literals;
using ib::RmppHeader;

constexpr auto response_timeout = 500ms;
constexpr unsigned retries_max = 6;
/* More than this many requesters at once have to ask again. */
constexpr std::size_t transfers_max = 1024;
/* Segments in flight, however large a window the receiver opens. */
constexpr std::uint32_t window_max = 64;
/* The SA header is repeated in each segment and counts as payload, IBA 15.2.1.1. */
constexpr std::uint32_t sa_header = ib::rmpp_mad_data_bytes - ib::sa_data_bytes;

} // namespace

void RmppSender::start(const fabric::MadAddress &to, std::uint64_t requester, const ib::SaMad &head,
		       const RecordSet &records)
{
	Key key{to.dlid, head.header.tid};
	/* The same question again while its answer is under way: the answer goes on. */
	if (transfers_.contains(key))
		return;
	/* By its port: it may have many LIDs. */
	std::size_t its_transfers = 0, its_bytes = 0, bytes = 0;
	for (const auto &[other, transfer] : transfers_) {
		bytes += transfer.bytes.size();
		if (transfer.requester == requester) {
			its_transfers++;
			its_bytes += transfer.bytes.size();
		}
	}
	const std::size_t size_of_all = records.bytes().size();
	if (transfers_.size() >= transfers_max || its_transfers >= transfers_of_one ||
	    (its_bytes != 0 && its_bytes + size_of_all > bytes_of_one) ||
	    (bytes != 0 && bytes + size_of_all > bytes_max)) {
		spdlog::warn("sm: too many RMPP transfers, LID {} has to wait", to.dlid);
		return;
	}
	Transfer &transfer = transfers_[key];
	transfer.to = to;
	transfer.requester = requester;
	transfer.head = head;
	transfer.bytes.assign(records.bytes().begin(), records.bytes().end());
	auto size = static_cast<std::uint32_t>(transfer.bytes.size());
	transfer.segments = std::max(1u, (size + ib::sa_data_bytes - 1) / ib::sa_data_bytes);
	send_window(transfer);
}

void RmppSender::send_window(Transfer &transfer)
{
	std::uint32_t last = std::min(
		{transfer.segments, transfer.window_last, transfer.acknowledged + window_max});
	while (transfer.sent < last)
		send_segment(transfer, ++transfer.sent);
	transfer.due = client_.now() + response_timeout;
}

void RmppSender::send_segment(const Transfer &transfer, std::uint32_t segment)
{
	ib::SaMad mad = transfer.head;
	auto size = static_cast<std::uint32_t>(transfer.bytes.size());
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
	/* The whole length in the first segment, its own in the last. */
	mad.rmpp.length_or_window = last    ? sa_header + part
				    : first ? size + transfer.segments * sa_header
					    : 0u;
	std::memset(mad.data, 0, sizeof(mad.data));
	if (part != 0)
		std::memcpy(mad.data, transfer.bytes.data() + from, part);
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
		transfers_.erase(found);
		return;
	}
	switch (sa.rmpp.type) {
	case RmppHeader::stop:
	case RmppHeader::abort:
		transfers_.erase(found);
		return;
	case RmppHeader::ack:
		break;
	default:
		abort(transfer, ib::rmpp_status_bad_type);
		transfers_.erase(found);
		return;
	}
	std::uint32_t segment = sa.rmpp.segment;
	std::uint32_t window_last = sa.rmpp.length_or_window;
	if (segment > transfer.sent) {
		abort(transfer, ib::rmpp_status_segment_too_big);
		transfers_.erase(found);
		return;
	}
	if (window_last < transfer.window_last && segment >= transfer.acknowledged) {
		abort(transfer, ib::rmpp_status_new_window_too_small);
		transfers_.erase(found);
		return;
	}
	/* An old ACK, overtaken by a later one. */
	if (segment < transfer.acknowledged)
		return;
	if (segment > transfer.acknowledged)
		transfer.retries = 0;
	transfer.acknowledged = segment;
	transfer.window_last = window_last;
	if (transfer.acknowledged == transfer.segments) {
		transfers_.erase(found);
		return;
	}
	send_window(transfer);
}

void RmppSender::tick(Clock::time_point now)
{
	for (auto it = transfers_.begin(); it != transfers_.end();) {
		Transfer &transfer = it->second;
		if (transfer.due > now) {
			++it;
		} else if (++transfer.retries > retries_max) {
			spdlog::warn("sm: LID {} does not acknowledge segment {} of {}",
				     transfer.to.dlid, transfer.acknowledged + 1,
				     transfer.segments);
			abort(transfer, ib::rmpp_status_too_many_retries);
			it = transfers_.erase(it);
		} else {
			transfer.sent = transfer.acknowledged;
			send_window(transfer);
			++it;
		}
	}
}

Clock::time_point RmppSender::due() const
{
	auto soonest = Clock::time_point::max();
	for (const auto &[key, transfer] : transfers_)
		soonest = std::min(soonest, transfer.due);
	return soonest;
}

} // namespace weft::sm
