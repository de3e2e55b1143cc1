// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests VFIO_USER_DEVICE_SET_IRQS, and the delivery of interrupts.
#include <chrono>
#include <future>

#include <sys/timerfd.h>

#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

constexpr std::uint32_t kTriggerByEvent = kIrqSetDataEventfd | kIrqSetActionTrigger;
constexpr std::uint32_t kUnmask = kIrqSetDataNone | kIrqSetActionUnmask;

class SetIrqsMessage : public GreetedTest
{
protected:
	std::uint32_t set(std::uint32_t index, std::uint32_t flags, std::uint32_t start,
			  std::uint32_t count, const std::vector<int> &fds = {},
			  const Bytes &booleans = {})
	{
		const IrqSet request{static_cast<std::uint32_t>(sizeof(IrqSet) + booleans.size()),
				     flags, index, start, count};
		return client().call(Command::set_irqs, bytes_of(request, booleans), fds).error();
	}

	FileDescriptor first_ = make_event();
	FileDescriptor second_ = make_event();
};

// Interrupts of a vector signal its own descriptor, and no other.
TEST_F(SetIrqsMessage, EventfdsAreAssignedToVectors)
{
	enable_msix();
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 3, 2, {first_.get(), second_.get()}), 0u);
	device_.host().raise_msix(4);
	device_.host().raise_msix(4);
	EXPECT_EQ(take(first_), 0u);
	EXPECT_EQ(take(second_), 2u);
	device_.host().raise_msix(3);
	EXPECT_EQ(take(first_), 1u);
	device_.host().raise_msix(FakeDevice::kVectors);
	device_.host().raise_msix(~0u);
}

// A request of type eventfd without descriptors removes them. Disabling all vectors does so too, at
// any time.
TEST_F(SetIrqsMessage, EventfdsCanBeRemovedFromVectors)
{
	enable_msix();
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 2, {first_.get(), second_.get()}), 0u);
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 1), 0u);
	device_.host().raise_msix(0);
	device_.host().raise_msix(1);
	EXPECT_EQ(take(first_), 0u);
	EXPECT_EQ(take(second_), 1u);
	EXPECT_EQ(set(kIrqMsix, kIrqSetDataNone | kIrqSetActionTrigger, 0, 0), 0u);
	device_.host().raise_msix(1);
	EXPECT_EQ(take(second_), 0u);
}

// An interrupt of a vector without a descriptor is pending, and is delivered once there is one. It
// is dropped if MSI-X is disabled or the device is reset.
TEST_F(SetIrqsMessage, PendingMsixInterruptIsDeliveredWhenAnEventfdIsAssignedToItsVector)
{
	enable_msix();
	device_.host().raise_msix(0);
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 1, {first_.get()}), 0u);
	EXPECT_EQ(take(first_), 1u);

	device_.host().raise_msix(1);
	client().write_as<std::uint16_t>(kRegionConfig, find_capability(0x11) + 2u, 0);
	enable_msix();
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 1, 1, {second_.get()}), 0u);
	EXPECT_EQ(take(second_), 0u);

	device_.host().raise_msix(2);
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
	enable_msix();
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 2, 1, {second_.get()}), 0u);
	EXPECT_EQ(take(second_), 0u);
}

// No message is sent while MSI-X or bus mastering is disabled.
TEST_F(SetIrqsMessage, MsixInterruptsRequireMsixEnableAndBusMastering)
{
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 1, {first_.get()}), 0u);
	device_.host().raise_msix(0);
	EXPECT_EQ(take(first_), 0u);
	enable_msix();
	EXPECT_TRUE(device_.host().msix_enabled());
	EXPECT_EQ(take(first_), 0u);
	device_.host().raise_msix(0);
	EXPECT_EQ(take(first_), 1u);
	client().write_as<std::uint16_t>(kRegionConfig, kPciCommand, 0);
	device_.host().raise_msix(0);
	EXPECT_EQ(take(first_), 0u);
}

// A client can trigger some or all vectors of a range itself.
TEST_F(SetIrqsMessage, ClientCanTriggerInterrupts)
{
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 2, {first_.get(), second_.get()}), 0u);
	EXPECT_EQ(set(kIrqMsix, kIrqSetDataNone | kIrqSetActionTrigger, 0, 2), 0u);
	EXPECT_EQ(take(first_), 1u);
	EXPECT_EQ(take(second_), 1u);
	EXPECT_EQ(set(kIrqMsix, kIrqSetDataBool | kIrqSetActionTrigger, 0, 2, {},
		      {std::byte{0}, std::byte{1}}),
		  0u);
	EXPECT_EQ(take(first_), 0u);
	EXPECT_EQ(take(second_), 1u);
}

// INTx is signalled once, masks itself, and is signalled again after an unmask if it is still high.
TEST_F(SetIrqsMessage, IntxIsMaskedAfterDeliveryUntilUnmasked)
{
	EXPECT_EQ(set(kIrqIntx, kTriggerByEvent, 0, 1, {first_.get()}), 0u);
	device_.host().set_intx(true);
	EXPECT_EQ(take(first_), 1u);
	device_.host().set_intx(true);
	device_.host().set_intx(false);
	device_.host().set_intx(true);
	EXPECT_EQ(take(first_), 0u);
	EXPECT_EQ(set(kIrqIntx, kUnmask, 0, 1), 0u);
	EXPECT_EQ(take(first_), 1u);
	device_.host().set_intx(false);
	EXPECT_EQ(set(kIrqIntx, kUnmask, 0, 1), 0u);
	EXPECT_EQ(take(first_), 0u);
	EXPECT_EQ(set(kIrqIntx, kIrqSetDataNone | kIrqSetActionMask, 0, 1), 0u);
	device_.host().set_intx(true);
	EXPECT_EQ(take(first_), 0u);
	EXPECT_EQ(set(kIrqIntx, kIrqSetDataBool | kIrqSetActionUnmask, 0, 1, {}, {std::byte{1}}),
		  0u);
	EXPECT_EQ(take(first_), 1u);
}

// Interrupt Disable suppresses INTx, and Interrupt Status always shows the line.
TEST_F(SetIrqsMessage, InterruptDisableBitSuppressesIntx)
{
	constexpr std::uint16_t status_interrupt = 1 << 3;
	EXPECT_EQ(set(kIrqIntx, kTriggerByEvent, 0, 1, {first_.get()}), 0u);
	client().write_as(kRegionConfig, kPciCommand, kPciCommandIntxDisable);
	device_.host().set_intx(true);
	EXPECT_EQ(take(first_), 0u);
	EXPECT_TRUE(client().read_as<std::uint16_t>(kRegionConfig, 6) & status_interrupt);
	client().write_as<std::uint16_t>(kRegionConfig, kPciCommand, 0);
	EXPECT_EQ(take(first_), 1u);
	device_.host().set_intx(false);
	EXPECT_FALSE(client().read_as<std::uint16_t>(kRegionConfig, 6) & status_interrupt);
}

// A client may unmask INTx by an eventfd, as KVM does, until it removes the descriptor.
TEST_F(SetIrqsMessage, UnmaskEventfdUnmasksIntx)
{
	constexpr std::uint32_t unmask_by_event = kIrqSetDataEventfd | kIrqSetActionUnmask;
	EXPECT_EQ(set(kIrqIntx, kTriggerByEvent, 0, 1, {first_.get()}), 0u);
	EXPECT_EQ(set(kIrqIntx, unmask_by_event, 0, 1, {second_.get()}), 0u);
	device_.host().set_intx(true);
	EXPECT_EQ(take(first_), 1u);
	for (int i = 0; i < 2; ++i) {
		ASSERT_EQ(::eventfd_write(second_.get(), 1), 0);
		EXPECT_TRUE(loop_.run_until([&] { return take(first_) == 1; }));
	}
	EXPECT_EQ(set(kIrqIntx, unmask_by_event, 0, 1), 0u);
	ASSERT_EQ(::eventfd_write(second_.get(), 1), 0);
	loop_.poll();
	EXPECT_EQ(take(first_), 0u);
}

// A descriptor with a full counter does not block the device, whatever its O_NONBLOCK flag, because
// the client shares the flag and can change it.
TEST_F(SetIrqsMessage, EventfdWithAFullCounterDoesNotBlockTheServer)
{
	enable_msix();
	FileDescriptor full(::eventfd(0, EFD_CLOEXEC));
	ASSERT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 2, {full.get(), first_.get()}), 0u);
	ASSERT_EQ(::fcntl(full.get(), F_SETFL, 0), 0);
	ASSERT_EQ(::eventfd_write(full.get(), ~0ull - 1), 0);
	auto raised = std::async(std::launch::async, [&] {
		for (int i = 0; i < 10000; ++i)
			device_.host().raise_msix(0);
	});
	const bool done = raised.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
	EXPECT_TRUE(done);
	while (!done && raised.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
		take(full);
	device_.host().raise_msix(1);
	EXPECT_EQ(take(first_), 1u);
}

// Only eventfds are accepted for interrupts, as QEMU and KVM use them. Another descriptor could
// block the device, or keep open the connection of a client that has exited.
TEST_F(SetIrqsMessage, FileDescriptorsOtherThanEventfdsAreRefused)
{
	constexpr std::uint32_t unmask_by_event = kIrqSetDataEventfd | kIrqSetActionUnmask;
	int ends[2];
	ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
	const FileDescriptor reader(ends[0]), writer(ends[1]);
	const FileDescriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	const auto memory = make_memory(4096);
	for (const FileDescriptor *other : {&reader, &writer, &timer, &memory}) {
		EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 1, {other->get()}), EBADF);
		EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 2, {first_.get(), other->get()}),
			  EBADF);
		EXPECT_EQ(set(kIrqIntx, kTriggerByEvent, 0, 1, {other->get()}), EBADF);
		EXPECT_EQ(set(kIrqIntx, unmask_by_event, 0, 1, {other->get()}), EBADF);
	}
	enable_msix();
	device_.host().raise_msix(0);
	EXPECT_EQ(take(first_), 0u) << "a refused request wires nothing";
}

// A descriptor that stays readable after each read is not watched any more. A descriptor that the
// client has read first does not block, whatever its flag.
TEST_F(SetIrqsMessage, UnmaskEventfdThatRemainsReadableAfterEachReadIsNoLongerPolled)
{
	constexpr std::uint32_t unmask_by_event = kIrqSetDataEventfd | kIrqSetActionUnmask;
	const FileDescriptor endless(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
	ASSERT_EQ(set(kIrqIntx, unmask_by_event, 0, 1, {endless.get()}), 0u);
	ASSERT_EQ(::fcntl(endless.get(), F_SETFL, 0), 0);
	ASSERT_EQ(::eventfd_write(endless.get(), ~0ull - 1), 0);
	std::size_t turns = 0, last;
	do
		turns += last = loop_.poll();
	while (last && turns < 1000);
	EXPECT_LT(turns, 1000u);
}

// Contradictory flags, invalid ranges, too few descriptors or booleans, and operations that a kind
// of interrupt lacks are refused and change nothing.
TEST_F(SetIrqsMessage, RejectsInvalidRequests)
{
	enable_msix();
	const std::vector<int> one{first_.get()};
	const std::vector<int> two{first_.get(), second_.get()};
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 3, two), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 0, 1, two), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, FakeDevice::kVectors, 1, one), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, ~0u, 2, two), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent, 1, ~0u, two), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent | kIrqSetDataNone, 0, 1, one), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent | kIrqSetActionMask, 0, 1, one), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kIrqSetDataEventfd, 0, 1, one), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kIrqSetActionTrigger, 0, 1, one), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kTriggerByEvent | 1 << 6, 0, 1, one), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kUnmask, 0, 1), ENOTSUP);
	EXPECT_EQ(set(kIrqMsix, kIrqSetDataNone | kIrqSetActionTrigger, 0, 1, one), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kIrqSetDataNone | kIrqSetActionTrigger, 1, 0), EINVAL);
	EXPECT_EQ(set(kIrqMsix, kIrqSetDataBool | kIrqSetActionTrigger, 0, 2, {}, Bytes(1)),
		  EINVAL);
	EXPECT_EQ(set(kIrqMsix, kIrqSetDataNone | kIrqSetActionTrigger, 0, 1, {}, Bytes(1)),
		  EINVAL);
	EXPECT_EQ(set(kIrqMsi, kTriggerByEvent, 0, 1, one), EINVAL);
	EXPECT_EQ(set(kIrqs, kTriggerByEvent, 0, 1, one), EINVAL);
	EXPECT_EQ(set(kIrqIntx, kTriggerByEvent, 0, 2, two), EINVAL);
	EXPECT_EQ(set(kIrqIntx, kIrqSetDataEventfd | kIrqSetActionMask, 0, 1, one), ENOTSUP);
	EXPECT_EQ(client().call(Command::set_irqs, Bytes(19)).error(), EINVAL);
	device_.host().raise_msix(0);
	device_.host().set_intx(true);
	EXPECT_EQ(take(first_), 0u);
	EXPECT_EQ(take(second_), 0u);
}

} // namespace
} // namespace weft::vfio_user
