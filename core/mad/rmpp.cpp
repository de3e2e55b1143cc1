// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "rmpp.hpp"

namespace mad
{

RmppAck RmppSender::on_ack(std::uint32_t segment, std::uint32_t new_window_last,
			   std::uint8_t &status)
{
	if (new_window_last < segment) {
		status = ib::rmpp_status_new_window_too_small;
		return RmppAck::violation;
	}
	if (segment >= highest_) {
		status = ib::rmpp_status_segment_too_big;
		return RmppAck::violation;
	}
	if (new_window_last > segment + rmpp_send_window)
		new_window_last = segment + rmpp_send_window;
	if (segment < acknowledged_ ||
	    (segment == acknowledged_ && new_window_last <= window_last_))
		return RmppAck::stale;

	acknowledged_ = segment;
	if (next_ <= acknowledged_)
		next_ = acknowledged_ + 1;
	if (new_window_last > window_last_)
		window_last_ = new_window_last;
	return acknowledged_ == count_ ? RmppAck::finished : RmppAck::progress;
}

RmppReceipt RmppReceiver::on_data(const ib::RmppHeader &header, std::uint32_t header_bytes)
{
	const auto segment = header.segment.value();
	const auto length = header.length_or_window.value();
	const bool first = header.flags() & ib::RmppHeader::first;
	const bool last = header.flags() & ib::RmppHeader::last;

	if (segment == 0 || first != (segment == 1))
		return RmppReceipt::abort(ib::rmpp_status_inconsistent_first_and_segment);
	if (last && (length > ib::rmpp_mad_data_bytes || length < header_bytes))
		return RmppReceipt::abort(ib::rmpp_status_inconsistent_last_and_length);
	if (segment > rmpp_segments_max)
		return RmppReceipt::abort(ib::rmpp_status_resources_exhausted);
	if (complete_ || segment != received_ + 1)
		return {.keep = false, .acknowledge = true, .status = ib::rmpp_status_normal};

	received_ = segment;
	const bool window_used_up = segment == window_last_;
	if (window_used_up)
		window_last_ = received_ + rmpp_receive_window;
	if (last) {
		complete_ = true;
		last_length_ = length;
	}
	return {.keep = true,
		.acknowledge = last || window_used_up,
		.status = ib::rmpp_status_normal};
}

} // namespace mad
