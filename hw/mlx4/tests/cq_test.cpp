// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests a completion queue without a card: the card's registers are replaced by plain memory.
#include <kern/kunit.hpp>
#include "../cq.hpp"

namespace mlx4
{

class CqBench final : private FailureListener
{
public:
	static kern::Result<kern::Owned<CqBench>> create()
	{
		auto bench = KERN_TRY(kern::make<CqBench>(kern::Gfp::kernel));
		KERN_TRY(bench->begin());
		return bench;
	}
	~CqBench()
	{
		if (hca_)
			Cq::Object::destruct(cq());
	}

	int request_notify(int flags)
	{
		return Cq::request_notify(cq(), static_cast<ib_cq_notify_flags>(flags));
	}
	u32 armed_record() const { return __builtin_bswap32(record_[1]); }
	u64 doorbell() const { return page().read_be64(wire::uar::cq_doorbell); }
	/* Clears the record and the doorbell, so that the test sees what the driver writes next. */
	void clear()
	{
		record_[1] = 0;
		page().write64(wire::uar::cq_doorbell, 0);
	}

	/* Sets a ring in which the card owns all entries. */
	void give_ring()
	{
		state().use_ring(ring_, log_entries);
		for (u32 i = 0; i < entries; i++)
			ring_[(consumer + i) & (entries - 1)].owner_opcode =
				owner(consumer + i) ^ wire::Cqe::owner_bit;
	}
	/*
	 * Simulates an entry that the card writes, @ahead entries behind the one that is polled
	 * next.
	 */
	void write_entry(u32 ahead)
	{
		const u32 index = consumer_ + ahead;
		ring_[index & (entries - 1)].owner_opcode = owner(index);
	}
	/* Drops the oldest entry without examining it. */
	void consume()
	{
		state().drop_entry();
		consumer_++;
	}
	/* Simulates the handling of the card's event. */
	void raise_event() { state().event(); }
	/* Returns false if there is an entry to poll. */
	bool polls_nothing()
	{
		ib_wc wc;
		return Cq::poll(cq(), 1, &wc) == 0;
	}

	static constexpr u32 number = 0x1234, consumer = 0x4567;

private:
	static constexpr u32 log_entries = 2, entries = 1 << log_entries;

	/* Returns the owner bit of an entry that the card has written at this index. */
	static u8 owner(u32 index) { return static_cast<u8>((index >> log_entries & 1) << 7); }
	/* The register window consists only of the kernel's page. */
	static constexpr u64 page_offset = u64{wire::uar::first_usable_page} * wire::uar::page_size;

	/*
	 * Creates the command interface, because polling an empty queue checks whether the card has
	 * failed.
	 */
	kern::Result<> begin()
	{
		if (!device_.native())
			return kern::Error{-ENOMEM};
		bar0_memory_ = KERN_TRY(
			kern::make_array<u32>(kern::Gfp::kernel, wire::bar0::size / sizeof(u32)));
		bar0_ = kern::Mmio::over_memory(bar0_memory_.data(), wire::bar0::size);
		auto commands = KERN_TRY(CommandInterface::create(bar0_, device_.native(),
								  GoBit::go_and_toggle, *this));
		hca_ = KERN_TRY(kern::make<Hca>(kern::Gfp::kernel, none_, uar_,
						static_cast<FailureListener &>(*this),
						std::move(commands)));
		cq()->comp_handler = [](ib_cq *, void *) {};
		/* There is no QP table and no ring, so reading either would fault. */
		Cq::Object::construct(cq(), *hca_, *cq());
		state().start_without_card(number, consumer, record_);
		return {};
	}
	void card_failed(const char *) override {}
	/* Aligned by hand to a cache line, as allocations of the midlayer are. */
	ib_cq *cq()
	{
		return reinterpret_cast<ib_cq *>(
			kern::align_up(reinterpret_cast<u64>(object_), u64{kern::cache_line}));
	}
	Cq &state() { return Cq::of(cq()); }
	const kern::Mmio &page() const { return page_; }

	std::byte object_[sizeof(Cq::Object) + kern::cache_line] = {};
	kern::kunit::FakeDevice device_{"weft-mlx4-cq"};
	kern::OwnedArray<u32> bar0_memory_;
	kern::Mmio bar0_;
	u32 record_[2] = {};
	wire::Cqe ring_[entries] = {};
	u64 registers_[wire::uar::page_size / 8] = {};
	const kern::Mmio none_;
	const kern::Mmio page_ = kern::Mmio::over_memory(registers_, sizeof(registers_));
	const kern::Mmio uar_ =
		kern::Mmio::over_memory(reinterpret_cast<std::byte *>(registers_) - page_offset,
					page_offset + sizeof(registers_));
	kern::Owned<Hca> hca_;
	u32 consumer_ = consumer;
};

} // namespace mlx4

using mlx4::CqBench;

namespace
{

/*
 * NOTIFY-05: arming consists of two writes, to the record and the doorbell, and reads no entries.
 * If there was no event since the queue was last empty, the card raises an event for existing
 * entries, so even with the flag the driver need not read any (NOTIFY-06).
 */
void notify_05_arming_reads_no_cq_entries(kern::kunit::Test &test)
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

/*
 * NOTIFY-06: the card raises one event for an entry. If the CQ is armed again before that entry was
 * polled, the driver reports the entry. It does not when a poll has found the queue empty.
 */
void notify_06_rearming_after_an_event_reports_an_unpolled_cqe(kern::kunit::Test &test)
{
	constexpr int or_missed = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	auto made = CqBench::create();
	ASSERT_OK(made);
	CqBench &bench = *made.value();

	bench.give_ring();
	EXPECT_EQ(bench.request_notify(or_missed), 0);
	bench.write_entry(0);
	bench.write_entry(1);
	bench.raise_event();
	EXPECT_EQ(bench.request_notify(IB_CQ_NEXT_COMP), 0);
	EXPECT_EQ(bench.request_notify(or_missed), 1);
	// Four events follow, each with a different sequence number.
	for (unsigned int i = 0; i < 4; i++) {
		bench.raise_event();
		EXPECT_EQ(bench.request_notify(or_missed), 1);
	}
	bench.consume();
	EXPECT_EQ(bench.request_notify(or_missed), 1);
	bench.consume();
	EXPECT_EQ(bench.request_notify(or_missed), 0);
	EXPECT_TRUE(bench.polls_nothing());
	// For this entry the arming itself raises the event.
	bench.write_entry(0);
	EXPECT_EQ(bench.request_notify(or_missed), 0);
}

/*
 * NOTIFY-01: flags that select no event, or both, are rejected, and nothing is written to the card.
 */
void notify_01_invalid_flags_do_not_arm_the_cq(kern::kunit::Test &test)
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

KUNIT_SUITE(mlx4_cq, KUNIT_CASE(notify_05_arming_reads_no_cq_entries),
	    KUNIT_CASE(notify_06_rearming_after_an_event_reports_an_unpolled_cqe),
	    KUNIT_CASE(notify_01_invalid_flags_do_not_arm_the_cq));
