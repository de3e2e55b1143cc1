// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "ammasso/interrupt_pin.hpp"

#include <hw/ammasso/registers.hpp>

namespace weft::ammasso
{

namespace wire = hw::ammasso;

void InterruptPin::reset()
{
	disr_ = dimr_ = himr_ = nisr_ = unread_ = 0;
	nimr_ = nimr1_ = ~0u;
	idis_ = 1;
	evaluate();
}

void InterruptPin::raise_network(std::uint32_t bits)
{
	nisr_ |= bits;
	unread_ |= bits;
	evaluate();
}

void InterruptPin::raise_hints()
{
	disr_ |= wire::disr_hints;
	evaluate();
}

void InterruptPin::clear_network()
{
	nisr_ = unread_ = 0;
	evaluate();
}

std::uint32_t InterruptPin::read(std::uint64_t offset)
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

void InterruptPin::write(std::uint64_t offset, std::uint32_t value)
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

void InterruptPin::evaluate()
{
	const bool drive = !idis_ && ((disr_ & ~dimr_) || (nisr_ & ~nimr_));
	if (std::exchange(driven_, drive) != drive)
		drive_(drive);
}

} // namespace weft::ammasso
