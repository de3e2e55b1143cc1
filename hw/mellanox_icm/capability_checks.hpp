// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Checks of capabilities that are the same for all cards, before the driver relies on them.
#pragma once
#include <kern/bits.hpp>
#include <kern/log.hpp>
#include <kern/result.hpp>

namespace mellanox_icm
{

/* Reports a value that no card of the family has. Returns EPROTO. Context: any. */
inline kern::Error refuse(const char *what, u64 value)
{
	kern_error_limited("the card's capabilities make no sense: %s is %#lx\n", what, value);
	return kern::Error{-EPROTO};
}

/*
 * The driver finds an entry of a context table by a shift, and maps tables by pages: sizes must be
 * powers of two of at least `minimum` and at most a page.
 */
inline bool entry_size_ok(u32 size, u32 minimum)
{
	return kern::is_power_of_two(size) && size >= minimum && size <= 4096;
}

/*
 * Layout: the mailbox's, from which the capabilities were read. Errors: EPROTO, which is logged.
 * Context: any.
 */
template<class Layout, class Capabilities>
kern::Result<> check_common(const Capabilities &cap, const u8 *mailbox)
{
	if (cap.num_ports < 1 || cap.num_ports > 2)
		return refuse("number of ports", cap.num_ports);
	if (Layout::log_min_page_size.get(mailbox) > 12)
		return refuse("log2 of the smallest page", Layout::log_min_page_size.get(mailbox));
	if (!cap.uar_bytes)
		return refuse("log2 of the UAR size", Layout::log_uar_size.get(mailbox));
	// Sixteen bits count work requests; four name the size of a shared queue.
	if (cap.log_max_qp_size < 4 || cap.log_max_qp_size > 15)
		return refuse("log2 of the largest work queue", cap.log_max_qp_size);
	if (cap.log_max_srq_size > 15)
		return refuse("log2 of the largest SRQ", cap.log_max_srq_size);
	if (cap.log_max_requester_reads > 7 || cap.log_max_responder_reads > 7)
		return refuse("log2 of RDMA reads", cap.log_max_requester_reads);
	if (cap.entry.mtt != 8)
		return refuse("MTT entry size", cap.entry.mtt);
	return {};
}

} // namespace mellanox_icm
