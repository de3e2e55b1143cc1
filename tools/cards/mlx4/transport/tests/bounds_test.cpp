// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Tests the limits of the host resources that one guest can use through the data path, as listed in
 * Documentation/connectx.rst, "What one guest can take".
 */
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include <malloc.h>

#include <gtest/gtest.h>

#include "cards/mlx4/limits.hpp"
#include "cards/hca/transport/engine.hpp"
#include "cards/mlx4/transport/tests/pair.hpp"

namespace weft::mlx4::transport
{

namespace
{

class Bounds : public Pair
{
public:
	CompletionQueue &cq_a = a.create_cq();
	CompletionQueue &cq_b = b.create_cq();

	static Engine &engine(Node &node) { return static_cast<Engine &>(node.transport()); }
	static QpOptions of(ServiceType service)
	{
		QpOptions options;
		options.service = service;
		return options;
	}
	QueuePair &datagram_qp(Node &node, CompletionQueue &cq)
	{
		QueuePair &qp = node.create_qp(of(ServiceType::ud), cq, cq);
		node.modify(qp, QpState::rtr);
		node.modify(qp, QpState::rts);
		settle(); /* so that a doorbell is processed at once */
		return qp;
	}
	static WqeDatagram to_b(const QueuePair &qp)
	{
		WqeDatagram segment{};
		segment.address.port_pd = 1u << 24 | 7;
		segment.address.dlid = 2;
		segment.qpn_word = qp.qpn;
		segment.qkey = 0x1111;
		return segment;
	}
	static WqeDatagram multicast_to(const ib::Gid &group)
	{
		WqeDatagram segment{};
		segment.address.port_pd = 1u << 24 | 7;
		segment.address.dlid = 0xc000;
		segment.address.grh_path_bits = 0x80;
		std::memcpy(segment.address.dgid, group.raw, sizeof(group.raw));
		segment.qpn_word = ib::qpn_multicast;
		segment.qkey = 0x1111;
		return segment;
	}
	/* Returns a large send whose segments have one byte each. */
	static std::vector<std::byte> crumbs(const QueuePair &into, const WqeData &data)
	{
		constexpr std::array<std::byte, 44> header{};
		return WqeBuilder(WqeOpcode::lso)
			.add(to_b(into))
			.add(WqeLso{1u << 16 | header.size()})
			.raw(header)
			.add(data)
			.done();
	}
	/* Creates a group with @count members, which are all the same QP. */
	static void enter(Node &node, const ib::Gid &group, std::uint32_t qpn, std::size_t count)
	{
		constexpr unsigned log_entry = 12, log_hash = 4;
		constexpr std::size_t members_offset = hw::mlx4::McgHeader::size;
		constexpr std::size_t room = ((1u << log_entry) - members_offset) / 4;
		MulticastTable &table = node.card().multicast;
		table.reset(log_entry, 1u << log_hash, log_hash + 1);
		std::uint32_t index = table.hash(group), free = 1u << log_hash;
		while (count) {
			const std::size_t here = std::min(count, room);
			count -= here;
			std::vector<std::uint8_t> entry(table.entry_size());
			using hw::mlx4::McgHeader;
			McgHeader::next.set(entry.data(), count ? free : 0);
			McgHeader::member_count.set(entry.data(), static_cast<std::uint32_t>(here));
			std::memcpy(entry.data() + McgHeader::gid, group.raw, sizeof(group.raw));
			for (std::size_t i = 0; i < here; i++)
				hw::mlx4::store_be32(entry.data(), members_offset + 4 * i, qpn);
			ASSERT_TRUE(table.write(index, entry));
			index = free++;
		}
	}
	static std::size_t heap_bytes() { return mallinfo2().uordblks; }
};

} // namespace

/*
 * A large send is split only as its segments can be sent. One with 2^18 segments uses no more host
 * memory than the packets that have credits, and other QPs of the card run before it ends.
 */
TEST_F(Bounds, LsoSendWaitsForLinkCreditsAndOtherQpsCanSendMeanwhile)
{
	QueuePair &from = datagram_qp(a, cq_a), &into = datagram_qp(b, cq_b);
	CompletionQueue &cq_other = a.create_cq();
	QueuePair &other = datagram_qp(a, cq_other);
	Region data = a.region(1 << 18), room = b.region(4096);
	const std::size_t before = heap_bytes();
	a.post_send(from, crumbs(into, data.piece()));
	ASSERT_GT(port_a.counters().xmit_packets.load(), 0u);
	for (unsigned i = 0; i < 64; i++)
		a.poll(); /* until no credit is left */
	EXPECT_LT(heap_bytes() - before, std::size_t{1} << 20);

	b.post_receive(into, {room.piece()});
	a.post_send(other,
		    WqeBuilder(WqeOpcode::send).add(to_b(into)).add(data.piece(0, 64)).done());
	wait_good(a, cq_other, 1);
	EXPECT_FALSE(a.poll_cq(cq_a)) << "the large send has ended first";
}

/* A credit wakes only QPs that wait for its VL. */
TEST_F(Bounds, LinkCreditWakesOnlyQpsThatWaitForTheVlOfTheCredit)
{
	a.card().port(1)->managed().sl_to_vl.set_vl(1, 1);
	QueuePair &into = datagram_qp(b, cq_b);
	Region data = a.region(1 << 12);
	constexpr unsigned others = 5;
	std::vector<QueuePair *> queues;
	for (unsigned i = 0; i <= others; i++)
		queues.push_back(&datagram_qp(a, cq_a));
	for (QueuePair *from : queues) {
		constexpr std::array<std::byte, 44> header{};
		WqeDatagram segment = to_b(into);
		segment.address.sl_class_flow = (from == queues.back() ? 1u : 0u) << 28;
		a.post_send(*from, WqeBuilder(WqeOpcode::lso)
					   .add(segment)
					   .add(WqeLso{1u << 16 | header.size()})
					   .raw(header)
					   .add(data.piece())
					   .done());
	}
	const auto refused = [&] {
		for (unsigned i = 0; i < 256; i++)
			a.poll();
		return port_a.counters().xmit_wait.load();
	};
	const auto before = refused();
	ASSERT_GE(before, others + 1) << "each has found no credit";
	ASSERT_EQ(refused(), before) << "and looks for none by itself";
	a.transport().credit_available(1, 1);
	EXPECT_EQ(refused(), before + 1);
	a.transport().credit_available(1, 0);
	EXPECT_EQ(refused(), before + 1 + others);
	a.transport().credit_available(1, 2);
	EXPECT_EQ(refused(), before + 1 + others);
	wait_good(a, cq_a, others + 1);
}

/*
 * A large send in progress counts as one request: it is flushed as one request, and a drain waits
 * for it.
 */
TEST_F(Bounds, LsoSendGetsOneCompletionIfTheSqIsDrainedOrFlushed)
{
	QueuePair &from = datagram_qp(a, cq_a), &into = datagram_qp(b, cq_b);
	Region data = a.region(5000);
	a.post_send(from, crumbs(into, data.piece()));
	ASSERT_GT(port_a.counters().xmit_packets.load(), 0u);
	ASSERT_FALSE(a.poll_cq(cq_a)) << "too quick for this test";
	from.sqd_event = true;
	a.take_events();
	a.modify(from, QpState::sq_draining);
	wait_good(a, cq_a, 1);
	settle();
	EXPECT_EQ(from.state, QpState::sqd);
	EXPECT_EQ(a.take_events().size(), 1u);

	a.modify(from, QpState::rts);
	const auto cut_short = a.post_send(from, crumbs(into, data.piece()));
	const auto behind = a.post_send(from, crumbs(into, data.piece()));
	a.modify(from, QpState::err);
	for (std::uint16_t index : {cut_short, behind}) {
		Completion flushed = wait(a, cq_a);
		EXPECT_EQ(flushed.syndrome, CqeSyndrome::flushed);
		EXPECT_EQ(flushed.wqe_index, index);
	}
	settle();
	EXPECT_FALSE(a.poll_cq(cq_a));
}

/* A QP has one timer, however often its deadline changes. */
TEST_F(Bounds, RnrRetriesOfAQpUseOneTimer)
{
	QpOptions options;
	options.ack_timeout = 31; /* hours */
	QueuePair &from = a.create_qp(options, cq_a, cq_a),
		  &into = b.create_qp(options, cq_b, cq_b);
	a.connect(from, b, into, options);
	b.connect(into, a, from, options);
	Region data = a.region(64);
	a.post_send(from, WqeBuilder(WqeOpcode::send).add(data.piece()).done());
	ASSERT_TRUE(run([&] { return a.card().diagnostics.sq_rnr_naks >= 100; }));
	EXPECT_EQ(engine(a).timers(), 1u);
	a.destroy(from);
	EXPECT_EQ(engine(a).timers(), 0u);
}

/* QPs that are due at the same time are processed in slices. */
TEST_F(Bounds, NumberOfExpiredQpTimersProcessedPerLoopIterationIsLimited)
{
	constexpr std::uint32_t qps = 200;
	QpOptions options;
	options.log_send = options.log_receive = 1;
	options.ack_timeout = 16; /* 268 ms */
	options.retry_count = 0;
	Region data = a.region(64);
	for (std::uint32_t i = 0; i < qps; i++) {
		QueuePair &from = a.create_qp(options, cq_a, cq_a),
			  &into = b.create_qp(options, cq_b, cq_b);
		a.connect(from, b, into, options);
		a.post_send(from, WqeBuilder(WqeOpcode::send).add(data.piece()).done());
	}
	settle(); /* everything is sent, and there is no response */
	Loop &loop = a.host().loop();
	const auto due = loop.now() + std::chrono::milliseconds(600);
	std::optional<std::uint32_t> timed_out;
	Timer next(loop, [&] { timed_out = a.card().diagnostics.sq_retries_exceeded; });
	next.arm_at(due);
	/* The loop must not run before all of them are due. */
	while (loop.now() <= due)
		std::this_thread::sleep_until(due);
	ASSERT_TRUE(run([&] { return timed_out.has_value(); }));
	EXPECT_EQ(*timed_out, Engine::kSliceTimers);
	EXPECT_TRUE(run([&] { return a.card().diagnostics.sq_retries_exceeded == qps; }));
}

/*
 * A peer makes all QPs to which it is connected fail at once. Events that do not fit into the
 * guest's event queue wait for space. No event is lost, the queue stays valid, and some space is
 * left for events that the guest itself and the subnet manager cause.
 */
TEST_F(Bounds, AccessViolationEventsAreDelayedUntilTheEventQueueHasSpace)
{
	constexpr unsigned qps = 600, log_queue = 9;
	QpOptions options;
	options.log_send = options.log_receive = 1;
	b.bound_event_queue(log_queue);
	Region data = a.region(64);
	std::vector<QueuePair *> failing;
	for (unsigned i = 0; i < qps; i++) {
		QueuePair &from = a.create_qp(options, cq_a, cq_a);
		failing.push_back(&b.create_qp(options, cq_b, cq_b));
		a.connect(from, b, *failing.back(), options);
		b.connect(*failing.back(), a, from, options);
		a.post_send(from, WqeBuilder(WqeOpcode::rdma_write)
					  .add(WqeRemoteAddress{0, 0xbad00, 0})
					  .add(data.piece())
					  .done());
	}
	for (unsigned i = 0; i < qps; i++)
		EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::remote_access);
	EXPECT_EQ(b.event_queue_status(), hw::mlx4::eq_status::ok);

	/* Pending events of a destroyed QP are dropped. */
	const std::uint32_t gone = failing.back()->qpn;
	b.destroy(*failing.back());
	std::set<std::uint32_t> reported;
	std::size_t most = 0;
	for (;;) {
		const auto events = b.take_events();
		if (events.empty())
			break;
		most = std::max(most, events.size());
		for (const Event &event : events) {
			EXPECT_EQ(event.type, EventType::wq_access_violation);
			EXPECT_TRUE(reported.insert(event.number).second) << event.number;
		}
		b.acknowledge_events();
	}
	EXPECT_EQ(reported.size(), qps - 1);
	EXPECT_FALSE(reported.contains(gone));
	EXPECT_EQ(most, (1u << log_queue) - EventQueue::kReserve);
	EXPECT_EQ(b.event_queue_status(), hw::mlx4::eq_status::ok);
}

/*
 * Requests are prefetched up to a limit for each QP and for each card. Beyond the card's limit, a
 * QP gets one request at a time, so that it makes progress.
 */
TEST_F(Bounds, NumberOfPrefetchedSendRequestsIsLimited)
{
	constexpr std::size_t qps = 40, each = 512;
	static_assert(qps * each > Requester::kHeldAllMax + qps);
	QpOptions options;
	options.log_send = 9;
	options.ack_timeout = 17; /* a second */
	CompletionQueue &many = a.create_cq(15);
	Region to = b.region(4096);
	std::vector<QueuePair *> from;
	link.set_plugged(false);
	for (std::size_t i = 0; i < qps; i++) {
		from.push_back(&a.create_qp(options, many, many));
		QueuePair &into = b.create_qp(options, cq_b, cq_b);
		a.connect(*from.back(), b, into, options);
		b.connect(into, a, *from.back(), options);
		for (std::size_t n = 0; n < each; n++)
			a.post(*from.back(), WqeBuilder(WqeOpcode::rdma_write)
						     .add(WqeRemoteAddress{to.address, to.key, 0})
						     .done());
		a.ring(*from.back());
	}
	const Requester &requester = engine(a).requester();
	ASSERT_TRUE(run([&] { return requester.held() >= Requester::kHeldAllMax; }));
	for (std::size_t i = 0; i < qps; i++)
		a.poll();
	EXPECT_LE(requester.held(), Requester::kHeldAllMax + qps);
	link.set_plugged(true);
	wait_good(a, many, qps * each);
	EXPECT_EQ(requester.held(), 0u);
}

/*
 * Data that UC has completed is kept in copies until it is delivered. The copies are limited,
 * however large the messages are and however slow the receiver is.
 */
TEST_F(Bounds, MemoryUsedForCopiesOfDataInFlightIsLimited)
{
	QpOptions options = of(ServiceType::uc);
	options.mtu = ib::Mtu::mtu_4096;
	QueuePair &from = a.create_qp(options, cq_a, cq_a),
		  &into = b.create_qp(options, cq_b, cq_b);
	a.connect(from, b, into, options);
	b.connect(into, a, from, options);
	constexpr std::uint64_t message = 1 << 20;
	Region data = a.region(message), room = b.region(message);
	const std::size_t before = heap_bytes();
	constexpr unsigned messages = 32;
	for (unsigned i = 0; i < messages; i++)
		a.post_send(from, WqeBuilder(WqeOpcode::rdma_write)
					  .add(WqeRemoteAddress{room.address, room.key, 0})
					  .add(data.piece())
					  .done());
	for (unsigned i = 0; i < 256; i++)
		a.poll(); /* to the last credit */
	constexpr std::size_t a_packet_a_credit = fabric::Port::kDefaultCredits * 4096;
	EXPECT_LT(heap_bytes() - before, Requester::kCopiedMax + 2 * a_packet_a_credit);
	EXPECT_GE(engine(a).requester().copied(), Requester::kCopiedMax);
	wait_good(a, cq_a, messages);
	settle();
	EXPECT_EQ(engine(a).requester().copied(), 0u);
}

/*
 * While a packet is delivered to the maximum number of members, other packets are processed in
 * between.
 */
TEST_F(Bounds, PacketsToOtherQpsAreDeliveredDuringMulticastToManyMembers)
{
	CompletionQueue &cq = b.create_cq(14);
	QpOptions options = of(ServiceType::ud);
	options.log_receive = 13;
	QueuePair &member = b.create_qp(options, cq, cq);
	b.modify(member, QpState::rtr);
	QueuePair &from = datagram_qp(a, cq_a), &other = datagram_qp(b, cq);
	Region data = a.region(64), room = b.region(4096);
	const ib::Gid group = ib::Gid::from_parts(0xff12401bffff0000, 1);
	enter(b, group, member.qpn, MulticastTable::kMostMembers);
	for (std::size_t i = 0; i < 2 * MulticastTable::kMostMembers; i++)
		b.post_receive(member, {room.piece()});
	b.post_receive(other, {room.piece()});

	const WqeDatagram to_group = multicast_to(group);
	for (const WqeDatagram &to : {to_group, to_group, to_b(other)})
		a.post_send(from, WqeBuilder(WqeOpcode::send).add(to).add(data.piece()).done());
	unsigned before = 0, after = 0;
	bool other_served = false;
	ASSERT_TRUE(run([&] {
		while (auto completion = b.poll_cq(cq)) {
			if (completion->qpn == other.qpn)
				other_served = true;
			else
				++(other_served ? after : before);
		}
		return before + after == 2 * MulticastTable::kMostMembers;
	}));
	EXPECT_LT(before, MulticastTable::kMostMembers / 16) << "the others waited for all members";
}

/*
 * A card that delivers to many members of a group returns the credits of the link at once, so that
 * the sender's packets to other receivers are not delayed. Packets for which the card's queue has
 * no space are dropped and counted.
 */
TEST_F(Bounds, LinkCreditIsReturnedBeforeAMulticastPacketIsReplicated)
{
	constexpr unsigned credits = fabric::Port::kDefaultCredits;
	constexpr unsigned packets = 4 * credits;
	QpOptions options = of(ServiceType::ud);
	options.log_send = 11;
	QueuePair &from = a.create_qp(options, cq_a, cq_a);
	a.modify(from, QpState::rtr);
	a.modify(from, QpState::rts);
	QueuePair &member = datagram_qp(b, cq_b), &other = datagram_qp(b, cq_b);
	Region data = a.region(64), room = b.region(4096);
	const ib::Gid group = ib::Gid::from_parts(0xff12401bffff0000, 1);
	enter(b, group, member.qpn, MulticastTable::kMostMembers);
	b.post_receive(other, {room.piece()});
	const std::size_t before = heap_bytes();
	for (unsigned i = 0; i < packets; i++)
		a.post(from, WqeBuilder(WqeOpcode::send, 0)
				     .add(multicast_to(group))
				     .add(data.piece())
				     .done());
	a.post_send(from, WqeBuilder(WqeOpcode::send).add(to_b(other)).add(data.piece()).done());
	/* The card has received all packets, and has delivered few of them to the members. */
	for (unsigned i = 0; i < packets / credits + 1; i++) {
		a.poll();
		b.deliver();
	}
	EXPECT_TRUE(a.poll_cq(cq_a)) << "the sender waits for a credit";
	const auto arrived = b.poll_cq(cq_b);
	ASSERT_TRUE(arrived);
	EXPECT_EQ(arrived->qpn, other.qpn);
	EXPECT_LE(engine(b).fan_outs(), Engine::kFanOutsMax);
	EXPECT_EQ(b.card().diagnostics.multicast_dropped, packets - Engine::kFanOutsMax);
	EXPECT_LT(heap_bytes() - before, std::size_t{4} << 20);
}

/*
 * No doorbell reports a receive that is posted in the error state, so the card polls for it.
 * However many QPs stay there, one timer polls all of them.
 */
TEST_F(Bounds, QpsInTheErrorStateShareOneTimer)
{
	constexpr unsigned qps = 1000;
	QpOptions options;
	options.log_send = options.log_receive = 1;
	CompletionQueue &cq = a.create_cq(12);
	Region data = a.region(64);
	std::vector<QueuePair *> all;
	for (unsigned i = 0; i < qps; i++) {
		all.push_back(&a.create_qp(options, cq, cq));
		a.modify(*all.back(), QpState::err);
	}
	ASSERT_TRUE(run([&] { return engine(a).timers() == 0; }))
		<< engine(a).timers() << " timers for QPs that do nothing";
	EXPECT_FALSE(a.poll_cq(cq));

	/* Each receive is noticed, and so is a second one. */
	for (unsigned round = 0; round < 2; round++) {
		for (QueuePair *qp : {all.front(), all[qps / 2], all.back()})
			a.post_receive(*qp, {data.piece()});
		for (unsigned i = 0; i < 3; i++)
			EXPECT_EQ(wait(a, cq).syndrome, CqeSyndrome::flushed);
	}
	ASSERT_TRUE(run([&] { return engine(a).timers() == 0; }));
	/* Destroyed QPs are not polled any more. */
	for (QueuePair *qp : all)
		a.destroy(*qp);
	settle();
}

} // namespace weft::mlx4::transport
