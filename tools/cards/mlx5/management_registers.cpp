// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/management_registers.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <hw/mlx5/management.hpp>

#include "cards/mlx5/core.hpp"
#include "cards/mlx5/limits.hpp"

namespace weft::mlx5
{

using hw::mlx5::ComponentControl;
using hw::mlx5::ComponentData;
using hw::mlx5::ComponentInformation;
using hw::mlx5::ComponentStatus;
using hw::mlx5::GeneralInformation;
using hw::mlx5::InformationString;
using hw::mlx5::RegisterAccess;
using hw::mlx5::RegisterCapabilities;

namespace
{

std::uint32_t general_information(const Core &core, std::uint8_t *out)
{
	std::memset(out, 0, GeneralInformation::size);
	GeneralInformation::device_id.set(out, hw::mlx5::pci_device_id);
	GeneralInformation::ports.set(out, static_cast<std::uint32_t>(core.ports.size()));
	GeneralInformation::hardware_id.set(out, hw::mlx5::gateway::connectx_5);
	std::memcpy(out + GeneralInformation::board_id, limits::kBoardId, sizeof(limits::kBoardId));
	GeneralInformation::firmware_major.set(out, limits::kFirmwareMajor);
	GeneralInformation::firmware_minor.set(out, limits::kFirmwareMinor);
	GeneralInformation::firmware_subminor.set(out, limits::kFirmwareSubminor);
	return RegisterAccess::ok;
}

// The firmware consists of one component.
std::uint32_t component_status(std::uint8_t *data)
{
	if (ComponentStatus::index.get(data) != 0)
		return RegisterAccess::bad_parameter;
	std::memset(data, 0, ComponentStatus::size);
	ComponentStatus::last.set(data, 1);
	ComponentStatus::identifier.set(data, ComponentStatus::boot_image);
	ComponentStatus::status.set(data, ComponentStatus::in_use);
	return RegisterAccess::ok;
}

std::uint32_t component_information(std::uint8_t *data)
{
	using Information = ComponentInformation;
	std::array<std::uint8_t, Information::data_most> properties{};
	std::uint8_t *const out = properties.data();
	if (Information::index.get(data) != 0)
		return RegisterAccess::bad_parameter;
	switch (Information::kind.get(data)) {
	case Information::capabilities:
		Information::supported_kinds.set(out, 1u << Information::version |
							      1u << Information::activation);
		break;
	case Information::version: {
		const std::string text =
			fmt::format("{}.{}.{}", limits::kFirmwareMajor, limits::kFirmwareMinor,
				    limits::kFirmwareSubminor);
		Information::version_length.set(out, static_cast<std::uint32_t>(text.size()));
		Information::version_number.set(out, limits::kFirmwareMajor << 24 |
							     limits::kFirmwareMinor << 16 |
							     limits::kFirmwareSubminor);
		std::ranges::copy(text, out + Information::version_string);
		break;
	}
	case Information::activation:
		Information::after_firmware_reset.set(out, 1);
		break;
	default:
		return RegisterAccess::bad_parameter;
	}
	const std::size_t offset = Information::offset.get(data);
	if (offset > properties.size())
		return RegisterAccess::bad_parameter;
	const std::size_t length =
		std::min<std::size_t>(Information::data_size.get(data), properties.size() - offset);
	Information::info_size.set(data, Information::data_most);
	Information::data_size.set(data, static_cast<std::uint32_t>(length));
	std::memset(data + Information::data, 0, Information::data_most);
	std::memcpy(data + Information::data, out + offset, length);
	return RegisterAccess::ok;
}

// Texts that do not exist are empty.
std::uint32_t information_string(std::span<std::uint8_t> data)
{
	const std::uint32_t kind = InformationString::kind.get(data.data());
	const std::string_view text = kind == InformationString::model_name ||
						      kind == InformationString::model_description
					      ? limits::kProductName
					      : "";
	const std::size_t offset = InformationString::read_offset.get(data.data());
	const std::size_t most =
		std::min<std::size_t>(InformationString::read_length.get(data.data()),
				      data.size() - InformationString::data);
	const std::string_view part = text.substr(std::min(offset, text.size()), most);
	std::ranges::fill(data.subspan(InformationString::data), std::uint8_t{0});
	std::ranges::copy(part, data.begin() + InformationString::data);
	InformationString::length.set(data.data(), static_cast<std::uint32_t>(text.size()));
	InformationString::read_length.set(data.data(), static_cast<std::uint32_t>(part.size()));
	return RegisterAccess::ok;
}

// Numbers from RegisterCapabilities::first on, and the size of each register.
struct RegisterSize {
	std::uint32_t number;
	std::size_t size;
};
constexpr RegisterSize kManagementRegisters[] = {
	{GeneralInformation::number, GeneralInformation::size},
	{ComponentStatus::number, ComponentStatus::size},
	{ComponentInformation::number, ComponentInformation::size},
	{ComponentControl::number, ComponentControl::size},
	{ComponentData::number, ComponentData::size},
	{InformationString::number, InformationString::size},
	{RegisterCapabilities::number, RegisterCapabilities::size},
};

std::uint32_t register_capabilities(std::uint8_t *data)
{
	const std::uint32_t group = RegisterCapabilities::group.get(data);
	std::memset(data, 0, RegisterCapabilities::size);
	RegisterCapabilities::group.set(data, group);
	if (group != 0)
		return RegisterAccess::ok;
	for (const auto &each : kManagementRegisters) {
		const std::uint32_t bit = each.number - RegisterCapabilities::first;
		data[RegisterCapabilities::mask + 15 - bit / 8] |= 1u << bit % 8;
	}
	return RegisterAccess::ok;
}

} // namespace

std::uint32_t read_management_register(const Core &core, std::uint32_t number,
				       std::span<std::uint8_t> data)
{
	const auto *const found =
		std::ranges::find(kManagementRegisters, number, &RegisterSize::number);
	if (found == std::end(kManagementRegisters))
		return RegisterAccess::not_supported;
	if (data.size() < found->size)
		return RegisterAccess::bad_parameter;
	switch (number) {
	case GeneralInformation::number:
		return general_information(core, data.data());
	case ComponentStatus::number:
		return component_status(data.data());
	case ComponentInformation::number:
		return component_information(data.data());
	case ComponentControl::number: // idle, and owned by no program
		std::ranges::fill(data, std::uint8_t{0});
		return RegisterAccess::ok;
	case ComponentData::number: // the component cannot be read
		return RegisterAccess::bad_parameter;
	case InformationString::number:
		return information_string(data);
	default:
		return register_capabilities(data.data());
	}
}

} // namespace weft::mlx5
