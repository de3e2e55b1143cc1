// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests completion queues: when an armed queue raises an event, event moderation, resizing, and
// overrun.
#include <gtest/gtest.h>

#include "cards/mlx4/limits.hpp"
#include "cards/mlx4/tests/tiny_driver.hpp"

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::CqContext;
using hw::mlx4::Cqe;
using hw::mlx4::Eqe;
namespace uar = hw::mlx4::uar;

class CompletionQueueTest : public ::testing::Test
{
public:
	CompletionQueueTest()
	{
		driver.bring_up_events();
		cq = driver.create_cq(TinyDriver::kFirstCq, 4);
	}
	CompletionQueue &queue() { return *driver.context().completion_queue(cq.number); }
	bool post(std::uint32_t tag = 0, bool solicited = false, std::uint8_t opcode = 1)
	{
		Cqe entry{};
		entry.qpn_word = tag;
		entry.owner_opcode = opcode;
		return queue().post(entry, solicited);
	}
	Cqe slot(std::uint32_t index)
	{
		return driver.host.object<Cqe>(cq.buffer.bus + 32ull * index);
	}
	// Returns the number of completion events since the last call.
	unsigned events()
	{
		unsigned count = 0;
		while (const auto event = driver.poll(driver.completions)) {
			EXPECT_EQ(Eqe::type.get(event->bytes), 0u);
			EXPECT_EQ(Eqe::number.get(event->bytes), cq.number);
			++count;
		}
		return count;
	}

	TinyDriver driver;
	TinyDriver::Cq cq;
};

TEST_F(CompletionQueueTest, OwnerBitTogglesEachTimeTheQueueWraps)
{
	for (std::uint32_t i = 0; i < 50; ++i) {
		ASSERT_TRUE(post(i));
		const Cqe entry = slot(i % 16);
		EXPECT_EQ(entry.qpn(), i);
		EXPECT_EQ(entry.owner(), (i / 16) % 2 == 1) << i;
		driver.set_consumer(cq, i + 1);
	}
}

TEST_F(CompletionQueueTest, UnarmedQueueRaisesNoEvent)
{
	post();
	post(0, true);
	EXPECT_EQ(events(), 0u);
}

TEST_F(CompletionQueueTest, ArmNextRaisesOneEventForTheNextCqe)
{
	driver.arm(cq, uar::cq_arm_next, 0);
	EXPECT_EQ(events(), 0u);
	post();
	EXPECT_EQ(events(), 1u);
	EXPECT_EQ(driver.host.take_interrupts(1), 1u);
	post();
	EXPECT_EQ(events(), 0u);
}

TEST_F(CompletionQueueTest, ArmNextFiresImmediatelyIfACqeIsUnpolled)
{
	post();
	driver.arm(cq, uar::cq_arm_next, 0);
	EXPECT_EQ(events(), 1u);
	driver.arm(cq, uar::cq_arm_next, 1);
	EXPECT_EQ(events(), 0u) << "all polled";
}

TEST_F(CompletionQueueTest, RearmingTheCqBeforePollingRaisesNoSecondEventForTheSameCqe)
{
	driver.arm(cq, uar::cq_arm_next, 0);
	post(0, true);
	EXPECT_EQ(events(), 1u);
	driver.arm(cq, uar::cq_arm_next,
		   0); // the order of calls in libibverbs programs: get the event, arm, poll
	EXPECT_EQ(events(), 0u);
	post();
	EXPECT_EQ(events(), 1u) << "the arm holds";
	post();
	driver.arm(cq, uar::cq_arm_next, 0);
	EXPECT_EQ(events(), 1u) << "the third came unarmed";
	driver.arm(cq, uar::cq_arm_solicited, 0);
	EXPECT_EQ(events(), 0u) << "the solicited one was told of";
	post(0, true);
	EXPECT_EQ(events(), 1u);
}

TEST_F(CompletionQueueTest, SolicitedArmFiresForSolicitedOrErrorCqes)
{
	driver.arm(cq, uar::cq_arm_solicited, 0);
	post();
	EXPECT_EQ(events(), 0u);
	post(0, true);
	EXPECT_EQ(events(), 1u);
	driver.arm(cq, uar::cq_arm_solicited, 2);
	post(0, false, hw::mlx4::cqe_opcode_error);
	EXPECT_EQ(events(), 1u);
}

TEST_F(CompletionQueueTest, SolicitedArmFiresImmediatelyForAnUnpolledSolicitedCqe)
{
	post(0, true);
	post();
	driver.arm(cq, uar::cq_arm_solicited, 1);
	EXPECT_EQ(events(), 0u) << "the solicited one is polled";
	post();
	EXPECT_EQ(events(), 0u);
	driver.arm(cq, uar::cq_arm_solicited, 0);
	EXPECT_EQ(events(), 1u);
}

TEST_F(CompletionQueueTest, SolicitedArmDoesNotOverrideArmNext)
{
	driver.arm(cq, uar::cq_arm_next, 0);
	driver.arm(cq, uar::cq_arm_solicited, 0);
	post();
	EXPECT_EQ(events(), 1u);
	driver.arm(cq, uar::cq_arm_solicited, 1);
	driver.arm(cq, uar::cq_arm_next, 1);
	post();
	EXPECT_EQ(events(), 1u) << "next widens solicited";
}

TEST_F(CompletionQueueTest, DoorbellMayBeWrittenAsTwoDwords)
{
	const std::uint64_t page = uar::page_size * TinyDriver::kUarPage;
	driver.host.write<std::uint32_t>(2, page + 0x20,
					 __builtin_bswap32(uar::cq_arm_next << 24 | cq.number));
	post();
	EXPECT_EQ(events(), 0u) << "half a doorbell";
	driver.host.write<std::uint32_t>(2, page + 0x24, 0);
	EXPECT_EQ(events(), 1u);
}

TEST_F(CompletionQueueTest, CqDoorbellOnAUarPageOtherThanThatOfTheCqIsDropped)
{
	post();
	driver.host.write<std::uint64_t>(
		2, uar::page_size * (TinyDriver::kUarPage + 1) + uar::cq_doorbell,
		__builtin_bswap64(std::uint64_t{uar::cq_arm_next << 24 | cq.number} << 32));
	EXPECT_EQ(events(), 0u);
	EXPECT_EQ(driver.context().diagnostics.bad_doorbells, 1u);
}

TEST_F(CompletionQueueTest, CqOverrunFailsTheCqAndRaisesOneCqErrorEvent)
{
	for (unsigned i = 0; i < 16; ++i)
		ASSERT_TRUE(post(i));
	EXPECT_FALSE(post(16));
	EXPECT_FALSE(post(17));
	const auto event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::type.get(event->bytes), 0x04u);
	EXPECT_EQ(Eqe::number.get(event->bytes), cq.number);
	EXPECT_EQ(Eqe::syndrome.get(event->bytes), hw::mlx4::cq_error_syndrome::overrun);
	EXPECT_FALSE(driver.poll(driver.async));
	EXPECT_EQ(slot(0).qpn(), 0u) << "nothing overwritten";
	EXPECT_TRUE(queue().failed());
}

TEST_F(CompletionQueueTest, CardRereadsTheDoorbellRecordIfTheCqIsFull)
{
	for (unsigned i = 0; i < 16; ++i)
		ASSERT_TRUE(post(i));
	driver.set_consumer(cq, 1);
	EXPECT_TRUE(post(16));
	EXPECT_FALSE(post(17));
}

TEST_F(CompletionQueueTest, UnmappedCqBufferIsReportedAsAnAccessViolation)
{
	driver.write_mtt(cq.buffer.mtt_offset, 0xffffffffff000 | hw::mlx4::MttEntry::present);
	EXPECT_FALSE(post());
	const auto event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::syndrome.get(event->bytes), hw::mlx4::cq_error_syndrome::access_violation);
}

TEST_F(CompletionQueueTest, ModerationDelaysTheEventUntilTheCountIsReached)
{
	CqContext context{};
	CqContext::moderation_count.set(context.bytes, 3);
	CqContext::moderation_period.set(context.bytes, 60000);
	ASSERT_EQ(driver.command(Opcode::modify_cq, cq.number, 1, context.bytes).status,
		  Status::ok);
	driver.arm(cq, uar::cq_arm_next, 0);
	post();
	post();
	EXPECT_EQ(events(), 0u);
	post();
	EXPECT_EQ(events(), 1u);
}

TEST_F(CompletionQueueTest, EventIsRaisedWhenTheModerationPeriodEnds)
{
	CqContext context{};
	CqContext::moderation_count.set(context.bytes, 1000);
	CqContext::moderation_period.set(context.bytes, 500);
	driver.command(Opcode::modify_cq, cq.number, 1, context.bytes);
	driver.arm(cq, uar::cq_arm_next, 0);
	post();
	EXPECT_EQ(events(), 0u);
	unsigned seen = 0;
	EXPECT_TRUE(driver.host.loop().run_until([&] { return (seen += events()) == 1; }));
}

TEST_F(CompletionQueueTest, CqesAfterTheResizeCqeAreWrittenToTheNewBuffer)
{
	// 5 entries are in the first lap of the old queue, and 20 in the second. Both numbers fit
	// both sizes.
	for (const std::uint32_t posted : {5u, 20u}) {
		for (std::uint32_t i = 0; i < posted; ++i) {
			ASSERT_TRUE(post(i));
			driver.set_consumer(cq, cq.consumer + 1);
		}
	}
	const std::uint32_t at = 25; // index of the resize entry; one is left unpolled
	driver.set_consumer(cq, 24);
	TinyDriver::Cq bigger = driver.make_cq(cq.number, 5);
	ASSERT_EQ(driver.command(Opcode::modify_cq, cq.number, 0, driver.cq_context(bigger).bytes)
			  .status,
		  Status::ok);
	EXPECT_EQ(slot(at % 16).opcode(), hw::mlx4::cqe_opcode_resize);
	EXPECT_EQ(slot(at % 16).owner(), (at / 16) % 2 == 1);
	const auto fresh = [&](std::uint32_t index) {
		return driver.host.object<Cqe>(bigger.buffer.bus + 32ull * (index % 32));
	};
	for (std::uint32_t index = at + 1; index <= at + 32; ++index)
		EXPECT_NE(fresh(index).owner(), (index / 32) % 2 == 1)
			<< "not the card's: " << index;
	ASSERT_TRUE(post(777));
	EXPECT_EQ(fresh(at + 1).qpn(), 777u);
	EXPECT_EQ(fresh(at + 1).owner(), ((at + 1) / 32) % 2 == 1);
}

// The command that creates the CQ initialises only the first half of its entries. Each entry that
// is written initialises another one, so that the next entry always belongs to the card when the
// driver reads it.
TEST_F(CompletionQueueTest, CqeAfterTheLastWrittenOneIsHardwareOwnedEvenInAHalfInitialisedLargeCq)
{
	constexpr unsigned log_size = limits::kLogMarkedEntries + 1, log_page = 23;
	constexpr std::uint32_t size = 1u << log_size;
	static_assert(32ull * size == 1ull << log_page);
	const auto large = driver.make_buffer(4096);
	const std::uint64_t bus = driver.allocate(1ull << log_page, 1ull << log_page);
	driver.write_mtt(large.mtt_offset, bus | hw::mlx4::MttEntry::present);
	CqContext context = driver.cq_context(cq);
	CqContext::log_size.set(context.bytes, log_size);
	CqContext::log_page_size.set(context.bytes, log_page - 12);
	CqContext::mtt_offset.set(context.bytes, large.mtt_offset);
	ASSERT_EQ(driver.command(Opcode::hw2sw_cq, cq.number, 1).status, Status::ok);
	ASSERT_EQ(driver.command(Opcode::sw2hw_cq, cq.number, 0, context.bytes).status, Status::ok);
	const auto is_cards = [&](std::uint32_t index) {
		const auto entry = driver.host.object<Cqe>(bus + 32ull * (index % size));
		return entry.owner() != ((index / size) % 2 == 1);
	};
	EXPECT_TRUE(is_cards(size / 2 - 1));
	EXPECT_FALSE(is_cards(size / 2)) << "not looked at yet";
	for (std::uint32_t index = 0; index < size + 2; ++index) {
		ASSERT_TRUE(post(index));
		ASSERT_FALSE(is_cards(index)) << index;
		ASSERT_TRUE(is_cards(index + 1)) << index;
		driver.set_consumer(cq, index + 1);
	}
}

TEST_F(CompletionQueueTest, ResizeToAnInvalidSizeOrBufferIsRefused)
{
	for (std::uint32_t i = 0; i < 10; ++i)
		post(i);
	TinyDriver::Cq smaller = driver.make_cq(cq.number, 3);
	EXPECT_EQ(driver.command(Opcode::modify_cq, cq.number, 0, driver.cq_context(smaller).bytes)
			  .status,
		  Status::bad_size);
	TinyDriver::Cq lost = driver.make_cq(cq.number, 5);
	lost.buffer.mtt_offset = 0xfffffff000;
	EXPECT_EQ(driver.command(Opcode::modify_cq, cq.number, 0, driver.cq_context(lost).bytes)
			  .status,
		  Status::bad_parameter);
	EXPECT_TRUE(post(10));
	EXPECT_EQ(slot(10).qpn(), 10u) << "still in the old buffer";
}

TEST_F(CompletionQueueTest, InvalidCqContextsAreRefused)
{
	const auto create = [&](std::uint32_t cqn, auto &&change) {
		CqContext context = driver.cq_context(driver.make_cq(cqn, 4));
		change(context.bytes);
		return driver.command(Opcode::sw2hw_cq, cqn, 0, context.bytes).status;
	};
	const auto none = [](std::uint8_t *) {};
	EXPECT_EQ(create(127, none), Status::bad_resource) << "reserved";
	EXPECT_EQ(create(512, none), Status::bad_index);
	EXPECT_EQ(create(cq.number, none), Status::bad_resource_state);
	EXPECT_EQ(create(130, [](std::uint8_t *c) { CqContext::eqn.set(c, 20); }),
		  Status::bad_resource)
		<< "no such event queue";
	EXPECT_EQ(create(130, [](std::uint8_t *c) { CqContext::log_size.set(c, 31); }),
		  Status::exceeds_limit);
	EXPECT_EQ(create(130, [](std::uint8_t *c) { CqContext::uar_page.set(c, 2048); }),
		  Status::bad_parameter);
	driver.immediate(Opcode::unmap_icm, 64, TinyDriver::kCqcBase);
	EXPECT_EQ(create(130, none), Status::icm_error);
}

TEST_F(CompletionQueueTest, Hw2swCqReturnsTheProducerIndex)
{
	post();
	post();
	const auto result = driver.command(Opcode::hw2sw_cq, cq.number, 0, {}, CqContext::size);
	ASSERT_EQ(result.status, Status::ok);
	EXPECT_EQ(CqContext::producer_index.get(result.out.data()), 2u);
	EXPECT_EQ(driver.context().completion_queue(cq.number), nullptr);
}

} // namespace
} // namespace weft::mlx4::testing
