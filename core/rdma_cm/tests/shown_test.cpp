// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the attributes of IDs that are reported through rdma/ib_resources.h.
#include "fixture.hpp"

using namespace rdma_cm_fixture;
using rdma_cm::State;

namespace
{

/* Lists the ids of a device. */
struct Listing {
	ib_resource_info info;

	bool at(ib_device *device, u32 number)
	{
		return ib_next_resource(device, IB_RESOURCE_CM_ID, number, &info) == 0;
	}
	bool says(State state, const Address &source, const Address &destination) const
	{
		return info.cm_id.state == static_cast<u8>(state) &&
		       __builtin_memcmp(info.cm_id.source, &source, sizeof(source)) == 0 &&
		       __builtin_memcmp(info.cm_id.destination, &destination,
					sizeof(destination)) == 0;
	}
};

/*
 * IDs that are bound to a device are shown with their addresses and QPs. IDs without a device and
 * destroyed IDs are not.
 */
void rcm_15_resource_tracking_lists_only_ids_bound_to_the_device(Test &test)
{
	Boxed<Pair> pair;
	Boxed<Listing> listing;
	ASSERT_TRUE(pair.there() && listing.there() && pair->ok());
	ib_device *a = pair->a.device(), *b = pair->b.device();
	/* The listener is on all devices, and the other ID is on none yet. */
	EXPECT_EQ(ib_count_resources(a, IB_RESOURCE_CM_ID) +
			  ib_count_resources(b, IB_RESOURCE_CM_ID),
		  0u);
	EXPECT_FALSE(listing->at(a, 0) || listing->at(b, 0));

	ASSERT_TRUE(pair->establish());
	const rdma_addr &ends = pair->active.id->route.addr;
	ASSERT_TRUE(listing->at(a, 0));
	EXPECT_TRUE(listing->says(State::connect, ends.src_addr, ends.dst_addr));
	EXPECT_TRUE(listing->info.cm_id.has_qp && listing->info.cm_id.qp_number == 0x123 &&
		    listing->info.cm_id.qp_type == IB_QPT_RC);
	EXPECT_EQ(listing->info.cm_id.port, 1u);
	EXPECT_EQ(listing->info.cm_id.port_space, u32{RDMA_PS_TCP});
	EXPECT_EQ(__builtin_strcmp(listing->info.owner, "weft_rdma_cm_test"), 0);
	EXPECT_EQ(listing->info.process, 0u);
	EXPECT_FALSE(listing->at(a, listing->info.number + 1));
	ASSERT_TRUE(listing->at(b, 0));
	EXPECT_TRUE(listing->info.cm_id.has_qp && listing->info.cm_id.qp_number == 0x456);

	pair->active.close();
	EXPECT_FALSE(listing->at(a, 0));
	EXPECT_EQ(ib_count_resources(a, IB_RESOURCE_CM_ID), 0u);
}

/* A process's ID is shown with the process, and so are IDs that its listener has received. */
void rcm_15_resource_tracking_lists_ids_with_their_process(Test &test)
{
	Boxed<Pair> pair;
	Boxed<Listing> listing;
	ASSERT_TRUE(pair.there() && listing.there() && pair->stand());
	kern_process *self = kern_process_get();
	const u32 own = kern_process_number(self);
	kern_process_put(self);
	ASSERT_NE(own, 0u);

	pair->listener.fresh = &pair->passive;
	ASSERT_TRUE(pair->listener.open(RDMA_PS_TCP, IB_QPT_RC, true));
	const Address at = ipv4(2, Pair::port);
	ASSERT_EQ(rdma_bind_addr(pair->listener.id, &at), 0);
	ASSERT_EQ(rdma_listen(pair->listener.id, 0), 0);
	ASSERT_TRUE(pair->request());
	unsigned int seen = 0;
	for (u32 number = 0; listing->at(pair->b.device(), number);
	     number = listing->info.number + 1, seen++) {
		EXPECT_EQ(listing->info.process, own);
		EXPECT_EQ(listing->info.cm_id.state,
			  static_cast<u8>(seen == 0 ? State::listen : State::connect));
	}
	EXPECT_EQ(seen, 2u);
	EXPECT_EQ(ib_count_resources(pair->b.device(), IB_RESOURCE_CM_ID), 2u);
}

} // namespace

SOFT_SUITES(rdma_cm_shown, KUNIT_CASE(rcm_15_resource_tracking_lists_only_ids_bound_to_the_device),
	    KUNIT_CASE(rcm_15_resource_tracking_lists_ids_with_their_process));
