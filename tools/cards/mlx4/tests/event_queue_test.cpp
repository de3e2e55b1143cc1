// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests event queues: buffers, arming, interrupts, overrun.
#include <gtest/gtest.h>

#include "cards/mlx4/limits.hpp"
#include "cards/mlx4/tests/tiny_driver.hpp"

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::EqContext;
using hw::mlx4::Eqe;

class EventQueueTest : public ::testing::Test
{
public:
	EventQueueTest() { driver.bring_up_events(); }
	void raise(std::uint32_t qpn = 1)
	{
		driver.context().events.raise(EventType::communication_established, qpn);
	}
	EqContext query(std::uint32_t eqn)
	{
		const auto result = driver.command(Opcode::query_eq, eqn, 0, {}, EqContext::size);
		EXPECT_EQ(result.status, Status::ok);
		EqContext context{};
		std::ranges::copy(result.out, context.bytes);
		return context;
	}

	TinyDriver driver;
};

TEST_F(EventQueueTest, CreationInitialisesOnlyTheQueuesOwnEqes)
{
	// The queue has 8 entries and begins in the middle of a page, as in iPXE.
	const auto buffer = driver.make_buffer(4096);
	const auto page = driver.host.memory(buffer.bus, 4096);
	std::ranges::fill(page, std::byte{0x11});
	EqContext context{};
	EqContext::log_size.set(context.bytes, 3);
	EqContext::page_offset.set(context.bytes, 960 / 32);
	EqContext::mtt_offset.set(context.bytes, buffer.mtt_offset);
	ASSERT_EQ(driver.command(Opcode::sw2hw_eq, 6, 0, context.bytes).status, Status::ok);
	for (std::size_t i = 0; i < page.size(); ++i) {
		const bool inside = i >= 960 && i < 960 + 8 * 32;
		ASSERT_EQ(page[i], inside ? std::byte{0xcc} : std::byte{0x11}) << i;
	}
}

TEST_F(EventQueueTest, ArmedQueueRaisesOneInterrupt)
{
	raise();
	raise();
	EXPECT_EQ(driver.host.take_interrupts(0), 1u);
	EXPECT_TRUE(driver.poll(driver.async));
	driver.eq_doorbell(driver.async, true);
	EXPECT_EQ(driver.host.take_interrupts(0), 1u) << "armed with an entry left behind";
	EXPECT_TRUE(driver.poll(driver.async));
	EXPECT_FALSE(driver.poll(driver.async));
	driver.eq_doorbell(driver.async, true);
	EXPECT_EQ(driver.host.take_interrupts(0), 0u) << "armed and empty";
	raise();
	EXPECT_EQ(driver.host.take_interrupts(0), 1u);
}

TEST_F(EventQueueTest, DoorbellWithoutArmOnlyUpdatesTheConsumerIndex)
{
	raise();
	driver.host.take_interrupts(0);
	driver.poll(driver.async);
	driver.eq_doorbell(driver.async, false);
	raise();
	EXPECT_EQ(driver.host.take_interrupts(0), 0u);
	EXPECT_EQ(EqContext::consumer_index.get(query(4).bytes), 1u);
	EXPECT_EQ(EqContext::producer_index.get(query(4).bytes), 2u);
}

TEST_F(EventQueueTest, OwnerBitTogglesEachTimeTheQueueWraps)
{
	for (std::uint32_t i = 0; i < 200; ++i) {
		raise(i);
		const auto event = driver.poll(driver.async);
		ASSERT_TRUE(event) << i;
		EXPECT_EQ(Eqe::number.get(event->bytes), i);
		EXPECT_FALSE(driver.poll(driver.async)) << i;
		driver.eq_doorbell(driver.async, false);
	}
}

TEST_F(EventQueueTest, EventQueueOverrunSetsTheStatusInItsContext)
{
	for (unsigned i = 0; i < 64; ++i)
		raise(i);
	EXPECT_EQ(EqContext::status.get(query(4).bytes), hw::mlx4::eq_status::ok);
	raise(64);
	EXPECT_EQ(EqContext::status.get(query(4).bytes), hw::mlx4::eq_status::overflow);
	for (unsigned i = 0; i < 64; ++i)
		EXPECT_EQ(Eqe::number.get(driver.poll(driver.async)->bytes), i)
			<< "nothing overwritten";
}

// A driver may wait for an event that was lost, so it must be notified of the loss.
TEST_F(EventQueueTest, EqOverrunIsReportedToTheEqSelectedByMapEqOrInTheErrorBufferIfThatEqIsFull)
{
	const auto error = [&] { return driver.host.read<std::uint32_t>(0, limits::kErrorBuffer); };
	driver.immediate(Opcode::map_eq, TinyDriver::kCompletionEq,
			 std::uint64_t{1} << static_cast<unsigned>(EventType::eq_overflow));
	for (unsigned i = 0; i < 65; ++i)
		raise(i);
	const auto event = driver.poll(driver.completions);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::type.get(event->bytes), static_cast<std::uint32_t>(EventType::eq_overflow));
	EXPECT_EQ(Eqe::number.get(event->bytes), 4u);
	EXPECT_EQ(error(), 0u);

	driver.immediate(Opcode::map_eq, 4,
			 std::uint64_t{1} << static_cast<unsigned>(EventType::eq_overflow));
	raise();
	EXPECT_EQ(error(), __builtin_bswap32(limits::kErrorEventQueueLost))
		<< "the one to be notified is the one that is full";
}

TEST_F(EventQueueTest, EventsAreWrittenToTheEventQueueThatMapEqSelects)
{
	driver.immediate(Opcode::map_eq, TinyDriver::kCompletionEq, 1u << 2);
	raise();
	EXPECT_FALSE(driver.poll(driver.async));
	EXPECT_TRUE(driver.poll(driver.completions));
	driver.immediate(Opcode::map_eq, TinyDriver::kCompletionEq | 1u << 31, 1u << 2);
	raise();
	EXPECT_FALSE(driver.poll(driver.completions)) << "mapped to none";
}

TEST_F(EventQueueTest, UnmappedEqBufferStopsTheEventQueue)
{
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, limits::kErrorBuffer), 0u);
	driver.write_mtt(driver.async.buffer.mtt_offset, 0); // not present
	raise();
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, limits::kErrorBuffer),
		  __builtin_bswap32(limits::kErrorEventQueueLost));
	EXPECT_EQ(EqContext::status.get(query(4).bytes), hw::mlx4::eq_status::write_failure);
	EXPECT_EQ(driver.command(Opcode::hw2sw_eq, 4, 1).status, Status::ok);
	raise();
}

TEST_F(EventQueueTest, InvalidEqContextsAreRefused)
{
	EqContext context{};
	EqContext::log_size.set(context.bytes, 3);
	EqContext::mtt_offset.set(context.bytes, driver.make_buffer(4096).mtt_offset);
	const auto create = [&](std::uint32_t eqn) {
		return driver.command(Opcode::sw2hw_eq, eqn, 0, context.bytes).status;
	};
	EXPECT_EQ(create(3), Status::bad_resource) << "reserved";
	EXPECT_EQ(create(32), Status::bad_index);
	EXPECT_EQ(create(~0u), Status::bad_index);
	EXPECT_EQ(create(4), Status::bad_resource_state) << "exists";
	EqContext::log_size.set(context.bytes, 31);
	EXPECT_EQ(create(7), Status::exceeds_limit);
	EqContext::log_size.set(context.bytes, 3);
	EqContext::vector.set(context.bytes, 1000);
	EXPECT_EQ(create(7), Status::bad_parameter);
	EqContext::vector.set(context.bytes, 0);
	EqContext::log_page_size.set(context.bytes, 60);
	EXPECT_EQ(create(7), Status::bad_parameter);
	EqContext::log_page_size.set(context.bytes, 0);
	EqContext::mtt_offset.set(context.bytes, 0xfffffffff8);
	EXPECT_EQ(create(7), Status::bad_parameter) << "page list not in ICM";
}

} // namespace
} // namespace weft::mlx4::testing
