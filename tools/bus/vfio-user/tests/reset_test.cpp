// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests VFIO_USER_DEVICE_RESET, and the function-level reset through configuration space.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

using Reset = GreetedTest;
using ::testing::ElementsAre;

// A reset reaches the device and restores configuration space and INTx. Memory and descriptors
// belong to the client and stay.
TEST_F(Reset, ResetMessageResetsConfigSpaceAndDevice)
{
	const auto file = make_memory(4096);
	client().map(0, 4096, file.get());
	enable_msix();
	device_.host().set_intx(true);
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
	EXPECT_THAT(device_.resets, ElementsAre(PciReset::bus, PciReset::bus));
	EXPECT_FALSE(device_.host().bus_master());
	EXPECT_FALSE(device_.host().msix_enabled());
	EXPECT_EQ(client().read_as<std::uint16_t>(kRegionConfig, kPciCommand), 0);
	EXPECT_EQ(client().read_as<std::uint16_t>(kRegionConfig, 6), 0x10);
	EXPECT_TRUE(device_.host().dma().read_as<int>(0));
}

// Two resets in a row, as in a reboot, both reach the device.
TEST_F(Reset, TwoConsecutiveResetsBothReachTheDevice)
{
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
	EXPECT_EQ(device_.resets.size(), 3u);
}

// The capability announces function-level reset. Writing its bit resets the device, and the bit
// reads as zero.
TEST_F(Reset, FunctionLevelResetResetsTheDevice)
{
	const auto express = find_capability(0x10);
	ASSERT_NE(express, 0);
	EXPECT_TRUE(client().read_as<std::uint32_t>(kRegionConfig, express + 4u) & 1u << 28);
	enable_msix();
	const auto control = client().read_as<std::uint16_t>(kRegionConfig, express + 8u);
	client().write_as<std::uint16_t>(kRegionConfig, express + 8u, control);
	EXPECT_THAT(device_.resets, ElementsAre(PciReset::bus));
	client().write_as<std::uint16_t>(kRegionConfig, express + 8u, control | 0x8000);
	EXPECT_THAT(device_.resets, ElementsAre(PciReset::bus, PciReset::function_level));
	EXPECT_FALSE(client().read_as<std::uint16_t>(kRegionConfig, express + 8u) & 0x8000);
	EXPECT_FALSE(device_.host().msix_enabled());
	EXPECT_FALSE(device_.host().bus_master());
}

// The payload of a reset is ignored.
TEST_F(Reset, PayloadOfTheResetMessageIsIgnored)
{
	EXPECT_EQ(client().call(Command::reset, Bytes(100)).error(), 0u);
	const auto event = make_event();
	EXPECT_EQ(client().call(Command::reset, {}, {event.get()}).error(), EINVAL);
}

} // namespace
} // namespace weft::vfio_user
