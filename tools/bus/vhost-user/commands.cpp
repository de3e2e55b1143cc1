// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vhost-user/commands.hpp"

#include <algorithm>
#include <cstring>

#include "bus/pci/endpoint.hpp"

namespace weft::vhost_user
{

namespace
{

constexpr std::byte kNobodyAnswers{0xff};

} // namespace

std::span<const std::byte> Commands::execute(std::span<const std::byte> bytes, std::size_t room)
{
	Command command;
	if (bytes.size() < sizeof(command))
		return {};
	std::memcpy(&command, bytes.data(), sizeof(command));
	const auto data = bytes.subspan(sizeof(command));
	const bool in_bar = command.bar < kPciBars;
	bool answered = false;
	switch (static_cast<Operation>(command.operation)) {
	case Operation::config_read:
		answered = read(pci::Endpoint::kConfigRegion, command);
		break;
	case Operation::memory_read:
		answered = in_bar && read(command.bar, command);
		break;
	case Operation::config_write:
		write(pci::Endpoint::kConfigRegion, command, data);
		return {};
	case Operation::memory_write:
		if (in_bar)
			write(command.bar, command, data);
		return {};
	case Operation::memory_set:
		if (!in_bar || data.empty() || command.size > data_.size())
			return {};
		data_.fill(data.front());
		write(command.bar, command, data_);
		return {};
	default: // operations from the host to the guest, and unknown ones
		return {};
	}
	if (!answered)
		data_.fill(kNobodyAnswers);
	return std::span(data_).first(std::min<std::size_t>({command.size, data_.size(), room}));
}

bool Commands::read(std::uint32_t region, const Command &command)
{
	return command.size <= data_.size() &&
	       endpoint_.region_read(region, command.address, std::span(data_).first(command.size));
}

void Commands::write(std::uint32_t region, const Command &command, std::span<const std::byte> data)
{
	if (command.size <= data.size())
		endpoint_.region_write(region, command.address, data.first(command.size));
}

} // namespace weft::vhost_user
