// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements memory keys: translates a key and a virtual address to the guest's memory. Unlike
// ConnectX-2 and InfiniHost III, the ConnectX-5 stores page lists itself: they are part of the
// command or work request that creates a key.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hw/mlx5/contexts.hpp>

#include "cards/hca/memory.hpp"
#include "cards/hca/sparse_table.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/names.hpp"
#include "cards/mlx5/number_pool.hpp"
#include "cards/mlx5/page_list.hpp"

namespace weft::mlx5
{

using hw::mlx5::MkeyMode;

// MemoryKey - the state of a key, as set by CREATE_MKEY and UMR requests.
struct MemoryKey {
	// A part of the key's range that belongs to another key.
	struct Piece {
		// length and end are only used if pieces have different lengths; equal lengths
		// follow from page_shift.
		std::uint64_t length = 0;
		std::uint64_t end = 0; // total length of all pieces up to this one
		std::uint64_t address = 0;
		std::uint32_t key = 0;
	};

	std::uint32_t index = 0;
	std::uint8_t variant = 0;
	MkeyMode mode = MkeyMode::physical;
	bool free = false; // not valid until a UMR request registers it
	bool umr = false;
	bool remote_invalidate = false;
	bool whole_space = false; // no bounds
	bool named = false;       // another key's piece has been resolved to it
	KeyRights rights;
	std::uint32_t pd = 0;
	std::uint32_t qpn = hw::mlx5::MkeyContext::any_qp;
	std::uint64_t start = 0;
	std::uint64_t length = 0;
	unsigned page_shift = 12; // log2 of the size of pages and of equal pieces
	// Capacity for translation entries, set at creation, in units of 16 bytes.
	std::uint32_t octwords = 0;

	// The mode selects one of these. Memory is allocated when the list is first written.
	std::vector<std::uint64_t> pages;
	std::vector<Piece> pieces;
	PageShare share; // share of the card's budget for the lists

	std::uint32_t number() const { return index << 8 | variant; }
	bool indirect() const { return mode == MkeyMode::pieces || mode == MkeyMode::equal_pieces; }
};

class MemoryKeys final : public Memory
{
public:
	MemoryKeys() : numbers_(kFirstKey, std::uint32_t{1} << limits::kLogKeys) {}

	MemoryError resolve(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			    std::vector<BusRange> &out) const override;
	MemoryError translate(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			      std::vector<MemorySegment> &out) const override;
	bool holds(std::uint32_t key) const override;
	bool has_parts(std::uint32_t key) const override;
	bool take_lost_parts() override { return std::exchange(lost_parts_, false); }
	std::uint32_t slot(std::uint32_t index) const override { return index; }

	MemoryError fast_register(const FastRegister &, std::uint32_t) override
	{
		return MemoryError::bad_request;
	}
	MemoryError bind_window(const BindWindow &, std::uint32_t, std::uint32_t) override
	{
		return MemoryError::bad_request;
	}
	MemoryError invalidate(std::uint32_t key, std::uint32_t pd, std::uint32_t qpn,
			       bool remote) override;
	// Executes a UMR request.
	MemoryError update_key(const UpdateKey &request, const KeyUse &user) override;

	// For commands. create(): @list contains the translation entries in the command.
	enum class Created : std::uint8_t { done, bad_parameter, limit };
	Created create(const std::uint8_t *context, std::uint32_t octwords,
		       std::span<const std::uint8_t> list, std::uint32_t &index);
	MemoryKey *find(std::uint32_t index) const;
	bool remove(std::uint32_t index);
	void reset();

	PageBudget &budget() { return budget_; }

private:
	MemoryError check(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			  const MemoryKey *&key) const;
	MemoryError resolve(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			    unsigned depth, std::vector<BusRange> &out) const;
	MemoryError pages(const MemoryKey &key, std::uint64_t offset, std::uint64_t length,
			  std::vector<BusRange> &out) const;
	MemoryError pieces(const MemoryKey &key, const KeyUse &use, std::uint64_t offset,
			   std::uint64_t length, unsigned depth, std::vector<BusRange> &out) const;
	MemoryError read_list(const UpdateKey &request, const KeyUse &user,
			      std::vector<std::byte> &out) const;
	MemoryError write_list(MemoryKey &key, std::uint64_t first_octword,
			       std::span<const std::byte> list);

	// Index 1 is reserved, because its key marks the end of a scatter list.
	static constexpr std::uint32_t kFirstKey = 16;

	void note_change(MemoryKey &key) { lost_parts_ |= std::exchange(key.named, false); }

	PageBudget budget_{limits::kMostPages};
	NumberPool numbers_;
	SparseTable<MemoryKey> keys_{limits::kLogKeys};
	bool lost_parts_ = false; // set until take_lost_parts()
	// Used by translate(); a member so that its memory is reused.
	mutable std::vector<BusRange> ranges_;
};

} // namespace weft::mlx5
