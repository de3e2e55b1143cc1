// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Ids on RNICs, whose driver connects by itself, and may fail at any call.
#include "../../iw_cm/tests/fake.hpp"
#include "fixture.hpp"

using namespace rdma_cm_fixture;
using iw_cm_fixture::Fake;
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
	/* Whether a request has been looked at. */
	static bool looked() { return addresses->owners.load_acquire() > 0; }

	static inline Addresses *addresses = nullptr;
};

/*
 * A driver tells of a request, and fails then: who is being told waits for what the listener has
 * locked.
 */
void rcm_08_a_listen_that_fails_ends_after_its_requests(Test &test)
{
	Boxed<Rnics> rnics;
	ASSERT_TRUE(rnics.there() && rnics->ok());
	Fake::asked_at_once = Rnics::looked;
	Fake::listen_error = -ENOMEM;
	EXPECT_EQ(rdma_listen(rnics->listener.id, 1), -ENOMEM);
	EXPECT_TRUE(Rnics::looked());
	EXPECT_EQ(rnics->listener.state(), State::addr_bound);
	EXPECT_EQ(rnics->listener.all(), 0u);
	/* Nothing of it is left, and nobody is locked out. */
	EXPECT_EQ(rdma_listen(rnics->listener.id, 1), 0);
}

/* Who asks has an address, whatever the card says. */
void rcm_08_requests_of_no_address_are_refused(Test &test)
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

} // namespace

KUNIT_SUITE(rdma_cm_rnics, KUNIT_CASE(rcm_08_a_listen_that_fails_ends_after_its_requests),
	    KUNIT_CASE(rcm_08_requests_of_no_address_are_refused));
