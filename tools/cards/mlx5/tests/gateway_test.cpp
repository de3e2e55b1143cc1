// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the gateway in the vendor-specific capability: spaces, semaphores, and firmware commands
// that read registers.
#include <hw/mlx5/management.hpp>

#include "cards/mlx5/gateway.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

namespace gateway = hw::mlx5::gateway;
namespace firmware_command = hw::mlx5::firmware_command;
using hw::mlx5::ComponentInformation;
using hw::mlx5::ComponentStatus;
using hw::mlx5::GeneralInformation;
using hw::mlx5::RegisterAccess;
using hw::mlx5::RegisterCapabilities;

// No driver has been loaded.
class Mlx5Gateway : public ::testing::Test
{
public:
	std::uint32_t get(unsigned offset) { return driver.card.capability_read(offset); }
	void set(unsigned offset, std::uint32_t value)
	{
		driver.card.capability_write(offset, value);
	}
	// Returns false if the card does not have the space.
	bool select(std::uint32_t space)
	{
		set(gateway::control, space);
		EXPECT_EQ(gateway::space.of(get(gateway::control)), space);
		return gateway::space_status.of(get(gateway::control)) != 0;
	}
	bool select(gateway::Space space) { return select(static_cast<std::uint32_t>(space)); }
	std::uint32_t load(std::uint32_t address)
	{
		set(gateway::address, address);
		EXPECT_EQ(get(gateway::address), address | gateway::address_flag.in(1));
		return get(gateway::data);
	}
	void store(std::uint32_t address, std::uint32_t value)
	{
		set(gateway::data, value);
		set(gateway::address, address | gateway::address_flag.in(1));
		EXPECT_EQ(get(gateway::address), address);
	}
	// Executes a firmware command; returns its status.
	std::uint32_t execute(std::uint32_t opcode)
	{
		store(firmware_command::control,
		      firmware_command::opcode.in(opcode) | firmware_command::busy.in(1));
		const std::uint32_t control = load(firmware_command::control);
		EXPECT_EQ(firmware_command::busy.of(control), 0u);
		return firmware_command::status.of(control);
	}
	// Accesses a register, whose data are both input and output; returns the status.
	std::uint32_t read_register(std::uint32_t number, Bytes &out,
				    std::uint32_t method = RegisterAccess::read)
	{
		Bytes mailbox(RegisterAccess::data + out.size());
		RegisterAccess::number.set(mailbox.data(), number);
		RegisterAccess::method.set(mailbox.data(), method);
		RegisterAccess::dwords.set(mailbox.data(),
					   static_cast<std::uint32_t>(out.size() / 4 + 1));
		std::ranges::copy(out, mailbox.begin() + RegisterAccess::data);
		select(gateway::Space::command);
		for (std::size_t at = 0; at < mailbox.size(); at += 4)
			store(firmware_command::mailbox + static_cast<std::uint32_t>(at),
			      hw::mlx5::load_be32(mailbox.data(), at));
		EXPECT_EQ(execute(firmware_command::access_register), firmware_command::ok);
		for (std::size_t at = 0; at < mailbox.size(); at += 4)
			hw::mlx5::store_be32(
				mailbox.data(), at,
				load(firmware_command::mailbox + static_cast<std::uint32_t>(at)));
		std::copy(mailbox.begin() + RegisterAccess::data, mailbox.end(), out.begin());
		EXPECT_EQ(RegisterAccess::response.get(mailbox.data()), 1u);
		return RegisterAccess::status.get(mailbox.data());
	}

	ib::PortInfo &info() { return driver.card.context()->port(1)->info(); }
	// Writes the register of the port's speeds, as iPXE does.
	void limit_speed(unsigned speeds)
	{
		using hw::mlx5::AccessRegister;
		Bytes speed(AccessRegister::speed_size);
		AccessRegister::port.set(speed.data(), 1);
		ASSERT_EQ(read_register(AccessRegister::port_speed, speed), RegisterAccess::ok);
		AccessRegister::speeds_wanted.set(speed.data(), speeds);
		ASSERT_EQ(read_register(AccessRegister::port_speed, speed, RegisterAccess::write),
			  RegisterAccess::ok);
		ASSERT_EQ(info().speed_enabled(), speeds);
	}
	// Sends a SubnSet(PortInfo) from the fabric.
	void set_by_manager(unsigned speeds, std::uint8_t widths)
	{
		ib::Smp smp = lid_routed_smp(ib::MadMethod::set, ib::attr_port_info, 1);
		auto &wanted = ib::smp_attribute<ib::PortInfo>(smp);
		wanted = info();
		wanted.set_state(ib::PortState::nop);
		wanted.set_phys_state(ib::PhysState::nop);
		wanted.lid = TinyDriver::kLid;
		wanted.sm_lid = 1;
		wanted.set_speed_enabled(speeds);
		wanted.link_width_enabled = widths;
		bool handled = false;
		const auto answer = driver.card.context()->management.wire_smp(1, smp, 1, handled);
		ASSERT_TRUE(answer);
		ASSERT_EQ(answer->header.status, 0u);
		ASSERT_EQ(info().speed_enabled(), speeds);
	}

	TinyDriver driver;
};

TEST_F(Mlx5Gateway, SecondProgramCannotLockTheGatewayUntilTheFirstHasUnlockedIt)
{
	const std::uint32_t first = get(gateway::counter), second = get(gateway::counter);
	EXPECT_NE(first, 0u);
	EXPECT_NE(first, second);
	set(gateway::semaphore, first);
	set(gateway::semaphore, second);
	EXPECT_EQ(get(gateway::semaphore), first);
	set(gateway::semaphore, 0);
	EXPECT_EQ(get(gateway::semaphore), 0u);
	set(gateway::semaphore, second);
	EXPECT_EQ(get(gateway::semaphore), second);
	driver.card.reset(PciReset::function_level);
	EXPECT_EQ(get(gateway::semaphore), 0u);
}

// iPXE's driver locks the gateway a second time without having unlocked it.
TEST(Mlx5GatewayTime, UnusedGatewayIsUnlockedAfterTenSeconds)
{
	VirtualEnvironment environment;
	fabric::Fabric fabric;
	TinyDriver driver(fabric.add_port("test"), TinyDriver::kGuid, environment);
	const auto wait = [&](std::chrono::seconds time) {
		driver.host.loop().run_until([] { return false; }, time);
	};
	driver.card.capability_write(gateway::semaphore, 1);
	wait(std::chrono::seconds(9));
	EXPECT_EQ(driver.card.capability_read(gateway::semaphore), 1u);
	driver.card.capability_read(gateway::data); // uses it
	wait(std::chrono::seconds(9));
	EXPECT_EQ(driver.card.capability_read(gateway::semaphore), 1u);
	wait(std::chrono::seconds(1));
	EXPECT_EQ(driver.card.capability_read(gateway::semaphore), 0u);
	driver.card.capability_write(gateway::semaphore, 2);
	EXPECT_EQ(driver.card.capability_read(gateway::semaphore), 2u);
}

TEST_F(Mlx5Gateway, DeviceIdInTheCrSpaceIsReadableButNotWritable)
{
	ASSERT_TRUE(select(gateway::Space::registers));
	EXPECT_EQ(load(gateway::device_id), gateway::connectx_5);
	EXPECT_EQ(load(0x10), 0u);
	store(gateway::device_id, 7);
	EXPECT_EQ(load(gateway::device_id), gateway::connectx_5);
}

// Linux would dump the registers of space 7.
TEST_F(Mlx5Gateway, UnimplementedAddressSpacesAreReportedAsUnsupported)
{
	for (const std::uint32_t space : {0u, 4u, 5u, 6u, 7u, 0xfu, 0xffffu}) {
		EXPECT_FALSE(select(space)) << space;
		EXPECT_EQ(load(gateway::device_id), 0u);
		store(0, ~0u);
	}
	EXPECT_TRUE(select(gateway::Space::command));
	EXPECT_TRUE(select(gateway::Space::extended_command));
	EXPECT_TRUE(select(gateway::Space::semaphores));
}

TEST_F(Mlx5Gateway, SecondProgramCannotTakeASemaphoreUntilTheFirstHasReleasedIt)
{
	ASSERT_TRUE(select(gateway::Space::semaphores));
	constexpr std::uint32_t last = 4 * Gateway::kSemaphores - 4;
	for (const std::uint32_t address : {0u, 0x20u, last}) {
		store(address, 11);
		store(address, 22);
		EXPECT_EQ(load(address), 11u);
		store(address, 0);
		store(address, 22);
		EXPECT_EQ(load(address), 22u);
	}
	store(last + 4, 11);
	EXPECT_EQ(load(last + 4), 0u) << "beyond the last";
}

TEST_F(Mlx5Gateway, MgirRegisterReportsDeviceIdPortsFirmwareVersionAndBoardId)
{
	Bytes out(GeneralInformation::size);
	ASSERT_EQ(read_register(GeneralInformation::number, out), RegisterAccess::ok);
	EXPECT_EQ(GeneralInformation::device_id.get(out.data()), 0x1017u);
	EXPECT_EQ(GeneralInformation::ports.get(out.data()), 1u);
	EXPECT_EQ(GeneralInformation::firmware_major.get(out.data()), limits::kFirmwareMajor);
	EXPECT_EQ(GeneralInformation::firmware_subminor.get(out.data()), limits::kFirmwareSubminor);
	EXPECT_STREQ(reinterpret_cast<const char *>(out.data() + GeneralInformation::board_id),
		     limits::kBoardId);
}

TEST_F(Mlx5Gateway, McqsAndMcqiRegistersReportOneFirmwareComponent)
{
	Bytes status(ComponentStatus::size);
	ASSERT_EQ(read_register(ComponentStatus::number, status), RegisterAccess::ok);
	EXPECT_EQ(ComponentStatus::last.get(status.data()), 1u);
	EXPECT_EQ(ComponentStatus::identifier.get(status.data()), ComponentStatus::boot_image);
	status.assign(status.size(), 0);
	ComponentStatus::index.set(status.data(), 1);
	EXPECT_EQ(read_register(ComponentStatus::number, status), RegisterAccess::bad_parameter);

	const auto read = [&](std::uint32_t kind, std::uint32_t offset, std::uint32_t length) {
		Bytes out(ComponentInformation::size);
		ComponentInformation::kind.set(out.data(), kind);
		ComponentInformation::offset.set(out.data(), offset);
		ComponentInformation::data_size.set(out.data(), length);
		const std::uint32_t answer = read_register(ComponentInformation::number, out);
		EXPECT_EQ(answer, RegisterAccess::ok) << kind << " at " << offset;
		return out;
	};
	const Bytes version = read(ComponentInformation::version, 0, 0xffff);
	EXPECT_EQ(ComponentInformation::data_size.get(version.data()),
		  ComponentInformation::data_most);
	const char *const data =
		reinterpret_cast<const char *>(version.data() + ComponentInformation::data);
	EXPECT_STREQ(data + ComponentInformation::version_string, "16.35.2000");
	const Bytes part =
		read(ComponentInformation::version, ComponentInformation::version_string, 2);
	EXPECT_STREQ(reinterpret_cast<const char *>(part.data() + ComponentInformation::data),
		     "16");
	const Bytes none =
		read(ComponentInformation::version, ComponentInformation::data_most, 100);
	EXPECT_EQ(ComponentInformation::data_size.get(none.data()), 0u);
	read(ComponentInformation::capabilities, 0, 16);
	read(ComponentInformation::activation, 0, 16);
	for (const auto &[kind, offset] :
	     {std::pair{2u, 0u}, std::pair{1u, 0x7du}, std::pair{1u, ~0u}}) {
		Bytes out(ComponentInformation::size);
		ComponentInformation::kind.set(out.data(), kind);
		ComponentInformation::offset.set(out.data(), offset);
		EXPECT_EQ(read_register(ComponentInformation::number, out),
			  RegisterAccess::bad_parameter);
	}
}

// A program reads a text in parts.
TEST_F(Mlx5Gateway, MqisRegisterReturnsTheModelNameInPartsOf8Bytes)
{
	using hw::mlx5::InformationString;
	const std::string name = limits::kProductName;
	const auto read = [&](std::uint32_t kind, std::size_t offset, std::uint32_t length) {
		Bytes out(InformationString::size);
		InformationString::kind.set(out.data(), kind);
		InformationString::read_offset.set(out.data(), static_cast<std::uint32_t>(offset));
		InformationString::read_length.set(out.data(), length);
		EXPECT_EQ(read_register(InformationString::number, out), RegisterAccess::ok);
		const std::uint32_t got = InformationString::read_length.get(out.data());
		EXPECT_EQ(InformationString::length.get(out.data()),
			  kind == InformationString::model_name ? name.size() : 0);
		EXPECT_LE(got, 8u);
		return std::string(out.begin() + InformationString::data,
				   out.begin() + InformationString::data + std::min(got, 8u));
	};
	constexpr std::uint32_t kind = InformationString::model_name;
	EXPECT_EQ(read(kind, 0, 0xffff), name.substr(0, 8));
	EXPECT_EQ(read(kind, 8, 3), name.substr(8, 3));
	EXPECT_EQ(read(kind, name.size() - 2, 8), name.substr(name.size() - 2));
	EXPECT_EQ(read(kind, name.size(), 8), "");
	EXPECT_EQ(read(kind, 0xffff, 8), "");
	EXPECT_EQ(read(3, 0, 8), "") << "a text that the card does not have";
}

TEST_F(Mlx5Gateway, McamRegisterReportsTheImplementedRegisters)
{
	Bytes out(RegisterCapabilities::size);
	ASSERT_EQ(read_register(RegisterCapabilities::number, out), RegisterAccess::ok);
	unsigned count = 0;
	for (std::uint32_t bit = 0; bit < 128; ++bit) {
		if (!(out[RegisterCapabilities::mask + 15 - bit / 8] >> bit % 8 & 1))
			continue;
		++count;
		Bytes each(0x100);
		const std::uint32_t number = RegisterCapabilities::first + bit;
		EXPECT_EQ(read_register(number, each), number == hw::mlx5::ComponentData::number
							       ? RegisterAccess::bad_parameter
							       : RegisterAccess::ok)
			<< bit;
	}
	EXPECT_EQ(count, 7u);
	RegisterCapabilities::group.set(out.data(), 1);
	EXPECT_EQ(read_register(RegisterCapabilities::number, out), RegisterAccess::ok);
	EXPECT_TRUE(std::all_of(out.begin() + 4, out.end(), [](auto byte) { return byte == 0; }));
}

// iPXE's driver limits the speed before it initialises the card.
TEST_F(Mlx5Gateway, DriverCanRestrictTheEnabledPortSpeeds)
{
	using hw::mlx5::AccessRegister;
	driver.enable();
	const CardPort &port = *driver.card.context()->port(1);
	const unsigned all = port.info().speed_supported();
	Bytes speed(AccessRegister::speed_size);
	AccessRegister::port.set(speed.data(), 1);
	ASSERT_EQ(read_register(AccessRegister::port_speed, speed), RegisterAccess::ok);
	EXPECT_EQ(AccessRegister::speeds_possible.get(speed.data()), all);
	EXPECT_EQ(AccessRegister::speeds_wanted.get(speed.data()), all);
	AccessRegister::speeds_wanted.set(speed.data(), ib::speed_sdr);
	const auto write = [&](Bytes data, std::uint32_t number = AccessRegister::port_speed) {
		return read_register(number, data, RegisterAccess::write);
	};
	ASSERT_EQ(write(speed), RegisterAccess::ok);
	EXPECT_EQ(port.info().speed_enabled(), ib::speed_sdr);
	EXPECT_EQ(port.fabric_port().enabled_rates().speeds, ib::speed_sdr);
	EXPECT_EQ(port.fabric_port().enabled_rates().speeds_ext, 0);
	ASSERT_EQ(read_register(AccessRegister::port_speed, speed), RegisterAccess::ok);
	EXPECT_EQ(AccessRegister::speeds_wanted.get(speed.data()), ib::speed_sdr);
	EXPECT_EQ(AccessRegister::speeds_possible.get(speed.data()), all);

	const auto invalid = [&](const hw::mlx5::Field &field, std::uint32_t value) {
		Bytes wrong = speed;
		field.set(wrong.data(), value);
		return write(wrong);
	};
	EXPECT_EQ(invalid(AccessRegister::port, 2), RegisterAccess::bad_parameter);
	EXPECT_EQ(invalid(AccessRegister::speed_protocols, 4), RegisterAccess::bad_parameter);
	EXPECT_EQ(invalid(AccessRegister::speeds_wanted, 0), RegisterAccess::bad_parameter);
	EXPECT_EQ(invalid(AccessRegister::speeds_wanted, 0x8000), RegisterAccess::bad_parameter);
	EXPECT_EQ(invalid(AccessRegister::widths_wanted, 0), RegisterAccess::bad_parameter);
	EXPECT_EQ(write(Bytes(AccessRegister::speed_size - 4)), RegisterAccess::bad_parameter);
	EXPECT_EQ(write(speed, AccessRegister::port_mtu), RegisterAccess::method_not_supported);
	EXPECT_EQ(port.info().speed_enabled(), ib::speed_sdr);

	EXPECT_EQ(driver.command(Opcode::disable_hca).status, Status::ok);
	EXPECT_EQ(port.fabric_port().enabled_rates(), fabric::EnabledRates{});
	EXPECT_EQ(port.info().speed_enabled(), all);
	ASSERT_EQ(write(speed), RegisterAccess::ok);
	driver.card.reset(PciReset::function_level);
	EXPECT_EQ(driver.card.context()->port(1)->fabric_port().enabled_rates(),
		  fabric::EnabledRates{});
}

// iPXE limits the speed, and then a subnet manager does. DISABLE_HCA ends only iPXE's limit.
TEST_F(Mlx5Gateway, SpeedsAndWidthsSetByASubnetManagerRemainAfterDisableHca)
{
	constexpr unsigned two = ib::speed_sdr | ib::speed_ddr;
	driver.enable();
	const unsigned all = info().speed_supported();
	const std::uint8_t widths = info().link_width_supported;
	limit_speed(ib::speed_sdr);
	set_by_manager(two, 0);
	EXPECT_EQ(driver.command(Opcode::disable_hca).status, Status::ok);
	EXPECT_EQ(info().speed_enabled(), two);
	EXPECT_EQ(driver.port.enabled_rates().speeds, two);

	// The limit of the manager is also what a later limit of the driver returns to.
	driver.enable();
	limit_speed(ib::speed_ddr);
	set_by_manager(ib::speed_ddr, ib::width_1x);
	limit_speed(ib::speed_sdr);
	EXPECT_EQ(info().link_width_enabled, ib::width_1x);
	EXPECT_EQ(driver.command(Opcode::disable_hca).status, Status::ok);
	EXPECT_EQ(info().speed_enabled(), two);
	EXPECT_EQ(info().link_width_enabled, ib::width_1x);

	driver.enable();
	set_by_manager(all, widths);
	limit_speed(ib::speed_sdr);
	set_by_manager(ib::speed_sdr, widths); // repeats what it has read
	EXPECT_EQ(driver.command(Opcode::disable_hca).status, Status::ok);
	EXPECT_EQ(driver.port.enabled_rates(), fabric::EnabledRates{});
}

TEST_F(Mlx5Gateway, UnsupportedRegistersAndMethodsAreRefusedAndCounted)
{
	Bytes out(16);
	EXPECT_EQ(read_register(0x9024, out), RegisterAccess::not_supported);
	EXPECT_EQ(read_register(GeneralInformation::number, out, 2),
		  RegisterAccess::method_not_supported);
	EXPECT_EQ(driver.card.unsupported().count(), 2u);
	EXPECT_EQ(read_register(GeneralInformation::number, out), RegisterAccess::bad_parameter)
		<< "it is larger";
	select(gateway::Space::command);
	EXPECT_EQ(execute(0x1234), firmware_command::invalid_opcode);
}

// The length of the register is the program's.
TEST_F(Mlx5Gateway, RegisterAccessOfALengthThatExceedsTheMailboxIsRefused)
{
	select(gateway::Space::command);
	EXPECT_EQ(load(firmware_command::size), Gateway::kMailboxSize);
	constexpr std::uint32_t most = (Gateway::kMailboxSize - RegisterAccess::data) / 4 + 1;
	const auto status = [&](std::uint32_t dwords) {
		store(firmware_command::mailbox, 0);
		store(firmware_command::mailbox + 4,
		      RegisterAccess::number.in(GeneralInformation::number) |
			      RegisterAccess::method.in(RegisterAccess::read));
		store(firmware_command::mailbox + 0x10, RegisterAccess::dwords.in(dwords));
		EXPECT_EQ(execute(firmware_command::access_register), firmware_command::ok);
		return RegisterAccess::status.of(load(firmware_command::mailbox));
	};
	EXPECT_EQ(status(most), RegisterAccess::ok);
	EXPECT_EQ(status(most + 1), RegisterAccess::bad_parameter);
	EXPECT_EQ(status(0x7ff), RegisterAccess::bad_parameter);
	EXPECT_EQ(status(0), RegisterAccess::bad_parameter);
	constexpr std::uint32_t end = firmware_command::mailbox + Gateway::kMailboxSize;
	store(end, 5);
	EXPECT_EQ(load(end), 0u);
	store(end - 3, 5);
	EXPECT_EQ(load(end - 3), 0u) << "not aligned";
}

} // namespace weft::mlx5::testing
