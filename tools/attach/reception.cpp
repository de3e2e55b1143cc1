// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "attach/reception.hpp"

#include <algorithm>
#include <utility>

#include "attach/mad_class.hpp"

namespace weft::attach
{

Receptions::Key Receptions::key_of(const fabric::AddressedMad &mad)
{
	return {mad.address.slid, mad.address.src_qp, mad.mad.header.mgmt_class,
		mad.mad.header.is_response(), mad.mad.header.tid.value()};
}

// Makes space for a new message by dropping a complete one, which is kept only to answer
// repetitions.
bool Receptions::make_room()
{
	if (messages_.size() < kMostReceptions)
		return true;
	const auto done = std::ranges::find_if(
		messages_, [](const auto &each) { return each.second.receiver.complete(); });
	if (done == messages_.end())
		return false;
	end(done);
	return true;
}

void Receptions::end(std::map<Key, Incoming>::iterator message)
{
	bytes_ -= message->second.bytes.size();
	messages_.erase(message);
}

Receptions::Taken Receptions::take(const fabric::AddressedMad &mad, Clock::time_point now)
{
	Taken taken;
	const Key key = key_of(mad);
	const ib::RmppHeader &rmpp = rmpp_of(mad.mad);
	auto found = messages_.find(key);
	if (found == messages_.end()) {
		if (rmpp.segment != 1u || !make_room()) {
			taken.discarded = true;
			return taken;
		}
		found = messages_.try_emplace(key).first;
	}
	Incoming &message = found->second;
	taken.receipt =
		message.receiver.on_data(rmpp, class_header_bytes(mad.mad.header.mgmt_class));
	if (taken.receipt.keep && bytes_ >= kMostReceivedBytes)
		taken.receipt = mad::RmppReceipt::abort(ib::rmpp_status_resources_exhausted);
	if (taken.receipt.aborts()) {
		end(found);
		return taken;
	}
	if (taken.receipt.keep) {
		const auto segment = std::as_bytes(std::span(&mad.mad, 1));
		// The headers are stored once. The total length follows from the last segment.
		const std::size_t from = message.receiver.received() == 1
						 ? 0
						 : header_bytes(mad.mad.header.mgmt_class);
		const std::size_t to = message.receiver.complete()
					       ? sizeof(ib::MadHeader) + sizeof(ib::RmppHeader) +
							 message.receiver.last_length()
					       : segment.size();
		const auto part = segment.subspan(from, to - from);
		message.bytes.insert(message.bytes.end(), part.begin(), part.end());
		bytes_ += part.size();
	}
	taken.received = message.receiver.received();
	taken.window_last = message.receiver.window_last();
	if (!message.receiver.complete()) {
		message.due = now + kReceptionSilence;
	} else if (taken.receipt.keep) {
		bytes_ -= message.bytes.size();
		taken.message = std::exchange(message.bytes, {});
		message.due = now + kReceptionLinger;
	}
	return taken;
}

void Receptions::give_up(const fabric::AddressedMad &mad)
{
	const auto found = messages_.find(key_of(mad));
	if (found != messages_.end() && !found->second.receiver.complete())
		end(found);
}

void Receptions::expire(Clock::time_point now)
{
	for (auto each = messages_.begin(); each != messages_.end();) {
		const auto next = std::next(each);
		if (each->second.due <= now)
			end(each);
		each = next;
	}
}

Clock::time_point Receptions::due() const
{
	auto first = Clock::time_point::max();
	for (const auto &[key, message] : messages_)
		first = std::min(first, message.due);
	return first;
}

} // namespace weft::attach
