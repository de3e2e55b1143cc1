// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests data transfer and retries of reliable connections.
#include <gtest/gtest.h>

#include "cards/mlx4/transport/tests/pair.hpp"

namespace weft::mlx4::transport
{

using hw::mlx4::CqeReceiveOpcode;

namespace
{

class Rc : public ConnectedPair
{
};

WqeBuilder write(const Region &to, std::uint64_t offset = 0)
{
	WqeBuilder builder(WqeOpcode::rdma_write);
	builder.add(WqeRemoteAddress{to.address + offset, to.key, 0});
	return builder;
}

} // namespace

/*
 * Messages of all lengths around the MTU arrive intact, and complete at both ends with their
 * length.
 */
TEST_F(Rc, SendsOfEveryLengthArriveIntact)
{
	Region from = a.region(1 << 16), to = b.region(1 << 16);
	fill(a.bytes(from));
	for (std::uint64_t length : {0, 1, 3, 64, 1023, 1024, 1025, 2048, 5000, 65536}) {
		std::ranges::fill(b.bytes(to), std::byte{0});
		b.post_receive(*qp_b, {to.piece()});
		auto index = a.post_send(
			*qp_a, WqeBuilder(WqeOpcode::send).add(from.piece(0, length)).done());
		Completion sent = wait(a, cq_a), received = wait(b, cq_b);
		ASSERT_FALSE(sent.is_error) << unsigned(sent.syndrome) << " length " << length;
		ASSERT_FALSE(received.is_error) << length;
		EXPECT_EQ(sent.wqe_index, index);
		EXPECT_EQ(sent.qpn, qp_a->qpn);
		EXPECT_EQ(received.qpn, qp_b->qpn);
		EXPECT_EQ(received.opcode, unsigned(CqeReceiveOpcode::send));
		EXPECT_EQ(received.byte_count, length);
		EXPECT_EQ(received.raw.remote_qpn(), qp_a->qpn);
		EXPECT_EQ(received.raw.source_lid, 1);
		EXPECT_TRUE(same(a.bytes(from).first(length), b.bytes(to).first(length)));
		if (length < to.length) {
			EXPECT_EQ(b.bytes(to)[length], std::byte{0})
				<< "written beyond the message";
		}
	}
}

/* Writes reach their destination if the page boundaries differ at both ends. */
TEST_F(Rc, WriteBetweenBuffersOfNonContiguousPagesArrivesIntact)
{
	std::vector<std::uint64_t> from_pages, to_pages;
	constexpr std::uint64_t length = 40000, from_va = 0x7000000123, to_va = 0x12345678f01;
	Region from = a.paged_region(length, from_va, from_pages);
	Region to = b.paged_region(length, to_va, to_pages);
	for (auto page : from_pages)
		fill(a.bytes(page, 4096));
	a.post_send(*qp_a, write(to).add(from.piece()).done());
	wait_good(a, cq_a, 1);
	for (std::uint64_t i = 0; i < length; i++) {
		std::uint64_t x = from_va % 4096 + i, y = to_va % 4096 + i;
		ASSERT_EQ(a.bytes(from_pages[x / 4096] + x % 4096, 1)[0],
			  b.bytes(to_pages[y / 4096] + y % 4096, 1)[0])
			<< i;
	}
	EXPECT_FALSE(b.poll_cq(cq_b)) << "a write takes no receive";
}

/* A read copies remote memory into a scatter list. */
TEST_F(Rc, ReadFillsAScatterList)
{
	Region from = b.region(10000), to = a.region(10000);
	fill(b.bytes(from));
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::rdma_read)
				   .add(WqeRemoteAddress{from.address, from.key, 0})
				   .add(to.piece(0, 7))
				   .add(to.piece(7, 5000))
				   .add(to.piece(5007, 4993))
				   .done());
	Completion done = wait(a, cq_a);
	ASSERT_FALSE(done.is_error) << unsigned(done.syndrome);
	EXPECT_EQ(done.byte_count, 10000u);
	EXPECT_TRUE(same(a.bytes(to), b.bytes(from)));
}

/* Immediate data arrives with sends and with writes, and inline data in both. */
TEST_F(Rc, ImmediateAndInlineDataArrive)
{
	Region to = b.region(4096);
	b.post_receive(*qp_b, {to.piece()});
	b.post_receive(*qp_b, {to.piece()});
	auto imm = [](std::vector<std::byte> wqe, std::uint32_t value) {
		ib::be32 word = value;
		std::memcpy(wqe.data() + 12, &word, 4);
		return wqe;
	};
	a.post_send(*qp_a,
		    imm(WqeBuilder(WqeOpcode::send_imm).inline_bytes(20).done(), 0xcafe0001));
	a.post_send(*qp_a, imm(WqeBuilder(WqeOpcode::rdma_write_imm)
				       .add(WqeRemoteAddress{to.address + 100, to.key, 0})
				       .inline_bytes(33)
				       .done(),
			       0xcafe0002));
	wait_good(a, cq_a, 2);
	Completion first = wait(b, cq_b), second = wait(b, cq_b);
	EXPECT_EQ(first.opcode, unsigned(CqeReceiveOpcode::send_imm));
	EXPECT_EQ(first.immediate, 0xcafe0001u);
	EXPECT_EQ(second.opcode, unsigned(CqeReceiveOpcode::rdma_write_imm));
	EXPECT_EQ(second.immediate, 0xcafe0002u);
	EXPECT_EQ(second.byte_count, 33u);
	for (unsigned i = 0; i < 33; i++)
		EXPECT_EQ(b.bytes(to)[100 + i], static_cast<std::byte>(i));
}

/* Atomics are executed once and return the former value. */
TEST_F(Rc, AtomicsExecuteOnceAndReturnTheOldValue)
{
	Region word = b.region(64), result = a.region(64);
	auto value = [&]() -> std::uint64_t & {
		return b.host().object<std::uint64_t>(word.address);
	};
	auto former = [&] { return a.host().object<std::uint64_t>(result.address); };
	auto post = [&](WqeOpcode opcode, auto operand) {
		a.post_send(*qp_a, WqeBuilder(opcode)
					   .add(WqeRemoteAddress{word.address, word.key, 0})
					   .add(operand)
					   .add(result.piece(0, 8))
					   .done());
		wait_good(a, cq_a, 1);
	};
	value() = 40;
	post(WqeOpcode::fetch_add, WqeAtomic{2, 0});
	EXPECT_EQ(value(), 42u);
	EXPECT_EQ(former(), 40u);
	post(WqeOpcode::compare_swap, WqeAtomic{7, 41});
	EXPECT_EQ(value(), 42u) << "the comparison failed";
	EXPECT_EQ(former(), 42u);
	post(WqeOpcode::compare_swap, WqeAtomic{7, 42});
	EXPECT_EQ(value(), 7u);
	post(WqeOpcode::masked_compare_swap, WqeMaskedAtomic{0xff00, 0x07, 0xff00, 0x0f});
	EXPECT_EQ(value(), 0xff07u);
	post(WqeOpcode::masked_fetch_add, WqeAtomic{0x0101, 0x8080});
	EXPECT_EQ(value(), 0x0008u);
	EXPECT_EQ(former(), 0xff07u);
}

/* Many requests of all kinds are posted at once, and complete in order with the right effect. */
TEST_F(Rc, ManyRequestsCompleteInOrder)
{
	QpOptions options;
	options.log_send = 10;
	options.log_receive = 10;
	reconnect(options);
	Region from = a.region(1 << 20), to = b.region(1 << 20), back = a.region(1 << 20);
	fill(a.bytes(from));
	constexpr unsigned count = 900;
	std::vector<std::uint16_t> order;
	for (unsigned i = 0; i < count; i++) {
		std::uint64_t offset = i * 1100, length = 1 + random() % 1100;
		switch (i % 3) {
		case 0:
			order.push_back(a.post(
				*qp_a, write(to, offset).add(from.piece(offset, length)).done()));
			break;
		case 1:
			b.post_receive(*qp_b, {to.piece(offset, 1100)});
			order.push_back(a.post(*qp_a, WqeBuilder(WqeOpcode::send)
							      .add(from.piece(offset, length))
							      .done()));
			break;
		case 2:
			order.push_back(a.post(
				*qp_a, WqeBuilder(WqeOpcode::rdma_read)
					       .add(WqeRemoteAddress{to.address + offset - 1100,
								     to.key, 0})
					       .add(back.piece(offset - 1100, 1))
					       .done()));
			break;
		}
	}
	a.ring(*qp_a);
	for (unsigned i = 0; i < count; i++) {
		Completion completion = wait(a, cq_a);
		ASSERT_FALSE(completion.is_error) << i << ' ' << unsigned(completion.syndrome);
		ASSERT_EQ(completion.wqe_index, order[i]);
		if (i % 3 == 2) {
			std::uint64_t at = (i - 1) * 1100;
			ASSERT_EQ(a.bytes(back)[at], a.bytes(from)[at]) << i;
		}
	}
}

/* Unsignaled requests have no completion. A later completion shows that they have finished. */
TEST_F(Rc, UnsignalledRequestsHaveNoCompletion)
{
	Region from = a.region(64), to = b.region(64);
	for (unsigned i = 0; i < 5; i++)
		a.post(*qp_a, WqeBuilder(WqeOpcode::rdma_write, 0)
				      .add(WqeRemoteAddress{to.address, to.key, 0})
				      .add(from.piece())
				      .done());
	auto last = a.post_send(*qp_a, write(to).add(from.piece()).done());
	Completion only = wait(a, cq_a);
	EXPECT_EQ(only.wqe_index, last);
	settle();
	EXPECT_FALSE(a.poll_cq(cq_a));
}

/* If there is no receive, the sender gets an RNR NAK and retries successfully. */
TEST_F(Rc, SendIsRetriedAfterAnRnrNak)
{
	Region from = a.region(3000), to = b.region(3000);
	fill(a.bytes(from));
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::send).add(from.piece()).done());
	settle();
	EXPECT_FALSE(a.poll_cq(cq_a));
	b.post_receive(*qp_b, {to.piece()});
	wait_good(a, cq_a, 1);
	wait_good(b, cq_b, 1);
	EXPECT_TRUE(same(a.bytes(from), b.bytes(to)));
	EXPECT_GE(a.card().diagnostics.sq_rnr_naks, 1u);
}

/*
 * If the RNR retries are exhausted, the request fails, later ones are flushed, and the QP enters
 * the error state.
 */
TEST_F(Rc, ExhaustedRnrRetriesFailTheQp)
{
	QpOptions options;
	options.rnr_retry = 2;
	reconnect(options);
	Region from = a.region(64);
	auto first = a.post(*qp_a, WqeBuilder(WqeOpcode::send).add(from.piece()).done());
	auto second = a.post_send(*qp_a, WqeBuilder(WqeOpcode::send, 0).add(from.piece()).done());
	Completion failed = wait(a, cq_a), flushed = wait(a, cq_a);
	EXPECT_EQ(failed.syndrome, CqeSyndrome::rnr_retry_exceeded);
	EXPECT_EQ(failed.wqe_index, first);
	EXPECT_EQ(flushed.syndrome, CqeSyndrome::flushed) << "unsignalled, but flushed";
	EXPECT_EQ(flushed.wqe_index, second);
	EXPECT_EQ(qp_a->state, QpState::err);
	EXPECT_EQ(qp_b->state, QpState::rts);
}

/* If the peer does not respond, the request fails after its retries. */
TEST_F(Rc, ExhaustedTransportRetriesFailTheQp)
{
	QpOptions options;
	options.ack_timeout = 4;
	options.retry_count = 2;
	reconnect(options);
	link.set_plugged(false);
	Region from = a.region(64), to = b.region(64);
	a.post_send(*qp_a, write(to).add(from.piece()).done());
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::retry_exceeded);
	EXPECT_EQ(qp_a->state, QpState::err);
}

} // namespace weft::mlx4::transport
