// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

class RegionWriteMultiMessage : public GreetedTest
{
protected:
	static RegionWriteSingle single(std::uint32_t region, std::uint64_t offset,
					std::uint32_t count, std::uint64_t value)
	{
		RegionWriteSingle write{{offset, region, count}, {}};
		std::memcpy(write.data, &value, sizeof(value));
		return write;
	}
	template<typename... T>
	std::uint32_t send(std::uint64_t count, const T &...writes)
	{
		return client()
			.call(Command::RegionWriteMulti,
			      bytes_of(RegionWriteMulti{count}, writes...))
			.error();
	}
};

// All writes are done, in order, each with its own size.
TEST_F(RegionWriteMultiMessage, WritesInOrder)
{
	const auto reply = client().call(Command::RegionWriteMulti,
					 bytes_of(RegionWriteMulti{3}, single(0, 4, 4, 0x11223344),
						  single(2, 0x18, 8, 7), single(0, 4, 1, 0x55)));
	EXPECT_EQ(reply.as<RegionWriteMulti>().count, 3u);
	ASSERT_EQ(device_.writes.size(), 3u);
	EXPECT_EQ(device_.writes[0], (FakeDevice::Write{0, 4, bytes_of(0x11223344)}));
	EXPECT_EQ(device_.writes[1], (FakeDevice::Write{2, 0x18, bytes_of(std::uint64_t{7})}));
	EXPECT_EQ(device_.writes[2], (FakeDevice::Write{0, 4, {std::byte{0x55}}}));
}

// One bad write, or a count that is not what follows, and none is done.
TEST_F(RegionWriteMultiMessage, RefusesMalformed)
{
	const auto good = single(0, 0, 4, 1);
	EXPECT_EQ(send(2, good, single(0, 0, 9, 1)), EINVAL);
	EXPECT_EQ(send(2, good, single(1, 0, 4, 1)), EINVAL);
	EXPECT_EQ(send(2, good, single(0, FakeDevice::kBar0Size - 1, 4, 1)), EINVAL);
	EXPECT_EQ(send(2, good), EINVAL);
	EXPECT_EQ(send(0, good), EINVAL);
	EXPECT_EQ(send(1, good, std::byte{0}), EINVAL);
	EXPECT_EQ(send((~0ull / sizeof(RegionWriteSingle)) + 2, good), EINVAL);
	EXPECT_EQ(client().call(Command::RegionWriteMulti, Bytes(7)).error(), EINVAL);
	EXPECT_TRUE(device_.writes.empty());
	EXPECT_EQ(send(0), 0u);
}

} // namespace
} // namespace weft::vfio_user
