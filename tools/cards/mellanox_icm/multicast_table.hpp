// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Multicast groups of a card: a hash table with chains that the driver maintains entry by entry
// (READ_MCG, WRITE_MCG) and the card walks on each multicast packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <ib/types.hpp>

#include "cards/hca/groups.hpp"

namespace weft::mellanox_icm
{

class MulticastTable final : public hca::Groups
{
public:
	// How an entry says which of its places hold members: a count in its head, or a bit in
	// each.
	enum class Members : std::uint8_t { counted, marked };

	explicit MulticastTable(Members members = Members::counted) : rule_(members) {}

	// Entries that are not zero, at a time: the table costs what is used in it.
	static constexpr std::size_t kMost = 8192;
	// A multicast packet goes to so many queue pairs at the most, for which so many entries are
	// looked through.
	static constexpr std::size_t kMostMembers = 4096;
	static constexpr std::size_t kMostSteps = 1024;

	// Empties the table: 2^@log_size entries of 2^@log_entry_size bytes, of which the first
	// @hash_size are reached by hash.
	void reset(unsigned log_entry_size, std::uint32_t hash_size, unsigned log_size);

	std::size_t entry_size() const { return entry_size_; }
	std::uint32_t size() const { return size_; }
	// The chain's first entry.
	std::uint32_t hash(const ib::Gid &gid) const;
	// Returns true if there is an entry @index.
	bool has(std::uint32_t index) const { return index < size_; }
	// @entry is entry_size() bytes; false if there is no entry @index.
	bool read(std::uint32_t index, std::span<std::uint8_t> entry) const;
	// False if there is no entry @index, or if it would be one too many that is not zero.
	bool write(std::uint32_t index, std::span<const std::uint8_t> entry);

	// Appends the members of group @gid to @out, up to kMostMembers. A chain is followed
	// no further than kMostSteps: the driver may have made it endless.
	void members(const ib::Gid &gid, std::vector<Member> &out) const override;

private:
	const Members rule_;
	std::size_t entry_size_ = 0;
	std::uint32_t hash_size_ = 0;
	std::uint32_t size_ = 0;
	std::map<std::uint32_t, std::vector<std::uint8_t>> entries_; // those that are not all zero
};

} // namespace weft::mellanox_icm
