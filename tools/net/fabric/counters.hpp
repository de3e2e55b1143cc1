// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the counters of a port, as performance management reports them (IBA 16.1.3.5, 16.1.4.11).
 */
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::fabric
{

/* Incremented on any thread with relaxed ordering; read by the PMA and by the command line. */
struct Counters {
	using Value = std::atomic<std::uint64_t>;

	/* Data in words of four bytes, LRH to ICRC (IBA 16.1.3.5). */
	Value xmit_data{0};
	Value rcv_data{0};
	Value xmit_packets{0};
	Value rcv_packets{0};
	Value multicast_xmit_packets{0};
	Value multicast_rcv_packets{0};

	Value symbol_errors{0};
	Value link_error_recovery{0};
	Value link_downed{0};
	Value rcv_errors{0};
	Value rcv_remote_physical_errors{0};
	Value rcv_switch_relay_errors{0};
	Value xmit_discards{0};
	Value xmit_constraint_errors{0};
	Value rcv_constraint_errors{0};
	Value local_link_integrity_errors{0};
	Value buffer_overrun_errors{0};
	Value vl15_dropped{0};
	/* Number of times that a packet had to wait for credit. */
	Value xmit_wait{0};

	static void add(Value &value, std::uint64_t amount = 1)
	{
		value.fetch_add(amount, std::memory_order_relaxed);
	}
};

} // namespace weft::fabric
