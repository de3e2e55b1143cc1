// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule MGMT-04: after a device's own agent has handled a Set, the device is queried again,
// and changes are reported even if the device raises no event.
#include <rdma/ib_cache.h>
#include "smi_fixture.hpp"

using namespace smi_fixture;

namespace
{

/* Change that the device's agent makes on the next Set. */
enum class Change : u8 { nothing, lid, link, manager, pkey, gid };
kern::Atomic<u8> wanted{}; /* a Change */

constexpr u16 new_pkey = 0x8123;
constexpr ib_gid new_gid = {.raw = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7}};

int obey(ib_device *device, int, u32 port_num, const ib_wc *, const ib_grh *, const ib_mad *in,
	 ib_mad *out, size_t *, u16 *)
{
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET && in->mad_hdr.method != IB_MGMT_METHOD_SET)
		return IB_MAD_RESULT_SUCCESS;
	ib_port_attr attr;
	(void)ib_query_port(device, port_num, &attr);
	switch (static_cast<Change>(wanted.exchange(0))) {
	case Change::nothing:
		break;
	case Change::lid:
		attr.lid = 40;
		break;
	case Change::link:
		attr.state = IB_PORT_ARMED;
		break;
	case Change::manager:
		attr.sm_lid = 7;
		break;
	case Change::pkey:
		soft_set_pkey(device, port_num, 3, new_pkey);
		break;
	case Change::gid:
		soft_set_gid(device, port_num, 2, &new_gid);
		break;
	}
	soft_set_port(device, port_num, &attr);
	turn_round(*in, *out);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

struct Recorder : ib_event_handler {
	kern::Atomic<unsigned int> events{};
	kern::Atomic<int> last{-1};

	explicit Recorder(ib_device *of)
	{
		INIT_IB_EVENT_HANDLER(this, of, [](ib_event_handler *handler, ib_event *event) {
			auto &self = *static_cast<Recorder *>(handler);
			self.last.store_release(event->event);
			self.events.fetch_add(1);
		});
		ib_register_event_handler(this);
	}
	~Recorder() { ib_unregister_event_handler(this); }
	bool receives(unsigned int count, ib_event_type type) const
	{
		return eventually([&] { return events.load_acquire() == count; }) &&
		       last.load_acquire() == type;
	}
};

void set(Test &test, ib_device *device, Change change, u16 attribute)
{
	wanted.store_release(static_cast<u8>(change));
	ask(test, device, {.hops = 1, .method = IB_MGMT_METHOD_SET, .attribute = attribute});
}

void mgmt_04_set_mad_that_changes_a_port_raises_the_matching_event(Test &test)
{
	Device near({.lid = 1, .process_mad = answer_in_device}),
		far({.lid = 2, .process_mad = obey});
	ASSERT_TRUE(near.ok() && far.ok());
	soft_connect(near, 1, far, 1);
	Recorder recorder(far);

	set(test, near, Change::lid, ib::attr_port_info);
	EXPECT_TRUE(recorder.receives(1, IB_EVENT_LID_CHANGE));
	u16 value;
	EXPECT_EQ(ib_get_cached_lid(far, 1, &value), 0);
	EXPECT_EQ(value, 40);
	set(test, near, Change::manager, ib::attr_port_info);
	EXPECT_TRUE(recorder.receives(2, IB_EVENT_SM_CHANGE));
	EXPECT_EQ(ib_get_cached_sm_lid(far, 1, &value), 0);
	EXPECT_EQ(value, 7);
	set(test, near, Change::link, ib::attr_port_info);
	EXPECT_TRUE(recorder.receives(3, IB_EVENT_PORT_ERR));
	set(test, near, Change::pkey, ib::attr_pkey_table);
	EXPECT_TRUE(recorder.receives(4, IB_EVENT_PKEY_CHANGE));
	EXPECT_EQ(ib_get_cached_pkey(far, 1, 3, &value), 0);
	EXPECT_EQ(value, new_pkey);
	set(test, near, Change::gid, ib::attr_guid_info);
	EXPECT_TRUE(recorder.receives(5, IB_EVENT_GID_CHANGE));
	ib_gid gid;
	EXPECT_EQ(rdma_query_gid(far, 1, 2, &gid), 0);
	EXPECT_TRUE(gid == new_gid);
}

/*
 * Only attributes that may have changed are queried, and only changes are reported. A port that
 * cannot be read is read later.
 */
void mgmt_04_set_mad_causes_queries_only_of_port_attributes_that_it_may_have_changed(Test &test)
{
	Device near({.lid = 1, .process_mad = answer_in_device}),
		far({.lid = 2, .process_mad = obey});
	ASSERT_TRUE(near.ok() && far.ok());
	soft_connect(near, 1, far, 1);
	Recorder recorder(far);

	unsigned long asked = soft_calls(far, SOFT_QUERY_PKEY);
	ask(test, near, {.hops = 1, .attribute = ib::attr_pkey_table});
	set(test, near, Change::nothing, ib::attr_guid_info);
	EXPECT_EQ(soft_calls(far, SOFT_QUERY_PKEY), asked);
	set(test, near, Change::nothing, ib::attr_pkey_table);
	EXPECT_TRUE(eventually([&] { return soft_calls(far, SOFT_QUERY_PKEY) == asked + 8; }));

	asked = soft_calls(far, SOFT_QUERY_PKEY);
	soft_fail(far, SOFT_QUERY_PKEY, 1, -EIO);
	set(test, near, Change::pkey, ib::attr_pkey_table);
	EXPECT_TRUE(eventually([&] { return soft_calls(far, SOFT_QUERY_PKEY) == asked + 1; }));
	EXPECT_EQ(recorder.events.load_acquire(), 0u);
	set(test, near, Change::nothing, ib::attr_pkey_table);
	EXPECT_TRUE(recorder.receives(1, IB_EVENT_PKEY_CHANGE));
}

} // namespace

SOFT_SUITES(
	mad_smp_snoop, KUNIT_CASE(mgmt_04_set_mad_that_changes_a_port_raises_the_matching_event),
	KUNIT_CASE(
		mgmt_04_set_mad_causes_queries_only_of_port_attributes_that_it_may_have_changed));
