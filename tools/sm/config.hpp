// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Configuration of a subnet manager.
 */
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
	/* Members not listed below: none, limited or full. */
	enum class Membership : std::uint8_t { none, limited, full };
	Membership others = Membership::full;
	/* Keyed by port GUID. */
	std::map<ib::Guid, Membership> members{};
	/* Keep the broadcast group of IPoIB ready (RFC 4391), with these parameters. */
	bool ipoib = true;
	ib::Mtu mtu = ib::Mtu::mtu_2048;
	/* Empty: 10 Gb/s, or what the slowest link of a member can carry. */
	std::optional<ib::Rate> rate{};
	std::uint8_t sl = 0;
	std::uint32_t qkey = 0x0b1b;
	std::uint8_t scope = 2;
	bool operator==(const Partition &) const = default;
};

struct Config {
	std::string name = "weft SM";
	/* Node GUID of the end node that the manager runs on; its port's is one more. */
	ib::Guid guid = 0x02000000000000f0;
	/* 0 to 15; among equals the lower GUID is master (IBA 14.4.1). */
	unsigned priority = 0;
	std::uint64_t sm_key = 0;
	std::uint64_t gid_prefix = ib::gid_prefix_link_local;
	/* LMC of channel adapters' ports. */
	unsigned lmc = 0;
	/* OperationalVLs encoding that links are limited to (ib::vl_count()). */
	unsigned vls = 1;
	std::vector<Partition> partitions{Partition{}};
	/*
	 * GUIDs of ports whose nodes take no part in managing the subnet: managers there are
	 * ignored, and their settings can only be changed with the M_Key.
	 */
	std::set<ib::Guid> untrusted{};
	/* The M_Key of those ports; 0: a random one. */
	std::uint64_t mkey = 0;
	/* The key that a Set to that port takes; 0 for none. */
	std::uint64_t key_of(ib::Guid port_guid) const
	{
		return untrusted.contains(port_guid) ? mkey : 0;
	}

	/* File that keeps LIDs over a restart; empty: none. */
	std::filesystem::path lids{};

	/*
	 * The time in which an SMP must be answered, and the number of times that it is sent again.
	 */
	std::chrono::milliseconds smp_timeout{250};
	unsigned smp_retries = 3;
	/* SMPs under way at once. */
	unsigned smp_window = 32;
	/* The interval of sweeps that find changes for which no trap has arrived. */
	std::chrono::milliseconds light_sweep_interval{5000};
	/* While standby: the interval between queries of the master. */
	std::chrono::milliseconds poll_interval{2000};
	bool operator==(const Config &) const = default;
};

} // namespace weft::sm
