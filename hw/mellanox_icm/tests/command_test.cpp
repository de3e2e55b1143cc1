// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the command interface with a card that fails or is slow.
#include <kern/thread.hpp>
#include "card_of_memory.hpp"

using mellanox_icm::test::CardOfMemory;
namespace wire = hw::mellanox_icm;

namespace
{

/*
 * A card that has left the bus, and a failure listener whose first call blocks until the test
 * releases it.
 */
struct Gone final : CardOfMemory, mellanox_icm::FailureListener {
	kern::Completion notified, may_return;
	kern::Atomic<unsigned int> calls{0}, too_late{0};

	bool begin() { return CardOfMemory::begin(mellanox_icm::GoBit::go_and_toggle, *this, ~0u); }
	void card_failed(const char *) override
	{
		if (commands->failed())
			too_late.fetch_add(1);
		if (calls.fetch_add(1) == 0) {
			notified.complete();
			may_return.wait();
		}
	}
	int run() { return commands->execute({.opcode = wire::Opcode::query_port}).error(); }
};

/*
 * A caller whose command ends the card's use of memory frees the memory if the card has failed. So
 * no caller, neither the first nor the second to detect the failure, may get the error before the
 * card has lost its access to memory.
 */
void command_to_a_failed_card_returns_eio_only_after_the_dma_of_the_card_is_disabled(
	kern::kunit::Test &test)
{
	Gone card;
	ASSERT_TRUE(card.begin());
	auto first = kern::Thread::create("weft-first", kern::method<&Gone::run>, &card);
	ASSERT_OK(first);
	card.notified.wait();
	EXPECT_FALSE(card.commands->failed());
	EXPECT_EQ(card.run(), -EIO);
	EXPECT_EQ(card.calls.load_acquire(), 2u);
	card.may_return.complete();
	EXPECT_EQ(first.value().stop(), -EIO);
	EXPECT_EQ(card.too_late.load_acquire(), 0u);
	EXPECT_TRUE(card.commands->failed());
	EXPECT_EQ(card.run(), -EIO);
	EXPECT_EQ(card.calls.load_acquire(), 2u);
}

/* A card whose registers are memory: the test executes its commands. */
struct Slow final : CardOfMemory, mellanox_icm::FailureListener {
	bool begin() { return CardOfMemory::begin(mellanox_icm::GoBit::go, *this, 0); }
	void card_failed(const char *) override {}
	int run()
	{
		const auto done = commands->execute({.opcode = wire::Opcode::sw2hw_mpt,
						     .answer = mellanox_icm::Answer::at_once});
		return done ? static_cast<int>(done.value()) : done.error();
	}
};

/*
 * A command whose completion is polled requests no event and waits for none, although other
 * commands do.
 */
void polled_command_reads_its_result_from_the_hcr(kern::kunit::Test &test)
{
	Slow card;
	ASSERT_TRUE(card.begin());
	auto asking = kern::Thread::create("weft-asking", kern::method<&Slow::run>, &card);
	ASSERT_OK(asking);
	card.await();
	EXPECT_EQ(wire::hcr::event.of(card.control()), 0u);
	card.bar0.write_be32(wire::hcr::at + wire::hcr::out_param + 4, 77);
	card.set_control(0);
	EXPECT_EQ(asking.value().stop(), 77);
}

} // namespace

KUNIT_SUITE(
	mellanox_command,
	KUNIT_CASE(command_to_a_failed_card_returns_eio_only_after_the_dma_of_the_card_is_disabled),
	KUNIT_CASE(polled_command_reads_its_result_from_the_hcr));
