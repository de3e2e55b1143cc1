// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Tests that a card no longer reads guest memory after access to it was revoked, even if packets in
 * flight refer to that memory. The peer never receives data that the guest has written there later.
 */
#include <gtest/gtest.h>

#include "cards/mlx4/transport/tests/pair.hpp"
#include "cards/hca/transport/leases.hpp"

namespace weft::mlx4::transport
{

namespace
{

class GuestMemoryLease : public ConnectedPair
{
public:
	static constexpr std::byte kLeased{0x11}, kSecret{0x77};
	static constexpr std::uint64_t kSize = 4096;

	GuestMemoryLease() { std::ranges::fill(a.bytes(from), kLeased); }
	static std::vector<std::byte> write(const Region &to, const WqeData &data)
	{
		return WqeBuilder(WqeOpcode::rdma_write)
			.add(WqeRemoteAddress{to.address, to.key, 0})
			.add(data)
			.done();
	}
	/* b reads a's memory. The response stays in flight until b is polled. */
	void answer_a_read(std::uint32_t rkey)
	{
		b.post_send(*qp_b, WqeBuilder(WqeOpcode::rdma_read)
					   .add(WqeRemoteAddress{from.address, rkey, 0})
					   .add(to.piece())
					   .done());
		const std::uint64_t before = port_a.counters().xmit_packets.load();
		a.poll();
		ASSERT_GT(port_a.counters().xmit_packets.load(), before);
	}
	/* Waits for a completion at a, without running b. */
	Completion wait_alone()
	{
		std::optional<Completion> completion;
		for (unsigned i = 0; i < 100 && !completion; i++) {
			a.poll();
			completion = a.poll_cq(cq_a);
		}
		EXPECT_TRUE(completion);
		return completion.value_or(Completion{});
	}
	/* The guest uses the pages for other data, and none of it must arrive. */
	void reuse_and_expect_nothing()
	{
		std::ranges::fill(a.bytes(from), kSecret);
		ASSERT_TRUE(run([&] { return port_b.counters().rcv_packets.load() != 0; }));
		settle();
		EXPECT_EQ(std::ranges::count(b.bytes(to), kSecret), 0);
	}

	Region from = a.region(kSize), to = b.region(kSize);
};

} // namespace

/* HW2SW_MPT of the region is executed while a packet is on a long link. */
TEST_F(GuestMemoryLease, MemoryIsNotReadAfterItsMrWasDestroyed)
{
	link.set_faults({.delay = std::chrono::milliseconds(20)});
	a.post_send(*qp_a, write(to, from.piece()));
	a.destroy_key(from.key);
	reuse_and_expect_nothing();
	EXPECT_EQ(wait(a, cq_a).syndrome, CqeSyndrome::local_protection) << "sent again in vain";
}

/* The command is 2RST_QP. */
TEST_F(GuestMemoryLease, MemoryIsNotReadAfterTheQpWasReset)
{
	a.post_send(*qp_a, write(to, from.piece()));
	a.destroy(*qp_a);
	reuse_and_expect_nothing();
	qp_a = &a.create_qp({}, cq_a, cq_a);
}

/*
 * After 2ERR, the completion of the flushed request shows the guest that it may reuse the buffer.
 */
TEST_F(GuestMemoryLease, MemoryIsNotReadAfterTheQpEnteredTheErrorState)
{
	a.post_send(*qp_a, write(to, from.piece()));
	a.modify(*qp_a, QpState::err);
	EXPECT_EQ(wait_alone().syndrome, CqeSyndrome::flushed);
	reuse_and_expect_nothing();
}

/*
 * Bus mastering is disabled, or guest memory is removed, for example unplugged
 * (Card::memory_changed()).
 */
TEST_F(GuestMemoryLease, MemoryIsNotReadAfterTheGuestRemovedIt)
{
	link.set_faults({.delay = std::chrono::milliseconds(20)});
	a.post_send(*qp_a, write(to, from.piece()));
	a.memory().set_memory(nullptr);
	a.transport().keys_changed();
	reuse_and_expect_nothing();
	a.memory().set_memory(&a.host().dma());
}

/* The same applies to a key of memory that the peer reads. */
TEST_F(GuestMemoryLease, RdmaReadByAPeerReturnsNoDataWrittenAfterTheMrWasDestroyed)
{
	answer_a_read(from.key);
	a.destroy_key(from.key);
	reuse_and_expect_nothing();
	EXPECT_TRUE(wait(b, cq_b).is_error);
}

/* The key is invalidated by a request; the lease ends before its completion. */
TEST_F(GuestMemoryLease, RdmaReadByAPeerReturnsNoDataWrittenAfterTheRkeyWasInvalidated)
{
	const std::uint32_t key = a.free_key(1);
	const std::uint64_t list = a.allocate(8);
	a.host().object<ib::be64>(list) = from.address | 1;
	WqeFastRegister segment{};
	segment.flags = WqeFastRegister::remote_read;
	segment.key = key;
	segment.page_list = list;
	segment.start = from.address;
	segment.length = from.length;
	segment.page_shift = 12;
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::fast_register).add(segment).done());
	EXPECT_FALSE(wait_alone().is_error);
	answer_a_read(key);
	WqeLocalInvalidate invalidate{};
	invalidate.key = key;
	a.post_send(*qp_a, WqeBuilder(WqeOpcode::local_invalidate).add(invalidate).done());
	EXPECT_FALSE(wait_alone().is_error);
	reuse_and_expect_nothing();
	EXPECT_TRUE(wait(b, cq_b).is_error);
}

/* Destroying a key does not affect data that is sent with another one. */
TEST_F(GuestMemoryLease, DestroyingAnMrDoesNotAbortTransfersFromOtherMrs)
{
	reconnect({.ack_timeout = 20, .retry_count = 0});
	Region other = a.region(64);
	a.post_send(*qp_a, write(to, from.piece()));
	a.destroy_key(other.key);
	wait_good(a, cq_a, 1);
	EXPECT_EQ(std::ranges::count(b.bytes(to), kLeased), static_cast<long>(kSize));
}

/* A request that may not invalidate a key ends no lease. */
TEST_F(GuestMemoryLease, RejectedInvalidationDoesNotAbortTransfers)
{
	reconnect({.ack_timeout = 20, .retry_count = 0});
	QueuePair &outsider = a.create_qp({}, cq_a, cq_a), &peer = b.create_qp({}, cq_b, cq_b);
	a.connect(outsider, b, peer, {});
	b.connect(peer, a, outsider, {});
	const std::uint64_t before = port_a.counters().xmit_packets.load();
	a.post_send(*qp_a, write(to, from.piece()));
	while (a.poll()) {
		/* until all of it is in flight */
	}
	ASSERT_GT(port_a.counters().xmit_packets.load(), before);
	WqeLocalInvalidate invalidate{};
	invalidate.key = from.key;
	a.post_send(outsider, WqeBuilder(WqeOpcode::local_invalidate).add(invalidate).done());
	EXPECT_TRUE(wait_alone().is_error);
	wait_good(a, cq_a, 1);
	EXPECT_EQ(std::ranges::count(b.bytes(to), kLeased), static_cast<long>(kSize));
}

/* Data sent with more keys than a QP may have leases for is copied, and arrives. */
TEST_F(GuestMemoryLease, QpCanSendFromMoreMrsAtATimeThanItsMaximumNumberOfMemoryLeases)
{
	constexpr unsigned count = 128, bytes = 16;
	reconnect({.log_send = 8});
	std::vector<std::byte> sent;
	for (unsigned i = 0; i < count; i++) {
		Region region = a.region(bytes);
		fill(a.bytes(region));
		sent.insert(sent.end(), a.bytes(region).begin(), a.bytes(region).end());
		a.post(*qp_a, WqeBuilder(WqeOpcode::rdma_write)
				      .add(WqeRemoteAddress{to.address + i * bytes, to.key, 0})
				      .add(region.piece())
				      .done());
	}
	a.ring(*qp_a);
	wait_good(a, cq_a, count);
	EXPECT_TRUE(same(b.bytes(to).first(sent.size()), sent));
}

namespace
{

/* A Memory that has only ranges of keys. */
class Places final : public Memory
{
public:
	MemoryError resolve(const KeyUse &, std::uint64_t, std::uint64_t,
			    std::vector<BusRange> &) const override
	{
		return MemoryError::none;
	}
	MemoryError translate(const KeyUse &, std::uint64_t, std::uint64_t,
			      std::vector<MemorySegment> &) const override
	{
		return MemoryError::none;
	}
	bool holds(std::uint32_t) const override { return true; }
	std::uint32_t slot(std::uint32_t index) const override
	{
		asked++;
		return index;
	}
	MemoryError fast_register(const FastRegister &, std::uint32_t) override
	{
		return MemoryError::none;
	}
	MemoryError invalidate(std::uint32_t, std::uint32_t, std::uint32_t, bool) override
	{
		return MemoryError::none;
	}
	MemoryError bind_window(const BindWindow &, std::uint32_t, std::uint32_t) override
	{
		return MemoryError::none;
	}

	mutable std::size_t asked = 0;
};

} // namespace

/*
 * A command that may have changed any key checks each lease once, and does not check data that has
 * arrived. A guest can have many keys, and many such commands in a row.
 */
TEST(Leases, CommandThatMayInvalidateAnyMemoryKeyChecksEachMemoryLeaseInUseOnlyOnce)
{
	Places keys;
	Leases leases(keys);
	hca::QueuePair pair;
	Qp qp(pair);
	const auto mapping = MemoryMapping::allocate(4096);
	std::vector<std::shared_ptr<fabric::Lease>> under_way;
	for (std::uint32_t i = 0; i < Leases::kQpMax; i++)
		under_way.push_back(leases.get(qp, i << 8, mapping));
	keys.asked = 0;
	std::size_t held = 0;
	const auto all = [&](std::uint32_t) { return ++held != 0; };
	leases.end_keys_unless(all);
	EXPECT_EQ(held, Leases::kQpMax);
	EXPECT_LE(keys.asked, 2 * Leases::kQpMax);
	EXPECT_TRUE(under_way.back()->enter());
	under_way.back()->leave();
	under_way.clear();
	leases.end_keys_unless(all);
	keys.asked = 0;
	leases.end_keys_unless(all);
	EXPECT_EQ(held, Leases::kQpMax);
	EXPECT_EQ(keys.asked, 0u);
	leases.end(qp);
}

} // namespace weft::mlx4::transport
