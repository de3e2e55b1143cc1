// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests datagrams between two cards: UD, multicast, and the special QPs.
#include <gtest/gtest.h>

#include "cards/mlx4/transport/tests/pair.hpp"
#include "core/wire/headers.hpp"

namespace weft::mlx4::transport
{

using hw::mlx4::Cqe;
using hw::mlx4::CqeReceiveOpcode;

namespace
{

constexpr std::uint32_t kSpecialBase = 0x40;

class Datagram : public Pair
{
public:
	static QpOptions ud()
	{
		QpOptions options;
		options.service = ServiceType::ud;
		return options;
	}
	QueuePair &make(Node &node, CompletionQueue &cq, const QpOptions &options = ud())
	{
		QueuePair &qp = node.create_qp(options, cq, cq);
		node.modify(qp, QpState::rtr);
		node.modify(qp, QpState::rts);
		return qp;
	}
	static WqeDatagram to(const Node &, ib::Lid lid, std::uint32_t qpn,
			      std::uint32_t qkey = 0x1111)
	{
		WqeDatagram segment{};
		segment.address.port_pd = 1u << 24 | 7;
		segment.address.dlid = lid;
		segment.qpn_word = qpn;
		segment.qkey = qkey;
		return segment;
	}
	static void set_group(WqeDatagram &segment, const ib::Gid &group)
	{
		segment.address.dlid = 0xc000;
		segment.address.grh_path_bits = 0x80;
		std::memcpy(segment.address.dgid, group.raw, 16);
		segment.qpn_word = ib::qpn_multicast;
	}
	/* Attaches QPs to a multicast group as the driver does. */
	static void join(Node &node, const ib::Gid &group,
			 const std::vector<std::uint32_t> &members)
	{
		std::vector<std::uint8_t> entry(node.card().multicast.entry_size());
		hw::mlx4::McgHeader::member_count.set(entry.data(),
						      static_cast<std::uint32_t>(members.size()));
		std::memcpy(entry.data() + hw::mlx4::McgHeader::gid, group.raw, 16);
		for (std::size_t i = 0; i < members.size(); i++)
			hw::mlx4::store_be32(entry.data(), 0x20 + 4 * i, members[i]);
		ASSERT_TRUE(node.card().multicast.write(node.card().multicast.hash(group), entry));
	}

	CompletionQueue &cq_a = a.create_cq();
	CompletionQueue &cq_b = b.create_cq();
};

} // namespace

/*
 * The payload of a datagram follows the space for a GRH, and the completion identifies the sender.
 */
TEST_F(Datagram, UdSendIsDelivered)
{
	QueuePair &from = make(a, cq_a), &into = make(b, cq_b);
	Region data = a.region(2048), room = b.region(4096);
	fill(a.bytes(data));
	b.post_receive(into, {room.piece()});
	a.post_send(from, WqeBuilder(WqeOpcode::send)
				  .add(to(b, 2, into.qpn))
				  .add(data.piece(0, 1001))
				  .done());
	wait_good(a, cq_a, 1);
	Completion got = wait(b, cq_b);
	EXPECT_EQ(got.byte_count, 1041u);
	EXPECT_EQ(got.qpn, into.qpn);
	EXPECT_EQ(got.opcode, unsigned(CqeReceiveOpcode::send));
	EXPECT_EQ(got.raw.remote_qpn(), from.qpn);
	EXPECT_EQ(got.raw.source_lid, 1);
	EXPECT_FALSE(got.raw.grh());
	EXPECT_TRUE(same(b.bytes(room.address + 40, 1001), a.bytes(data).first(1001)));
}

/*
 * Packets address QP0 by number 0 on VL 15. If they could use the number that its driver uses, any
 * datagram could reach it.
 */
TEST_F(Datagram, PacketAddressedToTheInternalQpNumberOfQp0IsNotDelivered)
{
	b.card().special_qps.set(kSpecialBase);
	QpOptions options = ud();
	options.service = ServiceType::whole_packet;
	options.qpn = kSpecialBase;
	QueuePair &from = make(a, cq_a), &smi = make(b, cq_b, options), &other = make(b, cq_b);
	Region data = a.region(256), room = b.region(2 * 4096);
	b.post_receive(smi, {room.piece(0, 4096)});
	b.post_receive(other, {room.piece(4096, 4096)});
	for (std::uint32_t qpn : {smi.qpn, other.qpn})
		a.post_send(
			from,
			WqeBuilder(WqeOpcode::send).add(to(b, 2, qpn)).add(data.piece()).done());
	wait_good(a, cq_a, 2);
	/* If both arrived, they would arrive in order. */
	EXPECT_EQ(wait(b, cq_b).qpn, other.qpn);
}

/* A GRH is stored in the first 40 bytes, so that the receiver can reply. */
TEST_F(Datagram, GrhIsDeliveredBeforeThePayload)
{
	QueuePair &from = make(a, cq_a), &into = make(b, cq_b);
	Region data = a.region(64), room = b.region(4096);
	b.post_receive(into, {room.piece()});
	WqeDatagram segment = to(b, 2, into.qpn);
	segment.address.grh_path_bits = 0x80;
	segment.address.hop_limit = 9;
	ib::Gid target = b.port().gid(0);
	std::memcpy(segment.address.dgid, target.raw, 16);
	a.post_send(from, WqeBuilder(WqeOpcode::send).add(segment).add(data.piece()).done());
	Completion got = wait(b, cq_b);
	EXPECT_TRUE(got.raw.grh());
	auto &grh = b.host().object<ib::Grh>(room.address);
	EXPECT_EQ(grh.sgid, a.port().gid(0));
	EXPECT_EQ(grh.dgid, target);
	EXPECT_EQ(grh.hop_limit, 9);
}

/*
 * The DGID of a unicast packet is one of the port's (IBA 9.6.1.2), whatever its LIDs: the assigned
 * prefix and the default one both count.
 */
TEST_F(Datagram, DatagramWithADgidThatIsNotAGidOfThePortIsDropped)
{
	b.port().info().gid_prefix = 0xfec0000000001234;
	QueuePair &from = make(a, cq_a), &into = make(b, cq_b);
	Region data = a.region(64), room = b.region(4096);
	const std::uint64_t guid = b.port().guid();
	const auto arrives = [&](const ib::Gid &dgid) {
		WqeDatagram segment = to(b, 2, into.qpn);
		segment.address.grh_path_bits = 0x80;
		std::memcpy(segment.address.dgid, dgid.raw, 16);
		b.post_receive(into, {room.piece()});
		a.post_send(from,
			    WqeBuilder(WqeOpcode::send).add(segment).add(data.piece()).done());
		wait_good(a, cq_a, 1);
		settle();
		return b.poll_cq(cq_b).has_value();
	};
	EXPECT_TRUE(arrives(b.port().gid(0)));
	EXPECT_TRUE(arrives(ib::Gid::from_parts(ib::gid_prefix_link_local, guid)));
	EXPECT_FALSE(arrives(a.port().gid(0)));
	EXPECT_FALSE(arrives(ib::Gid::from_parts(ib::gid_prefix_link_local, guid + 1)));
	EXPECT_FALSE(arrives(ib::Gid::from_parts(0xfec0000000009999, guid)));
	EXPECT_FALSE(arrives(ib::Gid{}));
}

/* The same applies to a connection, where the packet is retransmitted. */
TEST_F(Datagram, RcPacketWithADgidThatIsNotAGidOfThePortIsDropped)
{
	QpOptions options;
	options.retry_count = 1;
	QueuePair &from = a.create_qp(options, cq_a, cq_a),
		  &into = b.create_qp(options, cq_b, cq_b);
	from.path.grh = into.path.grh = true;
	from.path.remote_gid = ib::Gid::from_parts(ib::gid_prefix_link_local, 0x123);
	into.path.remote_gid = a.port().gid(0);
	a.connect(from, b, into, options);
	b.connect(into, a, from, options);
	Region data = a.region(64), room = b.region(4096);
	b.post_receive(into, {room.piece()});
	a.post_send(from, WqeBuilder(WqeOpcode::send).add(data.piece()).done());
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::retry_exceeded);
	EXPECT_FALSE(b.poll_cq(cq_b));
}

/*
 * Packets with wrong keys or unknown QP numbers, and packets without a receive, are dropped and
 * counted.
 */
TEST_F(Datagram, UndeliverableDatagramsAreDroppedAndCounted)
{
	QueuePair &from = make(a, cq_a), &into = make(b, cq_b);
	Region data = a.region(64), room = b.region(4096);
	auto send = [&](std::uint32_t qpn, std::uint32_t qkey) {
		a.post_send(from, WqeBuilder(WqeOpcode::send)
					  .add(to(b, 2, qpn, qkey))
					  .add(data.piece())
					  .done());
		wait_good(a, cq_a, 1);
		settle();
	};
	send(into.qpn, 0x1111);
	EXPECT_EQ(b.card().diagnostics.rq_ud_discarded, 1u) << "no receive was posted";
	b.post_receive(into, {room.piece()});
	send(into.qpn, 0x2222);
	EXPECT_EQ(b.port().info().qkey_violations, 1);
	/* The number has the same index in the QP table, but other upper bits. */
	send(into.qpn ^ 0x100000, 0x1111);
	b.port().managed().pkeys[0] = 0x8123;
	send(into.qpn, 0x1111);
	EXPECT_EQ(b.port().info().pkey_violations, 1);
	EXPECT_EQ(b.violations(), (std::vector{ib::trap_bad_qkey, ib::trap_bad_pkey}));
	EXPECT_FALSE(b.poll_cq(cq_b));
	b.port().managed().pkeys[0] = 0xffff;
	/* The highest bit selects the Q_Key of the QP itself. */
	send(into.qpn, 0x80000000);
	EXPECT_TRUE(b.poll_cq(cq_b));
}

/*
 * A send with a local error completes with it and stops the send queue. The receive queue
 * continues.
 */
TEST_F(Datagram, LocalSendErrorMovesTheQpToSqe)
{
	QueuePair &from = make(a, cq_a), &into = make(b, cq_b);
	Region data = a.region(8192);
	a.post(from, WqeBuilder(WqeOpcode::send).add(to(b, 2, into.qpn)).add(data.piece()).done());
	a.post_send(from, WqeBuilder(WqeOpcode::send, 0)
				  .add(to(b, 2, into.qpn))
				  .add(data.piece(0, 1))
				  .done());
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::local_length);
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::flushed);
	EXPECT_EQ(from.state, QpState::sqer);
	Region room = a.region(4096);
	a.post_receive(from, {room.piece()});
	Region back = b.region(64);
	b.post_send(into,
		    WqeBuilder(WqeOpcode::send).add(to(a, 1, from.qpn)).add(back.piece()).done());
	EXPECT_FALSE(wait(a, cq_a).is_error);
	a.modify(from, QpState::rts);
	a.post_send(from, WqeBuilder(WqeOpcode::send)
				  .add(to(b, 2, into.qpn))
				  .add(WqeData{64, data.key ^ 1, data.address})
				  .done());
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::local_protection);
}

/*
 * If the driver has enabled the check, an address vector with another PD or port is a local error.
 */
TEST_F(Datagram, SendFailsOnAnAddressVectorWithAWrongPortOrPdIfAddressVectorChecksAreEnabled)
{
	QueuePair &from = make(a, cq_a), &into = make(b, cq_b);
	Region data = a.region(64), room = b.region(4096);
	auto send = [&](std::uint32_t port, std::uint32_t pd) {
		WqeDatagram segment = to(b, 2, into.qpn);
		segment.address.port_pd = port << 24 | pd;
		b.post_receive(into, {room.piece()});
		a.post_send(from,
			    WqeBuilder(WqeOpcode::send).add(segment).add(data.piece()).done());
		return wait(a, cq_a);
	};
	for (const auto &[port, pd] : {std::pair{1u, 7u}, {2u, 7u}, {1u, 8u}}) {
		a.card().check_address_vectors = false;
		EXPECT_FALSE(send(port, pd).is_error) << port << " " << pd;
		EXPECT_FALSE(wait(b, cq_b).is_error);
		a.card().check_address_vectors = true;
		const Completion checked = send(port, pd);
		const bool own = port == 1 && pd == 7;
		ASSERT_EQ(checked.is_error, !own) << port << " " << pd;
		if (own) {
			EXPECT_FALSE(wait(b, cq_b).is_error);
		} else {
			EXPECT_EQ(checked.syndrome, CqeSyndrome::local_qp_operation);
			a.modify(from, QpState::rts);
		}
	}
}

/*
 * Credits that are returned while a cable is replaced are not reported. Senders that wait for
 * credits continue with the new cable.
 */
TEST_F(Datagram, SendsThatWaitForLinkCreditsContinueAfterTheLinkIsRestored)
{
	constexpr unsigned count = fabric::Port::kDefaultCredits + 16;
	QpOptions options = ud();
	options.log_send = 9;
	QueuePair &from = make(a, cq_a, options);
	Region data = a.region(64);
	for (unsigned i = 0; i < count; i++)
		a.post(from,
		       WqeBuilder(WqeOpcode::send).add(to(b, 2, 0x999)).add(data.piece()).done());
	a.ring(from);
	while (a.poll()) {
		/* to the last credit */
	}
	ASSERT_EQ(port_a.counters().xmit_packets.load(), count - 16);
	link.remove();
	while (b.poll()) {
		/* and returns all credits */
	}
	link.restore({});
	a.transport().port_changed(1);
	wait_good(a, cq_a, count);
}

/*
 * A datagram that is longer than a QP's receive does not move the QP to the error state, and the
 * receive is used for the next datagram.
 */
TEST_F(Datagram, DatagramLongerThanTheReceiveBufferIsDropped)
{
	QueuePair &from = make(a, cq_a), &into = make(b, cq_b);
	Region data = a.region(64), room = b.region(4096);
	b.post_receive(into, {room.piece(0, 64)}); /* too short by the size of the GRH */
	const auto send = [&](std::uint32_t bytes) {
		a.post_send(from, WqeBuilder(WqeOpcode::send)
					  .add(to(b, 2, into.qpn))
					  .add(data.piece(0, bytes))
					  .done());
		EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::none);
		settle();
	};
	send(64);
	EXPECT_FALSE(b.poll_cq(cq_b));
	EXPECT_EQ(into.state, QpState::rts);
	EXPECT_EQ(b.card().diagnostics.rq_ud_discarded, 1u);
	send(24);
	auto done = wait(b, cq_b);
	EXPECT_EQ(done.syndrome, CqeSyndrome::none);
	EXPECT_EQ(done.byte_count, 64u);
}

/*
 * A datagram that is too long completes the receive request of the SRQ with an error, because other
 * QPs may already have taken later requests of the queue. The QP stays in its state.
 */
TEST_F(Datagram, DatagramLongerThanTheSrqBufferFailsTheReceive)
{
	QpOptions options = ud();
	SharedReceiveQueue &srq = b.create_srq(4);
	options.srqn = srq.number();
	QueuePair &from = make(a, cq_a), &into = make(b, cq_b, options);
	Region data = a.region(64), room = b.region(4096);
	b.post_srq(srq, {room.piece(0, 64)});
	a.post_send(from,
		    WqeBuilder(WqeOpcode::send).add(to(b, 2, into.qpn)).add(data.piece()).done());
	EXPECT_EQ(wait(b, cq_b).syndrome, CqeSyndrome::local_length);
	EXPECT_EQ(into.state, QpState::rts);
}

/*
 * A multicast packet is delivered once to each member on both sides, and to its sender unless
 * loopback is blocked.
 */
TEST_F(Datagram, MulticastIsDeliveredToAttachedQps)
{
	QueuePair &sender = make(a, cq_a), &here = make(a, cq_a);
	QueuePair &there1 = make(b, cq_b), &there2 = make(b, cq_b), &outside = make(b, cq_b);
	ib::Gid group = ib::Gid::from_parts(0xff12401bffff0000, 0xffffffff);
	constexpr std::uint32_t block = 1u << 30;
	join(a, group, {sender.qpn | block, here.qpn});
	join(b, group, {there1.qpn, there2.qpn | block});
	Region data = a.region(64), room_a = a.region(4096), room_b = b.region(4096);
	fill(a.bytes(data));
	for (QueuePair *qp : {&sender, &here})
		a.post_receive(*qp, {room_a.piece()});
	for (QueuePair *qp : {&there1, &there2, &outside})
		b.post_receive(*qp, {room_b.piece()});
	WqeDatagram segment = to(b, 0, 0);
	set_group(segment, group);
	a.post_send(sender, WqeBuilder(WqeOpcode::send).add(segment).add(data.piece()).done());
	settle();
	std::vector<std::uint32_t> got;
	while (auto completion = a.poll_cq(cq_a))
		if (!completion->is_send)
			got.push_back(completion->qpn);
	EXPECT_EQ(got, std::vector{here.qpn});
	got.clear();
	while (auto completion = b.poll_cq(cq_b))
		got.push_back(completion->qpn);
	EXPECT_EQ(got, (std::vector{there1.qpn, there2.qpn}));
	EXPECT_TRUE(same(b.bytes(room_b.address + 40, 64), a.bytes(data)));
}

/* A multicast packet names the multicast QP number, and no other packet does (IBA 9.6.1.1). */
TEST_F(Datagram, MulticastPacketWithoutTheMulticastQpnIsDropped)
{
	QueuePair &sender = make(a, cq_a), &member = make(b, cq_b);
	const ib::Gid group = ib::Gid::from_parts(0xff12401bffff0000, 7);
	join(b, group, {member.qpn});
	Region data = a.region(64), room = b.region(4096);
	b.post_receive(member, {room.piece()});
	WqeDatagram segment = to(b, 0, 0);
	set_group(segment, group);
	const auto send = [&](std::uint32_t qpn, ib::Lid dlid) {
		segment.qpn_word = qpn;
		segment.address.dlid = dlid;
		a.post_send(sender,
			    WqeBuilder(WqeOpcode::send).add(segment).add(data.piece()).done());
		wait_good(a, cq_a, 1);
		settle();
	};
	for (std::uint32_t qpn : {member.qpn, 5u, 1u, 0xfffffeu})
		send(qpn, 0xc000);
	send(ib::qpn_multicast, 2);
	EXPECT_FALSE(b.poll_cq(cq_b));
	send(ib::qpn_multicast, 0xc000);
	EXPECT_TRUE(b.poll_cq(cq_b));
}

/* A datagram to the port's own LID is delivered without a link. */
TEST_F(Datagram, DatagramToTheSendersOwnLidIsDeliveredWithoutALink)
{
	QueuePair &from = make(a, cq_a), &into = make(a, cq_a);
	Region data = a.region(64), room = a.region(4096);
	fill(a.bytes(data));
	link.set_plugged(false);
	a.post_receive(into, {room.piece()});
	a.post_send(from,
		    WqeBuilder(WqeOpcode::send).add(to(a, 1, into.qpn)).add(data.piece()).done());
	wait_good(a, cq_a, 2);
	EXPECT_TRUE(same(a.bytes(room.address + 40, 64), a.bytes(data)));
}

/* A large send creates segments with valid checksums, and the receiver reports them as valid. */
TEST_F(Datagram, LsoSegmentsHaveValidChecksums)
{
	QueuePair &from = make(a, cq_a), &into = make(b, cq_b);
	std::vector<std::byte> header(4 + 20 + 20);
	auto put = [&](std::size_t at, unsigned size, std::uint32_t value) {
		for (unsigned i = 0; i < size; i++)
			header[at + i] = static_cast<std::byte>(value >> 8 * (size - 1 - i));
	};
	put(0, 2, 0x0800);
	put(4, 1, 0x45);
	put(13, 1, 6);
	put(16, 4, 0x0a000001);
	put(20, 4, 0x0a000002);
	put(36, 1, 0x50);
	Region data = a.region(5000), room = b.region(8 * 4096);
	fill(a.bytes(data));
	for (unsigned i = 0; i < 8; i++)
		b.post_receive(into, {room.piece(i * 4096, 4096)});

	WqeBuilder wqe(WqeOpcode::lso,
		       WqeControl::completion | WqeControl::ip_checksum | WqeControl::l4_checksum);
	wqe.add(to(b, 2, into.qpn)).add(WqeLso{1400u << 16 | 44});
	wqe.raw(header);
	a.post_send(from, wqe.add(data.piece()).done());
	wait_good(a, cq_a, 1);
	std::vector<std::byte> joined;
	for (unsigned i = 0; i < 4; i++) {
		Completion got = wait(b, cq_b);
		EXPECT_EQ(got.raw.checksum_flags, Cqe::l4_checksum_ok) << i;
		EXPECT_EQ(got.raw.status, Cqe::ipv4 | Cqe::tcp | Cqe::ip_checksum_ok);
		auto bytes = b.bytes(room.address + i * 4096 + 40 + 44, got.byte_count - 84);
		joined.insert(joined.end(), bytes.begin(), bytes.end());
	}
	EXPECT_TRUE(same(joined, a.bytes(data)));
	settle();
	EXPECT_FALSE(a.poll_cq(cq_a)) << "one completion for all segments";
}

/*
 * Special QPs can send only datagrams. A packet of another transport could claim to come from
 * another QP.
 */
TEST_F(Datagram, SendOfAnRcPacketOnASpecialQpFailsWithALocalQpOperationError)
{
	a.card().special_qps.set(kSpecialBase);
	QpOptions options = ud();
	options.service = ServiceType::whole_packet;
	options.qpn = kSpecialBase + 2;
	QueuePair &from = make(a, cq_a, options);
	packet::Headers headers;
	headers.lrh.dlid = 2;
	headers.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::ack);
	headers.bth.pkey = 0xffff;
	std::uint8_t raw[ib::headers_max];
	unsigned size = 0;
	ASSERT_EQ(packet::build(headers, 0, raw, sizeof(raw), &size), packet::Error::none);
	a.post_send(from, WqeBuilder(WqeOpcode::send)
				  .add_inline(std::as_bytes(std::span(raw).first(size)))
				  .inline_bytes(4)
				  .done());
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::local_qp_operation);
	EXPECT_EQ(port_a.counters().xmit_packets.load(), 0u);
}

/*
 * Packets on VL 15 reach only QP0. If a special QP sends other packets on VL 15, they have not been
 * checked for port state and partition, and are dropped.
 */
TEST_F(Datagram, Vl15PacketsReachOnlyQp0)
{
	a.card().special_qps.set(kSpecialBase);
	QpOptions options = ud();
	options.service = ServiceType::whole_packet;
	options.qkey = ib::qkey_gsi;
	options.qpn = kSpecialBase + 2;
	QueuePair &from = make(a, cq_a, options), &into = make(b, cq_b);
	Region room = b.region(2 * 4096);
	for (std::uint8_t vl : {15, 0}) {
		b.post_receive(into, {room.piece(0, 4096)});
		packet::Headers headers;
		headers.lrh.dlid = 2;
		headers.lrh.set_vl(vl);
		headers.bth.opcode = ib::opcode_ud_send_only;
		headers.bth.pkey = 0xffff;
		headers.bth.set_dest_qp(into.qpn);
		headers.deth.qkey = 0x1111;
		std::uint8_t raw[ib::headers_max];
		unsigned size = 0;
		ASSERT_EQ(packet::build(headers, 64, raw, sizeof(raw), &size), packet::Error::none);
		a.post_send(from, WqeBuilder(WqeOpcode::send)
					  .add_inline(std::as_bytes(std::span(raw).first(size)))
					  .inline_bytes(64)
					  .inline_bytes(4)
					  .done());
		wait_good(a, cq_a, 1);
		settle();
		EXPECT_EQ(b.poll_cq(cq_b).has_value(), vl == 0) << unsigned(vl);
	}
}

/*
 * The WQE of a special QP contains the packet headers, and the card sets the source LID. The packet
 * arrives at the peer's special QP, and QP1 reports the matching P_Key.
 */
TEST_F(Datagram, MadSentByASpecialQpArrivesAtThePeersSpecialQp)
{
	for (Node *node : {&a, &b})
		node->card().special_qps.set(kSpecialBase);
	auto special = [&](Node &node, CompletionQueue &cq, unsigned number) -> QueuePair & {
		QpOptions options = ud();
		options.service = ServiceType::whole_packet;
		options.qkey = number ? ib::qkey_gsi : 0;
		options.qpn = kSpecialBase + 2 * number;
		return make(node, cq, options);
	};
	b.port().managed().pkeys[3] = 0x8555;
	for (unsigned number : {0u, 1u}) {
		QueuePair &from = special(a, cq_a, number), &into = special(b, cq_b, number);
		Region room = b.region(4096), mad = a.region(256);
		fill(a.bytes(mad));
		b.post_receive(into, {room.piece()});

		packet::Headers headers;
		headers.lrh.dlid = 2;
		headers.lrh.set_vl(number == 0 ? 15 : 0);
		headers.bth.opcode = ib::opcode_ud_send_only;
		headers.bth.pkey = number ? 0x0555 : 0xffff; /* a limited member */
		headers.bth.set_dest_qp(number);
		headers.deth.qkey = number ? ib::qkey_gsi : 0;
		headers.deth.src_qp = number;
		std::uint8_t raw[ib::headers_max];
		unsigned size = 0;
		ASSERT_EQ(packet::build(headers, 256, raw, sizeof(raw), &size),
			  packet::Error::none);
		a.post_send(from, WqeBuilder(WqeOpcode::send)
					  .add_inline(std::as_bytes(std::span(raw).first(size)))
					  .add(mad.piece())
					  .inline_bytes(4)
					  .done());
		Completion sent = wait(a, cq_a), got = wait(b, cq_b);
		EXPECT_FALSE(sent.is_error) << unsigned(sent.syndrome);
		EXPECT_EQ(got.qpn, kSpecialBase + 2 * number) << "the number the driver knows";
		EXPECT_EQ(got.raw.source_lid, 1) << "supplied by the card";
		EXPECT_EQ(got.raw.remote_qpn(), number);
		EXPECT_EQ(got.byte_count, 296u);
		EXPECT_EQ(got.immediate, number ? 3u : 0u) << "P_Key index";
		EXPECT_TRUE(same(b.bytes(room.address + 40, 256), a.bytes(mad)));
	}
}

} // namespace weft::mlx4::transport
