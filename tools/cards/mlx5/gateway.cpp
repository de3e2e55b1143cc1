// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/gateway.hpp"

#include <chrono>
#include <span>

#include "cards/mlx5/core.hpp"
#include "cards/mlx5/management_registers.hpp"
#include "cards/mlx5/port_registers.hpp"

namespace weft::mlx5
{

namespace gateway = hw::mlx5::gateway;
namespace firmware_command = hw::mlx5::firmware_command;
using hw::mlx5::RegisterAccess;

namespace
{

// If the program that has locked the gateway has not used it for this time, another program may
// lock it. iPXE's driver keeps the gateway locked as long as it has the card. To remove the card,
// it first locks the gateway once more, three million times if necessary, which takes many minutes
// in a guest. mstflint tries for two seconds.
constexpr auto kMostIdle = std::chrono::seconds(10);

// A program gets a semaphore by writing a number that it finds there afterwards.
void take(std::uint32_t &semaphore, std::uint32_t value)
{
	if (value == 0 || semaphore == 0)
		semaphore = value;
}

std::uint32_t status_of(PortRegister result)
{
	switch (result) {
	case PortRegister::ok:
		return RegisterAccess::ok;
	case PortRegister::unsupported:
		return RegisterAccess::not_supported;
	case PortRegister::bad_port:
	case PortRegister::bad_value:
	case PortRegister::too_short:
		break;
	}
	return RegisterAccess::bad_parameter;
}

} // namespace

bool Gateway::has_space() const
{
	switch (state_.space) {
	case Space::extended_command:
	case Space::registers:
	case Space::command:
	case Space::semaphores:
		return true;
	}
	return false;
}

void Gateway::used()
{
	state_.used = core_.host.loop().now();
}

std::uint32_t Gateway::read(unsigned offset)
{
	if (offset != gateway::semaphore)
		used();
	switch (offset) {
	case gateway::control:
		return gateway::space.in(static_cast<std::uint32_t>(state_.space)) |
		       gateway::space_status.in(has_space());
	case gateway::counter:
		// Never 0, which would unlock the gateway.
		if (++state_.counter == 0)
			++state_.counter;
		return state_.counter;
	case gateway::semaphore:
		if (core_.host.loop().now() - state_.used >= kMostIdle)
			state_.semaphore = 0;
		return state_.semaphore;
	case gateway::address:
		return state_.address;
	case gateway::data:
		return state_.data;
	default:
		return 0;
	}
}

void Gateway::write(unsigned offset, std::uint32_t value)
{
	used();
	switch (offset) {
	case gateway::control:
		state_.space = static_cast<Space>(gateway::space.of(value));
		break;
	case gateway::semaphore:
		take(state_.semaphore, value);
		break;
	case gateway::address:
		access(value);
		break;
	case gateway::data:
		state_.data = value;
		break;
	default:
		break;
	}
}

// The flag selects a write; the card inverts it when the access is complete.
void Gateway::access(std::uint32_t value)
{
	const std::uint32_t address = gateway::address_bits.of(value);
	const bool writes = gateway::address_flag.of(value);
	if (writes)
		store(address, state_.data);
	else
		state_.data = load(address);
	state_.address = address | gateway::address_flag.in(!writes);
}

std::uint32_t Gateway::load(std::uint32_t address) const
{
	switch (state_.space) {
	case Space::registers:
		return address == gateway::device_id ? gateway::connectx_5 : 0;
	case Space::semaphores:
		return address / 4 < kSemaphores ? state_.semaphores[address / 4] : 0;
	case Space::command:
	case Space::extended_command:
		if (address == firmware_command::control)
			return state_.control;
		if (address == firmware_command::size)
			return kMailboxSize;
		if (address >= firmware_command::mailbox && address % 4 == 0 &&
		    address - firmware_command::mailbox < kMailboxSize)
			return hw::mlx5::load_be32(state_.mailbox.data(),
						   address - firmware_command::mailbox);
		break;
	}
	return 0;
}

void Gateway::store(std::uint32_t address, std::uint32_t value)
{
	switch (state_.space) {
	case Space::registers:
		break;
	case Space::semaphores:
		if (address / 4 < kSemaphores)
			take(state_.semaphores[address / 4], value);
		break;
	case Space::command:
	case Space::extended_command:
		if (address == firmware_command::control)
			execute(value);
		else if (address >= firmware_command::mailbox && address % 4 == 0 &&
			 address - firmware_command::mailbox < kMailboxSize)
			hw::mlx5::store_be32(state_.mailbox.data(),
					     address - firmware_command::mailbox, value);
		break;
	}
}

// A command completes before the write that starts it does.
void Gateway::execute(std::uint32_t control)
{
	state_.control = control;
	if (!firmware_command::busy.of(control))
		return;
	std::uint32_t status = firmware_command::ok;
	if (firmware_command::opcode.of(control) == firmware_command::access_register)
		access_register();
	else
		status = firmware_command::invalid_opcode;
	constexpr std::uint32_t result =
		firmware_command::status.in(~0u) | firmware_command::busy.in(1);
	state_.control = (control & ~result) | firmware_command::status.in(status);
}

std::uint32_t Gateway::read_register(std::uint32_t number, std::span<std::uint8_t> data)
{
	const std::uint32_t status = read_management_register(core_, number, data);
	return status == RegisterAccess::not_supported
		       ? status_of(read_port_register(core_, number, data))
		       : status;
}

void Gateway::access_register()
{
	std::uint8_t *const mailbox = state_.mailbox.data();
	const std::uint32_t number = RegisterAccess::number.get(mailbox);
	const std::uint32_t dwords = RegisterAccess::dwords.get(mailbox);
	std::uint32_t status = RegisterAccess::bad_parameter;
	if (dwords > 0 && dwords - 1 <= (kMailboxSize - RegisterAccess::data) / 4) {
		const std::span data(mailbox + RegisterAccess::data, std::size_t{dwords - 1} * 4);
		switch (RegisterAccess::method.get(mailbox)) {
		case RegisterAccess::read:
			status = read_register(number, data);
			break;
		case RegisterAccess::write:
			status = status_of(write_port_register(core_, number, data));
			if (status == RegisterAccess::not_supported)
				status = RegisterAccess::method_not_supported;
			break;
		default:
			status = RegisterAccess::method_not_supported;
			break;
		}
	}
	if (status == RegisterAccess::not_supported ||
	    status == RegisterAccess::method_not_supported)
		core_.unsupported.note(RequestKind::register_access, number);
	RegisterAccess::response.set(mailbox, 1);
	RegisterAccess::status.set(mailbox, status);
}

} // namespace weft::mlx5
