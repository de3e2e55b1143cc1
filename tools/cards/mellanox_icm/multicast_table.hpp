// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the multicast groups of a card: a hash table with chains. The driver maintains it
// entry by entry (READ_MCG, WRITE_MCG), and the card walks it for each multicast packet.
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
	// How an entry marks its members: by a count in the entry's header, or by a valid bit for
	// each member.
	enum class Members : std::uint8_t { counted, marked };

	explicit MulticastTable(Members members = Members::counted) : rule_(members) {}

	// Maximum number of non-zero entries. Only these use memory.
	static constexpr std::size_t kMost = 8192;
	// Maximum number of queue pairs to which a multicast packet is delivered, and of entries
	// that are searched for them.
	static constexpr std::size_t kMostMembers = 4096;
	static constexpr std::size_t kMostSteps = 1024;

	// Clears the table, which then has 2^@log_size entries of 2^@log_entry_size bytes. The hash
	// selects one of the first @hash_size entries.
	void reset(unsigned log_entry_size, std::uint32_t hash_size, unsigned log_size);

	std::size_t entry_size() const { return entry_size_; }
	std::uint32_t size() const { return size_; }
	// Returns the index of the first entry of the group's chain.
	std::uint32_t hash(const ib::Gid &gid) const;
	// Returns true if entry @index exists.
	bool has(std::uint32_t index) const { return index < size_; }
	// Reads an entry. @entry must have entry_size() bytes. Returns false if entry @index does
	// not exist.
	bool read(std::uint32_t index, std::span<std::uint8_t> entry) const;
	// Writes an entry. Returns false if entry @index does not exist, or if there would be too
	// many non-zero entries.
	bool write(std::uint32_t index, std::span<const std::uint8_t> entry);

	// Appends the members of group @gid to @out, up to kMostMembers. It reads at most
	// kMostSteps entries of a chain, because the driver may have created a cycle.
	void members(const ib::Gid &gid, std::vector<Member> &out) const override;

private:
	const Members rule_;
	std::size_t entry_size_ = 0;
	std::uint32_t hash_size_ = 0;
	std::uint32_t size_ = 0;
	std::map<std::uint32_t, std::vector<std::uint8_t>> entries_; // non-zero entries by index
};

} // namespace weft::mellanox_icm
