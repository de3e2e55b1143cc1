// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests VFIO_USER_REGION_WRITE_MULTI, by which a client writes to several places with one message.
#include "bus/vfio-user/tests/fixture.hpp"

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
			.call(Command::region_write_multi,
			      bytes_of(RegionWriteMulti{count}, writes...))
			.error();
	}
};

// All writes are executed in order, each with its own size.
TEST_F(RegionWriteMultiMessage, WritesAreExecutedInOrder)
{
	const auto reply = client().call(Command::region_write_multi,
					 bytes_of(RegionWriteMulti{3}, single(0, 4, 4, 0x11223344),
						  single(2, 0x18, 8, 7), single(0, 4, 1, 0x55)));
	EXPECT_EQ(reply.as<RegionWriteMulti>().count, 3u);
	ASSERT_EQ(device_.writes.size(), 3u);
	EXPECT_EQ(device_.writes[0], (FakeDevice::Write{0, 4, bytes_of(0x11223344)}));
	EXPECT_EQ(device_.writes[1], (FakeDevice::Write{2, 0x18, bytes_of(std::uint64_t{7})}));
	EXPECT_EQ(device_.writes[2], (FakeDevice::Write{0, 4, {std::byte{0x55}}}));
}

// If one write is invalid or the count does not match the data, no write is executed.
TEST_F(RegionWriteMultiMessage, RefusesMalformedRequests)
{
	const auto good = single(0, 0, 4, 1);
	EXPECT_EQ(send(2, good, single(0, 0, 9, 1)), EINVAL);
	EXPECT_EQ(send(2, good, single(1, 0, 4, 1)), EINVAL);
	EXPECT_EQ(send(2, good, single(0, FakeDevice::kBar0Size - 1, 4, 1)), EINVAL);
	EXPECT_EQ(send(2, good), EINVAL);
	EXPECT_EQ(send(0, good), EINVAL);
	EXPECT_EQ(send(1, good, std::byte{0}), EINVAL);
	EXPECT_EQ(send((~0ull / sizeof(RegionWriteSingle)) + 2, good), EINVAL);
	EXPECT_EQ(client().call(Command::region_write_multi, Bytes(7)).error(), EINVAL);
	EXPECT_TRUE(device_.writes.empty());
	EXPECT_EQ(send(0), 0u);
}

// A message has no more writes than QEMU puts into one. The number of writes in a slice of the loop
// is limited as well, however many messages they come in, so that other tasks of the loop run in
// between.
TEST_F(RegionWriteMultiMessage, NumberOfWritesPerMessageIsLimited)
{
	const auto many = [&](std::size_t count) {
		return bytes_of(RegionWriteMulti{count},
				std::vector<std::byte>(count * sizeof(RegionWriteSingle)));
	};
	EXPECT_EQ(client().call(Command::region_write_multi, many(201)).error(), EINVAL);
	EXPECT_EQ(device_.writes.size(), 0u);
	auto full = bytes_of(RegionWriteMulti{200});
	for (int i = 0; i < 200; ++i)
		testing::append_bytes(full, single(0, 4, 4, 1));
	constexpr unsigned messages = 16;
	for (unsigned i = 0; i < messages; ++i)
		client().send(Command::region_write_multi, full, {}, kFlagNoReply);
	// The first write posts this task, so it runs after the first slice.
	std::size_t seen = 0;
	device_.on_write = [&] { loop_.post([&] { seen = device_.writes.size(); }); };
	ASSERT_TRUE(loop_.run_until([&] { return device_.writes.size() == 200 * messages; }));
	EXPECT_GT(seen, 0u);
	EXPECT_LE(seen, 64u + 200);
}

} // namespace
} // namespace weft::vfio_user
