// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the command register (HCR). When the driver writes the last dword with GO set, the
// command is executed at once, and the result is reported in the register and, if requested, by an
// event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <hw/mlx4/eqe.hpp>
#include <hw/mlx4/registers.hpp>

#include "cards/mellanox_icm/command.hpp"

namespace weft::mellanox_icm
{

class EventQueues;
class Faults;

class CommandRegister
{
public:
	class Executor
	{
	public:
		virtual ~Executor() = default;
		// Executes @command, and then calls complete(). If a fault is simulated, it may
		// never call it.
		virtual void execute(Command &command) = 0;
	};

	explicit CommandRegister(Executor &executor) : executor_(executor) {}

	void reset() { registers_.fill(0); }
	// @offset is the offset of a dword in the register. Values are as in the reference manual
	// (read as big-endian).
	std::uint32_t read(std::size_t offset) const;
	void write(std::size_t offset, std::uint32_t value);

	// Reports the result of @command as the command requests: in the register, and possibly by
	// an event. If one of @faults occurs, the report is wrong or missing.
	void complete(hw::mlx4::Status status, const Command &command, Faults &faults,
		      EventQueues &events);

private:
	// Clears GO and keeps the toggle bit, so that the register is free for the next command.
	// Returns true if an event must be sent.
	bool finish(hw::mlx4::Status status, const Command &command);
	static hw::mlx4::Eqe event(hw::mlx4::Status status, const Command &command);

	Executor &executor_;
	std::array<std::uint8_t, hw::mlx4::hcr::size> registers_{};
};

} // namespace weft::mellanox_icm
