// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the replies to VFIO_USER_DEVICE_GET_REGION_INFO, and the requests that are refused.
#include <sys/stat.h>

#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

using RegionInfoMessage = GreetedTest;

// Every region has its size. Regions that the device does not have are of size 0 and cannot be
// accessed. No region can be mapped, so the client posts its writes.
TEST_F(RegionInfoMessage, ReportsTheSizeAndFlagsOfEachRegion)
{
	const std::uint64_t sizes[] = {
		FakeDevice::kBar0Size, 0, FakeDevice::kBar2Size, 0, 8192, 0, 0, 4096, 0};
	for (std::uint32_t index = 0; index < std::size(sizes); ++index) {
		const auto reply = client().call(Command::get_region_info,
						 bytes_of(RegionInfo{32, 0, index, 0, 0, 0}));
		EXPECT_EQ(reply.payload.size(), sizeof(RegionInfo));
		const auto info = reply.as<RegionInfo>();
		EXPECT_EQ(info.argsz, 32u);
		EXPECT_EQ(info.index, index);
		EXPECT_EQ(info.size, sizes[index]) << "region " << index;
		EXPECT_EQ(info.flags, sizes[index] ? kRegionRead | kRegionWrite : 0);
	}
}

// The reply contains the part of a region that can be mapped, and carries its file. A client whose
// buffer is too small gets the size that it needs.
TEST_F(RegionInfoMessage, MappablePartOfARegionIsReportedWithItsFileDescriptor)
{
	const FileDescriptor file = make_memory(FakeDevice::kBar2Size);
	device_.mapped = {.fd = file.get(), .offset = 0x10000, .size = 0x20000};
	const auto ask = [this](std::uint32_t argsz) {
		auto reply = client().call(Command::get_region_info,
					   bytes_of(RegionInfo{argsz, 0, 2, 0, 0, 0}));
		return std::pair(std::move(reply), client().take_descriptors());
	};
	const auto [small, no_files] = ask(32);
	EXPECT_EQ(small.as<RegionInfo>().argsz, 64u);
	EXPECT_EQ(small.as<RegionInfo>().flags, kRegionRead | kRegionWrite);
	EXPECT_EQ(small.payload.size(), 32u);
	EXPECT_TRUE(no_files.empty());

	const auto [whole, files] = ask(64);
	const auto info = whole.as<RegionInfo>();
	EXPECT_EQ(info.flags, kRegionRead | kRegionWrite | kRegionMappable | kRegionCapabilities);
	ASSERT_EQ(info.cap_offset, 32u);
	const auto part = whole.as<SparseMapping>(info.cap_offset);
	EXPECT_EQ(part.id, kCapabilitySparseMapping);
	EXPECT_EQ(part.next, 0u);
	EXPECT_EQ(part.parts, 1u);
	EXPECT_EQ(part.offset, 0x10000u);
	EXPECT_EQ(part.size, 0x20000u);
	ASSERT_EQ(files.size(), 1u);
	const auto inode = [](int fd) {
		struct stat status{};
		EXPECT_EQ(::fstat(fd, &status), 0);
		return status.st_ino;
	};
	EXPECT_EQ(inode(files[0].get()), inode(file.get()));
}

// Regions that do not exist and malformed requests are refused.
TEST_F(RegionInfoMessage, RefusesMalformedRequests)
{
	const auto ask = [this](RegionInfo query) {
		return client().call(Command::get_region_info, bytes_of(query)).error();
	};
	EXPECT_EQ(ask({32, 0, 9, 0, 0, 0}), EINVAL);
	EXPECT_EQ(ask({32, 0, ~0u, 0, 0, 0}), EINVAL);
	EXPECT_EQ(ask({31, 0, 0, 0, 0, 0}), EINVAL);
	EXPECT_EQ(client().call(Command::get_region_info, Bytes(31)).error(), EINVAL);
}

} // namespace
} // namespace weft::vfio_user
