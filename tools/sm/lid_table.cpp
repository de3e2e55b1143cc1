// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/lid_table.hpp"

#include <algorithm>

#include <spdlog/spdlog.h>

namespace weft::sm
{

LidTable::LidTable() : used_(ib::lid_unicast_last + 1u), reserved_(ib::lid_unicast_last + 1u) {}

void LidTable::restore(const std::vector<Entry> &entries)
{
	for (const Entry &entry : entries) {
		if (by_guid_.contains(entry.guid) || !is_free(entry.base, entry.lmc))
			continue;
		const Range range{entry.base, entry.lmc};
		mark(range, true);
		by_guid_[entry.guid] = range;
	}
}

void LidTable::plan(const std::vector<ExpectedPort> &ports, unsigned lmc)
{
	drop_plan();
	for (const ExpectedPort &port : ports) {
		if (by_guid_.contains(port.guid) || planned_.contains(port.guid))
			continue;
		const Range range = allocate(static_cast<std::uint8_t>(port.of_switch ? 0 : lmc));
		if (range.base == 0)
			continue;
		/* Marked as used until all LIDs are planned, so that no two ports get the same. */
		mark(range, true);
		planned_[port.guid] = range;
	}
	for (const auto &[guid, range] : planned_) {
		mark(range, false);
		std::fill_n(reserved_.begin() + range.base, std::size_t{1} << range.lmc, true);
	}
}

void LidTable::drop_plan()
{
	planned_.clear();
	reserved_.assign(reserved_.size(), false);
}

std::vector<LidTable::Entry> LidTable::entries() const
{
	std::vector<Entry> all;
	for (const auto &[guid, range] : by_guid_)
		all.push_back({guid, range.base, range.lmc});
	std::ranges::sort(all, {}, &Entry::guid);
	return all;
}

bool LidTable::is_free(ib::Lid base, std::uint8_t lmc) const
{
	unsigned count = 1u << lmc;
	/* A range of 2^LMC LIDs begins at a multiple of that, IBA 4.1.3. */
	if (base == 0 || base % count != 0 || base + count - 1 > ib::lid_unicast_last)
		return false;
	return std::none_of(used_.begin() + base, used_.begin() + base + count,
			    [](bool used) { return used; });
}

bool LidTable::is_reserved(const Range &range) const
{
	const auto first = reserved_.begin() + range.base;
	return std::any_of(first, first + (1 << range.lmc), [](bool planned) { return planned; });
}

void LidTable::mark(const Range &range, bool used)
{
	std::fill_n(used_.begin() + range.base, std::size_t{1} << range.lmc, used);
	if (!used)
		search_from_ = std::min<unsigned>(search_from_, range.base);
}

LidTable::Range LidTable::allocate(std::uint8_t lmc)
{
	while (search_from_ <= ib::lid_unicast_last && used_[search_from_])
		search_from_++;
	unsigned step = 1u << lmc;
	for (unsigned base = (search_from_ + step - 1) / step * step; base <= ib::lid_unicast_last;
	     base += step)
		if (const Range range{static_cast<ib::Lid>(base), lmc};
		    is_free(range.base, lmc) && !is_reserved(range))
			return range;
	return {};
}

LidTable::Range LidTable::choose(ib::Guid guid, std::uint8_t lmc)
{
	if (const auto planned = planned_.find(guid); planned != planned_.end() &&
						      planned->second.lmc == lmc &&
						      is_free(planned->second.base, lmc))
		return planned->second;
	const Range range = allocate(lmc);
	if (range.base != 0 || planned_.empty())
		return range;
	/* A port that exists is more important than one that is expected. */
	drop_plan();
	return allocate(lmc);
}

void LidTable::forget_absent(const Subnet &subnet)
{
	for (auto it = by_guid_.begin(); it != by_guid_.end();) {
		if (subnet.find_port(it->first)) {
			++it;
		} else {
			mark(it->second, false);
			it = by_guid_.erase(it);
		}
	}
}

void LidTable::renumber()
{
	/*
	 * Keep the old LIDs reserved until all ports have new ones, so that no port gets another's.
	 */
	auto before = by_guid_;
	drop_plan();
	for (auto &[guid, range] : by_guid_) {
		Range other = allocate(range.lmc);
		if (other.base == 0)
			continue;
		mark(other, true);
		range = other;
	}
	for (const auto &[guid, range] : before)
		if (by_guid_[guid].base != range.base)
			mark(range, false);
}

void LidTable::assign(Subnet &subnet, unsigned lmc)
{
	/* First the ports that keep their LIDs, so that new ports do not take them. */
	std::vector<PortRef> waiting;
	for (PortRef ref : subnet.end_ports) {
		PortData &port = subnet.port(ref);
		auto want = static_cast<std::uint8_t>(subnet.node(ref).is_switch() ? 0 : lmc);
		auto known = by_guid_.find(port.guid);
		if (known != by_guid_.end() && known->second.lmc == want)
			continue;
		if (known != by_guid_.end()) {
			mark(known->second, false);
			by_guid_.erase(known);
		}
		Range present{port.info.lid, want};
		if (is_free(present.base, want)) {
			mark(present, true);
			by_guid_[port.guid] = present;
		} else {
			waiting.push_back(ref);
		}
	}
	bool forgotten = false;
	for (PortRef ref : waiting) {
		auto want = static_cast<std::uint8_t>(subnet.node(ref).is_switch() ? 0 : lmc);
		const ib::Guid guid = subnet.port(ref).guid;
		Range range = choose(guid, want);
		if (range.base == 0 && !forgotten) {
			forgotten = true;
			forget_absent(subnet);
			range = allocate(want);
		}
		if (range.base == 0) {
			spdlog::error("sm: no LID left for port GUID {:#018x}", guid);
			continue;
		}
		mark(range, true);
		by_guid_[guid] = range;
	}

	for (PortRef ref : subnet.end_ports) {
		PortData &port = subnet.port(ref);
		auto found = by_guid_.find(port.guid);
		if (found == by_guid_.end())
			continue;
		port.lid = found->second.base;
		port.lmc = found->second.lmc;
		unsigned last = port.lid + (1u << port.lmc) - 1;
		for (unsigned lid = port.lid; lid <= last; lid++)
			subnet.by_lid[static_cast<ib::Lid>(lid)] = ref;
		subnet.top_lid = std::max(subnet.top_lid, static_cast<ib::Lid>(last));
	}
}

} // namespace weft::sm
