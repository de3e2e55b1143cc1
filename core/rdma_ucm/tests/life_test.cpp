// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that IDs can be created, migrated and destroyed while their programs exit and their devices
// are removed, at any moment.
#include "fixture.hpp"

using namespace ucm_fixture;

namespace
{

/*
 * The lowest free number is allocated. A user may have half of all IDs, over all files together. A
 * request beyond that is dropped as if it had been lost.
 */
void ucm_limits_ids_per_user(Test &test)
{
	constexpr u32 of_all = 160, half = 75;
	Bench bench(of_all);
	Program program(bench, somebody), second(bench, somebody), other(bench);
	ASSERT_TRUE(bench.ok() && program.ok() && second.ok() && other.ok());
	u32 id, read;
	fake::Cm *listener;
	ASSERT_EQ(program.create(id, 1, &listener), 0);
	ASSERT_EQ(program.listen(id, 10), 0);
	for (u32 expected = 1; expected < half; expected++) {
		ASSERT_EQ((expected % 2 ? second : program).create(id, 1), 0);
		ASSERT_EQ(id, expected);
	}
	EXPECT_EQ(program.create(id, 1), -EDQUOT);
	EXPECT_EQ(second.create(id, 1), -EDQUOT);
	EXPECT_EQ(listener->request(), -ENOMEM);
	EXPECT_EQ(other.create(id, 1), 0);
	EXPECT_EQ(id, half);
	/* IDs can migrate between the files of one user, but not from one user to another. */
	EXPECT_OK(rdma_ucm::table().move(0, program.file(), second.file()));
	const auto moved = rdma_ucm::table().move(id, other.file(), program.file());
	EXPECT_ERROR(moved, -EACCES);
	EXPECT_EQ(second.destroy(7, read), 0);
	EXPECT_EQ(program.create(id, 1), 0);
	EXPECT_EQ(id, 7u);
	EXPECT_EQ(fake::alive(), half + 1);
	program.close();
	second.close();
	EXPECT_EQ(fake::alive(), 1u);
	EXPECT_EQ(rdma_ucm::table().ids(), 1u);
}

/*
 * However many users take their maximum of IDs, a sixteenth is left for root, who may allocate all.
 */
void ucm_reserves_ids_for_root(Test &test)
{
	constexpr u32 of_all = 160, reserve = 10, users = 12;
	Bench bench(of_all);
	ASSERT_TRUE(bench.ok());
	kern::Owned<Program> program[users];
	u32 id;
	for (u32 i = 0; i < users; i++) {
		auto made = kern::make<Program>(kern::Gfp::kernel, bench,
						kern_user{.id = 1000 + i, .privileged = false});
		ASSERT_OK(made);
		program[i] = made.take();
		ASSERT_TRUE(program[i]->ok());
		long done;
		while (!(done = program[i]->create(id, 1))) {
		}
		EXPECT_EQ(done, -EDQUOT);
	}
	EXPECT_EQ(rdma_ucm::table().ids(), of_all - reserve);
	Program privileged(bench);
	ASSERT_TRUE(privileged.ok());
	for (u32 i = 0; i < reserve; i++)
		EXPECT_EQ(privileged.create(id, 1), 0);
	EXPECT_EQ(privileged.create(id, 1), -ENOBUFS);
	for (kern::Owned<Program> &one : program)
		one.reset();
	for (u32 i = reserve; i < of_all; i++)
		ASSERT_EQ(privileged.create(id, 1), 0);
	EXPECT_EQ(privileged.create(id, 1), -ENOBUFS);
}

/*
 * The same holds for memberships. Memberships that have been left, or whose program has exited, no
 * longer count.
 */
void ucm_limits_multicast_memberships_per_user(Test &test)
{
	constexpr u32 of_all = 160, half = 75;
	Bench bench(rdma_ucm::Table::ids_max, of_all);
	Program program(bench, somebody), other(bench);
	ASSERT_TRUE(bench.ok() && program.ok() && other.ok());
	u32 id, theirs, membership, read;
	ASSERT_EQ(program.create(id, 1, nullptr, RDMA_PS_UDP), 0);
	for (u32 joined = 0; joined < half; joined++)
		ASSERT_EQ(program.join(id, 1, static_cast<u8>(joined), membership), 0);
	const u32 last = membership;
	EXPECT_EQ(program.join(id, 1, half, membership), -EDQUOT);
	ASSERT_EQ(other.create(theirs, 1, nullptr, RDMA_PS_UDP), 0);
	for (u32 joined = half; joined < of_all; joined++)
		ASSERT_EQ(other.join(theirs, 1, static_cast<u8>(joined), membership), 0);
	EXPECT_EQ(other.join(theirs, 1, of_all, membership), -ENOBUFS);
	EXPECT_EQ(program.leave(last, read), 0);
	EXPECT_EQ(other.join(theirs, 1, of_all, membership), 0);
	program.close();
	Program again(bench, somebody);
	ASSERT_TRUE(again.ok());
	ASSERT_EQ(again.create(id, 1, nullptr, RDMA_PS_UDP), 0);
	other.close();
	EXPECT_EQ(again.join(id, 1, 1, membership), 0);
}

/*
 * An ID migrates with its unread events, in order, and with the number of events that have been
 * read. The old file keeps none of them.
 */
void ucm_migrates_ids_with_their_unread_events(Test &test)
{
	Bench bench;
	Program from(bench), to(bench);
	ASSERT_TRUE(bench.ok() && from.ok() && to.ok());
	u32 moving, staying, read;
	fake::Cm *cm, *stays;
	ASSERT_EQ(from.create(moving, 0x1111, &cm), 0);
	ASSERT_EQ(from.create(staying, 0x2222, &stays), 0);
	abi::Event event{};
	EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	EXPECT_EQ(from.read(event), 0);
	EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	EXPECT_EQ(stays->deliver(RDMA_CM_EVENT_ADDR_ERROR), 0);
	EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_ESTABLISHED), 0);

	const auto refused = rdma_ucm::table().move(moving, to.file(), from.file());
	EXPECT_ERROR(refused, -EINVAL);
	const auto unknown = rdma_ucm::table().move(55, from.file(), to.file());
	EXPECT_ERROR(unknown, -ENOENT);
	const auto moved = rdma_ucm::table().move(moving, from.file(), to.file());
	ASSERT_OK(moved);
	EXPECT_EQ(moved.value(), 1u);
	const auto nowhere_new = rdma_ucm::table().move(moving, to.file(), to.file());
	ASSERT_OK(nowhere_new);
	EXPECT_EQ(from.destroy(moving, read), -EINVAL);
	EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_DISCONNECTED), 0);
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
 * Unread requests at a listener move with it: the program accepts each on the file where it reads
 * it. Requests already read stay.
 */
void ucm_migrates_unread_connection_requests(Test &test)
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
	/* The program has guessed the number of the new ID: its events belong to that ID. */
	EXPECT_EQ(from.accept(2, 5), 0);
	EXPECT_EQ(fresh->deliver(RDMA_CM_EVENT_ESTABLISHED), 0);
	const auto moved = rdma_ucm::table().move(listener, from.file(), to.file());
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
 * If a connection request could not be delivered for lack of memory, it migrates with its listener,
 * including the objects created for it.
 */
void ucm_connection_request_whose_get_event_fails_migrates_with_its_listener(Test &test)
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
	auto half = rdma_ucm::table().pop(from.file());
	ASSERT_TRUE(static_cast<bool>(half));
	ASSERT_OK(rdma_ucm::table().move(listener, from.file(), to.file()));
	rdma_ucm::table().put_back(half);
	from.close();
	ASSERT_EQ(to.read(event), 0);
	EXPECT_EQ(to.accept(event.id, 3), 0);
}

/*
 * When the device is removed, the event is the last one, and the ID of rdma_cm is destroyed
 * automatically, even if the program has not accepted it yet. The program keeps the number.
 */
void ucm_reports_device_removal_as_the_last_event(Test &test)
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
	EXPECT_EQ(fresh->deliver(RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
	EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
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
 * A close during the destruction of one of the file's IDs destroys all the others. The destruction
 * does not access the file afterwards.
 */
void ucm_close_of_a_file_during_destroy_id_destroys_the_other_ids_of_the_file(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 ending, other;
	fake::Cm *cm;
	ASSERT_EQ(program.create(ending, 1, &cm), 0);
	ASSERT_EQ(program.listen(ending, 10), 0);
	ASSERT_EQ(program.create(other, 2), 0);
	EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_ADDR_CHANGE), 0);
	EXPECT_EQ(cm->request(), 0);
	auto claimed = rdma_ucm::table().claim(ending, program.file());
	ASSERT_OK(claimed);
	program.close();
	/* Only the ID that is being destroyed is left. */
	EXPECT_EQ(fake::alive(), 1u);
	EXPECT_EQ(cm->deliver(RDMA_CM_EVENT_ADDR_CHANGE), 0);
	EXPECT_EQ(cm->request(), -ENOMEM);
	EXPECT_EQ(rdma_ucm::Id::end(claimed.take()), 0u);
	EXPECT_EQ(fake::alive(), 0u);
	EXPECT_EQ(rdma_ucm::table().ids(), 0u);
}

/* A peer that sends requests all the time. */
struct Asker {
	kern::Atomic<unsigned int> calls{0};
	int run()
	{
		while (!kern::Thread::should_stop()) {
			fake::speak([](fake::Cm &cm) { return cm.request(); });
			calls.fetch_add(1);
			kern::sleep_us(1, 20);
		}
		return 0;
	}
};

/*
 * A program exits or destroys a listener during any operation: no ID, number, membership or event
 * is left.
 */
void ucm_close_of_a_file_at_any_moment_frees_all_its_objects(Test &test)
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
		EXPECT_EQ(grouped->deliver({.event = RDMA_CM_EVENT_MULTICAST_JOIN,
					    .status = 0,
					    .param = {},
					    .join_context = grouped->join_context}),
			  0);
		ASSERT_EQ(program.create(listener, 3, &cm), 0);
		ASSERT_EQ(program.listen(listener, 5), 0);
		fake::set_spoken_for(cm);
		const unsigned int before = asker.calls.load_acquire();
		ASSERT_TRUE(eventually(
			[&] { return asker.calls.load_acquire() > before + 1 + round % 7; }));
		abi::Event event{};
		if (round % 2)
			EXPECT_EQ(program.read(event), 0);
		if (round % 3 == 0)
			EXPECT_EQ(program.destroy(listener, read), 0);
		if (round % 5 == 0)
			EXPECT_EQ(grouped->deliver(RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
		program.close();
		ASSERT_TRUE(eventually([] { return fake::alive() == 0; }));
		EXPECT_TRUE(eventually([] { return rdma_ucm::table().ids() == 0; }));
	}
}

} // namespace

KUNIT_SUITE(ucm_life, KUNIT_CASE(ucm_limits_ids_per_user), KUNIT_CASE(ucm_reserves_ids_for_root),
	    KUNIT_CASE(ucm_limits_multicast_memberships_per_user),
	    KUNIT_CASE(ucm_migrates_ids_with_their_unread_events),
	    KUNIT_CASE(ucm_migrates_unread_connection_requests),
	    KUNIT_CASE(ucm_connection_request_whose_get_event_fails_migrates_with_its_listener),
	    KUNIT_CASE(ucm_reports_device_removal_as_the_last_event),
	    KUNIT_CASE(ucm_close_of_a_file_during_destroy_id_destroys_the_other_ids_of_the_file),
	    KUNIT_CASE(ucm_close_of_a_file_at_any_moment_frees_all_its_objects));
