// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reports the card's health, which drivers poll: a counter that advances, and a syndrome if the
// card has failed.
#pragma once

#include <chrono>
#include <cstdint>

#include <hw/mlx5/registers.hpp>

#include "base/loop.hpp"

namespace weft::mlx5
{

class Health
{
public:
	explicit Health(const Loop &loop) : loop_(loop), start_(loop.now()) {}

	// The interface is disabled until a driver sets a command queue. A driver whose card was
	// reset detects this when it polls, and recovers.
	void reset()
	{
		syndrome_ = hw::mlx5::health::well;
		nic_interface_ = hw::mlx5::nic_interface::disabled;
		frozen_ = 0;
	}
	bool well() const { return syndrome_ == hw::mlx5::health::well; }
	std::uint32_t syndrome() const { return syndrome_; }
	// Drivers wait until the interface is disabled before they recover.
	void fail(std::uint32_t syndrome)
	{
		syndrome_ = syndrome;
		nic_interface_ = hw::mlx5::nic_interface::disabled;
	}
	// Stops the counter, like a card whose firmware hangs.
	void freeze() { frozen_ = counter(); }

	std::uint32_t nic_interface() const { return nic_interface_; }
	void set_nic_interface(std::uint32_t state) { nic_interface_ = state; }

	// Counts hundredths of a second, and is never 0. It is computed from the time when it is
	// read, so it needs no timer, and stops together with a guest in virtual time.
	std::uint32_t counter() const
	{
		constexpr std::uint32_t bits = 0xffffff;
		if (frozen_)
			return frozen_;
		const auto passed =
			std::chrono::duration_cast<std::chrono::milliseconds>(loop_.now() - start_);
		const auto count = static_cast<std::uint32_t>(passed.count() / 10) & bits;
		return count ? count : 1;
	}

	// Returns the dword at @offset of the health buffer.
	std::uint32_t buffer(std::uint32_t offset, std::uint32_t firmware,
			     std::uint32_t hardware) const
	{
		namespace segment = hw::mlx5::segment;
		switch (offset) {
		case segment::health_firmware:
			return firmware;
		case segment::health_hardware:
			return hardware;
		case segment::health_flags:
			return well() ? 0 : segment::health_fatal;
		case segment::health_syndrome:
			return segment::health_syndrome_code.in(syndrome_);
		default:
			return 0;
		}
	}

private:
	const Loop &loop_;
	const Clock::time_point start_;
	std::uint32_t syndrome_ = hw::mlx5::health::well;
	std::uint32_t nic_interface_ = hw::mlx5::nic_interface::disabled;
	std::uint32_t frozen_ = 0; // the value at which the counter was stopped; 0 if it runs
};

} // namespace weft::mlx5
