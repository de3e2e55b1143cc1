// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Table of the ports' LIDs. A port keeps its LIDs from sweep to sweep, even while it is missing,
 * and a new manager keeps consistent LIDs that an earlier one assigned.
 */
#pragma once

#include <unordered_map>
#include <vector>

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

	/*
	 * Restores the LIDs of ports that were there before; leaves out LIDs that are taken or
	 * invalid.
	 */
	void restore(const std::vector<Entry> &entries);
	/* All, of ports that are away too, by GUID. */
	std::vector<Entry> entries() const;

	/*
	 * Give every end port its base LID and LMC (switches have one LID), and fill in by_lid and
	 * top_lid. Ports for which no LIDs are left get none, and a log line.
	 */
	void assign(Subnet &subnet, unsigned lmc);

	/*
	 * Let every port known have other LIDs than before at the next assign(); one for which none
	 * are left keeps its own.
	 */
	void renumber();

private:
	struct Range {
		ib::Lid base = 0;
		std::uint8_t lmc = 0;
	};
	bool is_free(ib::Lid base, std::uint8_t lmc) const;
	void mark(const Range &range, bool used);
	Range allocate(std::uint8_t lmc);
	/* Forget ports that are away, so that their LIDs can be used again. */
	void forget_absent(const Subnet &subnet);

	std::unordered_map<ib::Guid, Range> by_guid_;
	std::vector<bool> used_;
	/* No free LID lies below. */
	unsigned search_from_ = 1;
};

} // namespace weft::sm
