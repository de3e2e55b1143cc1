// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the card's interrupts and their cause registers. The Ethernet interface and the RNIC
// use INTx, as on the real board, or one MSI each, which the real board does not have. INTx costs a
// guest far more: both share the line, and the guest masks and unmasks it around each interrupt.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <hw/amso1100/registers.hpp>

namespace weft::amso1100
{

class Interrupts
{
public:
	// @drive is called with the new level of the interrupt pin when it changes. @send is called
	// with a vector to send its MSI-X message. It is called when an event is pending that was
	// not pending at the last message, or that is still pending after an acknowledgement.
	Interrupts(std::function<void(bool)> drive, std::function<void(hw::amso1100::Vector)> send)
	    : drive_(std::move(drive)), send_(std::move(send))
	{
	}

	// Returns to the state after power-on, in which there are no interrupts until the driver
	// enables them.
	void reset();

	// Report work of the Ethernet function, and hints of the RNIC.
	void raise_network(std::uint32_t bits);
	void raise_hints();
	// Clears all events of the Ethernet function.
	void clear_network();

	// Accesses the registers of BAR 0 by offset. Other offsets read as 0.
	std::uint32_t read(std::uint64_t offset);
	void write(std::uint64_t offset, std::uint32_t value);

private:
	void evaluate();
	void raise(hw::amso1100::Vector vector, std::uint32_t causes, std::uint32_t &notified);

	const std::function<void(bool)> drive_;
	const std::function<void(hw::amso1100::Vector)> send_;
	bool driven_ = false;
	std::uint32_t disr_ = 0, dimr_ = 0, himr_ = 0;
	std::uint32_t nisr_ = 0, nimr_ = ~0u, nimr1_ = ~0u;
	std::uint32_t idis_ = 1;
	// Bits that were set after the driver has read NISR0. An acknowledgement of the value that
	// the driver has read does not clear them. The old driver acknowledges after it has
	// processed the rings.
	std::uint32_t unread_ = 0;
	// Events that the last messages have signalled and that were not acknowledged.
	std::uint32_t network_notified_ = 0, rnic_notified_ = 0;
};

} // namespace weft::amso1100
