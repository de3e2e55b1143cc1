// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the replies to VFIO_USER_DEVICE_GET_INFO, and the requests that are refused.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

using DeviceInfoMessage = GreetedTest;

// The device is a PCI device that can be reset, with nine regions and five kinds of interrupts.
TEST_F(DeviceInfoMessage, ReportsFlagsAndRegionAndInterruptCounts)
{
	const auto reply = client().call(Command::get_info, bytes_of(DeviceInfo{16, 0, 0, 0}));
	EXPECT_EQ(reply.payload.size(), sizeof(DeviceInfo));
	const auto info = reply.as<DeviceInfo>();
	EXPECT_EQ(info.argsz, 16u);
	EXPECT_EQ(info.flags, 3u);
	EXPECT_EQ(info.num_regions, 9u);
	EXPECT_EQ(info.num_irqs, 5u);
}

// A request that is too short, or has no space for the reply, is refused.
TEST_F(DeviceInfoMessage, RefusesMalformedRequests)
{
	EXPECT_EQ(client().call(Command::get_info, bytes_of(DeviceInfo{15, 0, 0, 0})).error(),
		  EINVAL);
	EXPECT_EQ(client().call(Command::get_info, Bytes(15)).error(), EINVAL);
	EXPECT_EQ(client().call(Command::get_info).error(), EINVAL);
}

} // namespace
} // namespace weft::vfio_user
