// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines a firmware command as the driver writes it to the command register, and the copies of its
// input and output mailboxes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <vector>

#include <hw/mlx4/commands.hpp>

#include "base/guest_memory.hpp"

namespace weft::mellanox_icm
{

struct Command {
	hw::mlx4::Opcode opcode{};
	std::uint32_t op_modifier = 0;
	std::uint32_t in_modifier = 0;
	std::uint64_t in_param = 0; // address of the input mailbox, or a value
	// Address of the output mailbox. Replaced by the value that the command returns.
	std::uint64_t out_param = 0;
	std::uint16_t token = 0;
	bool by_event = false;            // true if completion is also reported by an event
	std::span<const std::uint8_t> in; // a copy of the input mailbox
	std::span<std::uint8_t> out;      // copied to the output mailbox; initially zero
};

class Mailboxes
{
public:
	// Executes @command by calling @execute with copies of its mailboxes, which have these
	// sizes. The command has no effect unless both mailboxes are in guest memory.
	hw::mlx4::Status run(GuestMemory *guest, Command &command, std::size_t in_size,
			     std::size_t out_size,
			     const std::function<hw::mlx4::Status()> &execute);

private:
	std::vector<std::uint8_t> in_;
	std::vector<std::uint8_t> out_;
};

// Copy a context, which is the whole contents of a mailbox. context_of() returns the one in the
// input mailbox. put() writes one to the output mailbox, if the command has one.
template<typename Context>
Context context_of(const Command &command)
{
	Context context;
	std::copy(command.in.begin(), command.in.end(), context.bytes);
	return context;
}

template<typename Context>
void put(Command &command, const Context &context)
{
	if (!command.out.empty())
		std::copy(std::begin(context.bytes), std::end(context.bytes), command.out.begin());
}

} // namespace weft::mellanox_icm
