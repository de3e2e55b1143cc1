// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Checks the rules of completion notification (NOTIFY in Documentation/rules.rst) under stress: one
// end sends bursts; the other polls, arms and waits, and must never miss an event.
#include <kern/time.hpp>
#include "endpoint.hpp"

namespace traffic
{

namespace
{

constexpr u32 largest_burst = 32;
/*
 * About the time that polling, arming and going to sleep take, so that bursts arrive during each of
 * them.
 */
constexpr u32 longest_gap_us = 60;

} // namespace

kern::Result<> Endpoint::burst(const Arguments &arguments, Answer &answer)
{
	static_assert(largest_burst <= max_batch);
	const u32 count = static_cast<u32>(arguments.number("count", 1000));
	kern::SeededRandom random(arguments.number("seed"));
	if (depth_ < largest_burst)
		return kern::Error{-EINVAL};
	u32 sent = 0, bursts = 0;
	while (sent < count) {
		const u32 wanted = 1 + random.below(largest_burst);
		const u32 n = wanted < count - sent ? wanted : count - sent;
		for (u32 i = 0; i < n; i++) {
			describe(requests_[i], arguments, sent + i);
			requests_[i].wr.send_flags =
				i + 1 < n ? 0 : IB_SEND_SIGNALED | IB_SEND_SOLICITED;
			requests_[i].wr.next = i + 1 < n ? &requests_[i + 1].wr : nullptr;
		}
		const ib_send_wr *bad;
		KERN_TRY_ERRNO(ib_post_send(qp_, &requests_[0].wr, &bad));
		const ib_wc wc = KERN_TRY(wait_completion(send_cq_, wait_ms));
		if (wc.status != IB_WC_SUCCESS) {
			answer.add("status=%s ", ib_wc_status_msg(wc.status));
			return kern::Error{-EIO};
		}
		sent += n;
		bursts++;
		kern::delay_us(random.below(longest_gap_us));
	}
	answer.add("sent=%u bursts=%u", sent, bursts);
	return {};
}

kern::Result<> Endpoint::notify(const Arguments &arguments, Answer &answer)
{
	const u32 count = static_cast<u32>(arguments.number("count", 1000));
	const unsigned int timeout_ms = static_cast<unsigned int>(arguments.number("ms", wait_ms));
	kern::SeededRandom random(arguments.number("seed"));
	const u32 events_before = interrupts_.load_acquire();
	u32 received = 0, arms = 0, missed = 0, waits = 0;
	for (;;) {
		// Read before the poll: an arm that is still in force may raise an event for
		// completions after this point, and no completion raises two events.
		const u32 seen = interrupts_.load_acquire();
		ib_wc wcs[8];
		for (int got; (got = ib_poll_cq(recv_cq_, 8, wcs)) > 0;) {
			for (int i = 0; i < got; i++) {
				if (wcs[i].status != IB_WC_SUCCESS) {
					answer.add("status=%s ", ib_wc_status_msg(wcs[i].status));
					return kern::Error{-EIO};
				}
				KERN_TRY(post_receive(static_cast<u32>(wcs[i].wr_id),
						      receive_size_));
			}
			received += static_cast<u32>(got);
		}
		if (received >= count)
			break;
		if (removals.load_acquire())
			return kern::Error{-ECANCELED};
		if (random.below(2))
			kern::delay_us(random.below(longest_gap_us));
		// A consumer that does not request a report of missed completions polls again
		// itself. A burst ends with a solicited message.
		const bool report_missed = random.below(2);
		const int kind = random.below(2) ? IB_CQ_NEXT_COMP : IB_CQ_SOLICITED;
		const int armed = ib_req_notify_cq(
			recv_cq_, static_cast<ib_cq_notify_flags>(
					  kind | (report_missed ? IB_CQ_REPORT_MISSED_EVENTS : 0)));
		arms++;
		if (armed < 0)
			return kern::Error{armed};
		if (armed > 0 || (!report_missed && ib_peek_cq(recv_cq_, 1) > 0)) {
			missed++;
			continue;
		}
		waits++;
		if (!completed_.wait_for(timeout_ms,
					 [&] { return interrupts_.load_acquire() != seen; })) {
			answer.add("event of %s lost after %u messages, %d wait ",
				   kind == IB_CQ_SOLICITED ? "solicited" : "any", received,
				   ib_peek_cq(recv_cq_, 1));
			return kern::Error{-ETIMEDOUT};
		}
	}
	const u32 events = interrupts_.load_acquire() - events_before;
	answer.add("received=%u arms=%u events=%u waits=%u missed=%u", received, arms, events,
		   waits, missed);
	// NOTIFY-08: there is at most one event for each arm. The CQ may also have been armed
	// before the test began.
	return events <= arms + 1 ? kern::Result<>() : kern::Result<>(kern::Error{-EPROTO});
}

} // namespace traffic
