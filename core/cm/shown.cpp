// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Shows the message counters of the communication manager in sysfs, with the same names as in
// Linux.
#include "shown.hpp"

#include <array>

#include "init.hpp"

namespace cm
{
namespace
{

/* The names of the directories, in the order of struct ib_cm_counters. */
constexpr const char *directories[] = {"cm_tx_msgs", "cm_tx_retries", "cm_rx_msgs",
				       "cm_rx_duplicates"};
/* The names of the files, in the order of enum ib_cm_counter_kind. */
constexpr const char *names[] = {"req",  "mra",      "rej",      "rep", "rtu", "dreq",
				 "drep", "sidr_req", "sidr_rep", "lap", "apr"};
static_assert(std::size(names) == IB_CM_COUNTER_KINDS);

bool has_counters(ib_device *ib, u32 port)
{
	return rdma_cap_ib_cm(ib, port);
}

int read_counter(ib_device *ib, u32 number, u32 directory, u32 counter, u64 *value)
{
	const auto device = find_device(*ib);
	if (!device)
		return -ENODEV;
	kern::Guard guard(device->lock());
	const Port *port = device->port(number);
	if (!port)
		return -ENODEV;
	const u64(*const kinds[])[IB_CM_COUNTER_KINDS] = {
		&port->counters.sent, &port->counters.retries, &port->counters.received,
		&port->counters.duplicates};
	static_assert(std::size(kinds) == std::size(directories));
	*value = (*kinds[directory])[counter];
	return 0;
}

} // namespace

constinit const ib_port_counters shown_counters = {
	.directories = directories,
	.directory_count = std::size(directories),
	.names = names,
	.count = std::size(names),
	.has = has_counters,
	.read = read_counter,
};

} // namespace cm
