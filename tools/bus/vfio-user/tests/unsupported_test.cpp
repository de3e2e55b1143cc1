// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that VFIO_USER_DMA_READ, DMA_WRITE, MIG_DATA_READ, MIG_DATA_WRITE and commands that do not
// exist are refused.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

using Unsupported = GreetedTest;

// Each unsupported command is refused with its own error, whatever it contains, and the session
// continues.
TEST_F(Unsupported, UnsupportedCommandGetsAnErrorReply)
{
	const auto event = make_event();
	for (auto command : {Command::dma_read, Command::dma_write, Command::mig_data_read,
			     Command::mig_data_write}) {
		EXPECT_EQ(client().call(command).error(), ENOTSUP);
		EXPECT_EQ(client().call(command, Bytes(64), {event.get()}).error(), ENOTSUP);
	}
	for (int number : {0, 14, 19, 255, 65535})
		EXPECT_EQ(client().call(static_cast<Command>(number), Bytes(number % 64)).error(),
			  ENOSYS);
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
}

} // namespace
} // namespace weft::vfio_user
