// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests VFIO_USER_REGION_WRITE, by which a client writes to BARs and configuration space.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

class RegionWriteMessage : public GreetedTest
{
protected:
	std::uint32_t write(RegionAccess access, std::size_t bytes)
	{
		return client().call(Command::region_write, bytes_of(access, Bytes(bytes))).error();
	}
};

// A write reaches the device as one access of the size that the driver used.
TEST_F(RegionWriteMessage, WritesReachTheDevice)
{
	const auto data = bytes_of(std::uint64_t{0x0102030405060708});
	const auto reply =
		client().call(Command::region_write, bytes_of(RegionAccess{0x18, 2, 8}, data));
	EXPECT_EQ(reply.payload.size(), sizeof(RegionAccess));
	EXPECT_EQ(reply.as<RegionAccess>().count, 8u);
	ASSERT_EQ(device_.writes.size(), 1u);
	EXPECT_EQ(device_.writes[0], (FakeDevice::Write{2, 0x18, data}));
}

// Posted writes have no reply, but are executed in order before later requests.
TEST_F(RegionWriteMessage, PostedWritesAreExecutedInOrder)
{
	for (std::uint32_t i = 0; i < 1000; ++i)
		client().send(Command::region_write, bytes_of(RegionAccess{8, 0, 4}, i), {},
			      kFlagNoReply);
	EXPECT_EQ(client().read_as<std::uint32_t>(0, 8), 999u);
	ASSERT_EQ(device_.writes.size(), 1000u);
	for (std::uint32_t i = 0; i < 1000; ++i)
		EXPECT_EQ(device_.writes[i].data, bytes_of(i));
	EXPECT_TRUE(client().quiet());
}

// The bytes of a message count against the slice of the loop: after a large message, other tasks of
// the loop run.
TEST_F(RegionWriteMessage, EventLoopRunsOtherTasksAfterEachLargeWrite)
{
	constexpr std::uint32_t bytes = 8192, writes = 8;
	for (std::uint32_t i = 0; i < writes; ++i)
		client().send(Command::region_write,
			      bytes_of(RegionAccess{0, 0, bytes}, Bytes(bytes)), {}, kFlagNoReply);
	ASSERT_TRUE(loop_.run_until([&] { return !device_.writes.empty(); }));
	EXPECT_EQ(device_.writes.size(), 1u) << "all in one turn";
	EXPECT_TRUE(loop_.run_until([&] { return device_.writes.size() == writes; }));
}

// The largest transfer is accepted.
TEST_F(RegionWriteMessage, AcceptsAWriteOfTheMaximumTransferSize)
{
	EXPECT_EQ(write({0, 0, kMaxDataTransfer}, kMaxDataTransfer), 0u);
	ASSERT_EQ(device_.writes.size(), 1u);
	EXPECT_EQ(device_.writes[0].data.size(), kMaxDataTransfer);
}

// A write of length zero has no effect.
TEST_F(RegionWriteMessage, EmptyWritesDoNothing)
{
	EXPECT_EQ(write({FakeDevice::kBar0Size, 0, 0}, 0), 0u);
	EXPECT_TRUE(device_.writes.empty());
}

// Writes to the MSI-X structures do not reach the model.
TEST_F(RegionWriteMessage, WritesToMsixTableAndPbaAreIgnored)
{
	EXPECT_EQ(write({FakeDevice::kTableOffset, 4, 4}, 4), 0u);
	EXPECT_EQ(write({FakeDevice::kPbaOffset, 4, 8}, 8), 0u);
	EXPECT_TRUE(device_.writes.empty());
}

// Writes outside a region, or with more or less data than their header announces, are refused and
// have no effect. The same holds for posted writes, which have no reply.
TEST_F(RegionWriteMessage, RefusesMalformedRequests)
{
	EXPECT_EQ(write({FakeDevice::kBar0Size - 3, 0, 4}, 4), EINVAL);
	EXPECT_EQ(write({~0ull - 3, 0, 8}, 8), EINVAL);
	EXPECT_EQ(write({0, 1, 4}, 4), EINVAL);
	EXPECT_EQ(write({0, kRegions, 4}, 4), EINVAL);
	EXPECT_EQ(write({0, 1, 0}, 0), EINVAL);
	EXPECT_EQ(write({0, 0x20000, 0}, 0), EINVAL);
	EXPECT_EQ(write({0, 0, 4}, 3), EINVAL);
	EXPECT_EQ(write({0, 0, 4}, 5), EINVAL);
	EXPECT_EQ(write({0, 0, ~0u}, 4), EINVAL);
	EXPECT_EQ(client().call(Command::region_write, Bytes(15)).error(), EINVAL);
	client().send(Command::region_write, bytes_of(RegionAccess{0, 1, 4}, 0), {}, kFlagNoReply);
	EXPECT_TRUE(client().quiet());
	EXPECT_TRUE(device_.writes.empty());
}

} // namespace
} // namespace weft::vfio_user
