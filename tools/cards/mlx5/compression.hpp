// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements CQE compression: a completion queue holds completions back for a short time, so that
// it can write several of them as one title and mini CQEs (Documentation/mlx5.rst, "Compressed
// completions").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hw/mlx5/queues.hpp>

#include "base/loop.hpp"
#include "cards/mlx5/limits.hpp"

namespace weft::mlx5
{

class CompletionQueue;

// The completions that one queue holds back. All but what a mini CQE contains are equal to the
// first.
class CompressedSession
{
public:
	// @mini_format: a value of hw::mlx5::CqContext. The session never holds more than @most.
	CompressedSession(std::uint32_t mini_format, std::size_t most)
	    : mini_format_(mini_format), most_(most)
	{
	}

	bool empty() const { return entries_.empty(); }
	bool full() const { return entries_.size() >= most_; }
	std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
	// Returns true if a completion of this kind may be compressed: a success without data.
	static bool may_hold(const hw::mlx5::Cqe &entry);
	// Returns true if the session is empty, or if @entry can follow the last one. Both are for
	// entries that may_hold() permits.
	bool accepts(const hw::mlx5::Cqe &entry) const;
	void add(const hw::mlx5::Cqe &entry) { entries_.push_back(entry); }
	void clear() { entries_.clear(); }

	// The entry that a session with one completion consists of.
	const hw::mlx5::Cqe &first() const { return entries_.front(); }
	// The first entry of a longer session.
	hw::mlx5::Cqe title() const;
	// Mini CQEs of the completions from @first on, as one slot contains them.
	std::array<std::uint8_t, hw::mlx5::Cqe::size> minis(std::size_t first) const;

private:
	const std::uint32_t mini_format_;
	const std::size_t most_;
	std::vector<hw::mlx5::Cqe> entries_;
};

// The completion queues of a card that hold completions back. They are written when the card's loop
// has run the handlers that were ready, and before the card executes a command or raises an event,
// because a driver relies on finding all completions of a destroyed queue pair.
class HeldCompletions
{
public:
	explicit HeldCompletions(Loop &loop) : wakeup_(loop, [this] { write(); }) {}

	void add(CompletionQueue &queue);
	void remove(CompletionQueue &queue);
	void write();
	// The queues are about to be destroyed.
	void clear() { queues_.clear(); }

private:
	std::vector<CompletionQueue *> queues_;
	Wakeup wakeup_;
};

} // namespace weft::mlx5
