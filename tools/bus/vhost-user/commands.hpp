// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Executes a guest's commands for its PCI function: reads and writes of configuration space and
// BARs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bus/vhost-user/protocol.hpp"

namespace weft::pci
{
class Endpoint;
}

namespace weft::vhost_user
{

class Commands
{
public:
	explicit Commands(pci::Endpoint &endpoint) : endpoint_(endpoint) {}

	// Executes @command, which is a Command followed by its data. Returns the data of a read,
	// at most @room bytes, which is valid until the next call. Invalid commands behave as on a
	// bus without the addressed device: reads return all ones, and others have no effect.
	std::span<const std::byte> execute(std::span<const std::byte> command, std::size_t room);

private:
	bool read(std::uint32_t region, const Command &command);
	void write(std::uint32_t region, const Command &command, std::span<const std::byte> data);

	pci::Endpoint &endpoint_;
	std::array<std::byte, kMaxTransfer> data_;
};

} // namespace weft::vhost_user
