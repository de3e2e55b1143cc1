// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests unreliable connections, shared receive queues, XRC, and what queue pairs do in each state.
#include <gtest/gtest.h>

#include "cards/mlx4/transport/tests/pair.hpp"

namespace weft::mlx4::transport
{

using hw::mlx4::CqeReceiveOpcode;

namespace
{

class UnreliableConnection : public ConnectedPair
{
protected:
	UnreliableConnection() : ConnectedPair({.service = ServiceType::uc}) {}
};

class Queues : public ConnectedPair
{
};

unsigned count(const std::vector<Event> &events, EventType type, std::uint32_t number)
{
	return static_cast<unsigned>(std::ranges::count_if(events, [&](const Event &event) {
		return event.type == type && event.number == number;
	}));
}

} // namespace

/* UC sends and writes of many packets arrive, without acknowledgements. */
TEST_F(UnreliableConnection, MultiPacketUcSendsAndWritesArrive)
{
	Region from = a.region(10000), to = b.region(20000);
	fill(a.bytes(from));
	b.post_receive(*qp_b, {to.piece(0, 10000)});
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::send).add(from.piece()).done());
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::rdma_write)
				   .add(WqeRemoteAddress{to.address + 10000, to.key, 0})
				   .add(from.piece())
				   .done());
	wait_good(a, cq_a, 2);
	wait_good(b, cq_b, 1);
	settle();
	EXPECT_TRUE(same(b.bytes(to).first(10000), a.bytes(from)));
	EXPECT_TRUE(same(b.bytes(to).last(10000), a.bytes(from)));
}

/* The guest may reuse the buffer of a completed request, even if its data is still in flight. */
TEST_F(UnreliableConnection, UcSendReadsItsDataBeforeTheCompletion)
{
	Region from = a.region(64), to = b.region(64);
	std::ranges::fill(a.bytes(from), std::byte{1});
	b.post_receive(*qp_b, {to.piece()});
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::send).add(from.piece()).done());
	ASSERT_TRUE(a.poll_cq(cq_a)) << "completes without the other end";
	std::ranges::fill(a.bytes(from), std::byte{2});
	wait_good(b, cq_b, 1);
	EXPECT_EQ(b.bytes(to)[0], std::byte{1});
}

/*
 * A message with a missing packet is dropped as a whole, and its receive is used for the next one.
 */
TEST_F(UnreliableConnection, IncompleteUcMessagesAreDropped)
{
	link.set_faults({.loss = 0.3});
	Region from = a.region(4096), to = b.region(4096);
	constexpr unsigned posted = 200;
	unsigned received = 0;
	b.post_receive(*qp_b, {to.piece()});
	for (unsigned i = 0; i < posted; i++) {
		std::ranges::fill(a.bytes(from), static_cast<std::byte>(i));
		a.post_send(*qp_a, WqeBuilder(WqeOpcode::send).add(from.piece(0, 3000)).done());
		wait_good(a, cq_a, 1);
		settle();
		if (auto completion = b.poll_cq(cq_b)) {
			ASSERT_FALSE(completion->is_error);
			ASSERT_EQ(completion->byte_count, 3000u);
			for (auto byte : b.bytes(to).first(3000))
				ASSERT_EQ(byte, static_cast<std::byte>(i)) << "a mixture";
			received++;
			b.post_receive(*qp_b, {to.piece()});
		}
	}
	EXPECT_GT(received, 0u);
	EXPECT_LT(received, posted);
	EXPECT_EQ(qp_b->state, QpState::rts);
}

/*
 * A failed send stops only the send queue: later sends are flushed, receives continue, and the
 * driver may restart the queue (IBA 10.3.1.6).
 */
TEST_F(UnreliableConnection, LocalSendErrorMovesTheQpToSqe)
{
	Region from = a.region(4096), to = b.region(4096), back = a.region(4096);
	auto send = [&](const WqeData &data) {
		return WqeBuilder(WqeOpcode::send).add(data).done();
	};
	/* The second of three pages is not mapped, so part of the message has been sent by then. */
	Region short_one = a.region(4096);
	a.post(*qp_a, send(short_one.piece(0, 8192)));
	a.post_send(*qp_a, send(from.piece()));
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::local_protection);
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::flushed);
	EXPECT_EQ(qp_a->state, QpState::sqer);

	a.post_receive(*qp_a, {back.piece()});
	b.post_send(*qp_b, send(to.piece()));
	EXPECT_FALSE(wait(a, cq_a).is_error) << "receives go on";
	wait_good(b, cq_b, 1);

	a.modify(*qp_a, QpState::rts);
	fill(a.bytes(from));
	b.post_receive(*qp_b, {to.piece()});
	a.post_send(*qp_a, send(from.piece()));
	wait_good(a, cq_a, 1);
	wait_good(b, cq_b, 1);
	EXPECT_TRUE(same(b.bytes(to), a.bytes(from)));
}

/* Any QP may use the receives of an SRQ. The limit event is raised once. */
TEST_F(Queues, SrqSharedByTwoQpsServesBothAndRaisesItsLimitEventOnlyOnce)
{
	SharedReceiveQueue &srq = b.create_srq(4, 3);
	b.take_events();
	QpOptions options;
	options.srqn = srq.number();
	QueuePair *from[2], *into[2];
	for (int i = 0; i < 2; i++) {
		from[i] = &a.create_qp({}, cq_a, cq_a);
		into[i] = &b.create_qp(options, cq_b, cq_b);
		a.connect(*from[i], b, *into[i], options);
		b.connect(*into[i], a, *from[i], options);
	}
	Region data = a.region(2000), room = b.region(16 * 4096);
	fill(a.bytes(data));
	for (unsigned i = 0; i < 6; i++)
		b.post_srq(srq, {room.piece(i * 4096, 4096)});
	srq.arm_limit(3);
	for (unsigned i = 0; i < 6; i++) {
		a.post_send(*from[i % 2], WqeBuilder(WqeOpcode::send).add(data.piece()).done());
		wait_good(a, cq_a, 1);
		Completion got = wait(b, cq_b);
		EXPECT_EQ(got.qpn, into[i % 2]->qpn);
		EXPECT_EQ(got.wqe_index, i) << "the index in the shared queue";
		EXPECT_TRUE(same(b.bytes(room.address + i * 4096, 2000), a.bytes(data)));
		EXPECT_EQ(count(b.take_events(), EventType::srq_limit, srq.number()),
			  i == 3 ? 1u : 0u)
			<< i;
	}
	/*
	 * A QP that fails does not affect the SRQ, and an event reports when it no longer uses it.
	 */
	b.modify(*into[0], QpState::err);
	settle();
	EXPECT_EQ(count(b.take_events(), EventType::srq_last_wqe, into[0]->qpn), 1u);
}

/* XRC packets to one target QP specify the SRQ of the domain that receives the message. */
TEST_F(Queues, XrcSendsReachOnlySrqsOfTheirXrcDomain)
{
	constexpr std::uint16_t domain = 9;
	CompletionQueue &srq_cq = b.create_cq();
	SharedReceiveQueue &first = b.create_srq(4, 0, domain, srq_cq.number());
	SharedReceiveQueue &second = b.create_srq(4, 0, domain, srq_cq.number());
	SharedReceiveQueue &foreign = b.create_srq(4, 0, domain + 1, srq_cq.number());
	QpOptions options;
	options.service = ServiceType::xrc;
	options.xrc_domain = domain;
	reconnect(options);
	Region data = a.region(3000), room = b.region(4 * 4096);
	fill(a.bytes(data));
	b.post_srq(first, {room.piece(0, 4096)});
	b.post_srq(second, {room.piece(4096, 4096)});
	b.post_srq(foreign, {room.piece(8192, 4096)});
	auto send = [&](SharedReceiveQueue &to) {
		a.post_send(*qp_a,
			    WqeBuilder(WqeOpcode::send, WqeControl::completion | to.number() << 8)
				    .add(data.piece())
				    .done());
		return wait(a, cq_a);
	};
	EXPECT_FALSE(send(second).is_error);
	Completion got = wait(b, srq_cq);
	EXPECT_EQ(got.raw.remote_qpn(), second.number());
	EXPECT_TRUE(same(b.bytes(room.address + 4096, 3000), a.bytes(data)));
	EXPECT_FALSE(send(first).is_error);
	EXPECT_EQ(wait(b, srq_cq).raw.remote_qpn(), first.number());
	EXPECT_EQ(send(foreign).syndrome, CqeSyndrome::remote_invalid_request);
}

/* An XRC target QP uses the protection domain of the SRQ, because it has none of its own. */
TEST_F(Queues, XrcTargetUsesTheProtectionDomainOfTheSrq)
{
	constexpr std::uint16_t domain = 9;
	CompletionQueue &srq_cq = b.create_cq();
	SharedReceiveQueue &srq = b.create_srq(4, 0, domain, srq_cq.number());
	QpOptions options;
	options.service = ServiceType::xrc;
	options.xrc_domain = domain;
	reconnect(options);
	qp_b->pd = 0;
	Region from = a.region(5000), to = b.region(5000);
	fill(a.bytes(from));
	auto request = [&](WqeOpcode opcode, std::uint32_t srqn) {
		a.post_send(*qp_a, WqeBuilder(opcode, WqeControl::completion | srqn << 8)
					   .add(WqeRemoteAddress{to.address, to.key, 0})
					   .add(from.piece())
					   .done());
		return wait(a, cq_a);
	};
	EXPECT_FALSE(request(WqeOpcode::rdma_write, srq.number()).is_error);
	EXPECT_TRUE(same(b.bytes(to), a.bytes(from)));
	fill(b.bytes(to));
	EXPECT_FALSE(request(WqeOpcode::rdma_read, srq.number()).is_error);
	EXPECT_TRUE(same(b.bytes(to), a.bytes(from)));
	EXPECT_EQ(request(WqeOpcode::rdma_write, srq.number() + 1).syndrome,
		  CqeSyndrome::remote_invalid_request);
}

/* If the receive of an XRC target fails, the completion reports the SRQ's number. */
TEST_F(Queues, XrcReceiveErrorReportsTheSrqNumber)
{
	constexpr std::uint16_t domain = 9;
	CompletionQueue &srq_cq = b.create_cq();
	SharedReceiveQueue &srq = b.create_srq(4, 0, domain, srq_cq.number());
	QpOptions options;
	options.service = ServiceType::xrc;
	options.xrc_domain = domain;
	reconnect(options);
	Region data = a.region(3000), room = b.region(100);
	b.post_srq(srq, {room.piece()});
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::send, WqeControl::completion | srq.number() << 8)
				   .add(data.piece())
				   .done());
	Completion got = wait(b, srq_cq);
	EXPECT_EQ(got.syndrome, CqeSyndrome::local_length);
	EXPECT_EQ(got.raw.remote_qpn(), srq.number());
}

/* A QP in the error state flushes both queues in order, and also requests that are posted later. */
TEST_F(Queues, QpInTheErrorStateFlushesSendAndReceiveQueueInOrder)
{
	Region data = a.region(4096);
	for (unsigned i = 0; i < 5; i++)
		a.post_receive(*qp_a, {data.piece()});
	link.set_plugged(false);
	for (unsigned i = 0; i < 5; i++)
		a.post_send(*qp_a, WqeBuilder(WqeOpcode::rdma_write, 0)
					   .add(WqeRemoteAddress{1, 2, 0})
					   .add(data.piece())
					   .done());
	a.modify(*qp_a, QpState::err);
	std::uint16_t next_send = 0, next_receive = 0;
	auto take = [&](unsigned expected) {
		for (unsigned i = 0; i < expected; i++) {
			Completion flushed = wait(a, cq_a);
			ASSERT_EQ(flushed.syndrome, CqeSyndrome::flushed);
			ASSERT_EQ(flushed.qpn, qp_a->qpn);
			ASSERT_EQ(flushed.wqe_index,
				  flushed.is_send ? next_send++ : next_receive++);
		}
	};
	take(10);
	EXPECT_EQ(next_send, 5);
	/* There is no doorbell, so the card must find the requests itself. */
	a.post_receive(*qp_a, {data.piece()});
	take(1);
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::send, 0).done());
	take(1);
	EXPECT_EQ(next_send, 6);
	EXPECT_EQ(next_receive, 6);
}

/* A send queue is read only when its doorbell rings. */
TEST_F(Queues, SendQueueIsNotReadWithoutADoorbell)
{
	QueuePair &qp = a.create_qp({}, cq_a, cq_a);
	/* Leaves the queue as the kernel does for an XRC target QP. */
	a.zero_send_queue(qp);
	a.connect(qp, b, *qp_b, {});
	settle();
	EXPECT_EQ(qp.state, QpState::rts);
	a.modify(qp, QpState::err);
	settle();
	EXPECT_FALSE(a.poll_cq(cq_a));
}

/*
 * A draining send queue completes the requests that have started, starts no others, and raises an
 * event when it is done.
 */
TEST_F(Queues, RequestPostedWhileTheSqDrainsIsSentAfterTheReturnToRts)
{
	Region data = a.region(100000), to = b.region(100000);
	auto write = [&] {
		return WqeBuilder(WqeOpcode::rdma_write)
			.add(WqeRemoteAddress{to.address, to.key, 0})
			.add(data.piece())
			.done();
	};
	a.post_send(*qp_a, write());
	qp_a->sqd_event = true;
	a.modify(*qp_a, QpState::sq_draining);
	a.post_send(*qp_a, write());
	ASSERT_TRUE(run([&] { return qp_a->state == QpState::sqd; }));
	settle();
	EXPECT_TRUE(a.poll_cq(cq_a));
	EXPECT_FALSE(a.poll_cq(cq_a)) << "posted while draining";
	EXPECT_EQ(count(a.take_events(), EventType::sq_drained, qp_a->qpn), 1u);
	a.modify(*qp_a, QpState::rts);
	wait_good(a, cq_a, 1);
}

/* The first packet establishes a connection, even before RTS. */
TEST_F(Queues, FirstPacketRaisesCommunicationEstablishedEvent)
{
	qp_b->state = QpState::rtr;
	Region from = a.region(64), to = b.region(64);
	b.post_receive(*qp_b, {to.piece()});
	for (int i = 0; i < 2; i++)
		a.post_send(*qp_a, WqeBuilder(WqeOpcode::rdma_write)
					   .add(WqeRemoteAddress{to.address, to.key, 0})
					   .add(from.piece())
					   .done());
	wait_good(a, cq_a, 2);
	EXPECT_EQ(count(b.take_events(), EventType::communication_established, qp_b->qpn), 1u);
}

/* If a CQ overflows, its QP fails. */
TEST_F(Queues, CompletionQueueOverrunFailsTheQp)
{
	CompletionQueue &small = a.create_cq(1);
	QpOptions options;
	QueuePair &from = a.create_qp(options, small, cq_a),
		  &into = b.create_qp(options, cq_b, cq_b);
	a.connect(from, b, into, options);
	b.connect(into, a, from, options);
	Region data = a.region(64), to = b.region(64);
	for (int i = 0; i < 4; i++)
		a.post_send(from, WqeBuilder(WqeOpcode::rdma_write)
					  .add(WqeRemoteAddress{to.address, to.key, 0})
					  .add(data.piece())
					  .done());
	settle();
	EXPECT_EQ(from.state, QpState::err);
	auto events = a.take_events();
	EXPECT_EQ(count(events, EventType::cq_error, small.number()), 1u);
	EXPECT_EQ(count(events, EventType::wq_catastrophic, from.qpn), 1u);
}

} // namespace weft::mlx4::transport
