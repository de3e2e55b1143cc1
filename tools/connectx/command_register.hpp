// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The command register (HCR): takes a command when its last dword is written with GO set, has it
// executed at once, and reports by the register and, if asked to, by an event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <hw/connectx/registers.hpp>

#include "connectx/commands.hpp"

namespace weft::connectx
{

class CommandRegister
{
public:
	explicit CommandRegister(Core &core) : core_(core), commands_(core) {}

	void reset() { registers_.fill(0); }
	// @offset: of a dword in the register. Values as the reference writes them (big-endian
	// read).
	std::uint32_t read(std::size_t offset) const;
	void write(std::size_t offset, std::uint32_t value);

private:
	void execute();

	Core &core_;
	Commands commands_;
	std::array<std::uint8_t, hw::connectx::hcr::size> registers_{};
};

} // namespace weft::connectx
