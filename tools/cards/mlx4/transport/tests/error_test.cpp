// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the errors that invalid requests, keys and packets cause at either end of a connection.
#include <gtest/gtest.h>

#include "cards/mlx4/transport/tests/pair.hpp"

namespace weft::mlx4::transport
{

namespace
{

/* Each test breaks a connection in one way and checks what each end reports. */
class Errors : public ConnectedPair
{
public:
	Region from = a.region(8192);
	Region to = b.region(8192);

	static std::vector<std::byte> write(std::uint64_t address, std::uint32_t rkey, WqeData data)
	{
		return WqeBuilder(WqeOpcode::rdma_write)
			.add(WqeRemoteAddress{address, rkey, 0})
			.add(data)
			.done();
	}
	CqeSyndrome outcome(std::vector<std::byte> wqe)
	{
		a.post_send(*qp_a, std::move(wqe));
		return wait(a, cq_a).syndrome;
	}
	bool raised(Node &node, EventType type, const QueuePair &qp)
	{
		return std::ranges::any_of(node.take_events(), [&](const Event &event) {
			return event.type == type && event.number == qp.qpn;
		});
	}
	void expect_access_error(std::vector<std::byte> wqe)
	{
		reconnect({});
		b.take_events();
		std::vector<std::byte> before(b.bytes(to).begin(), b.bytes(to).end());
		EXPECT_EQ(outcome(std::move(wqe)), CqeSyndrome::remote_access);
		EXPECT_EQ(qp_a->state, QpState::err);
		EXPECT_EQ(qp_b->state, QpState::err);
		EXPECT_TRUE(raised(b, EventType::wq_access_violation, *qp_b));
		EXPECT_TRUE(same(b.bytes(to), before)) << "memory was written";
	}
};

} // namespace

/* Local keys are invalid: unknown, of another PD, too short, or without the right. */
TEST_F(Errors, InvalidLocalKeysGiveLocalProtectionErrors)
{
	Region foreign = a.region(4096, kAllRights, 8);
	Region read_only = a.region(4096, 1);
	for (WqeData bad :
	     {WqeData{64, from.key ^ 1, from.address}, WqeData{64, 0xffffff00, from.address},
	      from.piece(8192 - 63, 64), WqeData{64, from.key, from.address - 1},
	      WqeData{64, from.key, ~0ull - 10}, foreign.piece(0, 64)}) {
		reconnect({});
		EXPECT_EQ(outcome(write(to.address, to.key, bad)), CqeSyndrome::local_protection)
			<< std::hex << bad.lkey << ' ' << bad.address;
		EXPECT_EQ(qp_a->state, QpState::err);
	}
	reconnect({});
	EXPECT_EQ(outcome(WqeBuilder(WqeOpcode::rdma_read)
				  .add(WqeRemoteAddress{to.address, to.key, 0})
				  .add(read_only.piece(0, 64))
				  .done()),
		  CqeSyndrome::local_protection)
		<< "an answer into memory that is only to be read";
}

/*
 * Remote keys are invalid (unknown, too short, or without the right), for writes, reads and
 * atomics.
 */
TEST_F(Errors, InvalidRemoteKeysGiveRemoteAccessErrors)
{
	expect_access_error(write(to.address, to.key ^ 1, from.piece(0, 64)));
	expect_access_error(write(to.address + 8192 - 63, to.key, from.piece(0, 64)));
	expect_access_error(write(to.address - 1, to.key, from.piece(0, 64)));
	expect_access_error(write(~0ull - 10, to.key, from.piece(0, 4000)));
	constexpr std::uint32_t local_rights = 3;
	Region shy = b.region(4096, local_rights);
	expect_access_error(write(shy.address, shy.key, from.piece(0, 64)));
	for (auto opcode : {WqeOpcode::rdma_read, WqeOpcode::fetch_add}) {
		WqeBuilder builder(opcode);
		builder.add(WqeRemoteAddress{shy.address, shy.key, 0});
		if (opcode == WqeOpcode::fetch_add)
			builder.add(WqeAtomic{1, 0});
		expect_access_error(builder.add(from.piece(0, 8)).done());
	}
}

/* The QP's own access flags do not permit the operation. */
TEST_F(Errors, QpWithoutRemoteAccessRejectsReadsAndWrites)
{
	qp_b->remote_write = false;
	EXPECT_EQ(outcome(write(to.address, to.key, from.piece(0, 64))),
		  CqeSyndrome::remote_invalid_request);
	reconnect({});
	qp_b->remote_read = false;
	EXPECT_EQ(outcome(WqeBuilder(WqeOpcode::rdma_read)
				  .add(WqeRemoteAddress{to.address, to.key, 0})
				  .add(from.piece(0, 64))
				  .done()),
		  CqeSyndrome::remote_invalid_request);
}

/* The responder rejects these requests as invalid. */
TEST_F(Errors, InvalidRequestsAreRejectedByTheResponder)
{
	b.take_events();
	EXPECT_EQ(outcome(WqeBuilder(WqeOpcode::fetch_add)
				  .add(WqeRemoteAddress{to.address + 4, to.key, 0})
				  .add(WqeAtomic{1, 0})
				  .add(from.piece(0, 8))
				  .done()),
		  CqeSyndrome::remote_invalid_request)
		<< "an atomic on an odd address";
	EXPECT_TRUE(raised(b, EventType::wq_invalid_request, *qp_b));
	/* A message that is longer than its receive causes an error at both ends. */
	reconnect({});
	b.post_receive(*qp_b, {to.piece(0, 100)});
	EXPECT_EQ(outcome(WqeBuilder(WqeOpcode::send).add(from.piece(0, 101)).done()),
		  CqeSyndrome::remote_invalid_request);
	EXPECT_EQ(wait(b, cq_b).syndrome, CqeSyndrome::local_length);
}

/*
 * An invalid request in the middle of a message that has taken a receive is reported by that
 * receive, and not by an event (IBA 9.9.3.1, class C).
 */
TEST_F(Errors, InvalidPacketWithinAMessageCompletesTheReceiveWithAnError)
{
	Region big_from = a.region(8 << 20), big_to = b.region(8 << 20);
	b.post_receive(*qp_b, {big_to.piece()});
	b.post_receive(*qp_b, {big_to.piece()});
	b.take_events();
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::send).add(big_from.piece()).done());
	a.poll();
	b.poll();
	ASSERT_FALSE(b.poll_cq(cq_b)) << "too quick for this test";
	qp_b->mtu = static_cast<std::uint8_t>(ib::Mtu::mtu_2048);
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::remote_invalid_request);
	EXPECT_EQ(wait(b, cq_b).syndrome, CqeSyndrome::remote_invalid_request);
	EXPECT_EQ(wait(b, cq_b).syndrome, CqeSyndrome::flushed);
	EXPECT_TRUE(b.take_events().empty());
}

/*
 * A guest may close its QP when it has seen the completion of a receive. The peer still gets the
 * acknowledgement, even if the card had not sent it before the command.
 */
TEST_F(Errors, AckIsStillSentIfTheResponderQpIsDestroyedOrMovedToErrorRightAfterAReceive)
{
	QpOptions options;
	options.ack_timeout = 0; /* The peer never repeats the request. */
	for (const bool resets : {false, true}) {
		SCOPED_TRACE(resets ? "2RST" : "2ERR");
		reconnect(options);
		b.post_receive(*qp_b, {to.piece()});
		a.post_send(*qp_a, WqeBuilder(WqeOpcode::send).add(from.piece(0, 64)).done());
		b.deliver();
		ASSERT_TRUE(b.poll_cq(cq_b));
		ASSERT_FALSE(a.poll_cq(cq_a)) << "acknowledged before the command";
		if (resets)
			b.destroy(*qp_b);
		else
			b.modify(*qp_b, QpState::err);
		settle();
		const auto sent = a.poll_cq(cq_a);
		ASSERT_TRUE(sent);
		EXPECT_FALSE(sent->is_error);
		while (b.poll_cq(cq_b))
			;
	}
}

/* The peer gets the NAK of an invalid request, even if the QP is reset at once. */
TEST_F(Errors, NakIsStillSentIfTheResponderQpIsDestroyedRightAfterAnInvalidRequest)
{
	QpOptions options;
	options.ack_timeout = 0; /* The peer never repeats the request. */
	reconnect(options);
	a.post_send(*qp_a, write(to.address, to.key ^ 1, from.piece(0, 64)));
	b.deliver();
	ASSERT_EQ(qp_b->state, QpState::err);
	b.destroy(*qp_b);
	settle();
	const auto sent = a.poll_cq(cq_a);
	ASSERT_TRUE(sent);
	EXPECT_EQ(sent->syndrome, CqeSyndrome::remote_access);
}

/* The memory of the receive is not accessible. */
TEST_F(Errors, ReceiveWithAnInvalidKeyFailsBothQps)
{
	b.post_receive(*qp_b, {WqeData{4096, to.key ^ 1, to.address}});
	b.post_receive(*qp_b, {to.piece()});
	EXPECT_EQ(outcome(WqeBuilder(WqeOpcode::send).add(from.piece(0, 101)).done()),
		  CqeSyndrome::remote_operation);
	EXPECT_EQ(wait(b, cq_b).syndrome, CqeSyndrome::local_protection);
	EXPECT_EQ(wait(b, cq_b).syndrome, CqeSyndrome::flushed);
}

/*
 * A doorbell record that claims more receives than the ring holds is ignored: none is used or
 * flushed.
 */
TEST_F(Errors, DoorbellRecordThatExceedsTheRingPostsNoReceives)
{
	QpOptions options;
	options.rnr_retry = 1;
	reconnect(options);
	auto &record = b.host().object<ib::be32>(qp_b->doorbell_record);
	record = qp_b->receive_queue.size() + 1;
	EXPECT_EQ(outcome(WqeBuilder(WqeOpcode::send).add(from.piece(0, 8)).done()),
		  CqeSyndrome::rnr_retry_exceeded);
	b.modify(*qp_b, QpState::err);
	settle();
	EXPECT_FALSE(b.poll_cq(cq_b));
	record = qp_b->receive_queue.size();
	for (unsigned i = 0; i < qp_b->receive_queue.size(); i++)
		EXPECT_EQ(wait(b, cq_b).wqe_index, i);
	settle();
	EXPECT_FALSE(b.poll_cq(cq_b));
}

/* A GRH before the data is reported only for datagrams (IBA 11.4.2.1). */
TEST_F(Errors, RcReceiveCompletionReportsNoGrh)
{
	for (QueuePair *qp : {qp_a, qp_b})
		qp->path.grh = true;
	qp_a->path.remote_gid = b.port().gid(0);
	qp_b->path.remote_gid = a.port().gid(0);
	b.post_receive(*qp_b, {to.piece()});
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::send).add(from.piece(0, 64)).done());
	wait_good(a, cq_a, 1);
	const Completion got = wait(b, cq_b);
	EXPECT_FALSE(got.is_error);
	EXPECT_FALSE(got.raw.grh());
}

/* Invalid WQEs complete with an error. */
TEST_F(Errors, InvalidWqesGiveLocalErrors)
{
	EXPECT_EQ(outcome(WqeBuilder(static_cast<WqeOpcode>(0x0f)).done()),
		  CqeSyndrome::local_qp_operation);
	reconnect({});
	qp_a->log_max_message = 12;
	EXPECT_EQ(outcome(write(to.address, to.key, from.piece(0, 4097))),
		  CqeSyndrome::local_length);
}

/* Requests posted before an invalid one succeed, and complete first. */
TEST_F(Errors, InvalidRequestDoesNotFailTheRequestsPostedBeforeIt)
{
	for (int i = 0; i < 3; i++)
		a.post(*qp_a, write(to.address, to.key, from.piece()));
	a.post(*qp_a, WqeBuilder(static_cast<WqeOpcode>(0x0f)).done());
	a.post(*qp_a, write(to.address, to.key, from.piece()));
	a.ring(*qp_a);
	wait_good(a, cq_a, 3);
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::local_qp_operation);
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::flushed);
}

/* If memory is unmapped during a transfer, the transfer ends with an error. */
TEST_F(Errors, UnmappingGuestMemoryFailsTransfersThatUseIt)
{
	for (bool at_sender : {true, false}) {
		SCOPED_TRACE(at_sender);
		Region big_from = a.region(32 << 20), big_to = b.region(32 << 20);
		reconnect({});
		a.post_send(*qp_a, write(big_to.address, big_to.key, big_from.piece()));
		for (int i = 0; i < 4; i++) {
			a.poll();
			b.poll();
		}
		ASSERT_FALSE(a.poll_cq(cq_a)) << "too quick for this test";
		Node &node = at_sender ? a : b;
		const Region &region = at_sender ? big_from : big_to;
		node.destroy_key(region.key);
		EXPECT_EQ(wait(a, cq_a).syndrome,
			  at_sender ? CqeSyndrome::local_protection : CqeSyndrome::remote_access);
	}
	/* The guest disconnects. */
	reconnect({});
	Region last = a.region(8 << 20), target = b.region(8 << 20);
	a.post_send(*qp_a, write(target.address, target.key, last.piece()));
	a.poll();
	a.host().dma().clear();
	settle();
}

/* A free key is registered by fast registration, used, and invalidated by either end. */
TEST_F(Errors, FastRegisteredKeyIsUsableUntilInvalidated)
{
	std::uint32_t key = b.free_key(4);
	std::uint64_t pages[2] = {b.allocate(4096), b.allocate(4096 * 3) + 8192};
	std::uint64_t list = b.allocate(16, 8);
	for (int i = 0; i < 2; i++)
		b.host().object<ib::be64>(list + 8 * i) = pages[i] | 1;
	auto register_key = [&](std::uint32_t with) {
		WqeFastRegister segment{};
		segment.flags = WqeFastRegister::remote_write | WqeFastRegister::local_write;
		segment.key = with;
		segment.page_list = list;
		segment.start = 0x5000100;
		segment.length = 8000;
		segment.page_shift = 12;
		b.post_send(*qp_b, WqeBuilder(WqeOpcode::fast_register).add(segment).done());
		return wait(b, cq_b).syndrome;
	};
	EXPECT_EQ(register_key(key | 0x42), CqeSyndrome::none);
	EXPECT_EQ(outcome(write(0x5000100 + 4000, key | 0x42, from.piece(0, 200))),
		  CqeSyndrome::none);
	EXPECT_TRUE(same(b.bytes(pages[1], 100), a.bytes(from).subspan(96, 100)));

	/* The peer invalidates it by a SEND. */
	b.post_receive(*qp_b, {to.piece()});
	auto wqe = WqeBuilder(WqeOpcode::send_invalidate).add(from.piece(0, 10)).done();
	ib::be32 word = key | 0x42;
	std::memcpy(wqe.data() + 12, &word, 4);
	EXPECT_EQ(outcome(wqe), CqeSyndrome::none);
	Completion got = wait(b, cq_b);
	EXPECT_EQ(got.opcode, unsigned(hw::mlx4::CqeReceiveOpcode::send_invalidate));
	EXPECT_EQ(got.immediate, key | 0x42);
	/* The key is registered again with another variant, and invalidated locally. */
	EXPECT_EQ(register_key(key | 0x43), CqeSyndrome::none);
	WqeLocalInvalidate invalidate{};
	invalidate.key = key | 0x43;
	b.post_send(*qp_b, WqeBuilder(WqeOpcode::local_invalidate).add(invalidate).done());
	EXPECT_FALSE(wait(b, cq_b).is_error);
	EXPECT_EQ(outcome(write(0x5000100, key | 0x43, from.piece(0, 8))),
		  CqeSyndrome::remote_access);
}

/*
 * Local operations on keys fail with a memory management operation error (IBA 11.6.2). A QP that
 * may not register keys does not support the operation.
 */
TEST_F(Errors, InvalidFastRegisterAndLocalInvalidateWqesCompleteWithAnError)
{
	WqeFastRegister segment{};
	segment.key = from.key;
	segment.page_shift = 12;
	EXPECT_EQ(outcome(WqeBuilder(WqeOpcode::fast_register).add(segment).done()),
		  CqeSyndrome::window_bind)
		<< "a key in use";
	reconnect({});
	WqeLocalInvalidate invalidate{};
	invalidate.key = from.key;
	EXPECT_EQ(outcome(WqeBuilder(WqeOpcode::local_invalidate).add(invalidate).done()),
		  CqeSyndrome::window_bind)
		<< "an ordinary region";
	reconnect({});
	qp_a->fast_register = false;
	segment.key = a.free_key(1);
	EXPECT_EQ(outcome(WqeBuilder(WqeOpcode::fast_register).add(segment).done()),
		  CqeSyndrome::local_qp_operation);
}

} // namespace weft::mlx4::transport
