// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests shared receive queues: the list of WQEs that the driver links, and the limit event. Also
// tests the lookup of multicast groups in the hash chains that the driver maintains.
#include <gtest/gtest.h>

#include <hw/mlx4/wqe.hpp>

#include "cards/mlx4/tests/tiny_driver.hpp"

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::Eqe;
using hw::mlx4::SrqContext;
using hw::mlx4::SrqNext;

class SharedReceiveQueueTest : public ::testing::Test
{
public:
	SharedReceiveQueueTest()
	{
		driver.bring_up_events();
		buffer = driver.make_buffer(8 * 32);
		record = driver.allocate(4, 4);
		SrqContext::log_size.set(context.bytes, 3);
		SrqContext::log_stride.set(context.bytes, 1);
		SrqContext::mtt_offset.set(context.bytes, buffer.mtt_offset);
		SrqContext::pd.set(context.bytes, 7);
		SrqContext::doorbell_record.set(context.bytes, record);
		for (unsigned i = 0; i < 8; ++i)
			link(i, (i + 3) % 8); // not in order, but complete
		EXPECT_EQ(driver.command(Opcode::sw2hw_srq, kSrqn, 0, context.bytes).status,
			  Status::ok);
	}
	void link(unsigned from, unsigned to)
	{
		driver.host.object<SrqNext>(buffer.bus + 32 * from).next_index =
			static_cast<std::uint16_t>(to);
	}
	void posted(std::uint32_t count) { driver.host.object<ib::be32>(record) = count; }
	void expect_failure()
	{
		EXPECT_FALSE(queue().take());
		const auto event = driver.poll(driver.async);
		ASSERT_TRUE(event);
		EXPECT_EQ(Eqe::type.get(event->bytes), 0x12u);
		EXPECT_TRUE(queue().failed());
		EXPECT_FALSE(queue().take());
		EXPECT_FALSE(driver.poll(driver.async));
	}
	SharedReceiveQueue &queue() { return *driver.context().shared_receive_queue(kSrqn); }

	static constexpr std::uint32_t kSrqn = TinyDriver::kFirstSrq + 1;
	TinyDriver driver;
	TinyDriver::Buffer buffer{};
	std::uint64_t record = 0;
	SrqContext context{};
};

TEST_F(SharedReceiveQueueTest, LinkedWqesAreConsumedInLinkOrder)
{
	EXPECT_FALSE(queue().take());
	posted(3);
	EXPECT_EQ(queue().take(), 0);
	EXPECT_EQ(queue().take(), 3);
	EXPECT_EQ(queue().take(), 6);
	EXPECT_FALSE(queue().take());
	posted(4);
	EXPECT_EQ(queue().take(), 1);
}

TEST_F(SharedReceiveQueueTest, DoorbellCounterWrapsAroundAt16Bits)
{
	for (std::uint32_t count = 1; count < 70000; ++count) {
		posted(count); // the driver stores 32 bits, and the queue reads 16
		ASSERT_TRUE(queue().take()) << count;
	}
	EXPECT_FALSE(queue().take());
}

TEST_F(SharedReceiveQueueTest, SrqLimitEventIsRaisedOnceEachTimeTheLimitIsArmed)
{
	posted(5);
	ASSERT_EQ(driver.immediate(Opcode::arm_srq, kSrqn, 4).status, Status::ok);
	queue().take();
	EXPECT_FALSE(driver.poll(driver.async)) << "4 are left";
	queue().take();
	auto event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::type.get(event->bytes), 0x14u);
	EXPECT_EQ(Eqe::number.get(event->bytes), kSrqn);
	queue().take();
	EXPECT_FALSE(driver.poll(driver.async));
	driver.immediate(Opcode::arm_srq, kSrqn, 3);
	EXPECT_TRUE(driver.poll(driver.async)) << "already below";
	const auto result = driver.command(Opcode::query_srq, kSrqn, 0, {}, SrqContext::size);
	EXPECT_EQ(SrqContext::limit.get(result.out.data()), 0u);
}

TEST_F(SharedReceiveQueueTest, OutOfRangeWqeLinksAndDoorbellCountersAreClampedToTheQueue)
{
	link(0, 0xffff);
	posted(0x8000);
	EXPECT_EQ(queue().available(), 8u) << "no more than fit";
	EXPECT_EQ(queue().take(), 0);
	const auto next = queue().take();
	ASSERT_TRUE(next);
	EXPECT_LT(*next, 8);
}

TEST_F(SharedReceiveQueueTest, UnmappedSrqBufferRaisesOneSrqCatastrophicErrorEvent)
{
	posted(5);
	driver.write_mtt(buffer.mtt_offset, 0);
	expect_failure();
}

TEST_F(SharedReceiveQueueTest, InjectedSrqFaultRaisesOneSrqCatastrophicErrorEvent)
{
	posted(5);
	EXPECT_TRUE(queue().take());
	driver.card.faults().arm(Fault::srq_list, 1);
	expect_failure();
}

TEST_F(SharedReceiveQueueTest, InvalidSrqContextsAreRefused)
{
	const auto create = [&](std::uint32_t srqn) {
		return driver.command(Opcode::sw2hw_srq, srqn, 0, context.bytes).status;
	};
	EXPECT_EQ(create(63), Status::bad_resource);
	EXPECT_EQ(create(256), Status::bad_index);
	EXPECT_EQ(create(kSrqn), Status::bad_resource_state);
	SrqContext::log_stride.set(context.bytes, 0);
	EXPECT_EQ(create(70), Status::bad_parameter) << "no room behind the link";
	EXPECT_EQ(driver.immediate(Opcode::arm_srq, 70, 1).status, Status::bad_resource_state);
	EXPECT_EQ(driver.command(Opcode::hw2sw_srq, kSrqn, 1).status, Status::ok);
}

class MulticastTest : public ::testing::Test
{
public:
	MulticastTest() { driver.bring_up(); }
	static ib::Gid gid(std::uint64_t id) { return ib::Gid::from_parts(0xff12401bffff0000, id); }
	std::uint32_t hash(const ib::Gid &gid)
	{
		const auto *bytes = gid.raw;
		return static_cast<std::uint32_t>(
			driver.command(Opcode::mgid_hash, 0, 0, {bytes, 16}).value);
	}
	Status write(std::uint32_t index, const ib::Gid &gid, std::vector<std::uint32_t> qpns,
		     std::uint32_t next = 0)
	{
		Mailbox entry(64);
		using hw::mlx4::McgHeader;
		McgHeader::next.set(entry.data(), next);
		McgHeader::member_count.set(entry.data(), static_cast<std::uint32_t>(qpns.size()));
		std::ranges::copy(gid.raw, entry.begin() + McgHeader::gid);
		for (std::size_t i = 0; i < qpns.size() && i < 8; ++i)
			hw::mlx4::store_be32(entry.data(), 32 + 4 * i, qpns[i]);
		return driver.command(Opcode::write_mcg, index, 0, entry).status;
	}
	std::vector<std::uint32_t> members(const ib::Gid &gid)
	{
		std::vector<MulticastTable::Member> found;
		driver.context().multicast.members(gid, found);
		std::vector<std::uint32_t> qpns;
		for (const auto &member : found)
			qpns.push_back(member.qpn);
		return qpns;
	}

	TinyDriver driver;
};

TEST_F(MulticastTest, NewMulticastTableReadsAsZero)
{
	const auto result = driver.command(Opcode::read_mcg, 5, 0, {}, 64);
	ASSERT_EQ(result.status, Status::ok);
	EXPECT_EQ(result.out, Mailbox(64, 0));
}

TEST_F(MulticastTest, MulticastGroupLookupFollowsTheHashChain)
{
	const ib::Gid first = gid(1);
	const ib::Gid second = gid(2);
	const std::uint32_t at = hash(first);
	ASSERT_LT(at, 128u);
	ASSERT_EQ(write(at, first, {100, 1u << 30 | 101}, 200), Status::ok);
	ASSERT_EQ(write(200, second, {102}, 201), Status::ok);
	ASSERT_EQ(write(201, first, {103}), Status::ok);
	EXPECT_EQ(members(first), (std::vector<std::uint32_t>{100, 101, 103}));
	EXPECT_TRUE(members(gid(3)).empty());
	std::vector<MulticastTable::Member> found;
	driver.context().multicast.members(first, found);
	EXPECT_FALSE(found[0].block_loopback);
	EXPECT_TRUE(found[1].block_loopback);
	// An entry of zeros removes the group.
	ASSERT_EQ(driver.command(Opcode::write_mcg, at, 0, Mailbox(64)).status, Status::ok);
	EXPECT_TRUE(members(first).empty());
}

TEST_F(MulticastTest, MulticastGroupLookupEndsOnCyclicChainsAndInvalidCounts)
{
	const ib::Gid group = gid(1);
	const std::uint32_t at = hash(group);
	ASSERT_EQ(write(at, gid(9), {1}, 200), Status::ok);
	ASSERT_EQ(write(200, gid(9), {1}, 200), Status::ok);
	EXPECT_TRUE(members(group).empty());
	ASSERT_EQ(write(at, group, std::vector<std::uint32_t>(1000, 7)), Status::ok);
	EXPECT_EQ(members(group).size(), 8u) << "as many as an entry holds";
	EXPECT_EQ(write(256, group, {1}), Status::bad_index);
	EXPECT_EQ(driver.command(Opcode::read_mcg, ~0u, 0, {}, 64).status, Status::bad_index);
}

} // namespace
} // namespace weft::mlx4::testing
