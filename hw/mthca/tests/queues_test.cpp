// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests queues without a card: plain memory replaces its registers, rings and doorbell records.
#include <kern/bits.hpp>
#include <kern/kunit.hpp>
#include "../ah.hpp"
#include "../cq.hpp"
#include "../group_format.hpp"
#include "../mr.hpp"
#include "../qp.hpp"
#include "../qp_geometry.hpp"
#include "../user_context.hpp"
#include "sample_card.hpp"

namespace mthca
{

class Bench final : private FailureListener
{
public:
	static constexpr u32 qpn = 0x10, cqn = 0x21, pdn = 0x31, log_stride = 7, log_entries = 4;
	static constexpr u32 sq_base = 0x7f000000;

	static kern::Result<kern::Owned<Bench>> create(u32 log_sends,
						       QpKind kind = QpKind::connected)
	{
		auto bench = KERN_TRY(kern::make<Bench>(kern::Gfp::kernel));
		KERN_TRY(bench->begin(log_sends, kind));
		return bench;
	}
	~Bench()
	{
		if (!begun_)
			return;
		if (!detached_)
			detach();
		Cq::Object::destruct(cq());
		Qp::Object::destruct(qp());
		if (has_pd_)
			Pd::Object::destruct(pd());
	}

	Hca &hca() { return *hca_; }
	Qp &queue() { return Qp::of(qp()); }
	Cq &completions() { return Cq::of(cq()); }
	int poll(int count, ib_wc *wc) { return Cq::poll(cq(), count, wc); }
	int request_notify(int flags)
	{
		return Cq::request_notify(cq(), static_cast<ib_cq_notify_flags>(flags));
	}
	/* Simulates the handling of an event. */
	void count_event() { completions().event(); }
	const wire::WqeNext &link(u32 slot) const
	{
		return *reinterpret_cast<const wire::WqeNext *>(&sends_[slot << log_stride]);
	}
	wire::Cqe &entry(u32 index) { return completions().entry(index); }
	/* Simulates an entry that the card writes. */
	void complete(u32 index, u32 number, u8 opcode, bool send, u32 slot, u8 syndrome = 0)
	{
		wire::Cqe &cqe = entry(index);
		cqe = {};
		cqe.qpn = number;
		cqe.opcode = opcode;
		cqe.is_send = send ? wire::Cqe::send_bit : 0;
		cqe.wqe_address = sq_base + (slot << log_stride);
		if (syndrome)
			cqe.set_syndrome(syndrome);
	}
	const wire::WqeDatagram &datagram(u32 slot) const
	{
		return *reinterpret_cast<const wire::WqeDatagram *>(
			&sends_[(slot << log_stride) + sizeof(wire::WqeNext)]);
	}
	u64 bogus_entries() { return completions().bogus_entries(); }
	u64 doorbell(u64 offset) const { return page_.read_be64(offset); }
	u32 send_record() const { return __builtin_bswap32(send_record_[0]); }
	u32 consumer_record() const { return __builtin_bswap32(consumer_record_[0]); }
	u32 arm_record(u32 word) const { return __builtin_bswap32(arm_record_[word]); }
	/* Destroys the QP, and returns the number of its remaining completions. */
	u32 detach()
	{
		detached_ = true;
		return completions().detach(queue(), true);
	}
	ib_qp *qp() { return aligned<ib_qp>(qp_); }

private:
	/* The register window consists only of the kernel's page. */
	static constexpr u64 page_offset = u64{2} * wire::uar::page_size;

	/* Aligned by hand to a cache line, as allocations of the midlayer are. */
	template<class Verbs>
	static Verbs *aligned(std::byte *memory)
	{
		return reinterpret_cast<Verbs *>(
			kern::align_up(reinterpret_cast<u64>(memory), u64{kern::cache_line}));
	}
	ib_cq *cq() { return aligned<ib_cq>(cq_); }
	ib_pd *pd() { return aligned<ib_pd>(pd_); }
	void card_failed(const char *) override {}

	kern::Result<> begin(u32 log_sends, QpKind kind)
	{
		if (!device_.native())
			return kern::Error{-ENOMEM};
		bar0_memory_ = KERN_TRY(
			kern::make_array<u32>(kern::Gfp::kernel, wire::bar0::size / sizeof(u32)));
		bar0_ = kern::Mmio::over_memory(bar0_memory_.data(), wire::bar0::size);
		sends_ = KERN_TRY(kern::make_array<u8>(kern::Gfp::kernel,
						       size_t{1} << (log_sends + log_stride)));
		ids_ = KERN_TRY(kern::make_array<u64>(kern::Gfp::kernel, size_t{1} << log_sends));
		Hca::Parts parts{};
		parts.commands = KERN_TRY(
			CommandInterface::create(bar0_, device_.native(), GoBit::go, *this));
		parts.qp_table = KERN_TRY(kern::make_array<QpEntry>(kern::Gfp::kernel, 32));
		parts.cqns = KERN_TRY(NumberAllocator::create(cqn, cqn + 1));
		parts.reserved_uars = 1;
		hca_ = KERN_TRY(kern::make<Hca>(kern::Gfp::kernel, bar0_, uar_,
						static_cast<FailureListener &>(*this),
						std::move(parts)));
		cq()->comp_handler = [](ib_cq *, void *) {};
		Qp::Object::construct(qp(), *hca_, *qp());
		Cq::Object::construct(cq(), *hca_, *cq());
		begun_ = true;
		pdns_ = KERN_TRY(NumberAllocator::create(pdn, pdn + 1));
		Pd::Object::construct(pd(), Pd{KERN_TRY(Number::create(*pdns_))});
		has_pd_ = true;
		qp()->pd = pd();
		qp()->send_cq = qp()->recv_cq = cq();
		Qp &queue = this->queue();
		queue.sq.log_size = log_sends;
		queue.sq.mask = (1u << log_sends) - 1;
		queue.sq.log_stride = log_stride;
		queue.sq.entries = sends_.data();
		queue.sq.ids = ids_.data();
		queue.sq.max_sge = 2;
		queue.sq.max_inline = 28;
		queue.sq.doorbell_value = __builtin_bswap32(wire::uar::send_qpn.in(qpn));
		queue.start_without_card(qpn, kind, sq_base, send_record_);
		KERN_TRY(completions().start_without_card(log_entries, device_.native(),
							  consumer_record_, arm_record_));
		hca_->qp_entry(qpn).qp = &queue;
		completions().attach(queue, true);
		return {};
	}

	bool begun_ = false, detached_ = false, has_pd_ = false;
	kern::Owned<NumberAllocator> pdns_;
	kern::kunit::FakeDevice device_{"weft-mthca-queues"};
	std::byte qp_[sizeof(Qp::Object) + kern::cache_line] = {};
	std::byte cq_[sizeof(Cq::Object) + kern::cache_line] = {};
	std::byte pd_[sizeof(Pd::Object) + kern::cache_line] = {};
	u32 send_record_[2] = {}, consumer_record_[2] = {}, arm_record_[2] = {};
	kern::OwnedArray<u32> bar0_memory_;
	kern::OwnedArray<u8> sends_;
	kern::OwnedArray<u64> ids_;
	u64 registers_[wire::uar::page_size / 8] = {};
	kern::Mmio bar0_;
	const kern::Mmio page_ = kern::Mmio::over_memory(registers_, sizeof(registers_));
	const kern::Mmio uar_ =
		kern::Mmio::over_memory(reinterpret_cast<std::byte *>(registers_) - page_offset,
					page_offset + sizeof(registers_));
	kern::Owned<Hca> hca_;
};

} // namespace mthca

using namespace mthca;
using mthca::test::SampleCard;

namespace
{

constexpr u32 send_opcode = static_cast<u32>(wire::WqeOpcode::send),
	      send_imm_opcode = static_cast<u32>(wire::WqeOpcode::send_imm),
	      write_opcode = static_cast<u32>(wire::WqeOpcode::rdma_write);

/* A list of up to four sends of a QP, numbered from @first. */
struct Sends {
	ib_rdma_wr requests[4] = {};
	ib_sge sge{.addr = 0x1000, .length = 100, .lkey = 0x55};

	explicit Sends(u64 first, unsigned int count)
	{
		for (unsigned int i = 0; i < count; i++) {
			requests[i].wr.wr_id = first + i;
			requests[i].wr.opcode = IB_WR_SEND;
			requests[i].wr.sg_list = &sge;
			requests[i].wr.num_sge = 1;
			requests[i].wr.next = i + 1 < count ? &requests[i + 1].wr : nullptr;
		}
	}
	const ib_send_wr *list() const { return &requests[0].wr; }
};

/*
 * The descriptor before a send describes it; for the first send, that is the last descriptor of the
 * ring. The doorbell also describes it.
 */
void next_segment_of_a_send_wqe_holds_opcode_fence_and_size_of_the_following_wqe(
	kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	const ib_send_wr *bad;

	Sends two(1, 2);
	two.requests[1].wr.opcode = IB_WR_RDMA_WRITE;
	two.requests[1].wr.send_flags = IB_SEND_FENCE | IB_SEND_SIGNALED;
	EXPECT_EQ(bench.queue().post_send(two.list(), &bad), 0);

	EXPECT_EQ(bench.link(3).next_address(), Bench::sq_base);
	EXPECT_EQ(bench.link(3).opcode(), send_opcode);
	EXPECT_EQ(bench.link(3).units(), 2u);
	EXPECT_FALSE(bench.link(3).fence());
	EXPECT_EQ(bench.link(0).next_address(), Bench::sq_base + (1u << Bench::log_stride));
	EXPECT_EQ(bench.link(0).opcode(), write_opcode);
	EXPECT_EQ(bench.link(0).units(), 3u);
	EXPECT_TRUE(bench.link(0).fence());
	EXPECT_FALSE(bench.link(0).has(wire::WqeNext::completion));
	EXPECT_TRUE(bench.link(1).has(wire::WqeNext::completion));
	EXPECT_EQ(bench.link(1).units(), 0u);
	const u64 doorbell = bench.doorbell(wire::uar::send_doorbell);
	EXPECT_EQ(doorbell >> 32, u64{2 << 24 | 0 << 8 | send_opcode});
	EXPECT_EQ(doorbell & 0xffffffff, u64{Bench::qpn << 8 | 2});
	EXPECT_EQ(bench.send_record(), 2u);
}

/*
 * When a slot is reused, the link in it remains unchanged as long as the request that it describes
 * may not have been executed.
 */
void reuse_of_a_wqe_slot_does_not_change_its_next_segment_if_the_next_wqe_is_still_pending(
	kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	const ib_send_wr *bad;

	Sends four(1, 4);
	four.requests[1].wr.opcode = IB_WR_RDMA_WRITE;
	EXPECT_EQ(bench.queue().post_send(four.list(), &bad), 0);
	Sends more(5, 1);
	EXPECT_EQ(bench.queue().post_send(more.list(), &bad), -ENOMEM);
	EXPECT_TRUE(bad == more.list());

	// The first send has completed. The second one, which is linked from the first, has not.
	bench.queue().sq.tail = 1;
	EXPECT_EQ(bench.queue().post_send(more.list(), &bad), 0);
	EXPECT_EQ(bench.link(0).opcode(), write_opcode);
	EXPECT_EQ(bench.link(0).units(), 3u);
	EXPECT_EQ(bench.link(3).opcode(), send_opcode);
	EXPECT_EQ(bench.doorbell(wire::uar::send_doorbell) >> 32,
		  u64{1 << 24 | 4 << 8 | send_opcode});
}

/*
 * A request that is rejected takes no slot: the requests before it are posted, and the next one
 * gets its slot. Requests that are invalid for datagrams are rejected.
 */
void rejected_requests_occupy_no_wqe_slot(kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	const ib_send_wr *bad;
	for (const auto opcode : {IB_WR_RDMA_READ_WITH_INV, IB_WR_REG_MR, IB_WR_LSO,
				  static_cast<ib_wr_opcode>(IB_WR_REG_MR + 1)}) {
		Sends two(1, 2);
		two.requests[1].wr.opcode = opcode;
		EXPECT_EQ(bench.queue().post_send(two.list(), &bad), -EINVAL);
		EXPECT_TRUE(bad == &two.requests[1].wr);
		bench.queue().sq.tail = bench.queue().sq.posted_head();
	}
	EXPECT_EQ(bench.send_record(), 4u);
	Sends write(9, 1);
	write.requests[0].wr.opcode = IB_WR_RDMA_WRITE;
	EXPECT_EQ(bench.queue().post_send(write.list(), &bad), 0);
	EXPECT_EQ(bench.send_record(), 5u);
	EXPECT_EQ(bench.link(3).opcode(), write_opcode);
	EXPECT_EQ(bench.link(3).units(), 3u);

	auto datagrams = Bench::create(2, QpKind::datagram);
	ASSERT_OK(datagrams);
	EXPECT_EQ(datagrams.value()->queue().post_send(write.list(), &bad), -EINVAL);
	EXPECT_EQ(datagrams.value()->send_record(), 0u);
}

/* A doorbell covers at most 255 requests, and describes the first of them. */
void one_doorbell_announces_at_most_255_requests_of_a_posted_list(kern::kunit::Test &test)
{
	auto made = Bench::create(9);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	const ib_send_wr *bad;

	auto requests = kern::make_array<ib_send_wr>(kern::Gfp::kernel, 300);
	ASSERT_OK(requests);
	for (unsigned int i = 0; i < 300; i++) {
		requests.value()[i].opcode = IB_WR_SEND;
		requests.value()[i].next = i + 1 < 300 ? &requests.value()[i + 1] : nullptr;
	}
	requests.value()[255].opcode = IB_WR_SEND_WITH_IMM;
	requests.value()[255].send_flags = IB_SEND_FENCE;
	EXPECT_EQ(bench.queue().post_send(&requests.value()[0], &bad), 0);
	EXPECT_EQ(bench.doorbell(wire::uar::send_doorbell) >> 32,
		  u64{45 << 24 | 255 << 8 | 1 << 5 | send_imm_opcode});
	EXPECT_EQ(bench.send_record(), 300u);
}

/*
 * The card reports a QP number that cannot exist, in each form that a CQ without previous
 * completions could mistake for its last QP.
 */
void cqe_with_an_invalid_qp_number_is_not_returned_but_counted_as_bogus(kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	ib_wc wc[4];

	bench.complete(0, 0xffffffff, send_opcode, true, 0);
	bench.complete(1, 0x7fffffff, send_opcode, true, 0);
	bench.complete(2, 0x7fffffff, wire::Cqe::send_error, true, 0,
		       static_cast<u8>(wire::CqeSyndrome::flushed));
	EXPECT_EQ(bench.poll(4, wc), 0);
	EXPECT_EQ(bench.bogus_entries(), u64{3});
}

/*
 * Entries are matched with requests by address. Earlier requests that did not request a completion
 * are complete as well.
 */
void completions_are_matched_with_requests_by_wqe_address(kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	const ib_send_wr *bad;
	ib_wc wc[4];

	Sends three(10, 3);
	ASSERT_EQ(bench.queue().post_send(three.list(), &bad), 0);
	bench.complete(0, Bench::qpn, send_opcode, true, 1);
	// The first entry is for a QP that does not use this CQ, and the next ones match no
	// request.
	bench.complete(1, Bench::qpn + 1, send_opcode, true, 2);
	bench.complete(2, Bench::qpn, send_opcode, true, 0);
	bench.complete(3, Bench::qpn, wire::Cqe::send_error, true, 2,
		       static_cast<u8>(wire::CqeSyndrome::flushed));
	EXPECT_EQ(bench.poll(4, wc), 2);
	EXPECT_EQ(wc[0].wr_id, u64{11});
	EXPECT_EQ(wc[0].status, IB_WC_SUCCESS);
	EXPECT_TRUE(wc[0].qp == bench.qp());
	EXPECT_EQ(wc[1].wr_id, u64{12});
	EXPECT_EQ(wc[1].status, IB_WC_WR_FLUSH_ERR);
	EXPECT_EQ(bench.queue().sq.tail, 3u);
	EXPECT_EQ(bench.bogus_entries(), u64{2});
	// The card owns all four entries again.
	EXPECT_EQ(bench.consumer_record(), 4u);
	for (u32 i = 0; i < 4; i++)
		EXPECT_EQ(bench.entry(i).owner, wire::Cqe::owner_bit);
}

/*
 * MGMT-09: completions that a destroyed QP has left in the CQ can still be polled, in their order.
 */
void mgmt_09_completions_can_be_polled_after_qp_destroy(kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	const ib_send_wr *bad;
	ib_wc wc[4];

	Sends two(20, 2);
	ASSERT_EQ(bench.queue().post_send(two.list(), &bad), 0);
	bench.complete(0, Bench::qpn, send_opcode, true, 0);
	bench.complete(1, Bench::qpn, wire::Cqe::send_error, true, 1,
		       static_cast<u8>(wire::CqeSyndrome::flushed));
	EXPECT_EQ(bench.detach(), 2u);
	EXPECT_EQ(bench.poll(4, wc), 2);
	EXPECT_EQ(wc[0].wr_id, u64{20});
	EXPECT_EQ(wc[1].wr_id, u64{21});
	EXPECT_EQ(wc[1].status, IB_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(wc[0].qp == nullptr);
	EXPECT_EQ(bench.poll(4, wc), 0);
}

/* MGMT-09: destroying a QP needs no memory, so it does not wait for any. */
void mgmt_09_destroying_a_qp_allocates_no_memory(kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	const ib_send_wr *bad;
	ib_wc wc[4];

	Sends two(20, 2);
	ASSERT_EQ(bench.queue().post_send(two.list(), &bad), 0);
	bench.complete(0, Bench::qpn, send_opcode, true, 0);
	bench.complete(1, Bench::qpn, send_opcode, true, 1);
	kern_fail_allocation(1);
	const u32 left = bench.detach();
	const bool allocated = kern_allocation_failed();
	kern_fail_allocation(0);
	EXPECT_FALSE(allocated);
	EXPECT_EQ(left, 2u);
	EXPECT_EQ(bench.poll(4, wc), 2);
	EXPECT_EQ(wc[0].wr_id, u64{20});
	EXPECT_EQ(wc[1].wr_id, u64{21});
}

/*
 * MGMT-09: requests that a failed card has not flushed are flushed in order, after the entries that
 * it has written. Entries that it writes later complete nothing.
 */
void mgmt_09_destroying_a_qp_of_a_failed_card_flushes_its_requests(kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	const ib_send_wr *bad;
	ib_wc wc[4];

	Sends three(20, 3);
	ASSERT_EQ(bench.queue().post_send(three.list(), &bad), 0);
	bench.complete(0, Bench::qpn, send_opcode, true, 0);
	bench.hca().commands().fail();
	EXPECT_EQ(bench.detach(), 3u);
	bench.complete(1, Bench::qpn, wire::Cqe::stale, true, 1);
	bench.complete(2, Bench::qpn, send_opcode, true, 2);
	EXPECT_EQ(bench.poll(4, wc), 1);
	EXPECT_EQ(wc[0].wr_id, u64{20});
	EXPECT_EQ(wc[0].status, IB_WC_SUCCESS);
	EXPECT_EQ(bench.bogus_entries(), u64{2});
	EXPECT_EQ(bench.poll(1, wc), 1);
	EXPECT_EQ(bench.poll(3, wc + 1), 1);
	EXPECT_EQ(bench.poll(1, wc + 2), 0);
	for (u32 i = 0; i < 2; i++) {
		EXPECT_EQ(wc[i].wr_id, u64{21} + i);
		EXPECT_EQ(wc[i].status, IB_WC_WR_FLUSH_ERR);
		EXPECT_TRUE(wc[i].qp == nullptr);
	}
}

/*
 * NOTIFY-05: arming consists of two writes, to the record and the doorbell, and reads no entries.
 * Each arming after an event has the next sequence number (NOTIFY-06).
 */
void notify_05_arming_reads_no_cq_entries(kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();

	for (u32 event = 0; event < 5; event++, bench.count_event()) {
		const u32 sequence = (event + 1) & 3;
		EXPECT_EQ(bench.request_notify(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
		EXPECT_EQ(bench.doorbell(wire::uar::cq_doorbell) >> 32,
			  u64{sequence << 28 | 2 << 24 | Bench::cqn});
		EXPECT_EQ(bench.arm_record(1), Bench::cqn << 8 | 2u << 5 | sequence << 3 | 2);
		EXPECT_EQ(bench.arm_record(0), bench.consumer_record());
	}
}

/*
 * NOTIFY-06: the card raises one event for an entry. If the CQ is armed again before that entry was
 * polled, the driver reports the entry. It does not when a poll has found the queue empty.
 */
void notify_06_rearming_after_an_event_reports_an_unpolled_cqe(kern::kunit::Test &test)
{
	constexpr int or_missed = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();
	const ib_send_wr *bad;
	ib_wc wc[2];

	Sends two(10, 2);
	ASSERT_EQ(bench.queue().post_send(two.list(), &bad), 0);
	EXPECT_EQ(bench.request_notify(or_missed), 0);
	bench.complete(0, Bench::qpn, send_opcode, true, 0);
	bench.count_event();
	EXPECT_EQ(bench.request_notify(IB_CQ_NEXT_COMP), 0);
	EXPECT_EQ(bench.request_notify(or_missed), 1);
	EXPECT_EQ(bench.poll(1, wc), 1);
	EXPECT_EQ(bench.request_notify(or_missed), 0);
	EXPECT_EQ(bench.poll(1, wc), 0);
	// For this entry the arming itself raises the event.
	bench.complete(1, Bench::qpn, send_opcode, true, 1);
	EXPECT_EQ(bench.request_notify(or_missed), 0);
}

/*
 * NOTIFY-01: flags that select no event, or both, are rejected, and nothing is written to the card.
 */
void notify_01_invalid_flags_do_not_arm_the_cq(kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();

	for (const int flags : {0, static_cast<int>(IB_CQ_SOLICITED_MASK),
				static_cast<int>(IB_CQ_REPORT_MISSED_EVENTS), 16}) {
		EXPECT_EQ(bench.request_notify(flags), -EINVAL);
		EXPECT_EQ(bench.doorbell(wire::uar::cq_doorbell), u64{0});
		EXPECT_EQ(bench.arm_record(0), 0u);
		EXPECT_EQ(bench.arm_record(1), 0u);
	}
}

/*
 * The QP context has the signaling type, because a program's library sets the flag of a request
 * only if the program has requested that request's completion.
 */
void qp_context_has_the_signaling_type_of_the_qp(kern::kunit::Test &test)
{
	auto made = Bench::create(2);
	ASSERT_OK(made);
	Bench &bench = *made.value();

	for (const auto type : {IB_SIGNAL_ALL_WR, IB_SIGNAL_REQ_WR}) {
		u8 context[wire::QpContext::size] = {};
		bench.qp()->sq_sig_type = type;
		bench.queue().fill_static_context(context);
		EXPECT_EQ(wire::QpContext::signal_all.get(context),
			  type == IB_SIGNAL_ALL_WR ? 1u : 0u);
	}
}

/*
 * GIDs are numbered across both ports in an address vector, and rates are fractions of the port's
 * rate.
 */
void address_vector_encodes_gid_index_and_rate_as_the_card_requires(kern::kunit::Test &test)
{
	SampleCard card;
	auto parsed = parse_capabilities(card.limits);
	ASSERT_OK(parsed);
	Capabilities cap = parsed.value();
	rdma_ah_attr attr{};
	attr.port_num = 2;
	attr.sl = 3;
	attr.ib.dlid = 0x1234;
	attr.ah_flags = IB_AH_GRH;
	attr.grh.sgid_index = 5;
	const auto vector = Ah::build(cap, 7, attr);
	ASSERT_OK(vector);
	EXPECT_EQ(vector.value().port(), 2u);
	EXPECT_EQ(vector.value().pd(), 7u);
	EXPECT_EQ(vector.value().sl(), 3u);
	EXPECT_EQ(vector.value().sgid_index, 37u);
	EXPECT_EQ(vector.value().dlid.value(), 0x1234u);
	EXPECT_TRUE(vector.value().grh());
	for (const u8 index : {32, 255}) {
		attr.grh.sgid_index = index;
		EXPECT_ERROR(Ah::build(cap, 7, attr), -EINVAL);
	}
	attr.grh.sgid_index = 0;
	for (const u8 port : {0, 3}) {
		attr.port_num = port;
		EXPECT_ERROR(Ah::build(cap, 7, attr), -EINVAL);
	}

	cap.static_rates = 0xf;
	EXPECT_EQ(static_rate(cap, IB_RATE_PORT_CURRENT, sdr_4x_tenths), rate_code::full);
	EXPECT_EQ(static_rate(cap, IB_RATE_40_GBPS, sdr_4x_tenths), rate_code::full);
	EXPECT_EQ(static_rate(cap, IB_RATE_5_GBPS, sdr_4x_tenths), rate_code::half);
	EXPECT_EQ(static_rate(cap, IB_RATE_2_5_GBPS, sdr_4x_tenths), rate_code::quarter);
	cap.static_rates = 0x3;
	EXPECT_EQ(static_rate(cap, IB_RATE_5_GBPS, sdr_4x_tenths), rate_code::quarter);
}

/*
 * A request has its own copy of the address, so the handle may be changed or destroyed once the
 * request is posted.
 */
void posted_datagram_has_its_own_copy_of_the_address_vector(kern::kunit::Test &test)
{
	auto made = Bench::create(2, QpKind::datagram);
	ASSERT_OK(made);
	Bench &bench = *made.value();

	auto memory = kern::make_array<std::byte>(kern::Gfp::kernel,
						  sizeof(Ah::Object) + kern::cache_line);
	ASSERT_OK(memory);
	auto *const ah = reinterpret_cast<ib_ah *>(kern::align_up(
		reinterpret_cast<u64>(memory.value().data()), u64{kern::cache_line}));
	wire::AddressVector vector{};
	vector.dlid = 0x1234;
	Ah::Object::construct(ah, vector, rdma_ah_attr{});
	ib_ud_wr request{};
	request.wr.opcode = IB_WR_SEND;
	request.ah = ah;
	request.remote_qpn = 0x77;
	const ib_send_wr *bad;
	EXPECT_EQ(bench.queue().post_send(&request.wr, &bad), 0);
	vector.dlid = 0x4321;
	Ah::of_mutable(ah).modify(vector, rdma_ah_attr{});
	Ah::Object::destruct(ah);
	EXPECT_EQ(bench.datagram(0).address.dlid.value(), 0x1234u);
	EXPECT_EQ(bench.datagram(0).qpn(), 0x77u);
}

/*
 * The sizes of queues are powers of two that hold the requested entries. A request for more than
 * the card's descriptors can hold is refused.
 */
void computed_queue_sizes_are_enough_for_the_requested_entries(kern::kunit::Test &test)
{
	SampleCard card;
	const auto cap = parse_capabilities(card.limits);
	ASSERT_OK(cap);
	for (const ib_qp_type type : {IB_QPT_RC, IB_QPT_UC, IB_QPT_UD, IB_QPT_GSI}) {
		ib_qp_init_attr attr{};
		attr.qp_type = type;
		attr.cap = {.max_send_wr = 100,
			    .max_recv_wr = 33,
			    .max_send_sge = 4,
			    .max_recv_sge = 3,
			    .max_inline_data = 100};
		const auto planned = plan_queues(cap.value(), attr);
		ASSERT_OK(planned);
		const QpGeometry &plan = planned.value();
		EXPECT_EQ(plan.log_sq_size, 7u);
		EXPECT_EQ(plan.log_rq_size, 6u);
		EXPECT_GE(plan.max_send_sge, 4u);
		EXPECT_GE(plan.max_recv_sge, 3u);
		EXPECT_GE(plan.max_inline, 100u);
		EXPECT_GE(plan.log_rq_stride, 6u);
		EXPECT_GE(plan.sq_offset, 1u << (plan.log_rq_size + plan.log_rq_stride));
		EXPECT_EQ(plan.bytes,
			  plan.sq_offset + (1u << (plan.log_sq_size + plan.log_sq_stride)));
	}
	const ib_qp_cap too_much[] = {{.max_send_wr = 16385},
				      {.max_recv_wr = 16385},
				      {.max_send_sge = 60},
				      {.max_recv_sge = 60},
				      {.max_inline_data = 1000}};
	for (const ib_qp_cap &want : too_much) {
		ib_qp_init_attr attr{};
		attr.qp_type = IB_QPT_RC;
		attr.cap = want;
		EXPECT_ERROR(plan_queues(cap.value(), attr), -EINVAL);
	}
}

/* The members of a group occupy its first entries, each with the member flag. */
void qps_of_a_multicast_group_occupy_the_first_qp_slots_of_its_mcg_entry(kern::kunit::Test &test)
{
	constexpr u32 max_members = 4;
	u8 entry[sizeof(wire::McgHeader) + max_members * wire::McgMember::size] = {};
	EXPECT_EQ(marked_group.count(entry, max_members), 0u);
	for (u32 i = 0; i < max_members; i++) {
		wire::store_be32(entry, MarkedGroup::place(i),
				 (0x14 + i) | marked_group.member_flags(true));
		marked_group.set_count(entry, i + 1, max_members);
		EXPECT_EQ(marked_group.count(entry, max_members), i + 1);
	}
	marked_group.set_count(entry, 2, max_members);
	EXPECT_EQ(marked_group.count(entry, max_members), 2u);
}

/*
 * The region that a program specifies for its queue must be its own, with a matching key and
 * protection domain. The region exists as long as the queue; otherwise the card could write to the
 * memory of the key's next user.
 */
void user_queue_holds_a_reference_to_its_memory_region(kern::kunit::Test &test)
{
	const auto bench = Bench::create(4);
	ASSERT_OK(bench);
	Hca &hca = bench.value()->hca();
	ib_ucontext verbs{};
	ib_mr verbs_mr{};
	UserContext context(hca, verbs), other(hca, verbs);
	Mr mr(hca, verbs_mr);
	const u32 key = mr.key(), pd = mr.pd();
	EXPECT_ERROR(UserRegion::create(context, key, pd), -EINVAL);
	mr.allow_queues(context);
	EXPECT_ERROR(UserRegion::create(context, key + 0x100, pd), -EINVAL);
	EXPECT_ERROR(UserRegion::create(context, key, pd + 1), -EINVAL);
	EXPECT_ERROR(UserRegion::create(other, key, pd), -EINVAL);
	{
		auto one = UserRegion::create(context, key, pd);
		ASSERT_OK(one);
		auto two = UserRegion::create(context, key, pd);
		ASSERT_OK(two);
		EXPECT_ERROR(mr.stop(), -EBUSY);
		two.value() = UserRegion();
		EXPECT_ERROR(mr.stop(), -EBUSY);
	}
	EXPECT_OK(mr.stop());
	EXPECT_ERROR(UserRegion::create(context, key, pd), -EINVAL);
}

} // namespace

KUNIT_SUITE(
	mthca_queues,
	KUNIT_CASE(next_segment_of_a_send_wqe_holds_opcode_fence_and_size_of_the_following_wqe),
	KUNIT_CASE(
		reuse_of_a_wqe_slot_does_not_change_its_next_segment_if_the_next_wqe_is_still_pending),
	KUNIT_CASE(rejected_requests_occupy_no_wqe_slot),
	KUNIT_CASE(one_doorbell_announces_at_most_255_requests_of_a_posted_list),
	KUNIT_CASE(cqe_with_an_invalid_qp_number_is_not_returned_but_counted_as_bogus),
	KUNIT_CASE(completions_are_matched_with_requests_by_wqe_address),
	KUNIT_CASE(mgmt_09_completions_can_be_polled_after_qp_destroy),
	KUNIT_CASE(mgmt_09_destroying_a_qp_allocates_no_memory),
	KUNIT_CASE(mgmt_09_destroying_a_qp_of_a_failed_card_flushes_its_requests),
	KUNIT_CASE(notify_05_arming_reads_no_cq_entries),
	KUNIT_CASE(notify_06_rearming_after_an_event_reports_an_unpolled_cqe),
	KUNIT_CASE(notify_01_invalid_flags_do_not_arm_the_cq),
	KUNIT_CASE(address_vector_encodes_gid_index_and_rate_as_the_card_requires),
	KUNIT_CASE(posted_datagram_has_its_own_copy_of_the_address_vector),
	KUNIT_CASE(qp_context_has_the_signaling_type_of_the_qp),
	KUNIT_CASE(computed_queue_sizes_are_enough_for_the_requested_entries),
	KUNIT_CASE(qps_of_a_multicast_group_occupy_the_first_qp_slots_of_its_mcg_entry),
	KUNIT_CASE(user_queue_holds_a_reference_to_its_memory_region));
