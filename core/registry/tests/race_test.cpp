// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a client's add and remove callbacks for a device alternate while several tasks
// register and unregister devices and clients.
#include <kern/abi/net.h>
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/memory.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>
#include <rdma/ib_namespaces.h>
#include "fake_device.hpp"

namespace
{

constexpr unsigned int actors = 4;
constexpr unsigned int turns = 150;

enum PairState { apart, adding, together, refused, removing };

struct Actor;

/*
 * Shared state of all actors. Each has one client and one device, which it registers and
 * unregisters, and moves between network namespaces, at random.
 */
struct Stage {
	Actor *actor[actors];
	/* [client][device] */
	kern::Atomic<int> pair[actors][actors];
	/* [device] */
	kern::Atomic<int> moving[actors];
	kern::Atomic<int> violations;
	kern::Atomic<int> first_violation;
	kern::Atomic<unsigned int> adds, removes, refusals;
	kern::Atomic<unsigned int> finished;
	kern::Completion done;

	void violated(int line)
	{
		if (violations.fetch_add(1) == 0)
			first_violation.store_release(line);
	}
};
Stage *stage;

#define HOLDS(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			stage->violated(__LINE__);                                                 \
	} while (0)

struct Actor {
	Actor(unsigned int n, u64 seed) : number(n), random(seed) {}

	static unsigned int number_of(ib_device *device);
	void pause(kern::SeededRandom &r) const
	{
		if (r.below(3) == 0)
			kern::sleep_us(1, 50);
	}

	int add(ib_device *device)
	{
		const unsigned int d = number_of(device);
		kern::SeededRandom own(kern::now_ns());
		int expected = apart;

		HOLDS(client_registered.load_acquire() != 0);
		// A device that has moved is offered again to a client that has refused it.
		if (!stage->pair[number][d].compare_exchange(expected, adding))
			HOLDS(expected == refused && stage->moving[d].load_acquire() &&
			      stage->pair[number][d].compare_exchange(expected, adding));
		ib_set_client_data(device, &client, this);
		pause(own);
		HOLDS(ib_get_client_data(device, &client) == this);
		const bool refuse = own.below(8) == 0;
		expected = adding;
		HOLDS(stage->pair[number][d].compare_exchange(expected,
							      refuse ? refused : together));
		stage->adds.fetch_add(1);
		stage->refusals.fetch_add(refuse);
		return refuse ? -EOPNOTSUPP : 0;
	}
	void remove(ib_device *device, void *data)
	{
		const unsigned int d = number_of(device);
		kern::SeededRandom own(kern::now_ns());
		int expected = together;

		HOLDS(client_registered.load_acquire() != 0);
		HOLDS(stage->pair[number][d].compare_exchange(expected, removing));
		HOLDS(data == this);
		pause(own);
		expected = removing;
		HOLDS(stage->pair[number][d].compare_exchange(expected, apart));
		stage->removes.fetch_add(1);
	}

	/*
	 * Once an unregistration has returned, both sides may rely on this: no pair is left, and
	 * refusals are forgotten.
	 */
	static void end_pair(kern::Atomic<int> &pair)
	{
		const int state = pair.load_acquire();
		HOLDS(state == apart || state == refused);
		pair.store_release(apart);
	}
	void toggle_client()
	{
		if (client_registered.load_acquire()) {
			ib_unregister_client(&client);
			client_registered.store_release(0);
			for (auto &pair : stage->pair[number])
				end_pair(pair);
		} else {
			client_registered.store_release(1);
			HOLDS(ib_register_client(&client) == 0);
			// This actor's own device is neither registered nor unregistered meanwhile.
			if (device_registered)
				HOLDS(stage->pair[number][number].load_acquire() != apart);
		}
	}
	void toggle_device()
	{
		if (device_registered) {
			device.remove();
			device_registered = false;
			net = KERN_NET_INITIAL;
			for (auto &pairs : stage->pair)
				end_pair(pairs[number]);
		} else {
			device_registered = device.add("race%d") == 0;
			HOLDS(device_registered);
			if (client_registered.load_acquire())
				HOLDS(stage->pair[number][number].load_acquire() != apart);
		}
	}

	void move_device()
	{
		const u64 from = net;

		net = from ? 0 : 1 + number;
		stage->moving[number].store_release(1);
		HOLDS(ib_move_device(device.ib(), from, net) == 0);
		stage->moving[number].store_release(0);
		HOLDS(ib_device_in_net(device.ib(), net) && !ib_device_in_net(device.ib(), from));
		if (client_registered.load_acquire())
			HOLDS(stage->pair[number][number].load_acquire() != apart);
	}

	int run()
	{
		for (unsigned int turn = 0; turn < turns; turn++) {
			if (random.below(2))
				toggle_client();
			else if (device_registered && random.below(2))
				move_device();
			else
				toggle_device();
			pause(random);
		}
		if (client_registered.load_acquire())
			toggle_client();
		if (device_registered)
			toggle_device();
		if (stage->finished.fetch_add(1) + 1 == actors)
			stage->done.complete();
		return 0;
	}

	unsigned int number;
	kern::SeededRandom random;
	FakeDeviceOwner device;
	bool device_registered = false;
	/* The namespace of the actor's device. */
	u64 net = KERN_NET_INITIAL;
	kern::Atomic<int> client_registered;
	ib_client client{};
	kern::Thread thread;
};

unsigned int Actor::number_of(ib_device *device)
{
	for (unsigned int i = 0; i < actors; i++)
		if (stage->actor[i]->device.ib() == device)
			return i;
	stage->violated(__LINE__);
	return 0;
}

template<unsigned int Number>
void give_callbacks(ib_client &client)
{
	client.name = "racer";
	client.add = [](ib_device *device) { return stage->actor[Number]->add(device); };
	client.remove = [](ib_device *device, void *data) {
		stage->actor[Number]->remove(device, data);
	};
}

/*
 * Clients and devices are registered and unregistered at random: each pair sees one add and then at
 * most one remove, which do not overlap. A client whose add failed is not called again until the
 * device has moved. After an unregistration has returned, none of its callbacks runs (LOCK-12).
 */
void lock_11_lock_12_client_add_and_remove_callbacks_alternate_under_concurrency(
	kern::kunit::Test &test)
{
	auto owned_stage = kern::make<Stage>(kern::Gfp::kernel | kern::Gfp::zero);
	ASSERT_OK(owned_stage);
	stage = owned_stage.value().get();
	kern::Owned<Actor> owned[actors];
	for (unsigned int i = 0; i < actors; i++) {
		auto made = kern::make<Actor>(kern::Gfp::kernel, i, test.seed() + i);
		ASSERT_OK(made);
		owned[i] = made.take();
		stage->actor[i] = owned[i].get();
		ASSERT_TRUE(owned[i]->device.get() != nullptr);
	}
	give_callbacks<0>(owned[0]->client);
	give_callbacks<1>(owned[1]->client);
	give_callbacks<2>(owned[2]->client);
	give_callbacks<3>(owned[3]->client);
	static_assert(actors == 4);

	ASSERT_EQ(ib_share_devices(false), 0);
	unsigned int started = 0;
	for (auto &actor : owned) {
		auto thread = kern::Thread::create("race", kern::method<&Actor::run>, actor.get());
		if (!EXPECT_OK(thread))
			break;
		actor->thread = thread.take();
		started++;
	}
	if (started == actors)
		EXPECT_TRUE(stage->done.wait_for(120000));
	for (auto &actor : owned)
		(void)actor->thread.stop();
	EXPECT_EQ(ib_share_devices(true), 0);
	EXPECT_EQ(stage->violations.load_relaxed(), 0);
	EXPECT_EQ(stage->first_violation.load_relaxed(), 0); // the line of the first violation
	EXPECT_EQ(stage->adds.load_relaxed(),
		  stage->removes.load_relaxed() + stage->refusals.load_relaxed());
	EXPECT_GT(stage->adds.load_relaxed(), turns);
	for (auto &pairs : stage->pair)
		for (auto &pair : pairs)
			EXPECT_EQ(pair.load_relaxed(), static_cast<int>(apart));
}

} // namespace

KUNIT_SUITE(
	core_registry_race,
	KUNIT_CASE(lock_11_lock_12_client_add_and_remove_callbacks_alternate_under_concurrency));
