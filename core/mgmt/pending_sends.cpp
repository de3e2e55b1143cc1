// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "pending_sends.hpp"

namespace mgmt
{
namespace
{

constexpr u64 ns_per_ms = 1'000'000;
/* The n-th transmission waits n times the time-out, but no more than this many times. */
constexpr unsigned back_off_limit = 4;
/* An ACK, where the consumer has given no time-out. */
constexpr u64 rmpp_ack_timeout_ns = 2'000 * ns_per_ms;

u64 deadline_of(const Send &send, u64 now)
{
	const unsigned factor = send.tries < back_off_limit ? send.tries : back_off_limit;
	return now + static_cast<u64>(send.timeout_ms) * factor * ns_per_ms;
}

/*
 * Whether a word about a response of ours comes from where that response went: transaction ids are
 * the requester's, and two may use the same one.
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
	for (Send &send : outstanding_)
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
	send.timer_node.unlink();
	send.deadline = send.timeout_ms > 0 ? deadline_of(send, now) : now + rmpp_ack_timeout_ns;
	Send *later = nullptr;
	for (Send &other : timed_.reversed()) {
		if (other.deadline <= send.deadline)
			break;
		later = &other;
	}
	if (later)
		timed_.insert_before(*later, send);
	else
		timed_.push_back(send);
	return timed_.front() == &send;
}

Send *PendingSends::expire(u64 now)
{
	Send *send = timed_.front();

	if (!send || send->deadline > now)
		return nullptr;
	send->timer_node.unlink();
	return send;
}

u64 PendingSends::earliest() const
{
	const Send *send = timed_.front();

	return send ? send->deadline : ~u64{0};
}

} // namespace mgmt
