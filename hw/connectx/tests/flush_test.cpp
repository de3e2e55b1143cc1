// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/thread.hpp>
#include <hw/connectx/contexts.hpp>
#include "../../mellanox/qp_attributes.hpp"
#include "../../mellanox/tests/card_of_memory.hpp"

using mellanox::test::CardOfMemory;

namespace
{

/* A card, and of its driver as much as a QP's end asks for. */
struct Flushed final : mellanox::FailureListener {
	CardOfMemory card;
	mellanox::SendQueue sq{KERN_LOCK_CLASS("connectx_test.sq")};
	mellanox::ReceiveQueue rq{KERN_LOCK_CLASS("connectx_test.rq")};

	bool begin() { return card.begin(mellanox::HandOver::go, *this, 0); }
	void card_failed(const char *) override {}
	mellanox::CommandInterface &commands() { return *card.commands; }
	bool failed() { return card.commands->failed(); }
	struct device *dma_device() { return card.device.native(); }
	int run()
	{
		mellanox::flush_requests<hw::connectx::QpContext>(*this, 7, true, sq, rq);
		return 0;
	}
};

/*
 * It is asked until its counters say that nothing is left; and one that answers no more is not
 * waited for.
 */
void a_card_may_fall_silent_while_it_flushes(kern::kunit::Test &test)
{
	Flushed flushed;
	ASSERT_TRUE(flushed.begin());
	for (const bool falls_silent : {false, true}) {
		flushed.sq.head = 1;
		auto flushing = kern::Thread::create("weft-flushing", kern::method<&Flushed::run>,
						     &flushed);
		ASSERT_OK(flushing);
		/* Its counters are nought still. */
		for (unsigned int i = 0; i < 3; i++)
			flushed.card.answer(flushed.card.take());
		flushed.card.await();
		if (falls_silent) {
			flushed.card.vanish();
		} else {
			flushed.sq.head = 0;
			flushed.card.answer(flushed.card.take());
		}
		EXPECT_EQ(flushing.value().stop(), 0);
		EXPECT_EQ(flushed.failed(), falls_silent);
	}
}

} // namespace

KUNIT_SUITE(connectx_flush, KUNIT_CASE(a_card_may_fall_silent_while_it_flushes));
