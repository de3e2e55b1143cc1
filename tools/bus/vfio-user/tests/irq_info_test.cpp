// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the replies to VFIO_USER_DEVICE_GET_IRQ_INFO, and the requests that are refused.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

using IrqInfoMessage = GreetedTest;

// INTx has one automasked vector, MSI-X has the device's vectors, and other types have none.
TEST_F(IrqInfoMessage, ReportsTheCountAndFlagsOfEachIrqType)
{
	const std::uint32_t counts[] = {1, 0, FakeDevice::kVectors, 0, 0};
	const std::uint32_t flags[] = {7, 0, 1, 0, 0};
	for (std::uint32_t index = 0; index < kIrqs; ++index) {
		const auto reply =
			client().call(Command::get_irq_info, bytes_of(IrqInfo{16, 0, index, 0}));
		EXPECT_EQ(reply.payload.size(), sizeof(IrqInfo));
		const auto info = reply.as<IrqInfo>();
		EXPECT_EQ(info.argsz, 16u);
		EXPECT_EQ(info.index, index);
		EXPECT_EQ(info.count, counts[index]) << "interrupt kind " << index;
		EXPECT_EQ(info.flags, flags[index]) << "interrupt kind " << index;
	}
}

// Kinds that do not exist and malformed requests are refused.
TEST_F(IrqInfoMessage, RefusesMalformedRequests)
{
	EXPECT_EQ(client().call(Command::get_irq_info, bytes_of(IrqInfo{16, 0, 5, 0})).error(),
		  EINVAL);
	EXPECT_EQ(client().call(Command::get_irq_info, bytes_of(IrqInfo{15, 0, 0, 0})).error(),
		  EINVAL);
	EXPECT_EQ(client().call(Command::get_irq_info, Bytes(15)).error(), EINVAL);
}

} // namespace
} // namespace weft::vfio_user
