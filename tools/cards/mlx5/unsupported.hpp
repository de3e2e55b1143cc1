// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Counts driver requests that the model does not implement, and logs each of them once, so that a
// developer who adds support for another driver sees what is missing.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "cards/mlx5/request_names.hpp"

namespace weft::mlx5
{

class Unsupported
{
public:
	explicit Unsupported(std::string card) : card_(std::move(card)) {}

	// Called on the card's loop.
	void note(RequestKind kind, std::uint32_t number);
	// Callable on any thread.
	std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

private:
	// Kinds that are logged: a malicious driver may make up any number of them.
	static constexpr std::size_t kMostLogged = 256;

	const std::string card_;
	std::set<std::pair<RequestKind, std::uint32_t>> logged_;
	std::atomic<std::uint64_t> count_{0};
};

} // namespace weft::mlx5
