// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Assigns the LIDs of ports. A port keeps its LIDs from sweep to sweep. The LIDs of a missing port
 * are reused only if no other LIDs are left. A new manager keeps consistent LIDs that an earlier
 * one assigned.
 */
#pragma once

#include <unordered_map>
#include <vector>

#include "sm/config.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

class LidTable
{
public:
	static constexpr unsigned kLmcMax = 7;
	struct Entry {
		ib::Guid guid = 0;
		ib::Lid base = 0;
		std::uint8_t lmc = 0;
	};

	LidTable();

	/* Restores stored LIDs, except those that are in use or invalid. */
	void restore(const std::vector<Entry> &entries);
	/*
	 * Plans LIDs for the ports that have none: the LIDs that they would get if a sweep found
	 * all of them in this order. Other ports do not get these LIDs as long as there are others.
	 */
	void plan(const std::vector<ExpectedPort> &ports, unsigned lmc);
	/* Returns all entries, sorted by GUID, including those of missing ports. */
	std::vector<Entry> entries() const;

	/*
	 * Assigns each end port its base LID and LMC (switches have one LID), and fills in by_lid
	 * and top_lid. Ports for which no LIDs are left get none, which is logged.
	 */
	void assign(Subnet &subnet, unsigned lmc);

	/*
	 * Makes the next assign() give new LIDs to every known port. A port keeps its LIDs if no
	 * others are left.
	 */
	void renumber();

private:
	struct Range {
		ib::Lid base = 0;
		std::uint8_t lmc = 0;
	};
	bool is_free(ib::Lid base, std::uint8_t lmc) const;
	bool is_reserved(const Range &range) const;
	/* Returns the planned LIDs of the port, or others. */
	Range choose(ib::Guid guid, std::uint8_t lmc);
	void mark(const Range &range, bool used);
	Range allocate(std::uint8_t lmc);
	/* Removes missing ports, so that their LIDs can be reused. */
	void forget_absent(const Subnet &subnet);

	void drop_plan();

	std::unordered_map<ib::Guid, Range> by_guid_;
	std::unordered_map<ib::Guid, Range> planned_;
	/* Both are indexed by LID. */
	std::vector<bool> used_;
	std::vector<bool> reserved_; // planned for a port
	/* All LIDs below this one are in use. */
	unsigned search_from_ = 1;
};

} // namespace weft::sm
