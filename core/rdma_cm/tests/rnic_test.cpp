// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests IDs on RNICs, whose driver establishes connections itself and may fail at any call.
#include <kern/completion.hpp>
#include <rdma/ib_cache.h>
#include <rdma/ib_resources.h>
#include <rdma/objects.hpp>
#include "../../iw_cm/tests/fake.hpp"
#include "fixture.hpp"

using namespace rdma_cm_fixture;
using iw_cm_fixture::Fake;
using kern::kunit::ConcurrentThread;
using rdma_cm::State;

namespace
{

/* Two RNICs, of which the second has an address. */
struct Rnics {
	static constexpr u16 port = 7174;

	Ground ground;
	bool started = Fake::start();
	End listener;

	Rnics() { addresses = &ground.addresses; }
	~Rnics()
	{
		listener.close();
		Fake::stop();
		addresses = nullptr;
	}
	bool ok()
	{
		ground.addresses.add_rnic(2);
		Address bound = rdma_cm::any_of(RDMA_AF_INET);
		rdma_cm::set_port(bound, RDMA_PS_TCP, port);
		return ground.ok() && started && listener.open() &&
		       rdma_bind_addr(listener.id, &bound) == 0;
	}
	/* True if a request has been examined. */
	static bool looked() { return addresses->owners.load_acquire() > 0; }

	static inline Addresses *addresses = nullptr;
};

/*
 * A driver delivers a request and then fails: the request's handler waits for a lock that the
 * listener holds.
 */
void rcm_08_rdma_listen_does_not_deadlock_if_the_driver_delivers_a_request_and_then_fails(
	Test &test)
{
	Boxed<Rnics> rnics;
	ASSERT_TRUE(rnics.there() && rnics->ok());
	Fake::asked_at_once = Rnics::looked;
	Fake::listen_error = -ENOMEM;
	EXPECT_EQ(rdma_listen(rnics->listener.id, 1), -ENOMEM);
	EXPECT_TRUE(Rnics::looked());
	EXPECT_EQ(rnics->listener.state(), State::addr_bound);
	EXPECT_EQ(rnics->listener.all(), 0u);
	/* Nothing is left behind, and other listeners are not blocked. */
	EXPECT_EQ(rdma_listen(rnics->listener.id, 1), 0);
}

/* A requester must have an address, whatever the card reports. */
void rcm_08_iwarp_requests_without_a_remote_address_are_rejected(Test &test)
{
	Boxed<Rnics> rnics;
	ASSERT_TRUE(rnics.there() && rnics->ok());
	ASSERT_EQ(rdma_listen(rnics->listener.id, 1), 0);
	ASSERT_TRUE(Fake::request(Rnics::port, 0));
	EXPECT_TRUE(eventually([] { return Fake::rejected.load_acquire() == 1; }));
	EXPECT_FALSE(Rnics::looked());
	ASSERT_TRUE(Fake::request(Rnics::port, 1));
	EXPECT_TRUE(eventually(Rnics::looked));
}

/*
 * An RNIC that does not respond delays only operations on the port number for which it was called.
 */
void rcm_18_unresponsive_rnic_delays_only_calls_for_the_same_tcp_port(Test &test)
{
	Boxed<Rnics> rnics;
	Boxed<Ends<1>> one;
	ASSERT_TRUE(rnics.there() && rnics->ok() && one.there());
	End &other = one->ends[0];
	ASSERT_TRUE(other.open());
	Address at = rdma_cm::any_of(RDMA_AF_INET);
	rdma_cm::set_port(at, RDMA_PS_TCP, Rnics::port + 1);

	Fake::unanswered_port.store_release(Rnics::port);
	kern::Completion listened, others;
	int status = 1, others_status = 1;
	ConcurrentThread waiting([&] {
		status = rdma_listen(rnics->listener.id, 1);
		listened.complete();
	});
	ASSERT_TRUE(eventually([] { return Fake::unanswered.load_acquire() == 1; }));
	ConcurrentThread asking([&] {
		others_status = rdma_bind_addr(other.id, &at);
		if (others_status == 0)
			others_status = rdma_listen(other.id, 1);
		others.complete();
	});
	/*
	 * This is less time than the RNIC needs: with a shared lock, the second call would wait for
	 * the first one.
	 */
	const bool independent = others.wait_for(40'000);
	EXPECT_TRUE(independent);
	EXPECT_EQ(Fake::unanswered.load_acquire(), 1u);
	Fake::unanswered_port.store_release(0);
	listened.wait();
	if (!independent)
		others.wait();
	EXPECT_EQ(status, 0);
	EXPECT_EQ(others_status, 0);
}

/* A device can be removed while it is called; the removal waits until the call has returned. */
void rcm_18_device_removal_waits_until_the_listen_method_of_the_driver_returns(Test &test)
{
	Boxed<Rnics> rnics;
	ASSERT_TRUE(rnics.there() && rnics->ok());
	Boxed<Ends<1>> one;
	ASSERT_TRUE(one.there() && one->ends[0].open());
	ib_device *const device = Fake::device(0);
	/* The RNIC has no GID to bind an id by. */
	const auto found = [&] {
		rdma_cm::Id &id = rdma_cm::Id::of(one->ends[0].id);
		kern::Guard guard(id.lock());
		return rdma_cm::Manager::get().attach_to(id, *device, 1).error();
	};
	ASSERT_EQ(found(), -EINVAL);
	Fake::unanswered_port.store_release(Rnics::port);
	kern::Completion listened, gone;
	ConcurrentThread waiting([&] {
		(void)rdma_listen(rnics->listener.id, 1);
		listened.complete();
	});
	ASSERT_TRUE(eventually([] { return Fake::unanswered.load_acquire() == 1; }));
	ConcurrentThread going([&] {
		Fake::stop();
		gone.complete();
	});
	EXPECT_TRUE(eventually([&] { return found() == -ENODEV; }));
	EXPECT_FALSE(gone.done());
	Fake::unanswered_port.store_release(0);
	listened.wait();
	gone.wait();
	EXPECT_EQ(rnics->listener.state(), State::listen);
}

/*
 * A failed device does not prevent a listener for all devices, but a listener for that device
 * fails.
 */
void rcm_18_wildcard_listen_succeeds_although_listening_on_one_device_fails(Test &test)
{
	Boxed<Rnics> rnics;
	Boxed<Ends<1>> one;
	ASSERT_TRUE(rnics.there() && rnics->ok() && one.there());
	Fake::listen_error = -EIO;
	EXPECT_EQ(rdma_listen(rnics->listener.id, 1), 0);
	EXPECT_EQ(Fake::listen_error, 0);
	EXPECT_TRUE(Fake::request(Rnics::port, 1));
	/* As if it were bound to the device: the RNIC has no GID to bind it by. */
	End &own = one->ends[0];
	Address at = rdma_cm::any_of(RDMA_AF_INET);
	rdma_cm::set_port(at, RDMA_PS_TCP, Rnics::port + 1);
	ASSERT_TRUE(own.open());
	ASSERT_EQ(rdma_bind_addr(own.id, &at), 0);
	own.id->device = Fake::device(0);
	Fake::listen_error = -EIO;
	EXPECT_EQ(rdma_listen(own.id, 1), -EIO);
	EXPECT_EQ(rdma_listen(own.id, 1), 0);
	own.id->device = nullptr;
}

/* The QP that a consumer connects by number exists until the driver has finished the call. */
void iwcm_04_qp_destroy_waits_until_the_connect_method_of_the_driver_returns(Test &test)
{
	Boxed<Rnics> rnics;
	Boxed<Ends<1>> one;
	ASSERT_TRUE(rnics.there() && rnics->ok() && one.there());
	End &end = one->ends[0];
	ib_device *const device = Fake::device(0);
	auto pd = rdma::Pd::create(device);
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 15);
	ASSERT_TRUE(pd.ok() && cq.ok());
	ib_qp_init_attr attr{};
	attr.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
	attr.qp_type = IB_QPT_RC;
	auto qp = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr);
	ASSERT_TRUE(qp.ok());
	const u32 number = qp.value()->qp_num;
	/* As if it were bound to the device: the RNIC has no GID to bind it by. */
	ASSERT_TRUE(end.open());
	end.id->device = device;
	rdma_cm::IwTransport transport;
	auto made = transport.create_connection(rdma_cm::Id::of(end.id));
	ASSERT_TRUE(made.ok());
	auto connection = made.take();
	EXPECT_EQ(connection->connect(End::param(number + 1)).error(), -EINVAL);
	Fake::still = true;
	Fake::holding_connect.store_release(true);
	kern::Completion connected, destroyed;
	int status = 1;
	ConcurrentThread connecting([&] {
		status = connection->connect(End::param(number)).error();
		connected.complete();
	});
	ASSERT_TRUE(eventually([] { return Fake::held_qp.load_acquire() != nullptr; }));
	EXPECT_TRUE(Fake::held_qp.load_acquire() == qp.value().get());
	ConcurrentThread destroying([&] {
		{
			const auto ending = qp.take();
		}
		destroyed.complete();
	});
	/* It cannot be found any more, and is there all the same. */
	EXPECT_TRUE(eventually([&] {
		ib_qp *const found = ib_hold_qp(device, number, false);
		ib_release_qp(found);
		return found == nullptr;
	}));
	EXPECT_FALSE(destroyed.wait_for(100));
	Fake::holding_connect.store_release(false);
	connected.wait();
	destroyed.wait();
	EXPECT_EQ(status, 0);
	connection.reset();
	end.id->device = nullptr;
}

} // namespace

KUNIT_SUITE(
	rdma_cm_rnics,
	KUNIT_CASE(
		rcm_08_rdma_listen_does_not_deadlock_if_the_driver_delivers_a_request_and_then_fails),
	KUNIT_CASE(rcm_18_unresponsive_rnic_delays_only_calls_for_the_same_tcp_port),
	KUNIT_CASE(rcm_18_device_removal_waits_until_the_listen_method_of_the_driver_returns),
	KUNIT_CASE(rcm_18_wildcard_listen_succeeds_although_listening_on_one_device_fails),
	KUNIT_CASE(iwcm_04_qp_destroy_waits_until_the_connect_method_of_the_driver_returns),
	KUNIT_CASE(rcm_08_iwarp_requests_without_a_remote_address_are_rejected));
