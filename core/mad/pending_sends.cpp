// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "pending_sends.hpp"

namespace mad
{
namespace
{

constexpr u64 ns_per_ms = 1'000'000;
/* Timeout of an ACK if the consumer has given no timeout. */
constexpr u64 rmpp_ack_timeout_ns = 2'000 * ns_per_ms;

unsigned factor_of(const Send &send)
{
	constexpr unsigned limit = PendingSends::back_off_limit;
	return send.tries == 0 ? 1 : send.tries < limit ? send.tries : limit;
}

/*
 * Returns true if a packet that refers to a response of this node comes from the address to which
 * the response was sent. This is needed because requesters choose transaction IDs, and two may
 * choose the same one.
 */
bool comes_from_requester(const Send &send, const Receive &receive)
{
	rdma_ah_attr address;

	if (!send.header().is_response() || !send.ah || rdma_query_ah(send.ah, &address))
		return true;
	const u32 lid = rdma_ah_get_dlid(&address);
	return lid == IB_LID_PERMISSIVE_HOST ||
	       (lid == receive.completion.slid &&
		send.first().wr.remote_qpn == receive.completion.src_qp);
}

} // namespace

Send *PendingSends::find(const Receive &receive) const
{
	for (Send &send : outstanding_[bucket_of(receive.header())])
		if (!send.is_decided() && !send.reply &&
		    send.header().is_response() != receive.is_response() &&
		    send.header().tid == receive.header().tid &&
		    same_class(send.header().mgmt_class, receive.header().mgmt_class) &&
		    comes_from_requester(send, receive))
			return &send;
	return nullptr;
}

bool PendingSends::wait(Send &send, u64 now)
{
	const unsigned factor = factor_of(send);
	auto &timed = timed_[factor - 1];

	send.timer_node.unlink();
	const u64 former = earliest();
	send.deadline =
		now + (send.timeout_ms > 0 ? static_cast<u64>(send.timeout_ms) * factor * ns_per_ms
					   : rmpp_ack_timeout_ns);
	Send *later = nullptr;
	for (Send &other : timed.reversed()) {
		if (other.deadline <= send.deadline)
			break;
		later = &other;
	}
	if (later)
		timed.insert_before(*later, send);
	else
		timed.push_back(send);
	return send.deadline < former;
}

Send *PendingSends::first() const
{
	Send *first = nullptr;

	for (const auto &timed : timed_)
		if (Send *send = timed.front();
		    send && (!first || send->deadline < first->deadline))
			first = send;
	return first;
}

Send *PendingSends::expire(u64 now)
{
	Send *send = first();

	if (!send || send->deadline > now)
		return nullptr;
	send->timer_node.unlink();
	return send;
}

u64 PendingSends::earliest() const
{
	const Send *send = first();

	return send ? send->deadline : ~u64{0};
}

bool PendingSends::empty() const
{
	for (const SendList &bucket : outstanding_)
		if (!bucket.empty())
			return false;
	return !first();
}

} // namespace mad
