// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the lifetime of target QPs of shared XRC domains, and which programs receive their events.
#include "../../verbs/tests/fixture.hpp"
#include "../xrc.hpp"

using namespace uverbs;
using fixture::Device;

namespace
{

/* Holder of a handle on a target, with the events that it got. */
struct Holder {
	ib_qp *handle = nullptr;
	u32 events = 0;
	/* Events for another QP than the handle's, or received without a handle. */
	u32 misled = 0;

	static void handle_event(ib_event *event, void *context)
	{
		Holder &holder = *static_cast<Holder *>(context);
		holder.events++;
		holder.misled += event->element.qp != holder.handle;
	}
	kern::Result<> create(XrcDomain &domain)
	{
		ib_qp_init_attr attr = {.event_handler = handle_event,
					.qp_context = this,
					.xrcd = &domain.ib(),
					.qp_type = IB_QPT_XRC_TGT};
		handle = KERN_TRY(domain.create_target(attr));
		return {};
	}
	kern::Result<> open(XrcDomain &domain, u32 number)
	{
		ib_qp_open_attr attr = {.event_handler = handle_event,
					.qp_context = this,
					.qp_num = number,
					.qp_type = IB_QPT_XRC_TGT};
		handle = KERN_TRY(domain.open_target(attr));
		return {};
	}
	void close(XrcDomain &domain) { domain.close_target(*std::exchange(handle, nullptr)); }
};

void raise(ib_qp &real)
{
	ib_event event = {};

	event.device = real.device;
	event.element.qp = &real;
	event.event = IB_EVENT_COMM_EST;
	ib_dispatch_event(&event);
}

/*
 * An event is delivered once to each file with a handle, and to none that has closed its handle,
 * not even the QP's creator.
 */
void each_open_handle_of_an_xrc_target_qp_receives_each_event_exactly_once(kern::kunit::Test &test)
{
	const Device device;
	ASSERT_TRUE(device.ok());
	XrcDomains domains;
	ib_udata nothing{};
	auto opened = domains.open(*device.get(), {}, XrcDomains::Mode::existing, nothing);
	ASSERT_OK(opened);
	XrcDomain &domain = *opened.value();
	Holder creator, other;

	ASSERT_OK(creator.create(domain));
	ib_qp &real = *creator.handle->real_qp;
	/* The QP has only the rights of a program, although the kernel has created it. */
	EXPECT_TRUE(real.res.user);
	/*
	 * The QP belongs to no program, because it may outlive its creator. A handle belongs to the
	 * program that holds it, and is reported so.
	 */
	EXPECT_TRUE(creator.handle->res.user);
	raise(real);
	EXPECT_EQ(creator.events, 1u);
	ASSERT_OK(other.open(domain, creator.handle->qp_num));
	raise(real);
	EXPECT_EQ(creator.events, 2u);
	EXPECT_EQ(other.events, 1u);
	EXPECT_TRUE(other.handle->res.user);

	creator.close(domain);
	raise(real);
	EXPECT_EQ(creator.events, 2u);
	EXPECT_EQ(other.events, 2u);
	EXPECT_EQ(creator.misled + other.misled, 0u);

	/* Closing the last handle destroys the QP, so the domain can be destroyed. */
	EXPECT_ERROR(domains.close(domain), -EBUSY);
	other.close(domain);
	EXPECT_OK(domains.close(domain));
}

} // namespace

SOFT_SUITES(uverbs_xrc,
	    KUNIT_CASE(each_open_handle_of_an_xrc_target_qp_receives_each_event_exactly_once));
