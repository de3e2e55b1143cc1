// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the delay before the next retry, which doubles after each failure. Retries never end,
// because a missing resource may become available later.
#pragma once

namespace kern
{

class BackOff
{
public:
	static constexpr unsigned int first_ms = 100, last_ms = 10'000;

	constexpr unsigned int next_ms() const { return next_ms_; }
	constexpr void failed() { next_ms_ = next_ms_ < last_ms / 2 ? 2 * next_ms_ : last_ms; }
	constexpr void succeeded() { next_ms_ = first_ms; }

private:
	unsigned int next_ms_ = first_ms;
};

} // namespace kern
