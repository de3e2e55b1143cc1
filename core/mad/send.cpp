// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "send.hpp"

#include "agent.hpp"
#include "links.hpp"
#include "special_qp.hpp"

namespace mad
{

kern::Result<kern::Owned<Receive>> Receive::create()
{
	return kern::make<Receive>(kern::Gfp::atomic | kern::Gfp::no_warn);
}

void Receive::present()
{
	wc = &completion;
	recv_buf.grh = &buffer.grh;
	recv_buf.mad = reinterpret_cast<ib_mad *>(&buffer.mad);
	links_init(rmpp_list);
	links_push_back(rmpp_list, recv_buf.list);
	mad_len = ib::mad_bytes;
	mad_seg_size = ib::mad_bytes;
}

Receive *Receive::of_link(ib_list_head *link)
{
	constexpr auto offset = __builtin_offsetof(ib_mad_recv_wc, recv_buf) +
				__builtin_offsetof(ib_mad_recv_buf, list);
	auto *public_part =
		reinterpret_cast<ib_mad_recv_wc *>(reinterpret_cast<char *>(link) - offset);
	return static_cast<Receive *>(public_part);
}

Send::Send(Agent &owner) : ib_mad_send_buf{}
{
	mad_agent = &owner;
}

kern::Result<kern::Owned<Send>> Send::create(Agent &agent, u32 remote_qpn, u16 pkey_index,
					     bool rmpp, int header_bytes, int data_bytes,
					     kern::Gfp gfp)
{
	constexpr int mad_bytes = ib::mad_bytes;
	constexpr int least_header =
		static_cast<int>(sizeof(ib::MadHeader)) + static_cast<int>(sizeof(ib::RmppHeader));

	if (header_bytes < static_cast<int>(sizeof(ib::MadHeader)) || header_bytes > mad_bytes ||
	    data_bytes < 0)
		return kern::Error{-EINVAL};
	const int segment_bytes = mad_bytes - header_bytes;
	if (rmpp ? segment_bytes == 0 || header_bytes < least_header : data_bytes > segment_bytes)
		return kern::Error{-EINVAL};

	std::uint32_t segments = 1;
	if (rmpp && data_bytes > 0)
		segments = (static_cast<std::uint32_t>(data_bytes) + segment_bytes - 1) /
			   segment_bytes;
	if (segments > rmpp_segments_max)
		return kern::Error{-EINVAL};

	auto send = KERN_TRY(kern::make<Send>(gfp, agent));
	const auto make_packet = [&]() -> kern::Result<kern::Owned<Packet>> {
		auto packet = KERN_TRY(kern::make<Packet>(gfp));
		packet->send = send.get();
		packet->wr.remote_qpn = remote_qpn;
		packet->wr.remote_qkey = remote_qpn == 0 ? 0 : IB_QP_SET_QKEY;
		packet->wr.pkey_index = pkey_index;
		return packet;
	};
	send->first_packet = KERN_TRY(make_packet());
	if (segments > 1)
		send->more_packets =
			KERN_TRY(kern::make_array<kern::Owned<Packet>>(gfp, segments - 1));
	for (kern::Owned<Packet> &packet : send->more_packets)
		packet = KERN_TRY(make_packet());
	if (rmpp)
		send->rmpp = RmppSender(segments);

	send->mad = send->first().bytes;
	send->hdr_len = header_bytes;
	send->data_len = data_bytes;
	send->seg_count = static_cast<int>(segments);
	send->seg_size = segment_bytes;
	send->seg_rmpp_size = mad_bytes - least_header;
	return send;
}

void Send::prepare_segment(std::uint32_t segment)
{
	Packet &packet = this->packet(segment);
	const bool last = segment == rmpp.count();

	if (segment != 1)
		__builtin_memcpy(packet.bytes, first().bytes, static_cast<std::size_t>(hdr_len));

	unsigned flags = ib::RmppHeader::active;
	const auto pad = static_cast<std::uint32_t>(seg_count * seg_size - data_len);
	const auto payload = static_cast<std::uint32_t>(seg_rmpp_size);
	std::uint32_t length = 0;
	if (last) {
		flags |= ib::RmppHeader::last;
		length = payload - pad;
	}
	if (segment == 1) {
		flags |= ib::RmppHeader::first;
		length = rmpp.count() * payload - pad;
	}
	auto &header = packet.rmpp();
	header.version = ib::RmppHeader::current_version;
	header.type = ib::RmppHeader::data;
	header.time_flags = ib::RmppHeader::make_time_flags(first().rmpp().response_time(), flags);
	header.status = ib::rmpp_status_normal;
	header.segment = segment;
	header.length_or_window = length;
}

} // namespace mad
