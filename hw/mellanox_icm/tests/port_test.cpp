// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that only one task at a time reads a port's tables from the card: a second read waits until
// the first is complete, so that an older result never replaces a newer one.
#include <kern/thread.hpp>
#include "../port.hpp"
#include "card_of_memory.hpp"

using mellanox_icm::test::CardOfMemory;

namespace
{

/* A card with a port, whose agent returns only zeros. */
struct Ported final : mellanox_icm::FailureListener, mellanox_icm::PortControl {
	/* PortInfo, a block of GUIDs, one of P_Keys, and SL to VL. */
	static constexpr unsigned int questions = 4;

	CardOfMemory card;
	kern::Owned<mellanox_icm::Port> port;

	bool begin()
	{
		if (!card.begin(mellanox_icm::GoBit::go, *this, 0))
			return false;
		auto making =
			kern::Thread::create("weft-making", kern::method<&Ported::make>, this);
		if (!making.ok())
			return false;
		for (unsigned int i = 0; i < questions; i++)
			card.answer(card.take());
		return making.value().stop() == 0;
	}
	void card_failed(const char *) override {}
	kern::Result<> open(u32) override { return {}; }
	kern::Result<> close(u32) override { return {}; }
	kern::Result<> set_capabilities(u32, u32, bool) override { return {}; }
	int make()
	{
		auto made = mellanox_icm::Port::create(
			*card.commands, *this, 1,
			{.max_mtu = 5, .gids = 8, .pkeys = 32, .max_vls = 1}, 30);
		if (!made)
			return made.error();
		port = made.take();
		return 0;
	}
	int read() { return port->read_tables().error(); }
};

/* A later read of the tables must not be overwritten by an earlier read with older contents. */
void second_read_of_the_port_tables_waits_until_the_first_read_is_complete(kern::kunit::Test &test)
{
	auto made = kern::make<Ported>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Ported &ported = *made.value();
	CardOfMemory &card = ported.card;
	ASSERT_TRUE(ported.begin());
	auto first = kern::Thread::create("weft-first", kern::method<&Ported::read>, &ported);
	ASSERT_OK(first);
	u16 token = card.take();
	auto second = kern::Thread::create("weft-second", kern::method<&Ported::read>, &ported);
	ASSERT_OK(second);
	for (unsigned int question = 1;; question++) {
		/* This is long enough to send the command if nothing waited. */
		kern::sleep_ms(50);
		EXPECT_FALSE(card.is_asked());
		card.answer(token);
		if (question == Ported::questions)
			break;
		token = card.take();
	}
	EXPECT_EQ(first.value().stop(), 0);
	for (unsigned int question = 0; question < Ported::questions; question++)
		card.answer(card.take());
	EXPECT_EQ(second.value().stop(), 0);
}

} // namespace

KUNIT_SUITE(mellanox_port,
	    KUNIT_CASE(second_read_of_the_port_tables_waits_until_the_first_read_is_complete));
