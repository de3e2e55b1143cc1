// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Defines the configuration of a subnet manager. */
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ib/types.hpp>

namespace weft::sm
{

/* A partition and its IPoIB broadcast group. */
struct Partition {
	std::string name = "default";
	ib::Pkey pkey = ib::pkey_default_full;
	/* Membership of ports that are not listed below. */
	enum class Membership : std::uint8_t { none, limited, full };
	Membership others = Membership::full;
	/* Keyed by port GUID. */
	std::map<ib::Guid, Membership> members{};
	/*
	 * True if the broadcast group of IPoIB (RFC 4391) is created and kept, with these
	 * parameters.
	 */
	bool ipoib = true;
	ib::Mtu mtu = ib::Mtu::mtu_2048;
	/*
	 * Rate of the group. If empty: 10 Gb/s, or the rate of the slowest link of a member if that
	 * is lower.
	 */
	std::optional<ib::Rate> rate{};
	std::uint8_t sl = 0;
	std::uint32_t qkey = 0x0b1b;
	std::uint8_t scope = 2;
	bool operator==(const Partition &) const = default;
};

/* An end port that the subnet will probably have. */
struct ExpectedPort {
	ib::Guid guid = 0;
	bool of_switch = false; /* port 0 of a switch */
	bool operator==(const ExpectedPort &) const = default;
};

struct Config {
	std::string name = "weft SM";
	/* Node GUID of the manager's end node; the GUID of its port is one more. */
	ib::Guid guid = 0x02000000000000f0;
	/* 0 to 15. At equal priority, the manager with the lower GUID is master (IBA 14.4.1). */
	unsigned priority = 0;
	/*
	 * The SM_Key by which managers of the subnet recognise each other. OpenSM ignores managers
	 * with another key than its own, which is 1 by default.
	 */
	std::uint64_t sm_key = 1;
	/* A query of the SA with this key in its header is trusted. If 0, no query is trusted. */
	std::uint64_t sa_key = 0;
	std::uint64_t gid_prefix = ib::gid_prefix_link_local;
	/* LMC of channel adapters' ports. */
	unsigned lmc = 0;
	/* Limit of OperationalVLs of links, in its encoding (ib::vl_count()). */
	unsigned vls = 1;
	std::vector<Partition> partitions{Partition{}};
	/*
	 * GUIDs of ports whose nodes may not take part in managing the subnet: subnet managers
	 * there are ignored, and the settings of these ports can only be changed with the M_Key.
	 */
	std::set<ib::Guid> untrusted{};
	/* The M_Key of those ports; 0 selects a random one. */
	std::uint64_t mkey = 0;
	/* Returns the M_Key that a Set to that port requires, or 0 if it requires none. */
	std::uint64_t key_of(ib::Guid port_guid) const
	{
		return untrusted.contains(port_guid) ? mkey : 0;
	}

	/* File in which LIDs are stored across restarts; empty for no file. */
	std::filesystem::path lids{};
	/*
	 * LIDs are planned for these ports in this order, so that a port's LID does not depend on
	 * the times at which the others are discovered.
	 */
	std::vector<ExpectedPort> expected{};

	/* Timeout of an SMP, and the number of retries. */
	std::chrono::milliseconds smp_timeout{250};
	unsigned smp_retries = 3;
	/* Maximum number of outstanding SMPs. */
	unsigned smp_window = 32;
	/* Interval of sweeps that find changes for which no trap has arrived. */
	std::chrono::milliseconds light_sweep_interval{5000};
	/* Interval of queries to the master in the standby state. */
	std::chrono::milliseconds poll_interval{2000};
	bool operator==(const Config &) const = default;
};

} // namespace weft::sm
