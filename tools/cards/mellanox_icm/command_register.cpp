// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/command_register.hpp"

#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mellanox_icm
{

namespace hcr = hw::mlx4::hcr;
using hw::mlx4::Eqe;
using hw::mlx4::Status;

std::uint32_t CommandRegister::read(std::size_t offset) const
{
	return hw::mlx4::load_be32(registers_.data(), offset);
}

void CommandRegister::write(std::size_t offset, std::uint32_t value)
{
	std::uint8_t *const registers = registers_.data();
	hw::mlx4::store_be32(registers, offset, value);
	if (offset != hcr::control || !hcr::go.of(value))
		return;
	Command command;
	command.opcode = static_cast<hw::mlx4::Opcode>(hcr::opcode.get(registers));
	command.op_modifier = hcr::op_modifier.get(registers);
	command.in_modifier = hw::mlx4::load_be32(registers, hcr::in_modifier);
	command.in_param = hw::mlx4::load_be64(registers, hcr::in_param);
	command.out_param = hw::mlx4::load_be64(registers, hcr::out_param);
	command.token = static_cast<std::uint16_t>(hcr::token.get(registers));
	command.by_event = hcr::event.get(registers);
	executor_.execute(command);
}

void CommandRegister::complete(Status status, const Command &command, Faults &faults,
			       EventQueues &events)
{
	if (faults.strikes(Fault::command_lost))
		return;
	if (faults.strikes(Fault::command_status) || faults.strikes(Fault::command_nth))
		status = Faults::kNoSuchStatus;
	if (!finish(status, command))
		return;
	const Eqe entry = event(status, command);
	events.raise(entry);
	if (faults.strikes(Fault::command_twice))
		events.raise(entry);
}

bool CommandRegister::finish(Status status, const Command &command)
{
	std::uint8_t *const registers = registers_.data();
	hw::mlx4::store_be64(registers, hcr::out_param, command.out_param);
	hcr::status.set(registers, static_cast<std::uint32_t>(status));
	hcr::go.set(registers, 0);
	return command.by_event;
}

Eqe CommandRegister::event(Status status, const Command &command)
{
	Eqe entry{};
	Eqe::type.set(entry.bytes, static_cast<std::uint32_t>(hw::mlx4::EventType::command));
	Eqe::command_token.set(entry.bytes, command.token);
	Eqe::command_status.set(entry.bytes, static_cast<std::uint32_t>(status));
	Eqe::command_out_param.set(entry.bytes, command.out_param);
	return entry;
}

} // namespace weft::mellanox_icm
