// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the vhost-user requests with which a User-Mode Linux guest sets up its PCI function, and
// the replies to invalid requests.
#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "bus/vhost-user/tests/fixture.hpp"

namespace weft::vhost_user
{
namespace
{

using Requests = ServerTest;

// All offered features are implemented, and no other feature is accepted.
TEST_F(Requests, OnlyImplementedFeaturesAreOfferedAndAccepted)
{
	guest().agree();
	EXPECT_EQ(guest().call(Request::get_features), 1ull << 32 | 1ull << 30);
	EXPECT_EQ(guest().call(Request::get_protocol_features), 1ull << 3 | 1ull << 5 | 1ull << 14);
	EXPECT_EQ(guest().call(Request::set_features, bytes_of(kFeatures | 1ull << 28)),
		  std::uint64_t{EINVAL})
		<< "indirect descriptors";
	EXPECT_EQ(guest().call(Request::set_features, bytes_of(kFeatureProtocol)),
		  std::uint64_t{EINVAL})
		<< "the rings of before version 1";
	EXPECT_EQ(guest().call(Request::set_protocol_features, bytes_of(~std::uint64_t{0})),
		  std::uint64_t{EINVAL});
}

// Requests that are unknown, too short, or have unexpected descriptors are refused, and the session
// continues.
TEST_F(Requests, RejectsInvalidRequests)
{
	guest().greet();
	EXPECT_EQ(guest().call(static_cast<Request>(99)), std::uint64_t{ENOSYS});
	EXPECT_EQ(guest().call(static_cast<Request>(0)), std::uint64_t{ENOSYS});
	EXPECT_EQ(guest().call(Request::set_vring_num, Bytes(7)), std::uint64_t{EINVAL});
	EXPECT_EQ(guest().call(Request::set_vring_addr, Bytes(39)), std::uint64_t{EINVAL});
	EXPECT_EQ(guest().call(Request::set_owner, {}, {guest().memory_fd()}),
		  std::uint64_t{EINVAL});
	EXPECT_EQ(guest().read_config<std::uint16_t>(0), device_.description().vendor);
}

// If the guest has not negotiated REPLY_ACK, an error closes the connection.
TEST_F(Requests, FailedRequestClosesTheConnectionIfReplyAckWasNotNegotiated)
{
	guest().send(static_cast<Request>(99), {}, {}, 0);
	expect_lost();
}

// Headers with another version, of a reply, or with an impossible size close the connection.
TEST_F(Requests, InvalidHeaderClosesTheConnection)
{
	for (const Header &header : {Header{1, 2, 0}, Header{1, 0, 0}, Header{1, 1 | kFlagReply, 0},
				     Header{1, 1, kMaxPayload + 1}, Header{1, 1, ~0u}}) {
		guest().send_raw(bytes_of(header));
		EXPECT_TRUE(guest().wait_closed());
		connect();
	}
	guest().greet();
}

// A ring has a power of two of entries, at most 256. It must be in guest memory, aligned as virtio
// requires. There are two rings.
TEST_F(Requests, InvalidRingSizesIndexesAndAddressesAreRefused)
{
	guest().agree();
	ASSERT_EQ(guest().set_channel(), 0u);
	ASSERT_EQ(guest().share_memory(), 0u);
	for (const std::uint32_t entries : {0u, 3u, 257u, 512u, 1u << 31, ~0u})
		EXPECT_EQ(guest().call_with(Request::set_vring_num, VringState{0, entries}),
			  std::uint64_t{EINVAL})
			<< entries;
	EXPECT_EQ(guest().call_with(Request::set_vring_num, VringState{2, 16}),
		  std::uint64_t{EINVAL});
	EXPECT_EQ(guest().enable(0), std::uint64_t{EINVAL}) << "without a place";
	EXPECT_EQ(guest().call_with(Request::set_vring_num, VringState{0, 256}), 0u);
	EXPECT_EQ(guest().call_with(Request::set_vring_base, VringState{0, 1 << 16}),
		  std::uint64_t{EINVAL});

	constexpr auto begin = FakeGuest::kMemory + FakeGuest::kClientOffset;
	constexpr auto end = begin + FakeGuest::kMemorySize;
	const auto place = [&](std::uint64_t descriptors, std::uint64_t used,
			       std::uint64_t available, std::uint32_t flags = 0) {
		return guest().call_with(Request::set_vring_addr,
					 VringAddresses{0, flags, descriptors, used, available, 0});
	};
	EXPECT_EQ(place(begin, begin + 0x2000, begin + 0x4000), 0u);
	EXPECT_EQ(place(begin + 8, begin + 0x2000, begin + 0x4000), std::uint64_t{EINVAL});
	EXPECT_EQ(place(begin, begin + 0x2002, begin + 0x4000), std::uint64_t{EINVAL});
	EXPECT_EQ(place(begin, begin + 0x2000, begin + 0x4001), std::uint64_t{EINVAL});
	EXPECT_EQ(place(begin, begin + 0x2000, begin + 0x4000, 1), std::uint64_t{EINVAL});
	EXPECT_EQ(place(FakeGuest::kMemory, begin + 0x2000, begin + 0x4000), std::uint64_t{EINVAL})
		<< "the guest's address in place of the client's";
	// Tests the last valid address of each part, and the one after it.
	EXPECT_EQ(place(end - 4096, begin, begin + 0x4000), 0u);
	EXPECT_EQ(place(end - 4096 + 16, begin, begin + 0x4000), std::uint64_t{EINVAL});
	EXPECT_EQ(place(begin, end - 2052, begin), 0u);
	EXPECT_EQ(place(begin, end - 2052 + 4, begin), std::uint64_t{EINVAL});
	EXPECT_EQ(place(begin, begin, end - 516), 0u);
	EXPECT_EQ(place(begin, begin, end - 516 + 2), std::uint64_t{EINVAL});
}

// A ring in use cannot be moved, and its memory cannot be replaced.
TEST_F(Requests, RingCannotBeMovedWhileEnabled)
{
	guest().greet();
	EXPECT_EQ(guest().call_with(Request::set_vring_num, VringState{0, 16}),
		  std::uint64_t{EINVAL});
	EXPECT_EQ(guest().call_with(Request::set_vring_base, VringState{0, 0}),
		  std::uint64_t{EINVAL});
	EXPECT_EQ(guest().share_memory(), std::uint64_t{EBUSY});
	EXPECT_EQ(guest().read_config<std::uint16_t>(0), device_.description().vendor);
}

// No queue is enabled if the guest has no channel for messages or has not negotiated it.
TEST_F(Requests, QueueCannotBeEnabledWithoutABackendChannel)
{
	guest().agree();
	ASSERT_EQ(guest().share_memory(), 0u);
	ASSERT_EQ(guest().place(0), 0u);
	EXPECT_EQ(guest().enable(0), std::uint64_t{ENOTSUP});
	EXPECT_EQ(guest().call(Request::set_backend_request_fd), std::uint64_t{EINVAL});
	EXPECT_EQ(guest().call(Request::set_backend_request_fd, {}, {guest().memory_fd()}),
		  std::uint64_t{EINVAL})
		<< "a file is no channel";
	EXPECT_EQ(guest().set_channel(), 0u);
	EXPECT_EQ(guest().enable(0), 0u);
}

// A channel is the write end of a pipe, or a socket as User-Mode Linux uses it. Sockets that would
// keep the connection of a client open after it has exited are refused: the client's own end, or a
// socket in which that end is queued.
TEST_F(Requests, InvalidBackendChannelsAreRefused)
{
	guest().agree();
	int ends[2];
	ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
	const FileDescriptor reader(ends[0]), writer(ends[1]);
	EXPECT_EQ(guest().call(Request::set_backend_request_fd, {}, {reader.get()}),
		  std::uint64_t{EINVAL});
	EXPECT_EQ(guest().call(Request::set_backend_request_fd, {}, {writer.get()}), 0u);
	auto [far, near] = FakeGuest::make_sockets();
	EXPECT_EQ(guest().call(Request::set_backend_request_fd, {}, {far.get()}), 0u);
	guest().send(Request::set_backend_request_fd, {}, {guest().fd()});
	EXPECT_TRUE(loop_.run_until([&] { return !server_.connected(); }));
}

TEST_F(Requests, DisconnectIsDetectedEvenIfTheGuestPassedASocketInAnIncompleteMessage)
{
	auto [far, near] = FakeGuest::make_sockets();
	testing::ClientSocket(std::move(near), std::chrono::seconds(5))
		.send_raw(Bytes(1), {guest().fd()});
	// The message is incomplete.
	guest().send_raw(Bytes(4), {far.get()});
	far.reset();
	guest().close();
	EXPECT_TRUE(loop_.run_until([&] { return !server_.connected(); }));
}

// All descriptors of a disconnected guest are closed, so the reader of its pipe sees the end even
// before another guest connects.
TEST_F(Requests, FileDescriptorsAreClosedWhenTheGuestDisconnects)
{
	guest().greet();
	int ends[2];
	ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
	const FileDescriptor reader(ends[0]);
	FileDescriptor writer(ends[1]);
	ASSERT_EQ(guest().call(Request::set_backend_request_fd, {}, {writer.get()}), 0u);
	writer.reset();
	pollfd state{reader.get(), POLLIN, 0};
	EXPECT_EQ(::poll(&state, 1, 0), 0);
	guest().close();
	ASSERT_TRUE(loop_.run_until([&] { return !server_.connected(); }));
	EXPECT_EQ(::poll(&state, 1, 0), 1);
	EXPECT_TRUE(state.revents & POLLHUP);
}

// The memory table has as many regions as the protocol permits, each with a descriptor, in whole
// pages, and without overlaps. A table that is refused leaves the guest without memory.
TEST_F(Requests, InvalidMemoryTablesAreRefused)
{
	guest().agree();
	constexpr MemoryRegion good{FakeGuest::kMemory, 4096, FakeGuest::kMemory, 0};
	const auto share = [&](std::uint32_t count, const std::vector<MemoryRegion> &regions,
			       std::size_t fds) {
		Bytes payload = bytes_of(MemoryTable{count, 0});
		for (const MemoryRegion &region : regions)
			testing::append_bytes(payload, region);
		return guest().call(Request::set_mem_table, payload,
				    std::vector<int>(fds, guest().memory_fd()));
	};
	const auto &memory = device_.host().dma();
	std::vector<MemoryRegion> many;
	for (std::uint64_t i = 0; i < kMaxRegions; ++i)
		many.push_back({i << 20, 4096, i << 20, 4096 * i});
	ASSERT_EQ(share(kMaxRegions, many, kMaxRegions), 0u);
	EXPECT_EQ(memory.mappings(), kMaxRegions);
	EXPECT_EQ(share(1, {good}, 1), 0u) << "it takes the place of the other";
	EXPECT_EQ(memory.mappings(), 1u);

	EXPECT_EQ(share(9, many, 8), std::uint64_t{EINVAL});
	EXPECT_EQ(memory.mappings(), 0u);
	EXPECT_EQ(share(2, {good}, 2), std::uint64_t{EINVAL});
	EXPECT_EQ(share(1, {good}, 0), std::uint64_t{EINVAL});
	EXPECT_EQ(share(1, {good}, 2), std::uint64_t{EINVAL});
	EXPECT_EQ(share(~0u, {good}, 1), std::uint64_t{EINVAL});
	EXPECT_EQ(share(2, {good, good}, 2), std::uint64_t{EEXIST});
	EXPECT_EQ(memory.mappings(), 0u);
	for (const MemoryRegion &bad :
	     {MemoryRegion{1, 4096, 0, 0}, MemoryRegion{0, 4095, 0, 0}, MemoryRegion{0, 0, 0, 0},
	      MemoryRegion{0, 4096, 0, 8}, MemoryRegion{0, 4096, 0, FakeGuest::kMemorySize},
	      MemoryRegion{0, 4096, 0, ~std::uint64_t{4095}},
	      MemoryRegion{~std::uint64_t{4095}, 8192, 0, 0},
	      MemoryRegion{0, 8192, ~std::uint64_t{4095}, 0}})
		EXPECT_NE(share(1, {bad}, 1), 0u);
	EXPECT_EQ(memory.mappings(), 0u);
	EXPECT_EQ(share(0, {}, 0), 0u);
	EXPECT_EQ(share(1, {good}, 1), 0u);
}

// When a guest disconnects, its memory is released and the device is reset for the next one. Only
// one guest is served at a time.
TEST_F(Requests, SecondGuestIsRefusedAndDeviceIsResetWhenTheFirstDisconnects)
{
	guest().greet();
	guest().write_config<std::uint16_t>(4, 4);
	EXPECT_TRUE(device_.host().bus_master());
	{
		auto [ours, theirs] = FakeGuest::make_sockets();
		server_.serve(std::move(theirs));
		FakeGuest second(loop_, std::move(ours));
		EXPECT_TRUE(second.wait_closed());
	}
	guest().close();
	ASSERT_TRUE(loop_.run_until([&] { return !server_.connected(); }));
	EXPECT_EQ(device_.resets.back(), PciReset::host_gone);
	EXPECT_EQ(device_.host().dma().mappings(), 0u);
	connect().greet();
	EXPECT_EQ(guest().read_config<std::uint16_t>(4), 0);
}

// A guest that truncates its memory loses the card. A device that fails is removed from its guest.
TEST_F(Requests, GuestThatTruncatesItsMemoryOrWhoseDeviceFailsIsDisconnected)
{
	guest().greet();
	ASSERT_EQ(::ftruncate(guest().memory_fd(), 4096), 0);
	EXPECT_EQ(device_.host().dma().read_as<int>(FakeGuest::kMemory + 8192), 0);
	expect_lost();
	device_.fail_next_write = true;
	try {
		guest().write<std::uint32_t>(0, 0, 1);
	} catch (const FakeGuest::HungUp &) {
	}
	expect_lost();
}

} // namespace
} // namespace weft::vhost_user
