// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the table of multicast groups, and the limits on groups and page table entries that users
// can take.
#include <kern/kunit_fixture.hpp>
#include <kern/thread.hpp>
#include "../mtt.hpp"
#include "../multicast.hpp"
#include "card_of_memory.hpp"

using mellanox_icm::test::CardOfMemory;
namespace wire = hw::mellanox_icm;

namespace
{

struct NoFlags final : mellanox_icm::GroupFormat {
	u32 count(const u8 *, u32) const override { return 0; }
	void set_count(u8 *, u32, u32) const override {}
	u32 member_flags(bool) const override { return 0; }
};

struct Groups final : CardOfMemory, mellanox_icm::FailureListener {
	NoFlags format;
	kern::Owned<mellanox_icm::MulticastGroups> groups;

	bool begin()
	{
		if (!CardOfMemory::begin(mellanox_icm::GoBit::go, *this, 0))
			return false;
		auto made = mellanox_icm::MulticastGroups::create(
			*commands, {.base = 0, .entry_bytes = 128, .log_entries = 4}, format);
		if (!made)
			return false;
		groups = made.take();
		return true;
	}
	void card_failed(const char *) override {}
	/* Detaches in a task whose allocations fail. */
	int detach()
	{
		kern_fail_allocation(1);
		const auto left = groups->detach({}, 7);
		kern_fail_allocation(0);
		return left ? 0 : left.error();
	}
};

/*
 * Destroying a QP must detach it from its groups even if no memory can be allocated; otherwise the
 * QP and all that it uses would be lost. The card receives the commands, and the result is that the
 * QP is in no group.
 */
void detaching_a_qp_from_a_multicast_group_allocates_no_memory(kern::kunit::Test &test)
{
	Groups card;
	ASSERT_TRUE(card.begin());
	auto leaving = kern::Thread::create("weft-leaving", kern::method<&Groups::detach>, &card);
	ASSERT_OK(leaving);
	/* The driver sends the command, unless the allocation has failed. */
	ASSERT_TRUE(kern::kunit::eventually([&] { return card.is_asked(); }));
	card.answer(card.take()); /* the hash: 0 */
	card.answer(card.take()); /* the entry there: empty, the last of its chain */
	EXPECT_EQ(leaving.value().stop(), -EINVAL);
}

/* A format with the number of members at another position than on InfiniHost and ConnectX. */
struct CountInFront final : mellanox_icm::GroupFormat {
	u32 count(const u8 *entry, u32) const override { return wire::load_be32(entry, 4); }
	void set_count(u8 *entry, u32 count, u32) const override
	{
		wire::store_be32(entry, 4, count);
	}
	u32 member_flags(bool) const override { return 0; }
};

/* A card that executes the multicast commands on a table of 16 entries. */
class CardWithGroups final : public CardOfMemory, mellanox_icm::FailureListener
{
public:
	static constexpr u32 log_entries = 4, entries = 1u << log_entries, hashed = entries / 2;
	static constexpr u32 entry_bytes = 64;

	bool begin()
	{
		if (!CardOfMemory::begin(mellanox_icm::GoBit::go, *this, 0))
			return false;
		auto made = mellanox_icm::MulticastGroups::create(
			*commands,
			{.base = 0, .entry_bytes = entry_bytes, .log_entries = log_entries},
			format_);
		if (!made)
			return false;
		groups_ = made.take();
		auto thread = kern::Thread::create("weft-mcg-card",
						   kern::method<&CardWithGroups::serve>, this);
		if (!thread)
			return false;
		thread_ = thread.take();
		return true;
	}
	/* All commands of the driver must have completed. */
	void end() { (void)thread_.stop(); }
	void card_failed(const char *) override {}

	/* Attaches a QP to a group whose hash is the number of its bucket. */
	int attach(u32 bucket, u32 number, ib_mcast_owner owner)
	{
		return groups_->attach(gid(bucket, number), 7, false, owner).error();
	}
	int detach(u32 bucket, u32 number)
	{
		return groups_->detach(gid(bucket, number), 7).error();
	}

private:
	static ib_gid gid(u32 bucket, u32 number)
	{
		ib_gid gid{};
		gid.raw[0] = 0xff;
		gid.raw[14] = static_cast<u8>(number);
		gid.raw[15] = static_cast<u8>(bucket);
		return gid;
	}
	u32 parameter(size_t at) { return bar0.read_be32(wire::hcr::at + at); }
	u8 *memory(size_t at)
	{
		const u64 address = u64{parameter(at)} << 32 | parameter(at + 4);
		return static_cast<u8 *>(kern_kunit_dma_memory(device.native(), address));
	}
	int serve()
	{
		while (!kern::Thread::should_stop()) {
			if (!is_asked()) {
				kern::sleep_us(10, 50);
				continue;
			}
			const auto opcode =
				static_cast<wire::Opcode>(wire::hcr::opcode.of(control()));
			const u32 index = parameter(wire::hcr::in_modifier) % entries;
			u64 result = 0;
			if (opcode == wire::Opcode::mgid_hash)
				result = memory(wire::hcr::in_param)[15] % hashed;
			else if (opcode == wire::Opcode::read_mcg)
				__builtin_memcpy(memory(wire::hcr::out_param), table_[index],
						 entry_bytes);
			else if (opcode == wire::Opcode::write_mcg)
				__builtin_memcpy(table_[index], memory(wire::hcr::in_param),
						 entry_bytes);
			commands->completed(take(), 0, result);
		}
		return 0;
	}

	CountInFront format_;
	kern::Owned<mellanox_icm::MulticastGroups> groups_;
	u8 table_[entries][entry_bytes]{};
	kern::Thread thread_;
};

/*
 * Groups that programs have joined, with a QP of their own or through an interface of the kernel,
 * leave a quarter of the overflow part of the table to the kernel.
 */
void ipoib_11_user_programs_cannot_take_all_entries_of_the_multicast_table(kern::kunit::Test &test)
{
	constexpr u32 overflow = CardWithGroups::entries - CardWithGroups::hashed;
	constexpr u32 of_programs = overflow - overflow / 4;
	kern::kunit::Boxed<CardWithGroups> card;
	ASSERT_TRUE(card.there() && card->begin());
	for (u32 bucket = 0; bucket < CardWithGroups::hashed; bucket++)
		ASSERT_EQ(card->attach(bucket, 0, IB_MCAST_USER), 0);
	for (u32 number = 1; number <= of_programs; number++)
		ASSERT_EQ(card->attach(number % CardWithGroups::hashed, number, IB_MCAST_USER), 0);
	EXPECT_EQ(card->attach(0, 100, IB_MCAST_USER), -ENOMEM);
	for (u32 number = 0; number < overflow - of_programs; number++)
		EXPECT_EQ(card->attach(0, 101 + number, IB_MCAST_KERNEL), 0);
	EXPECT_EQ(card->attach(0, 200, IB_MCAST_KERNEL), -ENOMEM);
	/* Programs may use released entries again, but not the kernel's part. */
	EXPECT_EQ(card->detach(0, 101), 0);
	EXPECT_EQ(card->attach(1, 201, IB_MCAST_USER), -ENOMEM);
	EXPECT_EQ(card->detach(1, 1), 0);
	EXPECT_EQ(card->detach(0, 102), 0);
	EXPECT_EQ(card->attach(1, 201, IB_MCAST_USER), 0);
	card->end();
}

/*
 * A user gets half of the page list entries that programs may use, the next user half of the rest,
 * and root all of them. Released entries can be allocated again.
 */
void user_can_allocate_at_most_half_of_the_mtt_entries(kern::kunit::Test &test)
{
	constexpr u32 table = 1u << 20, half = 15u << 15;
	kern::SharedPool pool(table, -EDQUOT, KERN_LOCK_CLASS("mellanox.page_shares_test"));
	const auto take = [&](u32 user, u32 entries) {
		return pool.take({.id = user, .privileged = user == 0}, entries);
	};
	{
		auto all = take(1000, half);
		ASSERT_OK(all);
		EXPECT_ERROR(take(1000, 2), -EDQUOT);
		EXPECT_ERROR(take(1001, half / 2 + 1), -EDQUOT);
		EXPECT_OK(take(1001, half / 2));
		EXPECT_OK(take(0, table - half));
	}
	EXPECT_OK(take(1000, half));
}

/*
 * The size of the page list table grows with the host's memory: to twice what two registrations of
 * all memory need, as far as the card permits.
 */
void mtt_table_size_scales_with_host_memory(kern::kunit::Test &test)
{
	constexpr u64 pages_of_gib = 1u << 18;

	EXPECT_EQ(mellanox_icm::log_mtts_for(pages_of_gib / 4, 28), 20u);
	EXPECT_EQ(mellanox_icm::log_mtts_for(pages_of_gib, 28), 20u);
	EXPECT_EQ(mellanox_icm::log_mtts_for(pages_of_gib + 1, 28), 21u);
	EXPECT_EQ(mellanox_icm::log_mtts_for(4 * pages_of_gib, 28), 22u);
	EXPECT_EQ(mellanox_icm::log_mtts_for(4 * pages_of_gib, 21), 21u);
	EXPECT_EQ(mellanox_icm::log_mtts_for(pages_of_gib << 10, 28), 24u);
	EXPECT_EQ(mellanox_icm::log_mtts_for(pages_of_gib, 17), 17u);
}

} // namespace

KUNIT_SUITE(mellanox_shared, KUNIT_CASE(detaching_a_qp_from_a_multicast_group_allocates_no_memory),
	    KUNIT_CASE(ipoib_11_user_programs_cannot_take_all_entries_of_the_multicast_table),
	    KUNIT_CASE(user_can_allocate_at_most_half_of_the_mtt_entries),
	    KUNIT_CASE(mtt_table_size_scales_with_host_memory));
