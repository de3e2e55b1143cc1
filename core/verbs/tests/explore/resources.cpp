// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests under many thread interleavings (weft-explore(1)) that object numbers are allocated
// correctly: at the end of a block and of the number space, and while other tasks create, destroy
// and read objects.
#include <kern/kunit.hpp>
#include <kern/kunit_fixture.hpp>
#include <kern/memory.hpp>
#include <rdma/ib_resources.h>
#include "../../qp_numbers.hpp"
#include "../../resources.hpp"

using namespace verbs;
using kern::kunit::ConcurrentThread;
using kern::kunit::Boxed;
using kern::kunit::Test;

namespace
{

constexpr u32 greatest = NumberBlock::last * NumberBlock::size + NumberBlock::size - 1;

/* An object of which only its record in the table exists. */
struct Object {
	Object() { record.belong_to(resource); }
	u32 number() const { return record.number; }

	ib_resource resource{};
	Record record{};
};

struct Table : ResourceTable {
	using ResourceTable::ResourceTable;

	bool come(Object &object)
	{
		if (!add(object.resource, nullptr).ok())
			return false;
		show(object.resource, "explorer");
		return true;
	}
	void go(Object &object)
	{
		hide(object.resource);
		remove(object.resource);
	}
	/*
	 * Returns the number of the first object from @from on, or the largest number if there is
	 * none.
	 */
	u32 find_from(u32 from)
	{
		Record *record = hold(from);
		if (!record)
			return IB_NO_RESOURCE;
		const u32 found = record->number;
		release(*record);
		return found;
	}
};

/*
 * Blocks stay full, partly full and empty; the remaining objects are found in order, and no number
 * is reused.
 */
void resource_numbers_are_not_reused_before_wrap_around(Test &test)
{
	constexpr u32 count = 3 * NumberBlock::size;
	struct Objects {
		Object all[count];
	};
	auto made = kern::make<Objects>(kern::Gfp::kernel);
	ASSERT_TRUE(made.ok());
	auto owner = made.take();
	Object *const objects = owner->all;
	Table table;
	for (u32 i = 0; i < count; i++) {
		ASSERT_TRUE(table.come(objects[i]));
		EXPECT_EQ(objects[i].number(), i);
	}
	/* All objects of the second block are removed, and every second one of the other blocks. */
	for (u32 i = 0; i < count; i++)
		if (i / NumberBlock::size == 1 || i % 2)
			table.go(objects[i]);
	EXPECT_EQ(table.count(), NumberBlock::size);
	u32 seen = 0;
	for (u32 at = table.find_from(0); at != IB_NO_RESOURCE;
	     at = table.find_from(at + 1), seen++)
		EXPECT_TRUE(at / NumberBlock::size != 1 && at % 2 == 0);
	EXPECT_EQ(seen, NumberBlock::size);
	Object another;
	for (u32 i = 0; i < 2 * NumberBlock::size; i++) {
		ASSERT_TRUE(table.come(another));
		EXPECT_EQ(another.number(), count + i);
		table.go(another);
	}
	EXPECT_EQ(table.find_from(0), 0u);
	for (u32 i = 0; i < count; i++)
		if (i / NumberBlock::size != 1 && i % 2 == 0)
			table.go(objects[i]);
	EXPECT_EQ(table.find_from(0), IB_NO_RESOURCE);
}

/* The number after the greatest is 0. Numbers that are still in use there are skipped. */
void resource_numbers_in_use_are_skipped_after_wrap_around(Test &test)
{
	struct Objects {
		Object all[NumberBlock::size];
	};
	auto made = kern::make<Objects>(kern::Gfp::kernel);
	ASSERT_TRUE(made.ok());
	auto owner = made.take();
	auto &end = owner->all;
	Table table(NumberBlock::last);
	for (Object &object : end)
		ASSERT_TRUE(table.come(object));
	EXPECT_EQ(end[NumberBlock::size - 1].number(), greatest);
	Object first, second, third;
	ASSERT_TRUE(table.come(first) && table.come(second));
	EXPECT_EQ(first.number(), 0u);
	EXPECT_EQ(table.find_from(2), greatest - NumberBlock::size + 1);
	EXPECT_EQ(table.find_from(greatest), greatest);
	EXPECT_EQ(table.find_from(greatest + 1), IB_NO_RESOURCE);
	/* Once round: the last block is there, with one of its numbers free. */
	table.go(end[7]);
	for (u32 i = 2; i < NumberBlock::size; i++) {
		ASSERT_TRUE(table.come(third));
		EXPECT_EQ(third.number(), i);
		table.go(third);
	}
	table.go(first);
	table.go(second);
	for (u32 i = 0; i < NumberBlock::size; i++)
		if (i != 7)
			table.go(end[i]);
	EXPECT_EQ(table.count(), 0u);
}

/* A held object stays valid while others are added and removed concurrently. */
void referenced_resource_stays_valid_while_other_resources_are_added_and_removed(Test &test)
{
	Boxed<Table> table(NumberBlock::last);
	ASSERT_TRUE(table.there());
	ConcurrentThread comings([&] {
		for (int i = 0; i < 3; i++) {
			auto made = kern::make<Object>(kern::Gfp::kernel);
			if (!made.ok())
				break;
			auto object = made.take();
			if (table->come(*object))
				table->go(*object);
		}
	});
	ASSERT_TRUE(comings.ok());
	for (int i = 0; i < 3; i++)
		if (Record *record = table->hold(0)) {
			EXPECT_TRUE(record->resource->owner != nullptr);
			table->release(*record);
		}
}

/* A QP, and whether its driver has destroyed it, after which its number may be reused. */
struct Pair {
	Pair() { record.belong_to(qp.res); }

	ib_qp qp{};
	Record record{};
	kern::Atomic<bool> ended{false};
};

/* QPs that get the same number in turn. */
struct Pairs {
	static constexpr u32 number = 0x105;

	Table table;
	QpNumbers numbers{table};
};

/* An object that was found by its number is not destroyed before its reader has finished. */
void resource_found_by_number_is_not_destroyed_while_it_is_read(Test &test)
{
	Boxed<Pairs> pairs;
	ASSERT_TRUE(pairs.there());
	ConcurrentThread comings([&] {
		for (int i = 0; i < 3; i++) {
			auto made = kern::make<Pair>(kern::Gfp::kernel);
			if (!made.ok())
				break;
			auto pair = made.take();
			if (!pairs->table.add(pair->qp.res, nullptr).ok())
				break;
			pair->qp.qp_num = Pairs::number;
			pairs->table.show(pair->qp.res, "explorer");
			pairs->numbers.add(pair->qp);
			pairs->table.hide(pair->qp.res);
			pair->ended.store_release(true);
			pairs->numbers.remove(pair->qp);
		}
	});
	ASSERT_TRUE(comings.ok());
	for (int i = 0; i < 3; i++) {
		EXPECT_FALSE(
			pairs->numbers.any_of(Pairs::number + 256, [](ib_qp &) { return true; }));
		pairs->numbers.any_of(Pairs::number, [&](ib_qp &qp) {
			EXPECT_FALSE((whole_of<Pair, &Pair::qp>(qp).ended.load_acquire()));
			return false;
		});
	}
}

} // namespace

KUNIT_SUITE(explore_resources, KUNIT_CASE(resource_numbers_are_not_reused_before_wrap_around),
	    KUNIT_CASE(resource_numbers_in_use_are_skipped_after_wrap_around),
	    KUNIT_CASE(referenced_resource_stays_valid_while_other_resources_are_added_and_removed),
	    KUNIT_CASE(resource_found_by_number_is_not_destroyed_while_it_is_read));
