// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Checks the capabilities that mlx4 and mthca cards report in the same form, before the driver
// relies on them.
#pragma once
#include <kern/bits.hpp>
#include <kern/log.hpp>
#include <kern/result.hpp>

namespace mellanox_icm
{

/* Reports a value that no card of the family can have. Returns EPROTO. Context: any. */
inline kern::Error report_invalid(const char *what, u64 value)
{
	kern_error_limited("invalid capabilities of the card: %s is %#lx\n", what, value);
	return kern::Error{-EPROTO};
}

/*
 * Returns true if the size of a context table's entry is valid. The driver finds an entry by a
 * shift, and maps tables in pages. So the size must be a power of two between `minimum` and a page.
 */
inline bool entry_size_ok(u32 size, u32 minimum)
{
	return kern::is_power_of_two(size) && size >= minimum && size <= 4096;
}

/*
 * Checks the capabilities that all cards have. Layout: the layout of the mailbox from which they
 * were read. Errors: EPROTO, which is logged. Context: any.
 */
template<class Layout, class Capabilities>
kern::Result<> check_common(const Capabilities &cap, const u8 *mailbox)
{
	if (cap.num_ports < 1 || cap.num_ports > 2)
		return report_invalid("number of ports", cap.num_ports);
	if (Layout::log_min_page_size.get(mailbox) > 12)
		return report_invalid("log2 of the smallest page",
				      Layout::log_min_page_size.get(mailbox));
	if (!cap.uar_bytes)
		return report_invalid("log2 of the UAR size", Layout::log_uar_size.get(mailbox));
	// Work requests are counted in 16 bits, and contexts have 4 bits for log2 of the size.
	if (cap.log_max_qp_size < 4 || cap.log_max_qp_size > 15)
		return report_invalid("log2 of the largest work queue", cap.log_max_qp_size);
	if (cap.log_max_srq_size > 15)
		return report_invalid("log2 of the largest SRQ", cap.log_max_srq_size);
	if (cap.log_max_requester_reads > 7 || cap.log_max_responder_reads > 7)
		return report_invalid("log2 of RDMA reads", cap.log_max_requester_reads);
	if (cap.entry.mtt != 8)
		return report_invalid("MTT entry size", cap.entry.mtt);
	return {};
}

} // namespace mellanox_icm
