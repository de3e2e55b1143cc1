// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the driver, when it flushes a QP's requests, waits until the card has finished.
#include <kern/thread.hpp>
#include <hw/mlx4/contexts.hpp>
#include "../../mellanox_icm/qp_attributes.hpp"
#include "../../mellanox_icm/tests/card_of_memory.hpp"

using mellanox_icm::test::CardOfMemory;

namespace
{

/* A card, and the parts of its driver that are needed to destroy a QP. */
struct Flushed final : mellanox_icm::FailureListener {
	CardOfMemory card;
	mellanox_icm::SendQueue sq{KERN_LOCK_CLASS("mlx4_test.sq")};
	mellanox_icm::ReceiveQueue rq{KERN_LOCK_CLASS("mlx4_test.rq")};

	bool begin() { return card.begin(mellanox_icm::GoBit::go, *this, 0); }
	void card_failed(const char *) override {}
	mellanox_icm::CommandInterface &commands() { return *card.commands; }
	bool failed() { return card.commands->failed(); }
	struct device *dma_device() { return card.device.native(); }
	int run()
	{
		mellanox_icm::flush_requests<hw::mlx4::QpContext>(*this, 7, true, sq, rq);
		return 0;
	}
	void set_posted(u32 count)
	{
		kern::Guard guard(sq.lock);
		kern::write_once(sq.head, count);
	}
};

/*
 * The driver queries the card until its counters show that nothing is outstanding. It does not wait
 * for a card that stops responding.
 */
void qp_flush_waits_until_the_card_is_idle_or_has_failed(kern::kunit::Test &test)
{
	Flushed flushed;
	ASSERT_TRUE(flushed.begin());
	for (const bool falls_silent : {false, true}) {
		flushed.set_posted(1);
		auto flushing = kern::Thread::create("weft-flushing", kern::method<&Flushed::run>,
						     &flushed);
		ASSERT_OK(flushing);
		/* The card's counters are still zero. */
		for (unsigned int i = 0; i < 3; i++)
			flushed.card.answer(flushed.card.take());
		flushed.card.await();
		if (falls_silent) {
			flushed.card.vanish();
		} else {
			flushed.set_posted(0);
			flushed.card.answer(flushed.card.take());
		}
		EXPECT_EQ(flushing.value().stop(), 0);
		EXPECT_EQ(flushed.failed(), falls_silent);
	}
}

} // namespace

KUNIT_SUITE(mlx4_flush, KUNIT_CASE(qp_flush_waits_until_the_card_is_idle_or_has_failed));
