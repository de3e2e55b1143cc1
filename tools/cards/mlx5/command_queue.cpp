// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/command_queue.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cards/mellanox_icm/faults.hpp"
#include "cards/mlx5/limits.hpp"

namespace weft::mlx5
{

using hw::mlx5::CommandBlock;
using hw::mlx5::CommandEntry;
using hw::mlx5::InputHead;
using hw::mlx5::OutputHead;

namespace
{

// Returns the number of mailbox blocks for the part of @length bytes that does not fit into the
// entry.
std::size_t blocks_of(std::size_t length)
{
	const std::size_t rest = length - std::min(length, CommandEntry::inline_size);
	return (rest + CommandBlock::data_size - 1) / CommandBlock::data_size;
}

// Checks that block @number of a chain is at @address and belongs to the entry.
hw::mlx5::Delivery check_block(const GuestMemory &memory, std::uint64_t address,
			       std::uint32_t number, std::uint32_t token,
			       hw::mlx5::Delivery bad_pointer, CommandBlock &block)
{
	if (address == 0 || address % CommandBlock::alignment ||
	    !memory.read(address, std::as_writable_bytes(std::span(block.bytes))))
		return bad_pointer;
	if (CommandBlock::token.get(block.bytes) != token)
		return hw::mlx5::Delivery::bad_token;
	if (CommandBlock::number.get(block.bytes) != number)
		return hw::mlx5::Delivery::bad_block_number;
	return hw::mlx5::Delivery::ok;
}

} // namespace

CommandQueue::CommandQueue(Loop &loop, Executor &executor, Faults &faults)
    : executor_(executor), faults_(faults), wakeup_(loop, [this] { next(); })
{
}

void CommandQueue::reset()
{
	address_ = 0;
	pending_ = 0;
}

void CommandQueue::ring(std::uint32_t slots)
{
	const bool idle = pending_ == 0;
	pending_ |= slots;
	if (idle)
		next();
}

void CommandQueue::next()
{
	if (pending_ == 0)
		return;
	const auto slot = static_cast<unsigned>(std::countr_zero(pending_));
	pending_ &= pending_ - 1;
	if (pending_)
		wakeup_.signal();
	execute(slot);
}

void CommandQueue::execute(unsigned slot)
{
	GuestMemory *const memory = executor_.command_memory();
	if (!memory || address_ == 0)
		return;
	const std::uint64_t place = address_ + (std::uint64_t{slot} << limits::kLogCommandStride);
	CommandEntry entry;
	if (!memory->read(place, std::as_writable_bytes(std::span(entry.bytes))) ||
	    !(entry.bytes[CommandEntry::status_byte] & CommandEntry::owner_card))
		return;
	// Drivers poll for the commands that create and destroy the queue of these events.
	const auto before = executor_.completion_queue();
	const Delivery delivery = run(entry, *memory, place);
	if (faults_.strikes(Fault::command_lost))
		return;
	memory->store(place + CommandEntry::status_byte,
		      static_cast<std::uint8_t>(static_cast<unsigned>(delivery) << 1));
	if (before && executor_.completion_queue() == before)
		for (unsigned events = faults_.strikes(Fault::command_twice) ? 2 : 1; events;
		     --events)
			executor_.command_done(*before, slot);
}

CommandQueue::Delivery CommandQueue::run(const CommandEntry &entry, GuestMemory &memory,
					 std::uint64_t place)
{
	if (CommandEntry::type.get(entry.bytes) != CommandEntry::type_pci)
		return Delivery::bad_type;
	const std::size_t in_length = CommandEntry::input_length.get(entry.bytes);
	const std::size_t out_length = CommandEntry::output_length.get(entry.bytes);
	if (in_length < InputHead::size || in_length > limits::kMostInput)
		return Delivery::bad_input_length;
	if (out_length < OutputHead::size || out_length > limits::kMostOutput)
		return Delivery::bad_output_length;
	in_.resize(in_length);
	const auto opcode = static_cast<hw::mlx5::Opcode>(
		InputHead::opcode.get(entry.bytes + CommandEntry::inline_input));
	if (CommandEntry::input_block.get(entry.bytes) != 0)
		in_.resize(std::max(in_length, executor_.whole_input(opcode)));
	out_.assign(out_length, 0);
	if (const Delivery delivery = read_input(entry, memory); delivery != Delivery::ok)
		return delivery;
	if (const Delivery delivery = find_output(entry, memory); delivery != Delivery::ok)
		return delivery;

	Command command{.opcode = static_cast<hw::mlx5::Opcode>(InputHead::opcode.get(in_.data())),
			.op_modifier = InputHead::op_modifier.get(in_.data()),
			.in = in_,
			.out = out_};
	hw::mlx5::Status status = executor_.execute(command);
	if (faults_.strikes(Fault::command_status) || faults_.strikes(Fault::command_nth))
		status = static_cast<hw::mlx5::Status>(Faults::kNoSuchStatus);
	if (status != hw::mlx5::Status::ok) {
		std::ranges::fill(out_, std::uint8_t{0});
		OutputHead::status.set(out_.data(), static_cast<std::uint32_t>(status));
		OutputHead::syndrome.set(out_.data(), static_cast<std::uint32_t>(command.opcode)
								      << 16 |
							      static_cast<std::uint32_t>(status));
	}
	return write_output(memory, place) ? Delivery::ok : Delivery::bad_output_pointer;
}

CommandQueue::Delivery CommandQueue::read_input(const CommandEntry &entry,
						const GuestMemory &memory)
{
	const std::size_t first = std::min(in_.size(), CommandEntry::inline_size);
	std::memcpy(in_.data(), entry.bytes + CommandEntry::inline_input, first);
	const std::uint32_t token = CommandEntry::token.get(entry.bytes);
	std::uint64_t address = CommandEntry::input_block.get(entry.bytes);
	std::size_t done = first;
	for (std::uint32_t number = 0; done < in_.size(); ++number) {
		CommandBlock block;
		if (const Delivery delivery = check_block(memory, address, number, token,
							  Delivery::bad_input_pointer, block);
		    delivery != Delivery::ok)
			return delivery;
		const std::size_t step = std::min(in_.size() - done, CommandBlock::data_size);
		std::memcpy(in_.data() + done, block.bytes, step);
		done += step;
		address = CommandBlock::next.get(block.bytes);
	}
	return Delivery::ok;
}

CommandQueue::Delivery CommandQueue::find_output(const CommandEntry &entry,
						 const GuestMemory &memory)
{
	const std::uint32_t token = CommandEntry::token.get(entry.bytes);
	std::uint64_t address = CommandEntry::output_block.get(entry.bytes);
	out_blocks_.clear();
	for (std::uint32_t number = 0; number < blocks_of(out_.size()); ++number) {
		CommandBlock block;
		if (const Delivery delivery = check_block(memory, address, number, token,
							  Delivery::bad_output_pointer, block);
		    delivery != Delivery::ok)
			return delivery;
		out_blocks_.push_back(address);
		address = CommandBlock::next.get(block.bytes);
	}
	return Delivery::ok;
}

bool CommandQueue::write_output(GuestMemory &memory, std::uint64_t place)
{
	const auto out = std::as_bytes(std::span(out_));
	std::size_t done = std::min(out.size(), CommandEntry::inline_size);
	if (!memory.write(place + CommandEntry::inline_output, out.first(done)))
		return false;
	for (const std::uint64_t block : out_blocks_) {
		const std::size_t step = std::min(out.size() - done, CommandBlock::data_size);
		if (!memory.write(block, out.subspan(done, step)))
			return false;
		done += step;
	}
	return true;
}

} // namespace weft::mlx5
