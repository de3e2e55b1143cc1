// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the command interface: a queue of entries in the guest's memory, each with chains of
// blocks for data longer than the entry. Commands are executed one at a time, and none waits for
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hw/mlx5/commands.hpp>

#include "base/guest_memory.hpp"
#include "base/loop.hpp"
#include "cards/mlx5/names.hpp"

namespace weft::mlx5
{

struct Command {
	hw::mlx5::Opcode opcode{};
	std::uint32_t op_modifier = 0;
	std::span<const std::uint8_t> in;
	std::span<std::uint8_t> out; // initially zero; the queue fills in the header
};

class CommandQueue
{
public:
	// Executor - the card's functions that the queue calls.
	class Executor
	{
	public:
		virtual ~Executor() = default;
		// Returns null while the card may not access memory.
		virtual GuestMemory *command_memory() = 0;
		// Returns the length up to which the card reads the input of a command from its
		// mailbox, although the entry has a shorter length; 0 for most commands.
		virtual std::size_t whole_input(hw::mlx5::Opcode opcode) const = 0;
		virtual hw::mlx5::Status execute(Command &command) = 0;
		// The event queue for command completions, which is looked up before and after each
		// command, and the event.
		virtual std::optional<std::uint32_t> completion_queue() const = 0;
		virtual void command_done(std::uint32_t eqn, unsigned slot) = 0;
	};

	// @faults: the card's simulated faults.
	CommandQueue(Loop &loop, Executor &executor, Faults &faults);

	// The queue's address, from the initialization segment; 0 before it was set.
	void set_address(std::uint64_t address) { address_ = address; }
	// Handles the doorbell: the entries of the bits in @slots are ready. If no entry was
	// pending, the first one is executed in this call. Each iteration of the loop executes one
	// more, because an input may have 2 MiB.
	void ring(std::uint32_t slots);
	// Drops entries that are ready.
	void reset();

private:
	using Delivery = hw::mlx5::Delivery;

	void next();
	void execute(unsigned slot);
	Delivery run(const hw::mlx5::CommandEntry &entry, GuestMemory &memory, std::uint64_t place);
	Delivery read_input(const hw::mlx5::CommandEntry &entry, const GuestMemory &memory);
	Delivery find_output(const hw::mlx5::CommandEntry &entry, const GuestMemory &memory);
	bool write_output(GuestMemory &memory, std::uint64_t place);

	Executor &executor_;
	Faults &faults_;
	std::uint64_t address_ = 0;
	std::uint32_t pending_ = 0;
	Wakeup wakeup_;
	// Buffers of the current command; members so that their memory is reused.
	std::vector<std::uint8_t> in_;
	std::vector<std::uint8_t> out_;
	std::vector<std::uint64_t> out_blocks_;
};

} // namespace weft::mlx5
