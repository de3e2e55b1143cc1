// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A completion queue that no card has, its registers plain memory.
#include <kern/kunit.hpp>
#include "../cq.hpp"

namespace connectx
{

class CqBench final : private FailureListener
{
public:
	static kern::Result<kern::Owned<CqBench>> create()
	{
		return kern::make<CqBench>(kern::Gfp::kernel);
	}
	CqBench()
	{
		Cq::Object::construct(cq(), hca_, *cq());
		state().arm_word_ = __builtin_bswap32(number) | Cq::arm_sequence_step;
		state().consumer_ = consumer;
		state().record_ = record_;
		state().report_consumer(consumer);
		/*
		 * No table and no ring: whoever looks into them reads where nothing is, and that is
		 * the end of the kernel.
		 */
		state().entries_ = nullptr;
		state().qps_ = nullptr;
	}
	~CqBench() { Cq::Object::destruct(cq()); }

	int request_notify(int flags)
	{
		return Cq::request_notify(cq(), static_cast<ib_cq_notify_flags>(flags));
	}
	u32 armed_record() const { return __builtin_bswap32(record_[1]); }
	u64 doorbell() const { return page().read_be64(wire::uar::cq_doorbell); }
	/* Nothing has been asked of the card. */
	void clear()
	{
		record_[1] = 0;
		page().write64(wire::uar::cq_doorbell, 0);
	}

	static constexpr u32 number = 0x1234, consumer = 0x4567;

private:
	/* The kernel's page is the only one there is of the window. */
	static constexpr u64 page_offset = u64{wire::uar::first_usable_page} * wire::uar::page_size;

	void card_failed(const char *) override {}
	/* The midlayer allocates to a cache line; this is not. */
	ib_cq *cq()
	{
		return reinterpret_cast<ib_cq *>(
			kern::align_up(reinterpret_cast<u64>(object_), u64{kern::cache_line}));
	}
	Cq &state() { return Cq::of(cq()); }
	const kern::Mmio &page() const { return page_; }

	std::byte object_[sizeof(Cq::Object) + kern::cache_line] = {};
	u32 record_[2] = {};
	u64 registers_[wire::uar::page_size / 8] = {};
	const kern::Mmio none_;
	const kern::Mmio page_ = kern::Mmio::over_memory(registers_, sizeof(registers_));
	const kern::Mmio uar_ =
		kern::Mmio::over_memory(reinterpret_cast<std::byte *>(registers_) - page_offset,
					page_offset + sizeof(registers_));
	Hca hca_{kern::pci::Device(nullptr), none_, uar_, *this};
};

} // namespace connectx

using connectx::CqBench;

namespace
{

/*
 * NOTIFY-05: arming is two stores, of the record and of the doorbell, and looks at no completion.
 * The card raises an event for what is already there, so that it does not with the flag either
 * (NOTIFY-06).
 */
void notify_05_arming_looks_at_nothing(kern::kunit::Test &test)
{
	auto made = CqBench::create();
	ASSERT_OK(made);
	CqBench &bench = *made.value();

	for (const int kind : {IB_CQ_SOLICITED, IB_CQ_NEXT_COMP}) {
		u64 doorbell[2];
		u32 record[2];
		for (const int asked : {0, 1}) {
			bench.clear();
			EXPECT_EQ(bench.request_notify(kind |
						       (asked ? IB_CQ_REPORT_MISSED_EVENTS : 0)),
				  0);
			doorbell[asked] = bench.doorbell();
			record[asked] = bench.armed_record();
		}
		EXPECT_EQ(doorbell[0], doorbell[1]);
		EXPECT_EQ(record[0], record[1]);
		EXPECT_EQ(doorbell[0] & 0xffffffff, u64{CqBench::consumer});
		EXPECT_EQ(doorbell[0] >> 32 & 0xffffff, u64{CqBench::number});
		EXPECT_EQ(record[0] & 0xffffff, CqBench::consumer);
		EXPECT_NE(record[0] >> 24, 0u);
	}
}

/* NOTIFY-01: what names no event, or two, is refused, and the card hears nothing of it. */
void notify_01_bad_flags_arm_nothing(kern::kunit::Test &test)
{
	auto made = CqBench::create();
	ASSERT_OK(made);
	CqBench &bench = *made.value();

	for (const int flags : {0, static_cast<int>(IB_CQ_SOLICITED_MASK),
				static_cast<int>(IB_CQ_REPORT_MISSED_EVENTS), 16}) {
		EXPECT_EQ(bench.request_notify(flags), -EINVAL);
		EXPECT_EQ(bench.doorbell(), u64{0});
		EXPECT_EQ(bench.armed_record(), 0u);
	}
}

} // namespace

KUNIT_SUITE(connectx_cq, KUNIT_CASE(notify_05_arming_looks_at_nothing),
	    KUNIT_CASE(notify_01_bad_flags_arm_nothing));
