// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests VFIO_USER_REGION_READ, by which a client reads BARs and configuration space.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

class RegionReadMessage : public GreetedTest
{
protected:
	std::uint32_t read(std::uint32_t region, std::uint64_t offset, std::uint32_t count)
	{
		return client()
			.call(Command::region_read, bytes_of(RegionAccess{offset, region, count}))
			.error();
	}
};

// The reply repeats the request, followed by the data of the device.
TEST_F(RegionReadMessage, ReplyRepeatsTheRequestFollowedByTheDataReadFromTheDevice)
{
	device_.memory(2)[0x123456] = std::byte{0x5a};
	const auto reply =
		client().call(Command::region_read, bytes_of(RegionAccess{0x123454, 2, 4}));
	EXPECT_EQ(reply.payload.size(), 20u);
	EXPECT_EQ(reply.as<RegionAccess>().offset, 0x123454u);
	EXPECT_EQ(reply.as<RegionAccess>().region, 2u);
	EXPECT_EQ(reply.as<RegionAccess>().count, 4u);
	EXPECT_EQ(reply.as<std::uint32_t>(16), 0x005a0000u);
}

// Configuration space can be read as a whole, as QEMU does, and a transfer can have the maximum
// length.
TEST_F(RegionReadMessage, LargeReadsReturnAllBytes)
{
	EXPECT_EQ(client().read(kRegionConfig, 0, 4096)[0], std::byte{0xf4});
	device_.memory(0).back() = std::byte{9};
	EXPECT_EQ(client().read(0, 0, kMaxDataTransfer).back(), std::byte{9});
	EXPECT_TRUE(client().read(0, 0, 0).empty());
}

// The MSI-X structures are emulated by the client. The server's table reads as zero, and accesses
// do not reach the model.
TEST_F(RegionReadMessage, MsixTableAndAPbaWithoutPendingVectorsReadAsZero)
{
	std::ranges::fill(device_.memory(4), std::byte{0xff});
	EXPECT_EQ(client().read_as<std::uint64_t>(4, FakeDevice::kPbaOffset), 0u);
	EXPECT_EQ(client().read_as<std::uint32_t>(4, FakeDevice::kTableOffset + 12), 0u);
	EXPECT_EQ(client().read_as<std::uint32_t>(4, 0), ~0u);
}

// The PBA shows vectors that were raised before they had a descriptor; QEMU reads it for that. A
// vector is no longer pending once it has been signalled.
TEST_F(RegionReadMessage, MsixPbaShowsPendingVectors)
{
	enable_msix();
	device_.host().raise_msix(3);
	device_.host().raise_msix(FakeDevice::kVectors - 1);
	const std::uint64_t both = 1ull << 3 | 1ull << (FakeDevice::kVectors - 1);
	EXPECT_EQ(client().read_as<std::uint64_t>(4, FakeDevice::kPbaOffset), both);
	EXPECT_EQ(client().read_as<std::uint8_t>(4, FakeDevice::kPbaOffset + 3), 0x80);
	EXPECT_EQ(client().read_as<std::uint32_t>(4, FakeDevice::kTableOffset), 0u);
	const auto event = make_event();
	ASSERT_EQ(client().call(Command::set_irqs,
				bytes_of(IrqSet{20, kIrqSetDataEventfd | kIrqSetActionTrigger,
						kIrqMsix, 3, 1}),
				{event.get()})
			  .error(),
		  0u);
	EXPECT_EQ(take(event), 1u);
	EXPECT_EQ(client().read_as<std::uint64_t>(4, FakeDevice::kPbaOffset),
		  1ull << (FakeDevice::kVectors - 1));
}

// Reads outside a region, of a missing region, or beyond the negotiated length are refused.
TEST_F(RegionReadMessage, RejectsReadsOutsideTheRegion)
{
	EXPECT_EQ(read(0, FakeDevice::kBar0Size - 3, 4), EINVAL);
	EXPECT_EQ(read(0, FakeDevice::kBar0Size, 1), EINVAL);
	EXPECT_EQ(read(0, ~0ull, 1), EINVAL);
	EXPECT_EQ(read(0, ~0ull - 3, 8), EINVAL);
	EXPECT_EQ(read(2, 0, kMaxDataTransfer + 1), EINVAL);
	EXPECT_EQ(read(2, 0, ~0u), EINVAL);
	EXPECT_EQ(read(1, 0, 1), EINVAL);
	EXPECT_EQ(read(kRegionRom, 0, 4), EINVAL);
	EXPECT_EQ(read(kRegionConfig, 4095, 2), EINVAL);
	EXPECT_EQ(read(kRegions, 0, 4), EINVAL);
	EXPECT_EQ(read(1, 0, 0), EINVAL);
	EXPECT_EQ(read(~0u, 0, 0), EINVAL);
	EXPECT_EQ(read(~0u, 0, 4), EINVAL);
	EXPECT_EQ(client().call(Command::region_read, Bytes(15)).error(), EINVAL);
}

} // namespace
} // namespace weft::vfio_user
