// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements flow tables. Their entries match header fields, the same fields in each group of
// entries, and forward a packet to a transport interface or to a table of a higher level.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <hw/mlx5/steering.hpp>

#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/number_pool.hpp"
#include "cards/mlx5/numbered.hpp"

namespace weft::mlx5
{

class FlowTables
{
public:
	using Headers = hw::mlx5::FlowHeaders;
	using Status = hw::mlx5::Status;

	struct Destination {
		bool is_table = false; // if false, a TIR
		std::uint32_t number = 0;
	};
	struct Group {
		std::uint32_t first = 0;
		std::uint32_t last = 0;
		Headers mask{};
	};
	struct Entry {
		std::uint32_t group = 0;
		std::uint32_t action = 0;
		Headers value{};
		std::optional<Destination> destination; // set for entries that forward
	};
	struct Table {
		std::uint8_t level = 0;
		std::uint8_t log_size = 0;
		std::uint32_t miss_table = 0; // 0: packets that match no entry are dropped
		std::map<std::uint32_t, Group> groups;
		std::map<std::uint32_t, Entry> entries; // by index, which is their precedence
	};

	// Commands. If one of these fails, it has changed nothing.
	Status create(const Table &table, std::uint32_t &number);
	Status destroy(std::uint32_t number);
	Status set_miss(std::uint32_t number, std::uint32_t miss_table);
	Status create_group(std::uint32_t table, const Group &group, std::uint32_t &number);
	Status destroy_group(std::uint32_t table, std::uint32_t number);
	Status set_entry(std::uint32_t table, std::uint32_t index, const Entry &entry);
	// @selected: bits of FlowEntry::selected; other fields remain unchanged.
	Status modify_entry(std::uint32_t table, std::uint32_t index, std::uint32_t selected,
			    const Entry &entry);
	Status delete_entry(std::uint32_t table, std::uint32_t index);

	bool contains(std::uint32_t number) const { return tables_.find(number) != nullptr; }
	// Returns the TIR for a packet that enters at table @root; nothing if the packet is
	// dropped.
	std::optional<std::uint32_t> steer(std::uint32_t root, const Headers &headers) const;
	void reset();

private:
	// A table may forward only to tables of higher levels, so that there is no loop.
	bool may_lead_to(const Table &table, std::uint32_t other) const;
	Status check_action(const Table &table, const Entry &entry) const;

	Numbered<Table> tables_;
	std::size_t entries_ = 0; // number of entries of all tables
	NumberPool table_numbers_{1, 1 + (1u << limits::kLogFlowTables)};
	NumberPool group_numbers_{1, 1 + (1u << limits::kLogFlowGroups)};
};

} // namespace weft::mlx5
