// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/interrupts.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;

void Interrupts::reset()
{
	disr_ = dimr_ = himr_ = nisr_ = unread_ = 0;
	nimr_ = nimr1_ = ~0u;
	idis_ = 1;
	evaluate();
}

void Interrupts::raise_network(std::uint32_t bits)
{
	nisr_ |= bits;
	unread_ |= bits;
	evaluate();
}

void Interrupts::raise_hints()
{
	disr_ |= wire::disr_hints;
	evaluate();
}

void Interrupts::clear_network()
{
	nisr_ = unread_ = 0;
	evaluate();
}

std::uint32_t Interrupts::read(std::uint64_t offset)
{
	switch (offset) {
	case wire::reg::disr:
		return disr_;
	case wire::reg::himr:
		return himr_;
	case wire::reg::dimr:
		return dimr_;
	case wire::reg::nisr0:
		unread_ = 0;
		return nisr_;
	case wire::reg::nimr0:
		return nimr_;
	case wire::reg::nimr1:
		return nimr1_;
	case wire::reg::idis:
		return idis_;
	default:
		return 0;
	}
}

void Interrupts::write(std::uint64_t offset, std::uint32_t value)
{
	switch (offset) {
	case wire::reg::disr:
		disr_ &= ~value;
		break;
	case wire::reg::himr:
		himr_ = value;
		break;
	case wire::reg::dimr:
		dimr_ = value;
		break;
	case wire::reg::nisr0:
		nisr_ &= ~value | unread_;
		network_notified_ &= ~value;
		break;
	case wire::reg::nimr0:
		nimr_ = value;
		break;
	case wire::reg::nimr1:
		nimr1_ = value;
		break;
	case wire::reg::idis:
		idis_ = value;
		break;
	default:
		return;
	}
	evaluate();
}

void Interrupts::evaluate()
{
	const std::uint32_t network = idis_ ? 0 : nisr_ & ~nimr_, rnic = idis_ ? 0 : disr_ & ~dimr_;
	raise(wire::Vector::network, network, network_notified_);
	raise(wire::Vector::rnic, rnic, rnic_notified_);
	const bool drive = network || rnic;
	if (std::exchange(driven_, drive) != drive)
		drive_(drive);
}

void Interrupts::raise(wire::Vector vector, std::uint32_t causes, std::uint32_t &notified)
{
	if (causes & ~std::exchange(notified, causes))
		send_(vector);
}

} // namespace weft::amso1100
