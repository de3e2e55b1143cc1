// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the command virtqueue: accesses to configuration space and registers, and how invalid rings
// are refused.
#include <cerrno>

#include "bus/vhost-user/tests/fixture.hpp"

namespace weft::vhost_user
{
namespace
{

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Commands = GreetedTest;

constexpr std::byte kOnes{0xff};

// Registers and configuration space are read and written by 1, 2, 4 and 8 bytes, before the kick is
// acknowledged.
TEST_F(Commands, ReadsAndWritesReachBarsAndConfigSpace)
{
	EXPECT_EQ(guest().read_config<std::uint16_t>(2), device_.description().device);
	guest().write<std::uint64_t>(2, 0x100, 0x1122334455667788);
	EXPECT_EQ(guest().read<std::uint8_t>(2, 0x100), 0x88u);
	EXPECT_EQ(guest().read<std::uint16_t>(2, 0x102), 0x5566u);
	EXPECT_EQ(guest().read<std::uint32_t>(2, 0x104), 0x11223344u);
	EXPECT_EQ(guest().read<std::uint64_t>(2, 0x100), 0x1122334455667788u);
	EXPECT_THAT(device_.writes, SizeIs(1));
	guest().write_config<std::uint16_t>(4, 4);
	EXPECT_THAT(device_.bus_master, ElementsAre(true));
}

// The function has no interrupt pin for such a guest, because the protocol cannot signal it.
TEST_F(Commands, GuestSeesNoInterruptPinOrIntxStatus)
{
	EXPECT_TRUE(device_.description().intx);
	EXPECT_EQ(guest().read_config<std::uint8_t>(0x3d), 0u);
	device_.host().set_intx(true);
	EXPECT_EQ(guest().read_config<std::uint16_t>(6) & 8u, 0u);
}

// As UML does when it copies, one command transfers more than a register, up to a page.
TEST_F(Commands, OneCommandReadsWritesOrFillsUpToAPageOfBarMemory)
{
	Bytes data(kMaxTransfer);
	for (std::size_t i = 0; i < data.size(); ++i)
		data[i] = static_cast<std::byte>(i * 7);
	guest().execute(Operation::memory_write, 2, 0, kMaxTransfer, data, 0);
	EXPECT_EQ(guest().execute(Operation::memory_read, 2, 0, kMaxTransfer, {}, kMaxTransfer),
		  data);
	guest().execute(Operation::memory_set, 2, 16, 100, {std::byte{9}}, 0);
	EXPECT_THAT(guest().execute(Operation::memory_read, 2, 16, 100, {}, 100),
		    Each(std::byte{9}));
	EXPECT_EQ(guest().read<std::uint8_t>(2, 116), std::to_integer<std::uint8_t>(data[116]));
}

// As on a bus without the addressed device, invalid reads return all ones, and invalid writes have
// no effect.
TEST_F(Commands, ReadsOutsideTheBarsReturnAllOnes)
{
	const auto refused = [&](Operation operation, std::uint8_t bar, std::uint64_t address,
				 std::uint32_t size) {
		const auto answer = guest().execute(operation, bar, address, size, {}, 8);
		return answer == Bytes(std::min(size, 8u), kOnes);
	};
	EXPECT_TRUE(refused(Operation::memory_read, 1, 0, 4)) << "no BAR";
	EXPECT_TRUE(refused(Operation::memory_read, 6, 0, 4));
	EXPECT_TRUE(refused(Operation::memory_read, 7, 0, 4)) << "configuration space is no BAR";
	EXPECT_TRUE(refused(Operation::memory_read, 255, 0, 4));
	EXPECT_TRUE(refused(Operation::memory_read, 0, FakeDevice::kBar0Size - 3, 4));
	EXPECT_TRUE(refused(Operation::memory_read, 0, ~std::uint64_t{0}, 4));
	EXPECT_TRUE(refused(Operation::config_read, 0, 4094, 4));
	EXPECT_TRUE(refused(Operation::memory_read, 0, 0, kMaxTransfer + 1));
	EXPECT_TRUE(refused(Operation::memory_read, 0, 0, ~0u));
	for (const auto operation : {Operation::memory_write, Operation::memory_set}) {
		guest().execute(operation, 1, 0, 4, Bytes(4), 0);
		guest().execute(operation, 7, 4, 4, Bytes(4, kOnes), 0);
		guest().execute(operation, 0, FakeDevice::kBar0Size - 3, 4, Bytes(4), 0);
		guest().execute(operation, 0, 0, kMaxTransfer + 1, Bytes(4), 0);
	}
	guest().execute(Operation::memory_write, 0, 0, 8, Bytes(7), 0);
	guest().execute(Operation::memory_set, 0, 0, 8, {}, 0);
	guest().execute(Operation::config_write, 0, 4094, 4, Bytes(4), 0);
	EXPECT_THAT(device_.writes, IsEmpty());
	EXPECT_THAT(device_.bus_master, IsEmpty());
}

// Operations for the other direction, unknown operations and incomplete commands are returned
// without being executed.
TEST_F(Commands, InvalidCommandsAreReturnedUnexecuted)
{
	for (const unsigned operation : {0u, 6u, 7u, 8u, 9u, 255u})
		EXPECT_THAT(
			guest().execute(static_cast<Operation>(operation), 0, 0, 4, Bytes(4), 8),
			IsEmpty());
	guest().set_descriptor(kCommandQueue, 3, {FakeGuest::kBuffers, 15, 0, 0});
	guest().make_available(kCommandQueue, 3);
	EXPECT_EQ(guest().kick(kCommandQueue), 0u);
	const auto used = guest().take_used(kCommandQueue);
	ASSERT_TRUE(used);
	EXPECT_EQ(used->head, 3u);
	EXPECT_EQ(used->written, 0u);
}

// Header and data may be in separate descriptors, and an answer may span several. An answer that is
// too long is truncated.
TEST_F(Commands, CommandsMaySpanSeveralDescriptors)
{
	device_.memory(0)[0x40] = std::byte{0x11};
	device_.memory(0)[0x43] = std::byte{0x44};
	guest().object<Command>(FakeGuest::kBuffers) = {
		static_cast<std::uint8_t>(Operation::memory_read), 0, 0, 4, 0x40};
	guest().set_descriptor(kCommandQueue, 2, {FakeGuest::kBuffers, 5, kDescriptorNext, 9});
	guest().set_descriptor(kCommandQueue, 9, {FakeGuest::kBuffers + 5, 11, kDescriptorNext, 4});
	guest().set_descriptor(
		kCommandQueue, 4,
		{FakeGuest::kBuffers + 64, 1, kDescriptorWritable | kDescriptorNext, 5});
	guest().set_descriptor(kCommandQueue, 5,
			       {FakeGuest::kBuffers + 80, 3, kDescriptorWritable, 0});
	guest().make_available(kCommandQueue, 2);
	ASSERT_EQ(guest().kick(kCommandQueue), 0u);
	EXPECT_EQ(guest().take_used(kCommandQueue)->written, 4u);
	EXPECT_EQ(guest().object<std::uint8_t>(FakeGuest::kBuffers + 64), 0x11u);
	EXPECT_EQ(guest().object<std::uint8_t>(FakeGuest::kBuffers + 82), 0x44u);
	EXPECT_EQ(guest().execute(Operation::memory_read, 0, 0x40, 4, {}, 2).size(), 2u);
}

// The guest is called after posted commands, so that it frees their memory. It polls for answers
// that it waits for.
TEST_F(Commands, GuestIsInterruptedAfterPostedWritesButNotAfterReads)
{
	guest().take_calls();
	guest().write<std::uint32_t>(0, 0, 1);
	EXPECT_THAT(guest().take_calls(), ElementsAre(kCommandQueue));
	guest().read<std::uint32_t>(0, 0);
	EXPECT_THAT(guest().take_calls(), IsEmpty());
	guest().object<std::uint16_t>(guest().queue(kCommandQueue).available + kRingFlags) =
		kNoInterrupt;
	guest().write<std::uint32_t>(0, 0, 2);
	EXPECT_THAT(guest().take_calls(), IsEmpty());
	EXPECT_EQ(guest().kick(2), std::uint64_t{EINVAL}) << "no such queue";
}

// One kick executes all commands in a ring, in order, also where the indices wrap around.
TEST_F(Commands, OneKickExecutesAllCommandsInOrder)
{
	for (std::uint16_t i = 0; i < FakeGuest::kEntries; ++i) {
		const auto place = FakeGuest::kBuffers + 32u * i;
		guest().object<Command>(place) = {
			static_cast<std::uint8_t>(Operation::memory_write), 0, 0, 4, 0};
		guest().object<std::uint32_t>(place + sizeof(Command)) = i;
		guest().set_descriptor(kCommandQueue, i, {place, 20, 0, 0});
	}
	for (unsigned round = 0; round < 4200; ++round) {
		for (std::uint16_t i = 0; i < FakeGuest::kEntries; ++i)
			guest().make_available(kCommandQueue, i);
		ASSERT_EQ(guest().kick(kCommandQueue), 0u);
		loop_.poll();
		for (std::uint16_t i = 0; i < FakeGuest::kEntries; ++i)
			ASSERT_EQ(guest().take_used(kCommandQueue)->head, i);
		ASSERT_THAT(device_.writes, SizeIs(FakeGuest::kEntries));
		device_.writes.clear();
	}
	EXPECT_EQ(guest().read<std::uint32_t>(0, 0), FakeGuest::kEntries - 1u);
}

// Other tasks run while a long ring is processed, because each command may take long.
TEST_F(Commands, LongRingIsProcessedInSeveralEventLoopIterations)
{
	for (std::uint16_t i = 0; i < FakeGuest::kEntries; ++i) {
		const auto place = FakeGuest::kBuffers + 32u * i;
		guest().object<Command>(place) = {
			static_cast<std::uint8_t>(Operation::memory_write), 0, 0, 4, 0};
		guest().object<std::uint32_t>(place + sizeof(Command)) = i;
		guest().set_descriptor(kCommandQueue, i, {place, 20, 0, 0});
		guest().make_available(kCommandQueue, i);
	}
	ASSERT_EQ(guest().kick(kCommandQueue), 0u);
	EXPECT_THAT(device_.writes, SizeIs(8)) << "when the kick is answered";
	loop_.poll();
	EXPECT_THAT(device_.writes, SizeIs(FakeGuest::kEntries));
}

// The rest of a long ring is abandoned when its guest disconnects.
TEST_F(Commands, DisconnectStopsProcessingOfALongRing)
{
	for (std::uint16_t i = 0; i < FakeGuest::kEntries; ++i) {
		const auto place = FakeGuest::kBuffers + 32u * i;
		guest().object<Command>(place) = {
			static_cast<std::uint8_t>(Operation::memory_write), 0, 0, 4, 0};
		guest().set_descriptor(kCommandQueue, i, {place, 20, 0, 0});
		guest().make_available(kCommandQueue, i);
	}
	guest().send(Request::vring_kick, bytes_of(VringState{kCommandQueue, 0}));
	guest().close();
	EXPECT_TRUE(loop_.run_until([&] { return !server_.connected(); }));
	loop_.poll();
	EXPECT_LE(device_.writes.size(), FakeGuest::kEntries);
}

// A disabled queue is not processed, and continues where it was.
TEST_F(Commands, DisabledQueueIsNotProcessed)
{
	ASSERT_EQ(guest().enable(kCommandQueue, false), 0u);
	guest().object<Command>(FakeGuest::kBuffers) = {
		static_cast<std::uint8_t>(Operation::memory_set), 0, 0, 4, 0};
	guest().set_descriptor(kCommandQueue, 0, {FakeGuest::kBuffers, 20, 0, 0});
	guest().make_available(kCommandQueue, 0);
	EXPECT_EQ(guest().kick(kCommandQueue), 0u);
	EXPECT_FALSE(guest().take_used(kCommandQueue));
	ASSERT_EQ(guest().enable(kCommandQueue), 0u);
	EXPECT_EQ(guest().kick(kCommandQueue), 0u);
	EXPECT_TRUE(guest().take_used(kCommandQueue));
}

// Handling of malformed rings.
class InvalidRings : public GreetedTest
{
protected:
	// Makes @head available, kicks, and expects that the guest is disconnected.
	void expect_lost_by(std::uint16_t head)
	{
		guest().make_available(kCommandQueue, head);
		guest().send(Request::vring_kick, bytes_of(VringState{kCommandQueue, 0}));
		expect_lost();
	}
	void describe(std::uint16_t number, const Descriptor &descriptor)
	{
		guest().set_descriptor(kCommandQueue, number, descriptor);
	}
	static constexpr std::uint64_t kPlace = FakeGuest::kBuffers;
};

TEST_F(InvalidRings, HeadIndexBeyondTheRingDisconnectsTheGuest)
{
	expect_lost_by(FakeGuest::kEntries);
}

TEST_F(InvalidRings, NextIndexBeyondTheRingDisconnectsTheGuest)
{
	describe(0, {kPlace, 16, kDescriptorNext, FakeGuest::kEntries});
	expect_lost_by(0);
}

TEST_F(InvalidRings, CyclicDescriptorChainDisconnectsTheGuest)
{
	describe(0, {kPlace, 0, kDescriptorNext, 1});
	describe(1, {kPlace, 0, kDescriptorNext, 0});
	expect_lost_by(0);
}

TEST_F(InvalidRings, IndirectDescriptorDisconnectsTheGuest)
{
	describe(0, {kPlace, 16, kDescriptorIndirect, 0});
	expect_lost_by(0);
}

TEST_F(InvalidRings, OversizedDescriptorChainDisconnectsTheGuest)
{
	describe(0, {kPlace, kMaxTransfer + 16, kDescriptorNext, 1});
	describe(1, {kPlace, kMaxTransfer + 1, kDescriptorWritable, 0});
	expect_lost_by(0);
	describe(0, {kPlace, kMaxTransfer + 16, kDescriptorNext, 1});
	describe(1, {kPlace, kMaxTransfer, kDescriptorWritable, 0});
	guest().make_available(kCommandQueue, 0);
	EXPECT_EQ(guest().kick(kCommandQueue), 0u) << "this long it may be";
	describe(0, {kPlace, ~0u, 0, 0});
	expect_lost_by(0);
}

TEST_F(InvalidRings, ReadableAfterWritableDescriptorDisconnectsTheGuest)
{
	describe(0, {kPlace, 16, kDescriptorWritable | kDescriptorNext, 1});
	describe(1, {kPlace, 16, 0, 0});
	expect_lost_by(0);
}

TEST_F(InvalidRings, AvailableIndexTooFarAheadDisconnectsTheGuest)
{
	guest().object<std::uint16_t>(guest().queue(kCommandQueue).available + kRingIndex) =
		FakeGuest::kEntries + 1;
	guest().send(Request::vring_kick, bytes_of(VringState{kCommandQueue, 0}));
	expect_lost();
}

TEST_F(InvalidRings, BufferOutsideGuestMemoryDisconnectsTheGuest)
{
	constexpr auto end = FakeGuest::kMemory + FakeGuest::kMemorySize;
	describe(0, {end - 8, 16, 0, 0});
	expect_lost_by(0);
	describe(0, {~std::uint64_t{7}, 16, 0, 0});
	expect_lost_by(0);
	guest().object<Command>(kPlace) = {static_cast<std::uint8_t>(Operation::config_read), 0, 0,
					   8, 0};
	describe(0, {kPlace, 16, kDescriptorNext, 1});
	describe(1, {end - 4, 8, kDescriptorWritable, 0});
	expect_lost_by(0);
}

} // namespace
} // namespace weft::vhost_user
