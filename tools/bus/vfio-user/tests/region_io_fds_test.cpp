// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the replies to VFIO_USER_DEVICE_GET_REGION_IO_FDS, and the requests that are refused.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

using RegionIoFdsMessage = GreetedTest;

// No region offers descriptors for its accesses.
TEST_F(RegionIoFdsMessage, ReturnsNoFileDescriptors)
{
	const auto reply =
		client().call(Command::get_region_io_fds, bytes_of(RegionIoFds{16, 0, 2, 0}));
	EXPECT_EQ(reply.error(), 0u);
	EXPECT_EQ(reply.as<RegionIoFds>().index, 2u);
	EXPECT_EQ(reply.as<RegionIoFds>().count, 0u);
}

// Malformed requests are refused.
TEST_F(RegionIoFdsMessage, RefusesMalformedRequests)
{
	const auto ask = [this](RegionIoFds query) {
		return client().call(Command::get_region_io_fds, bytes_of(query)).error();
	};
	EXPECT_EQ(ask({16, 0, 9, 0}), EINVAL);
	EXPECT_EQ(ask({16, 1, 0, 0}), EINVAL);
	EXPECT_EQ(ask({16, 0, 0, 1}), EINVAL);
	EXPECT_EQ(ask({15, 0, 0, 0}), EINVAL);
	EXPECT_EQ(client().call(Command::get_region_io_fds, Bytes(8)).error(), EINVAL);
}

} // namespace
} // namespace weft::vfio_user
