// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Replies to VFIO_USER_DEVICE_GET_REGION_INFO, and requests that are refused.
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
