// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a simulated card whose registers are plain memory. A test reads the driver's commands
// from them, and simulates their execution.
#pragma once
#include <kern/kunit.hpp>
#include <kern/time.hpp>
#include "../command.hpp"

namespace mellanox_icm::test
{

struct CardOfMemory {
	static constexpr size_t bar_size = 1 << 20;

	kern::kunit::FakeDevice device{"weft-mellanox"};
	kern::OwnedArray<u32> registers;
	kern::Mmio bar0;
	kern::Owned<CommandInterface> commands;

	/* @control is the initial value of the command register. */
	bool begin(GoBit go_bit, FailureListener &listener, u32 control)
	{
		auto memory = kern::make_array<u32>(kern::Gfp::kernel, bar_size / sizeof(u32));
		if (!memory || !device.native())
			return false;
		registers = memory.take();
		bar0 = kern::Mmio::over_memory(registers.data(), bar_size);
		set_control(control);
		auto made = CommandInterface::create(bar0, device.native(), go_bit, listener);
		if (!made)
			return false;
		commands = made.take();
		return commands->use_events(1).error() == 0;
	}
	u32 control()
	{
		return bar0.read_be32(hw::mellanox_icm::hcr::at + hw::mellanox_icm::hcr::control);
	}
	void set_control(u32 value)
	{
		bar0.write_be32(hw::mellanox_icm::hcr::at + hw::mellanox_icm::hcr::control, value);
	}
	bool is_asked() { return hw::mellanox_icm::hcr::go.of(control()) != 0; }
	/* Waits for a command. */
	void await()
	{
		while (!is_asked())
			kern::sleep_ms(1);
	}
	/*
	 * Waits for a command that requests an event, and removes it from the register. Returns the
	 * token for answer().
	 */
	u16 take()
	{
		await();
		const auto token = hw::mellanox_icm::hcr::token.of(bar0.read_be32(
			hw::mellanox_icm::hcr::at + hw::mellanox_icm::hcr::token.offset));
		set_control(0);
		return static_cast<u16>(token);
	}
	/*
	 * Completes a command successfully. The output mailbox contains what the test has written
	 * there.
	 */
	void answer(u16 token) { commands->completed(token, 0, 0); }
	/* Simulates a card that has left the bus: all its registers read as ones. */
	void vanish() { set_control(~0u); }
};

} // namespace mellanox_icm::test
