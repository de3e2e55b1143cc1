// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the server reports no optional features in reply to VFIO_USER_DEVICE_FEATURE, and
// refuses malformed requests.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

using DeviceFeatureMessage = GreetedTest;

// No feature is supported, whether it is read, set or probed: the reply is ENOTTY, and the session
// continues.
TEST_F(DeviceFeatureMessage, ReportsNoFeatures)
{
	for (std::uint32_t feature = 0; feature < 16; ++feature)
		for (std::uint32_t action : {1u << 16, 1u << 17, 1u << 18, 7u << 16})
			EXPECT_EQ(client().call(Command::device_feature,
						bytes_of(DeviceFeature{8, feature | action}))
					  .error(),
				  ENOTTY);
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
}

TEST_F(DeviceFeatureMessage, RefusesMalformedRequests)
{
	EXPECT_EQ(client().call(Command::device_feature, Bytes(7)).error(), EINVAL);
}

} // namespace
} // namespace weft::vfio_user
