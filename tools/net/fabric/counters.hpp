// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the counters of a port, as performance management reports them (IBA 16.1.3.5, 16.1.4.11).
 */
#pragma once

#include <atomic>
#include <cstdint>

#include "net/fabric/thread_counters.hpp"

namespace weft::fabric
{

/* Incremented and set on any thread; read by the PMA and by the command line. */
class Counters
{
	/* Numbers of the counters that each packet changes. */
	enum Number : unsigned {
		kXmitData,
		kRcvData,
		kXmitPackets,
		kRcvPackets,
		kMulticastXmitPackets,
		kMulticastRcvPackets,
	};

	using Addition = ThreadCounters::Addition;

	ThreadCounters traffic_;

public:
	Counters() = default;

	/* A counter of events that are rare. */
	using Value = std::atomic<std::uint64_t>;

	/* One of the counters that each packet changes; used like a Value. */
	class Traffic
	{
	public:
		Traffic(ThreadCounters &counters, unsigned number)
		    : counters_(counters), number_(number)
		{
		}
		Traffic(const Traffic &) = delete;
		Traffic &operator=(const Traffic &) = delete;

		std::uint64_t load(std::memory_order = std::memory_order_relaxed) const
		{
			return counters_.value(number_);
		}
		operator std::uint64_t() const { return load(); }
		void store(std::uint64_t value, std::memory_order = std::memory_order_relaxed)
		{
			counters_.set(number_, value);
		}
		Traffic &operator=(std::uint64_t value)
		{
			store(value);
			return *this;
		}

	private:
		friend class Counters;

		ThreadCounters &counters_;
		const unsigned number_;
	};

	/* Data in words of four bytes, LRH to ICRC (IBA 16.1.3.5). */
	Traffic xmit_data{traffic_, kXmitData};
	Traffic rcv_data{traffic_, kRcvData};
	Traffic xmit_packets{traffic_, kXmitPackets};
	Traffic rcv_packets{traffic_, kRcvPackets};
	Traffic multicast_xmit_packets{traffic_, kMulticastXmitPackets};
	Traffic multicast_rcv_packets{traffic_, kMulticastRcvPackets};

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
	static void add(Traffic &value, std::uint64_t amount = 1)
	{
		value.counters_.add({value.number_, amount});
	}

	struct TrafficValues {
		std::uint64_t xmit_data, rcv_data, xmit_packets, rcv_packets,
			multicast_xmit_packets, multicast_rcv_packets;
	};
	/* Returns the counters that each packet changes. Cheaper than reading each of them. */
	TrafficValues traffic() const
	{
		const auto values = traffic_.values();
		return {values[kXmitData],
			values[kRcvData],
			values[kXmitPackets],
			values[kRcvPackets],
			values[kMulticastXmitPackets],
			values[kMulticastRcvPackets]};
	}

	/* Count packets, which have @words words together. */
	void count_sent(unsigned packets, std::uint64_t words, bool multicast)
	{
		traffic_.add({kXmitPackets, packets}, Addition{kXmitData, words});
		if (multicast)
			traffic_.add({kMulticastXmitPackets, 1});
	}
	void count_received(unsigned packets, std::uint64_t words, bool multicast)
	{
		traffic_.add({kRcvPackets, packets}, Addition{kRcvData, words});
		if (multicast)
			traffic_.add({kMulticastRcvPackets, 1});
	}
};

} // namespace weft::fabric
