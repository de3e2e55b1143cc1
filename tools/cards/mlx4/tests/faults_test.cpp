// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that each injected fault is visible to a driver, occurs as often as requested, and depends
// only on the seed.
#include <algorithm>

#include <gtest/gtest.h>

#include "cards/mlx4/tests/tiny_driver.hpp"

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::Cqe;
using hw::mlx4::Eqe;
using hw::mlx4::QueryDevCap;

class FaultsTest : public ::testing::Test
{
public:
	FaultsTest()
	{
		driver.bring_up_events();
		cq = driver.create_cq(TinyDriver::kFirstCq, 4);
	}
	Cqe complete()
	{
		Cqe entry{};
		entry.qpn_word = 0x41;
		entry.wqe_index = 7;
		entry.owner_opcode = 1;
		EXPECT_TRUE(driver.context().completion_queue(cq.number)->post(entry, false));
		return driver.host.object<Cqe>(cq.buffer.bus + 32ull * index_++);
	}
	std::optional<Eqe> event()
	{
		driver.context().events.raise(EventType::communication_established, 0x41);
		return driver.poll(driver.async);
	}
	void arm(Fault fault, std::uint32_t count = 1) { driver.card.faults().arm(fault, count); }

	TinyDriver driver;
	TinyDriver::Cq cq;

private:
	std::uint64_t index_ = 0;
};

TEST_F(FaultsTest, EachInjectedCqeFaultCorruptsOnlyTheCqeFieldNamedByTheFault)
{
	arm(Fault::cqe_number);
	Cqe entry = complete();
	EXPECT_NE(entry.qpn(), 0x41u);
	EXPECT_EQ(entry.wqe_index.value(), 7);
	arm(Fault::cqe_index);
	entry = complete();
	EXPECT_EQ(entry.qpn(), 0x41u);
	EXPECT_NE(entry.wqe_index.value(), 7);
	arm(Fault::cqe_opcode);
	EXPECT_EQ(complete().opcode(), 0x1d);
	arm(Fault::cqe_owner);
	EXPECT_TRUE(complete().owner()) << "the first lap's entries have a clear owner bit";
	// The fault does not occur again.
	entry = complete();
	EXPECT_EQ(entry.qpn(), 0x41u);
	EXPECT_EQ(entry.wqe_index.value(), 7);
	EXPECT_EQ(entry.opcode(), 1);
	EXPECT_FALSE(entry.owner());
}

TEST_F(FaultsTest, EachInjectedEqeFaultCorruptsTheEqeFieldNamedByTheFault)
{
	arm(Fault::eqe_number);
	auto entry = event();
	ASSERT_TRUE(entry);
	EXPECT_NE(Eqe::number.get(entry->bytes), 0x41u);
	arm(Fault::eqe_type);
	entry = event();
	ASSERT_TRUE(entry);
	EXPECT_EQ(Eqe::type.get(entry->bytes), 0xeeu);
	arm(Fault::eqe_owner);
	EXPECT_FALSE(event()) << "an event that looks like none";
}

TEST_F(FaultsTest, InjectedCommandFaultsReturnAWrongStatusOrRaiseTheCompletionEventTwice)
{
	arm(Fault::command_status);
	EXPECT_EQ(static_cast<unsigned>(driver.command(Opcode::nop).status), 0xbdu);
	EXPECT_EQ(driver.command(Opcode::nop).status, Status::ok);

	arm(Fault::command_twice);
	driver.raw(Opcode::nop, 0, 0, 0, 0, true, 9);
	for (int time = 0; time < 2; time++) {
		const auto entry = driver.poll(driver.async);
		ASSERT_TRUE(entry) << time;
		EXPECT_EQ(Eqe::command_token.get(entry->bytes), 9u);
	}
	EXPECT_FALSE(driver.poll(driver.async));
	EXPECT_EQ(driver.card.faults().struck(Fault::command_status), 1u);
	EXPECT_EQ(driver.card.faults().struck(Fault::command_twice), 1u);
}

TEST_F(FaultsTest, NthCommandFaultFailsOnlyTheNthCommand)
{
	arm(Fault::command_nth, 3);
	for (const bool fails : {false, false, true, false, false})
		EXPECT_EQ(driver.command(Opcode::nop).status == Status::ok, !fails);
	// A new fault replaces the old one and its count.
	arm(Fault::command_nth, 2);
	arm(Fault::command_nth, 1);
	EXPECT_NE(driver.command(Opcode::nop).status, Status::ok);
	arm(Fault::command_nth, 1);
	arm(Fault::command_nth, 0);
	EXPECT_EQ(driver.command(Opcode::nop).status, Status::ok);
	EXPECT_EQ(driver.card.faults().struck(Fault::command_nth), 2u);
}

TEST_F(FaultsTest, CapabilityFaultMakesTheCardReportInconsistentCapabilities)
{
	const auto sound = driver.command(Opcode::query_dev_cap, 0, 0, {}, QueryDevCap::size);
	arm(Fault::capabilities);
	const auto lie = driver.command(Opcode::query_dev_cap, 0, 0, {}, QueryDevCap::size);
	EXPECT_EQ(lie.status, Status::ok);
	EXPECT_NE(lie.out, sound.out);
	EXPECT_EQ(driver.command(Opcode::query_dev_cap, 0, 0, {}, QueryDevCap::size).out,
		  sound.out);
}

TEST_F(FaultsTest, SpuriousInterruptIsRaisedWithoutAnEqe)
{
	driver.host.take_interrupts(1);
	driver.card.interrupt_idly();
	EXPECT_EQ(driver.host.take_interrupts(1), 1u);
	EXPECT_FALSE(driver.poll(driver.async));
	EXPECT_FALSE(driver.poll(driver.completions));
}

TEST_F(FaultsTest, SameSeedGivesTheSameFaults)
{
	auto draws = [](std::uint64_t seed) {
		Faults faults;
		faults.randomise(seed, 3);
		std::vector<bool> result;
		for (int i = 0; i < 200; i++)
			result.push_back(faults.strikes(Fault::cqe_number));
		return result;
	};
	EXPECT_EQ(draws(5), draws(5));
	EXPECT_NE(draws(5), draws(6));
	const auto some = draws(5);
	EXPECT_GT(std::ranges::count(some, true), 30);
	EXPECT_LT(std::ranges::count(some, true), 110);

	Faults ended;
	ended.randomise(5, 3);
	ended.randomise(5, 0);
	for (int i = 0; i < 200; i++)
		EXPECT_FALSE(ended.strikes(Fault::cqe_number));
}

} // namespace
} // namespace weft::mlx4::testing
