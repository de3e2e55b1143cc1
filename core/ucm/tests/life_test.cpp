// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Ids that come, move, and go: with their programs, with their devices, at any moment.
#include "fixture.hpp"

using namespace ucm_fixture;
using ucm::Share;

namespace
{

/*
 * The lowest free number; as many as a user may have by all his files, and as many as all may;
 * refused, a request is as if it had been lost.
 */
void ucm_bounds_ids(Test &test)
{
	constexpr u32 of_all = Share::ids_max + 2;
	Bench bench(of_all);
	Program program(bench), second(bench), other(bench, somebody);
	ASSERT_TRUE(bench.ok() && program.ok() && second.ok() && other.ok());
	u32 id, read;
	fake::Cm *listener;
	ASSERT_EQ(program.create(id, 1, &listener), 0);
	ASSERT_EQ(program.listen(id, 10), 0);
	for (u32 expected = 1; expected < Share::ids_max; expected++) {
		ASSERT_EQ((expected % 2 ? second : program).create(id, 1), 0);
		ASSERT_EQ(id, expected);
	}
	EXPECT_EQ(program.create(id, 1), -EDQUOT);
	EXPECT_EQ(second.create(id, 1), -EDQUOT);
	EXPECT_EQ(listener->request(), -ENOMEM);
	EXPECT_EQ(other.create(id, 1), 0);
	EXPECT_EQ(id, Share::ids_max);
	/* Between files of one user they may move, and not from one user to another. */
	EXPECT_OK(ucm::table().move(0, program.file(), second.file()));
	const auto moved = ucm::table().move(id, other.file(), program.file());
	EXPECT_ERROR(moved, -EACCES);
	EXPECT_EQ(other.create(id, 1), 0);
	EXPECT_EQ(other.create(id, 1), -ENOBUFS);
	EXPECT_EQ(second.destroy(7, read), 0);
	EXPECT_EQ(program.create(id, 1), 0);
	EXPECT_EQ(id, 7u);
	EXPECT_EQ(fake::alive(), of_all);
	program.close();
	second.close();
	EXPECT_EQ(fake::alive(), 2u);
	EXPECT_EQ(ucm::table().ids(), 2u);
}

/*
 * The same of memberships. Those that have ended, by themselves or with their program, count no
 * more.
 */
void ucm_bounds_memberships(Test &test)
{
	constexpr u32 of_all = Share::memberships_max + 1, each = 256;
	Bench bench(ucm::Table::ids_max, of_all);
	Program program(bench), other(bench, somebody);
	ASSERT_TRUE(bench.ok() && program.ok() && other.ok());
	u32 id, theirs, membership, read;
	for (u32 joined = 0; joined < Share::memberships_max; joined++) {
		if (joined % each == 0)
			ASSERT_EQ(program.create(id, 1, nullptr, RDMA_PS_UDP), 0);
		ASSERT_EQ(program.join(id, 1, static_cast<u8>(joined % each), membership), 0);
	}
	const u32 last = membership;
	ASSERT_EQ(program.create(id, 1, nullptr, RDMA_PS_UDP), 0);
	EXPECT_EQ(program.join(id, 1, 1, membership), -EDQUOT);
	ASSERT_EQ(other.create(theirs, 1, nullptr, RDMA_PS_UDP), 0);
	EXPECT_EQ(other.join(theirs, 1, 1, membership), 0);
	EXPECT_EQ(other.join(theirs, 1, 2, membership), -ENOBUFS);
	EXPECT_EQ(program.leave(last, read), 0);
	EXPECT_EQ(program.join(id, 1, 1, membership), 0);
	program.close();
	EXPECT_EQ(other.join(theirs, 1, 2, membership), 0);
	Program again(bench);
	ASSERT_TRUE(again.ok());
	ASSERT_EQ(again.create(id, 1, nullptr, RDMA_PS_UDP), 0);
	EXPECT_EQ(again.join(id, 1, 1, membership), 0);
}

/*
 * With an id goes what is unread of it, in its order, and the count of what is read; the other file
 * has nothing of it any more.
 */
void ucm_moves_ids(Test &test)
{
	Bench bench;
	Program from(bench), to(bench);
	ASSERT_TRUE(bench.ok() && from.ok() && to.ok());
	u32 moving, staying, read;
	fake::Cm *cm, *stays;
	ASSERT_EQ(from.create(moving, 0x1111, &cm), 0);
	ASSERT_EQ(from.create(staying, 0x2222, &stays), 0);
	abi::Event event{};
	EXPECT_EQ(cm->tell(RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	EXPECT_EQ(from.read(event), 0);
	EXPECT_EQ(cm->tell(RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	EXPECT_EQ(stays->tell(RDMA_CM_EVENT_ADDR_ERROR), 0);
	EXPECT_EQ(cm->tell(RDMA_CM_EVENT_ESTABLISHED), 0);

	const auto refused = ucm::table().move(moving, to.file(), from.file());
	EXPECT_ERROR(refused, -EINVAL);
	const auto unknown = ucm::table().move(55, from.file(), to.file());
	EXPECT_ERROR(unknown, -ENOENT);
	const auto moved = ucm::table().move(moving, from.file(), to.file());
	ASSERT_OK(moved);
	EXPECT_EQ(moved.value(), 1u);
	const auto nowhere_new = ucm::table().move(moving, to.file(), to.file());
	ASSERT_OK(nowhere_new);
	EXPECT_EQ(from.destroy(moving, read), -EINVAL);
	EXPECT_EQ(cm->tell(RDMA_CM_EVENT_DISCONNECTED), 0);
	for (u32 expected : {RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ESTABLISHED,
			     RDMA_CM_EVENT_DISCONNECTED}) {
		EXPECT_EQ(to.read(event), 0);
		EXPECT_EQ(event.event, expected);
		EXPECT_EQ(event.id, moving);
	}
	EXPECT_EQ(from.read(event), 0);
	EXPECT_EQ(event.id, staying);
	EXPECT_EQ(from.read(event), -EAGAIN);
	from.close();
	EXPECT_EQ(fake::alive(), 1u);
	EXPECT_EQ(to.destroy(moving, read), 0);
	EXPECT_EQ(read, 4u);
}

/*
 * What has come by a listener, and has not been read, goes with it: the program accepts it where it
 * reads of it. What it has read stays.
 */
void ucm_moves_requests(Test &test)
{
	Bench bench;
	Program from(bench), to(bench);
	ASSERT_TRUE(bench.ok() && from.ok() && to.ok());
	u32 listener, read;
	fake::Cm *cm;
	abi::Event event{};
	ASSERT_EQ(from.create(listener, 1, &cm), 0);
	ASSERT_EQ(from.listen(listener, 10), 0);
	EXPECT_EQ(cm->request(), 0);
	EXPECT_EQ(from.read(event), 0);
	const u32 stays = event.id;
	EXPECT_EQ(cm->request(), 0);
	fake::Cm *const fresh = fake::newest();
	/* One whose number has been guessed has events of its own. */
	EXPECT_EQ(from.accept(2, 5), 0);
	EXPECT_EQ(fresh->tell(RDMA_CM_EVENT_ESTABLISHED), 0);
	const auto moved = ucm::table().move(listener, from.file(), to.file());
	ASSERT_OK(moved);
	EXPECT_EQ(from.read(event), -EAGAIN);
	EXPECT_EQ(to.read(event), 0);
	EXPECT_EQ(event.event, u32{RDMA_CM_EVENT_CONNECT_REQUEST});
	EXPECT_EQ(event.id, 2u);
	EXPECT_EQ(to.accept(stays, 3), -EINVAL);
	EXPECT_EQ(from.accept(stays, 3), 0);
	from.close();
	EXPECT_EQ(to.accept(event.id, 4), 0);
	EXPECT_EQ(to.read(event), 0);
	EXPECT_EQ(event.event, u32{RDMA_CM_EVENT_ESTABLISHED});
	EXPECT_EQ(to.destroy(event.id, read), 0);
	EXPECT_EQ(read, 1u);
	EXPECT_EQ(to.destroy(listener, read), 0);
	EXPECT_EQ(read, 2u);
}

/*
 * A request that could not be told, since there was no memory for it, goes after its listener with
 * what it has made.
 */
void ucm_moves_requests_half_told(Test &test)
{
	Bench bench;
	Program from(bench), to(bench);
	ASSERT_TRUE(bench.ok() && from.ok() && to.ok());
	u32 listener;
	fake::Cm *cm;
	abi::Event event{};
	ASSERT_EQ(from.create(listener, 1, &cm), 0);
	ASSERT_EQ(from.listen(listener, 10), 0);
	ASSERT_EQ(cm->request(), 0);
	auto half = ucm::table().pop(from.file());
	ASSERT_TRUE(static_cast<bool>(half));
	ASSERT_OK(ucm::table().move(listener, from.file(), to.file()));
	ucm::table().put_back(half);
	from.close();
	ASSERT_EQ(to.read(event), 0);
	EXPECT_EQ(to.accept(event.id, 3), 0);
}

/*
 * The device goes: the event is the last, rdma_cm's id ends by itself, also one that the program
 * has not accepted yet; and the number is the program's still.
 */
void ucm_loses_devices(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 id, listener, membership, read;
	fake::Cm *cm, *listening;
	ASSERT_EQ(program.create(listener, 2, &listening), 0);
	ASSERT_EQ(program.listen(listener, 10), 0);
	ASSERT_EQ(program.create(id, 1, &cm, RDMA_PS_UDP), 0);
	ASSERT_EQ(program.join(id, 3, 1, membership), 0);
	ASSERT_EQ(listening->request(), 0);
	fake::Cm *const fresh = fake::newest();
	EXPECT_EQ(fake::alive(), 3u);
	EXPECT_EQ(fresh->tell(RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
	EXPECT_EQ(cm->tell(RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
	EXPECT_TRUE(eventually([] { return fake::alive() == 1; }));
	EXPECT_EQ(program.command(abi::disconnect, abi::Disconnect{.id = id}), -ENXIO);
	EXPECT_EQ(program.leave(membership, read), 0);
	abi::Event event{};
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.event, u32{RDMA_CM_EVENT_CONNECT_REQUEST});
	EXPECT_EQ(program.accept(event.id, 4), -ENXIO);
	EXPECT_EQ(program.destroy(event.id, read), 0);
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.event, u32{RDMA_CM_EVENT_DEVICE_REMOVAL});
	EXPECT_EQ(event.id, id);
	EXPECT_EQ(program.destroy(id, read), 0);
	EXPECT_EQ(read, 1u);
}

/*
 * Who closes a file while somebody else ends one of its ids ends all others; the file is not looked
 * at again by what goes on.
 */
void ucm_closes_beside_an_end(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 ending, other;
	fake::Cm *cm;
	ASSERT_EQ(program.create(ending, 1, &cm), 0);
	ASSERT_EQ(program.listen(ending, 10), 0);
	ASSERT_EQ(program.create(other, 2), 0);
	EXPECT_EQ(cm->tell(RDMA_CM_EVENT_ADDR_CHANGE), 0);
	EXPECT_EQ(cm->request(), 0);
	auto claimed = ucm::table().claim(ending, program.file());
	ASSERT_OK(claimed);
	program.close();
	/* The one that ends alone. */
	EXPECT_EQ(fake::alive(), 1u);
	EXPECT_EQ(cm->tell(RDMA_CM_EVENT_ADDR_CHANGE), 0);
	EXPECT_EQ(cm->request(), -ENOMEM);
	EXPECT_EQ(ucm::Id::end(claimed.take()), 0u);
	EXPECT_EQ(fake::alive(), 0u);
	EXPECT_EQ(ucm::table().ids(), 0u);
}

/* A peer that asks all the time. */
struct Asker {
	kern::Atomic<unsigned int> said{0};
	int run()
	{
		while (!kern::Thread::should_stop()) {
			fake::speak([](fake::Cm &cm) { return cm.request(); });
			said.fetch_add(1);
			kern::sleep_us(1, 20);
		}
		return 0;
	}
};

/*
 * Whatever is under way when a program dies, or ends a listener: nothing is left of it, neither ids
 * nor numbers, memberships or events.
 */
void ucm_ends_at_any_moment(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	Asker asker;
	auto started = kern::Thread::create("ucm-asker", kern::method<&Asker::run>, &asker);
	ASSERT_OK(started);
	kern::Thread thread = started.take();
	for (unsigned int round = 0; round < 100; round++) {
		Program program(bench);
		u32 listener, group, membership, read;
		fake::Cm *cm, *grouped;
		ASSERT_TRUE(program.ok());
		ASSERT_EQ(program.create(group, 1, &grouped, RDMA_PS_UDP), 0);
		ASSERT_EQ(program.join(group, 2, 1, membership), 0);
		EXPECT_EQ(grouped->tell({.event = RDMA_CM_EVENT_MULTICAST_JOIN,
					 .status = 0,
					 .param = {},
					 .join_context = grouped->join_context}),
			  0);
		ASSERT_EQ(program.create(listener, 3, &cm), 0);
		ASSERT_EQ(program.listen(listener, 5), 0);
		fake::set_spoken_for(cm);
		const unsigned int before = asker.said.load_acquire();
		ASSERT_TRUE(eventually(
			[&] { return asker.said.load_acquire() > before + 1 + round % 7; }));
		abi::Event event{};
		if (round % 2)
			EXPECT_EQ(program.read(event), 0);
		if (round % 3 == 0)
			EXPECT_EQ(program.destroy(listener, read), 0);
		if (round % 5 == 0)
			EXPECT_EQ(grouped->tell(RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
		program.close();
		ASSERT_TRUE(eventually([] { return fake::alive() == 0; }));
		EXPECT_TRUE(eventually([] { return ucm::table().ids() == 0; }));
	}
}

} // namespace

KUNIT_SUITE(ucm_life, KUNIT_CASE(ucm_bounds_ids), KUNIT_CASE(ucm_bounds_memberships),
	    KUNIT_CASE(ucm_moves_ids), KUNIT_CASE(ucm_moves_requests),
	    KUNIT_CASE(ucm_moves_requests_half_told), KUNIT_CASE(ucm_loses_devices),
	    KUNIT_CASE(ucm_closes_beside_an_end), KUNIT_CASE(ucm_ends_at_any_moment));
