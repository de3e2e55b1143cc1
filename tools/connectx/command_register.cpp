// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/command_register.hpp"

#include <hw/connectx/eqe.hpp>

#include "connectx/core.hpp"

namespace weft::connectx
{

namespace hcr = hw::connectx::hcr;
using hw::connectx::Eqe;

namespace
{

// What a broken card may answer.
constexpr std::uint8_t kNoSuchStatus = 0xbd;

} // namespace

std::uint32_t CommandRegister::read(std::size_t offset) const
{
	return hw::connectx::load_be32(registers_.data(), offset);
}

void CommandRegister::write(std::size_t offset, std::uint32_t value)
{
	hw::connectx::store_be32(registers_.data(), offset, value);
	if (offset == hcr::control && hcr::go.of(value))
		execute();
}

void CommandRegister::execute()
{
	std::uint8_t *const registers = registers_.data();
	Command command;
	command.opcode = static_cast<hw::connectx::Opcode>(hcr::opcode.get(registers));
	command.op_modifier = hcr::op_modifier.get(registers);
	command.in_modifier = hw::connectx::load_be32(registers, hcr::in_modifier);
	command.in_param = hw::connectx::load_be64(registers, hcr::in_param);
	command.out_param = hw::connectx::load_be64(registers, hcr::out_param);

	Activity::add(core_.activity.commands);
	hw::connectx::Status status = commands_.execute(command);
	Faults &faults = core_.faults;
	if (faults.strikes(Fault::interrupt))
		core_.interrupt_idly();
	if (faults.strikes(Fault::command_lost))
		return;
	if (faults.strikes(Fault::command_status))
		status = static_cast<hw::connectx::Status>(kNoSuchStatus);

	// GO falls, the toggle bit stays: the register is free for the next command.
	hw::connectx::store_be64(registers, hcr::out_param, command.out_param);
	hcr::status.set(registers, static_cast<std::uint32_t>(status));
	hcr::go.set(registers, 0);
	if (!hcr::event.get(registers))
		return;
	Eqe entry{};
	Eqe::type.set(entry.bytes, static_cast<std::uint32_t>(EventType::command));
	Eqe::command_token.set(entry.bytes, hcr::token.get(registers));
	Eqe::command_status.set(entry.bytes, static_cast<std::uint32_t>(status));
	Eqe::command_out_param.set(entry.bytes, command.out_param);
	core_.events.raise(entry);
	if (faults.strikes(Fault::command_twice))
		core_.events.raise(entry);
}

} // namespace weft::connectx
