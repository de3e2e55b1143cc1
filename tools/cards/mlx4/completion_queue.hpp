// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the ConnectX-2's part of a completion queue: its context, and how it is resized to
// another buffer.
#pragma once

#include <optional>

#include <cstdint>

#include <hw/mlx4/contexts.hpp>
#include <hw/mlx4/cqe.hpp>

#include "cards/mlx4/names.hpp"
#include "cards/mellanox_icm/completion_queue.hpp"
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mlx4
{

class CompletionQueue final : public mellanox_icm::CompletionQueue
{
public:
	// @faults are the card's simulated faults.
	CompletionQueue(const Services &services, std::uint32_t cqn,
			const hw::mlx4::CqContext &context, Faults *faults = nullptr);

	// Writes an entry. An error, or an entry with @solicited (the sender has requested an
	// event), satisfies an arm for solicited events. Returns false if the queue has failed.
	[[nodiscard]] bool post(const hw::mlx4::Cqe &entry, bool solicited);

	// For commands. Marks the entries at the beginning of the buffer as owned by the card.
	bool initialise_buffer();
	enum class ResizeResult { done, too_small, no_memory };
	ResizeResult resize(const QueueBuffer &buffer, unsigned log_size);
	hw::mlx4::CqContext context() const;

private:
	// Entries that were not yet marked as owned by the card.
	struct Unmarked {
		std::uint32_t first = 0; // index of the first CQE
		std::uint32_t count = 0;
	};
	// Marks the first entries of a buffer from an index on, and the last @held entries, to
	// which software may copy entries. Returns nothing if the buffer cannot be written.
	std::optional<Unmarked> mark(const QueueBuffer &buffer, unsigned log_size,
				     std::uint32_t index, std::uint32_t held) const;
	// Marks the next unmarked entry.
	bool mark_next();
	[[nodiscard]] bool write(const hw::mlx4::Cqe &entry, bool solicited,
				 bool wrong_owner = false);

	Faults *const faults_;
	Unmarked unmarked_;
};

} // namespace weft::mlx4
