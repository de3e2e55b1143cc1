// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the gateway in the vendor-specific capability of configuration space, through which
// management programs read registers of the card and execute firmware commands
// (hw/mlx5/management.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hw/mlx5/management.hpp>

#include "base/environment.hpp"

namespace weft::mlx5
{

class Core;

class Gateway
{
public:
	explicit Gateway(Core &core) : core_(core) {}

	void reset() { state_ = {}; }
	// Accesses to the dword at @offset of the capability.
	std::uint32_t read(unsigned offset);
	void write(unsigned offset, std::uint32_t value);

	static constexpr std::size_t kMailboxSize = 0x400;
	static constexpr std::size_t kSemaphores = 64;

private:
	using Space = hw::mlx5::gateway::Space;

	void used();
	bool has_space() const;
	void access(std::uint32_t value);
	std::uint32_t load(std::uint32_t address) const;
	void store(std::uint32_t address, std::uint32_t value);
	void execute(std::uint32_t control);
	std::uint32_t read_register(std::uint32_t number, std::span<std::uint8_t> data);
	void access_register();

	struct State {
		Space space{};
		std::uint32_t counter = 0;
		std::uint32_t semaphore = 0; // number of the program that has locked the gateway
		Clock::time_point used{};    // when the gateway was last used
		std::uint32_t address = 0;
		std::uint32_t data = 0;
		std::uint32_t control = 0; // of the last firmware command
		// Each has the number of the program that has locked it, or 0.
		std::array<std::uint32_t, kSemaphores> semaphores{};
		std::array<std::uint8_t, kMailboxSize> mailbox{}; // as its registers, big-endian
	};

	Core &core_;
	State state_;
};

} // namespace weft::mlx5
