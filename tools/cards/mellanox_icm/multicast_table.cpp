// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/multicast_table.hpp"

#include <algorithm>
#include <cstring>

#include <hw/mlx4/contexts.hpp>

namespace weft::mellanox_icm
{

using hw::mlx4::McgHeader;
using hw::mlx4::McgMember;

void MulticastTable::reset(unsigned log_entry_size, std::uint32_t hash_size, unsigned log_size)
{
	entries_.clear();
	entry_size_ = std::size_t{1} << log_entry_size;
	hash_size_ = hash_size;
	size_ = std::uint32_t{1} << log_size;
}

// FNV-1a. Cards may choose any hash function, because drivers query the hash (MGID_HASH).
std::uint32_t MulticastTable::hash(const ib::Gid &gid) const
{
	std::uint32_t value = 0x811c9dc5;
	for (const std::uint8_t byte : gid.raw)
		value = (value ^ byte) * 0x01000193;
	value ^= value >> 16;
	return hash_size_ ? value % hash_size_ : 0;
}

bool MulticastTable::read(std::uint32_t index, std::span<std::uint8_t> entry) const
{
	if (index >= size_ || entry.size() != entry_size_)
		return false;
	const auto found = entries_.find(index);
	if (found == entries_.end())
		std::ranges::fill(entry, std::uint8_t{0});
	else
		std::ranges::copy(found->second, entry.begin());
	return true;
}

bool MulticastTable::write(std::uint32_t index, std::span<const std::uint8_t> entry)
{
	if (index >= size_ || entry.size() != entry_size_)
		return false;
	if (std::ranges::all_of(entry, [](std::uint8_t byte) { return byte == 0; }))
		entries_.erase(index);
	else if (entries_.size() < kMost || entries_.contains(index))
		entries_[index].assign(entry.begin(), entry.end());
	else
		return false;
	return true;
}

void MulticastTable::members(const ib::Gid &gid, std::vector<Member> &out) const
{
	const std::size_t room = entry_size_ < McgHeader::size
					 ? 0
					 : (entry_size_ - McgHeader::size) / McgMember::size;
	std::uint32_t index = hash(gid);
	const std::size_t most = out.size() + kMostMembers;
	for (std::size_t steps = 0; steps < kMostSteps; ++steps) {
		const auto found = entries_.find(index);
		if (found == entries_.end())
			return;
		const std::uint8_t *entry = found->second.data();
		if (std::memcmp(entry + McgHeader::gid, gid.raw, sizeof(gid.raw)) == 0) {
			const std::size_t count =
				rule_ == Members::counted
					? std::min<std::size_t>(McgHeader::member_count.get(entry),
								room)
					: room;
			for (std::size_t i = 0; i < count && out.size() < most; ++i) {
				const std::uint8_t *member =
					entry + McgHeader::size + i * McgMember::size;
				constexpr hw::mlx4::Field in_use{0x00, 31, 31};
				if (rule_ == Members::marked && !in_use.get(member))
					break;
				out.push_back({McgMember::qpn.get(member),
					       rule_ == Members::counted &&
						       McgMember::block_loopback.get(member)});
			}
			// A group with more members than an entry can hold continues in the next
			// entry of its chain.
		}
		index = McgHeader::next.get(entry);
		if (index == 0)
			return;
	}
}

} // namespace weft::mellanox_icm
