// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests VFIO_USER_DMA_MAP, by which a client shares memory with the server, and the limits on
// mappings.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

constexpr std::uint64_t kPage = 4096;

class DmaMapMessage : public GreetedTest
{
protected:
	std::uint32_t map(DmaMap section, const std::vector<int> &fds)
	{
		section.argsz = sizeof(section);
		return client().call(Command::dma_map, bytes_of(section), fds).error();
	}
	GuestMemory &memory() { return device_.host().dma(); }
};

// A mapping with a descriptor shares the client's memory, from the given offset of the file.
TEST_F(DmaMapMessage, MappedMemoryIsSharedWithTheClient)
{
	const auto fd = make_memory(4 * kPage);
	const auto reply = client().call(
		Command::dma_map, bytes_of(DmaMap{32, 3, kPage, 0x10000, 2 * kPage}), {fd.get()});
	EXPECT_EQ(reply.error(), 0u);
	EXPECT_TRUE(reply.payload.empty());
	EXPECT_EQ(device_.memory_changes, 1u);
	ASSERT_TRUE(memory().write_as<std::uint32_t>(0x10004, 0xabcdef01));
	std::uint32_t seen = 0;
	ASSERT_EQ(::pread(fd.get(), &seen, sizeof(seen), kPage + 4), 4);
	EXPECT_EQ(seen, 0xabcdef01);
	EXPECT_FALSE(memory().covers(0x10000 - 1, 1, Access::read));
	EXPECT_FALSE(memory().covers(0x10000 + 2 * kPage, 1, Access::read));
}

// A read-only mapping can only be read, even if its descriptor permits writes.
TEST_F(DmaMapMessage, ReadOnlyMappingCannotBeWritten)
{
	const auto fd = make_memory(kPage);
	EXPECT_EQ(map({0, kDmaReadable, 0, 0, kPage}, {fd.get()}), 0u);
	EXPECT_TRUE(memory().read_as<int>(0));
	EXPECT_FALSE(memory().write_as<int>(0, 1));
}

// A mapping without a descriptor is accepted, but the device cannot access it.
TEST_F(DmaMapMessage, MappingWithoutFileDescriptorIsAcceptedButNotAccessible)
{
	EXPECT_EQ(map({0, 3, 0, kPage, kPage}, {}), 0u);
	EXPECT_EQ(memory().mappings(), 1u);
	EXPECT_FALSE(memory().read_as<int>(kPage));
	EXPECT_EQ(map({0, 3, 0, kPage, kPage}, {}), EEXIST);
}

// Mapping over an existing mapping is refused with EEXIST, and the mapping stays.
TEST_F(DmaMapMessage, RefusesOverlappingMappings)
{
	const auto fd = make_memory(4 * kPage);
	EXPECT_EQ(map({0, 3, 0, kPage, 2 * kPage}, {fd.get()}), 0u);
	EXPECT_EQ(map({0, 3, 0, 0, 2 * kPage}, {fd.get()}), EEXIST);
	EXPECT_EQ(map({0, 3, 0, 2 * kPage, kPage}, {fd.get()}), EEXIST);
	EXPECT_EQ(map({0, 3, 0, 3 * kPage, kPage}, {fd.get()}), 0u);
	EXPECT_EQ(memory().mappings(), 2u);
}

// Invalid requests are refused: sizes, alignments, wrap-around, flags, files that are too short or
// cannot be mapped.
TEST_F(DmaMapMessage, RejectsInvalidRequests)
{
	const auto fd = make_memory(4 * kPage);
	const auto event = make_event();
	EXPECT_EQ(map({0, 3, 0, 0, 0}, {fd.get()}), EINVAL);
	EXPECT_EQ(map({0, 3, 0, 1, kPage}, {fd.get()}), EINVAL);
	EXPECT_EQ(map({0, 3, 0, 0, kPage + 1}, {fd.get()}), EINVAL);
	EXPECT_EQ(map({0, 3, 1, 0, kPage}, {fd.get()}), EINVAL);
	EXPECT_EQ(map({0, 3, 0, 0 - kPage, 2 * kPage}, {}), EINVAL);
	EXPECT_EQ(map({0, 4, 0, 0, kPage}, {fd.get()}), EINVAL);
	EXPECT_EQ(map({0, 3, 4 * kPage, 0, kPage}, {fd.get()}), EINVAL);
	EXPECT_EQ(map({0, 3, 0 - kPage, 0, 2 * kPage}, {fd.get()}), EINVAL);
	EXPECT_NE(map({0, 3, 0, 0, kPage}, {event.get()}), 0u);
	EXPECT_EQ(map({0, 3, 0, 0, kPage}, {fd.get(), fd.get()}), EINVAL);
	EXPECT_EQ(client().call(Command::dma_map, Bytes(31)).error(), EINVAL);
	EXPECT_EQ(memory().mappings(), 0u);
	EXPECT_EQ(device_.memory_changes, 0u);
}

// The number of mappings is limited as announced, whether the device can access them or not.
// Another one is possible after one is removed.
TEST_F(DmaMapMessage, NumberOfDmaMappingsIsLimited)
{
	const auto fd = make_memory(kPage);
	for (std::uint64_t i = 0; i + 1 < kMaxDmaMaps; ++i)
		ASSERT_EQ(map({0, 3, 0, i * kPage, kPage}, {fd.get()}), 0u) << i;
	EXPECT_EQ(map({0, 3, 0, (kMaxDmaMaps - 1) * kPage, kPage}, {}), 0u);
	EXPECT_EQ(map({0, 3, 0, kMaxDmaMaps * kPage, kPage}, {fd.get()}), ENOSPC);
	EXPECT_EQ(map({0, 3, 0, kMaxDmaMaps * kPage, kPage}, {}), ENOSPC);
	EXPECT_EQ(memory().mappings(), kMaxDmaMaps);
	EXPECT_EQ(client().call(Command::dma_unmap, bytes_of(DmaUnmap{24, 0, 0, kPage})).error(),
		  0u);
	EXPECT_EQ(map({0, 3, 0, kMaxDmaMaps * kPage, kPage}, {fd.get()}), 0u);
}

// The total number of bytes is limited as well, however few mappings there are. Mappings that
// cannot be accessed use no addresses of the process.
TEST_F(DmaMapMessage, NumberOfMappedBytesIsLimited)
{
	constexpr std::uint64_t most = kMaxDmaMaps * kSharedBytesPerMapping;
	const auto fd = make_memory(2 * most);
	EXPECT_EQ(map({0, 3, 0, 0, 2 * most}, {fd.get()}), ENOSPC);
	EXPECT_EQ(map({0, 3, 0, 0, most}, {fd.get()}), 0u);
	EXPECT_EQ(map({0, 3, 0, most, kPage}, {fd.get()}), ENOSPC);
	EXPECT_EQ(map({0, 3, 0, most, kPage}, {}), 0u);
	EXPECT_EQ(client().call(Command::dma_unmap, bytes_of(DmaUnmap{24, 0, 0, most})).error(),
		  0u);
	EXPECT_EQ(map({0, 3, 0, 0, kPage}, {fd.get()}), 0u);
}

} // namespace
} // namespace weft::vfio_user
