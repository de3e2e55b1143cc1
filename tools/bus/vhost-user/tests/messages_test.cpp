// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the delivery of MSI-X interrupts to User-Mode Linux, whose PCI devices are virtio devices:
// the server keeps the MSI-X table, and writes interrupt messages to the device's second virtqueue.
#include <chrono>
#include <future>

#include <fcntl.h>
#include <unistd.h>

#include "bus/vhost-user/tests/fixture.hpp"

namespace weft::vhost_user
{
namespace
{

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MsixMessages : public GreetedTest
{
protected:
	static constexpr std::uint8_t kBar = 4;
	static constexpr std::uint64_t kAddress = 0xa0000;

	// Enables MSI-X and bus mastering, without masking the function.
	void enable(std::uint16_t control = 0x8000)
	{
		guest().write_config<std::uint16_t>(4, 4);
		set_control(control);
	}
	void set_control(std::uint16_t control)
	{
		guest().write_config<std::uint16_t>(guest().find_capability(0x11) + 2u, control);
	}
	static constexpr std::uint64_t entry(unsigned vector)
	{
		return FakeDevice::kTableOffset + 16u * vector;
	}
	void set_vector(unsigned vector, std::uint32_t data, bool masked = false)
	{
		guest().write<std::uint64_t>(kBar, entry(vector), kAddress);
		guest().write<std::uint32_t>(kBar, entry(vector) + 8, data);
		mask(vector, masked);
	}
	void mask(unsigned vector, bool masked)
	{
		guest().write<std::uint32_t>(kBar, entry(vector) + 12, masked);
	}
	std::uint32_t pending()
	{
		return guest().read<std::uint32_t>(kBar, FakeDevice::kPbaOffset);
	}
};

// The table behaves as memory whose entries are initially masked. Accesses do not reach the model.
TEST_F(MsixMessages, MsixTableAccessesDoNotReachTheDevice)
{
	EXPECT_EQ(guest().read<std::uint32_t>(kBar, entry(31) + 12), 1u);
	set_vector(31, 77);
	EXPECT_EQ(guest().read<std::uint64_t>(kBar, entry(31)), kAddress);
	EXPECT_EQ(guest().read<std::uint64_t>(kBar, entry(31) + 8), 77u);
	EXPECT_THAT(device_.writes, IsEmpty());
	// The access crosses the end of the table: the bytes behind it are not stored.
	guest().write<std::uint64_t>(kBar, entry(32) - 4, ~std::uint64_t{0});
	EXPECT_EQ(guest().read<std::uint64_t>(kBar, entry(32) - 4), 0xffffffffu);
}

// A raised vector sends one message, with its address and data from the table, and one call.
TEST_F(MsixMessages, RaisedMsixVectorSendsItsAddressAndData)
{
	enable();
	set_vector(0, 65);
	set_vector(31, 66);
	for (int i = 0; i < 2; ++i)
		guest().give_buffer();
	guest().take_calls();
	device_.host().raise_msix(31);
	EXPECT_EQ(guest().take_message(), (FakeGuest::Msi{kAddress, 66}));
	EXPECT_THAT(guest().take_calls(), ElementsAre(kMessageQueue));
	device_.host().raise_msix(0);
	EXPECT_EQ(guest().take_message(), (FakeGuest::Msi{kAddress, 65}));
	device_.host().raise_msix(32);
	EXPECT_FALSE(guest().take_message()) << "no such vector";
}

// The message of a masked vector becomes pending once, is visible as pending, and is sent when the
// vector or the function is unmasked.
TEST_F(MsixMessages, MaskedVectorStaysPendingUntilUnmasked)
{
	enable(0xc000);
	set_vector(3, 70);
	guest().give_buffer();
	device_.host().raise_msix(3);
	device_.host().raise_msix(3);
	EXPECT_FALSE(guest().take_message());
	EXPECT_EQ(pending(), 1u << 3);
	set_control(0x8000);
	EXPECT_EQ(guest().take_message(), (FakeGuest::Msi{kAddress, 70}));
	EXPECT_EQ(pending(), 0u);

	guest().give_buffer();
	mask(3, true);
	device_.host().raise_msix(3);
	EXPECT_FALSE(guest().take_message());
	mask(3, false);
	EXPECT_TRUE(guest().take_message());
	EXPECT_FALSE(guest().take_message());
}

// If the guest has no buffer for a message, the message is sent when it posts one.
TEST_F(MsixMessages, VectorStaysPendingUntilTheGuestPostsABufferForMsixMessages)
{
	enable();
	set_vector(1, 71);
	device_.host().raise_msix(1);
	EXPECT_EQ(pending(), 1u << 1);
	guest().give_buffer();
	EXPECT_EQ(guest().kick(kMessageQueue), 0u);
	EXPECT_EQ(guest().take_message(), (FakeGuest::Msi{kAddress, 71}));
	EXPECT_EQ(pending(), 0u);
}

// A function without MSI-X or bus mastering sends nothing, and a reset drops all pending messages.
TEST_F(MsixMessages, InterruptsNeedBusMasteringAndMsixEnable)
{
	enable();
	set_vector(2, 72);
	guest().give_buffer();
	guest().write_config<std::uint16_t>(4, 0);
	device_.host().raise_msix(2);
	EXPECT_EQ(pending(), 0u);
	guest().write_config<std::uint16_t>(4, 4);
	set_control(0);
	device_.host().raise_msix(2);
	EXPECT_EQ(pending(), 0u);
	set_control(0xc000);
	device_.host().raise_msix(2);
	EXPECT_EQ(pending(), 1u << 2);
	set_control(0);
	EXPECT_EQ(pending(), 0u);

	const auto express = guest().find_capability(0x10);
	guest().write_config<std::uint16_t>(express + 8u, 0x8000);
	EXPECT_EQ(device_.resets.back(), PciReset::function_level);
	EXPECT_EQ(guest().read<std::uint32_t>(kBar, entry(2) + 12), 1u);
	EXPECT_FALSE(guest().take_message());
}

// A pending message stays pending while bus mastering is off, even if it is unmasked, and is sent
// when bus mastering is enabled.
TEST_F(MsixMessages, PendingMsixIsSentOnlyWithBusMasteringEnabled)
{
	enable();
	set_vector(2, 72, true);
	guest().give_buffer();
	device_.host().raise_msix(2);
	guest().write_config<std::uint16_t>(4, 0);
	mask(2, false);
	EXPECT_EQ(guest().kick(kMessageQueue), 0u);
	set_control(0xc000);
	set_control(0x8000);
	EXPECT_FALSE(guest().take_message());
	EXPECT_EQ(pending(), 1u << 2);
	guest().write_config<std::uint16_t>(4, 4);
	EXPECT_EQ(guest().take_message(), (FakeGuest::Msi{kAddress, 72}));
	EXPECT_EQ(pending(), 0u);
}

// The device does not block either if the guest clears O_NONBLOCK on the pipe, which both share.
TEST_F(MsixMessages, FullBackendChannelDoesNotBlockTheServer)
{
	int ends[2];
	ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
	const FileDescriptor reader(ends[0]), writer(ends[1]);
	ASSERT_EQ(guest().call(Request::set_backend_request_fd, {}, {writer.get()}), 0u);
	enable();
	set_vector(0, 80);
	ASSERT_EQ(::fcntl(writer.get(), F_SETFL, O_NONBLOCK), 0);
	const Bytes junk(4096);
	while (::write(writer.get(), junk.data(), junk.size()) > 0)
		;
	ASSERT_EQ(::fcntl(writer.get(), F_SETFL, 0), 0);
	guest().give_buffer();
	auto raised = std::async(std::launch::async, [&] { device_.host().raise_msix(0); });
	const bool done = raised.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
	EXPECT_TRUE(done);
	Bytes read(1 << 20);
	if (!done) {
		EXPECT_GT(::read(reader.get(), read.data(), read.size()), 0);
	}
	raised.wait();
	EXPECT_TRUE(guest().take_message());
}

// A guest that never reads its calls misses no message, and does not block the device.
TEST_F(MsixMessages, GuestThatIgnoresInterruptsDoesNotBlockTheDevice)
{
	enable();
	set_vector(0, 80);
	for (int i = 0; i < 10000; ++i) {
		guest().give_buffer();
		device_.host().raise_msix(0);
		ASSERT_TRUE(guest().take_message());
	}
	EXPECT_FALSE(guest().take_calls().empty());
	guest().give_buffer();
	device_.host().raise_msix(0);
	EXPECT_THAT(guest().take_calls(), ElementsAre(kMessageQueue));
}

// A buffer that is too small for a message or at an invalid address closes the connection at the
// next request.
TEST_F(MsixMessages, InvalidGuestBufferForMsixMessagesClosesTheConnection)
{
	for (const Descriptor &bad :
	     {Descriptor{FakeGuest::kBuffers, 19, kDescriptorWritable, 0},
	      Descriptor{FakeGuest::kBuffers, 20, 0, 0},
	      Descriptor{FakeGuest::kMemory - 4, 20, kDescriptorWritable, 0}}) {
		enable();
		set_vector(0, 90);
		guest().set_descriptor(kMessageQueue, 0, bad);
		guest().make_available(kMessageQueue, 0);
		device_.host().raise_msix(0);
		guest().send(Request::get_features);
		expect_lost();
	}
}

} // namespace
} // namespace weft::vhost_user
