// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The card's interrupt: one pin for both functions, and the registers that say why it is driven.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace weft::ammasso
{

class InterruptPin
{
public:
	// @drive: told whether the pin is driven, when that changes.
	explicit InterruptPin(std::function<void(bool)> drive) : drive_(std::move(drive)) {}

	// As after power-on: silent, until the driver says that it may be driven.
	void reset();

	// What there is to look at, for the Ethernet function and for the RNIC.
	void raise_network(std::uint32_t bits);
	void raise_hints();
	// Nothing there of the Ethernet function any more.
	void clear_network();

	// Registers of BAR 0, by their offsets; others read 0.
	std::uint32_t read(std::uint64_t offset);
	void write(std::uint64_t offset, std::uint32_t value);

private:
	void evaluate();

	const std::function<void(bool)> drive_;
	bool driven_ = false;
	std::uint32_t disr_ = 0, dimr_ = 0, himr_ = 0;
	std::uint32_t nisr_ = 0, nimr_ = ~0u, nimr1_ = ~0u;
	std::uint32_t idis_ = 1;
	// What came after the driver has read NISR0: an acknowledgement of what it read then does
	// not take it away. The old driver acknowledges after it has looked at the rings.
	std::uint32_t unread_ = 0;
};

} // namespace weft::ammasso
