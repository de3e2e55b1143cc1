// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests VFIO_USER_DMA_UNMAP, by which a client withdraws memory, also while the device uses that
// memory.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

constexpr std::uint64_t kPage = 4096;

class DmaUnmapMessage : public GreetedTest
{
protected:
	DmaUnmapMessage()
	{
		client().map(0, 2 * kPage, file_.get());
		client().map(4 * kPage, kPage, file_.get(), 2 * kPage);
	}
	FakeClient::Reply unmap(std::uint64_t address, std::uint64_t size, std::uint32_t flags = 0)
	{
		return client().call(Command::dma_unmap,
				     bytes_of(DmaUnmap{sizeof(DmaUnmap), flags, address, size}));
	}
	GuestMemory &memory() { return device_.host().dma(); }

	FileDescriptor file_ = make_memory(4 * kPage);
};

// The mapping is removed before the reply, which repeats the request, is sent.
TEST_F(DmaUnmapMessage, UnmappedMemoryCannotBeAccessed)
{
	const auto reply = unmap(0, 2 * kPage);
	EXPECT_EQ(reply.error(), 0u);
	EXPECT_EQ(reply.as<DmaUnmap>().address, 0u);
	EXPECT_EQ(reply.as<DmaUnmap>().size, 2 * kPage);
	EXPECT_FALSE(memory().read_as<int>(0));
	EXPECT_TRUE(memory().read_as<int>(4 * kPage));
	EXPECT_EQ(device_.memory_changes, 3u);
}

// Unmapping a large mapping takes a while, so other tasks of the loop run in between.
TEST_F(DmaUnmapMessage, RequestAfterTheUnmapOfALargeMappingIsProcessedInALaterEventLoopIteration)
{
	constexpr std::uint64_t address = 1 << 30, size = 64 << 20;
	const FileDescriptor large = make_memory(size);
	client().map(address, size, large.get());
	const std::size_t before = memory().mappings();
	client().send(Command::dma_unmap, bytes_of(DmaUnmap{sizeof(DmaUnmap), 0, address, size}));
	client().send(Command::region_write, bytes_of(RegionAccess{8, 0, 4}, std::uint32_t{1}), {},
		      kFlagNoReply);
	ASSERT_TRUE(loop_.run_until([&] { return memory().mappings() != before; }));
	EXPECT_TRUE(device_.writes.empty()) << "both in one turn";
	EXPECT_TRUE(loop_.run_until([&] { return !device_.writes.empty(); }));
	EXPECT_EQ(client().receive().error(), 0u);
}

// Memory that a running transfer uses stays valid until the transfer has ended.
TEST_F(DmaUnmapMessage, TransferInProgressKeepsUnmappedMemoryValid)
{
	std::vector<MemorySegment> segments;
	ASSERT_TRUE(memory().translate(0, kPage, Access::write, segments));
	EXPECT_EQ(unmap(0, 2 * kPage).error(), 0u);
	segments[0].data[7] = std::byte{1};
	EXPECT_FALSE(memory().write_as<int>(0, 1));
}

// One request may remove several mappings, as the invalidation of a virtual IOMMU does.
TEST_F(DmaUnmapMessage, RemovesAllMappingsInARange)
{
	EXPECT_EQ(unmap(0, 1 << 20).error(), 0u);
	EXPECT_EQ(memory().mappings(), 0u);
}

// VFIO's flag removes all mappings; the range must then be empty.
TEST_F(DmaUnmapMessage, UnmapAllRemovesEveryMapping)
{
	EXPECT_EQ(unmap(0, kPage, kDmaUnmapAll).error(), EINVAL);
	EXPECT_EQ(unmap(0, 0, kDmaUnmapAll).error(), 0u);
	EXPECT_EQ(memory().mappings(), 0u);
}

// A range that contains no mapping, or only a part of one, is refused and changes nothing.
TEST_F(DmaUnmapMessage, RefusesToUnmapAnUnmappedRangeOrPartOfAMapping)
{
	EXPECT_EQ(unmap(8 * kPage, kPage).error(), ENOENT);
	EXPECT_EQ(unmap(0, kPage).error(), ENOENT);
	EXPECT_EQ(unmap(kPage, 16 * kPage).error(), ENOENT);
	EXPECT_EQ(unmap(0, 0).error(), ENOENT);
	EXPECT_EQ(unmap(kPage, ~0ull).error(), ENOENT);
	EXPECT_EQ(unmap(0, 2 * kPage, 1).error(), ENOTSUP);
	EXPECT_EQ(client().call(Command::dma_unmap, Bytes(23)).error(), EINVAL);
	EXPECT_EQ(memory().mappings(), 2u);
}

} // namespace
} // namespace weft::vfio_user
