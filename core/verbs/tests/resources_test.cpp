// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests resource tracking: objects have the right owner, and no object is read while it is
// destroyed.
#include <kern/abi/net.h>
#include <kern/kunit_process.hpp>
#include <kern/thread.hpp>
#include <rdma/ib_port_counters.h>
#include <rdma/ib_resources.h>
#include "fixture.hpp"

using namespace fixture;

namespace
{

/* Returns the number of the first PD from @from on, or IB_NO_RESOURCE. */
u32 next_pd(ib_device *device, u32 from, ib_resource_info &info)
{
	return ib_next_resource(device, IB_RESOURCE_PD, from, &info) ? IB_NO_RESOURCE : info.number;
}

void resource_tracking_lists_objects_in_creation_order_with_their_owner(Test &test)
{
	Device device;
	ASSERT_TRUE(device.ok());
	kern::kunit::Boxed<ib_resource_info> info;
	ASSERT_TRUE(info.there());
	/* Count the PDs of the midlayer itself, if any. */
	u32 before = 0;
	for (u32 at = 0; (at = next_pd(device, at, *info)) != IB_NO_RESOURCE; at++)
		before++;
	EXPECT_EQ(ib_count_resources(device, IB_RESOURCE_PD), before);

	ib_pd *first = ib_alloc_pd(device, 0), *second = ib_alloc_pd(device, 0);
	ASSERT_FALSE(rdma::is_err(first) || rdma::is_err(second));
	EXPECT_EQ(ib_count_resources(device, IB_RESOURCE_PD), before + 2);
	const u32 one = next_pd(device, before, *info);
	EXPECT_EQ(info->process, 0u);
	EXPECT_EQ(info->context, IB_NO_RESOURCE);
	EXPECT_EQ(__builtin_strcmp(info->owner, "weft_verbs_test"), 0);
	const u32 other = next_pd(device, one + 1, *info);
	EXPECT_TRUE(one != IB_NO_RESOURCE && other != IB_NO_RESOURCE && one < other);
	EXPECT_EQ(next_pd(device, other + 1, *info), IB_NO_RESOURCE);
	ib_dealloc_pd(second);
	EXPECT_EQ(next_pd(device, one + 1, *info), IB_NO_RESOURCE);
	/* A number is not reused soon, so a reader that continues after it misses no object. */
	second = ib_alloc_pd(device, 0);
	ASSERT_FALSE(rdma::is_err(second));
	EXPECT_GT(next_pd(device, one + 1, *info), other);
	ib_dealloc_pd(second);
	ib_dealloc_pd(first);
	EXPECT_EQ(ib_count_resources(device, IB_RESOURCE_PD), before);
	EXPECT_EQ(ib_count_resources(device, IB_RESOURCE_CM_ID), 0u);
	EXPECT_EQ(ib_next_resource(device, IB_RESOURCE_KINDS, 0, &*info), -EINVAL);
}

/* One thread holds a reference to a QP that it reads, and another one destroys that QP. */
struct Reader {
	ib_device *device;
	ib_qp *qp = nullptr;
	u32 number = 0;
	int read_error = 1, destroyed = 1;
	kern::Completion inside, on;
	ib_resource_info info;

	static void stay(void *context)
	{
		auto *reader = static_cast<Reader *>(context);
		reader->inside.complete();
		reader->on.wait();
	}
	int read()
	{
		read_error = ib_next_resource(device, IB_RESOURCE_QP, number, &info);
		return 0;
	}
	int destroy()
	{
		destroyed = ib_destroy_qp(qp);
		return 0;
	}
};

void object_is_not_destroyed_while_resource_tracking_lists_it(Test &test)
{
	Device device;
	ASSERT_TRUE(device.ok());
	kern::kunit::Boxed<Reader> reader;
	ASSERT_TRUE(reader.there());
	reader->device = device;
	auto pd = rdma::Pd::create(device);
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 16);
	ASSERT_TRUE(pd.ok() && cq.ok());
	ib_qp_init_attr attr = qp_attr(IB_QPT_RC);
	attr.send_cq = attr.recv_cq = cq.value()->get();
	const u32 before = ib_count_resources(device, IB_RESOURCE_QP);
	reader->qp = ib_create_qp(pd.value()->get(), &attr);
	ASSERT_FALSE(rdma::is_err(reader->qp));
	while (ib_next_resource(device, IB_RESOURCE_QP, reader->number, &reader->info) == 0 &&
	       reader->info.qp.number != reader->qp->qp_num)
		reader->number = reader->info.number + 1;
	EXPECT_EQ(reader->info.qp.state, IB_QPS_RESET);

	const unsigned long destructions = soft_calls(device, SOFT_DESTROY_QP);
	soft_interpose(device, SOFT_QUERY_QP, Reader::stay, &*reader);
	{
		auto reading = kern::Thread::create("read", kern::method<&Reader::read>, &*reader);
		ASSERT_TRUE(reading.ok());
		reader->inside.wait();
		auto ending = kern::Thread::create("end", kern::method<&Reader::destroy>, &*reader);
		/*
		 * The QP cannot be found any more, but the driver's destroy method has not been
		 * called yet.
		 */
		EXPECT_TRUE(ending.ok() && eventually([&] {
				    return ib_count_resources(device, IB_RESOURCE_QP) == before;
			    }));
		EXPECT_EQ(soft_calls(device, SOFT_DESTROY_QP), destructions);
		reader->on.complete_all();
		EXPECT_TRUE(eventually(
			[&] { return soft_calls(device, SOFT_DESTROY_QP) == destructions + 1; }));
	}
	soft_interpose(device, SOFT_QUERY_QP, nullptr, nullptr);
	EXPECT_EQ(reader->read_error, 0);
	EXPECT_EQ(reader->destroyed, 0);
}

void resource_tracking_lists_an_object_again_if_its_destruction_fails(Test &test)
{
	Device device;
	ASSERT_TRUE(device.ok());
	kern::kunit::Boxed<Reader> reader;
	Pair pair(device);
	ASSERT_TRUE(reader.there() && pair.ok);
	const u32 all = ib_count_resources(device, IB_RESOURCE_QP);
	ib_qp *qp = pair.qp_a.get();
	soft_fail(device, SOFT_DESTROY_QP, 1, -EBUSY);
	EXPECT_EQ(ib_destroy_qp(qp), -EBUSY);
	EXPECT_EQ(ib_count_resources(device, IB_RESOURCE_QP), all);
	/*
	 * An object that the device cannot query is skipped, but the objects after it are reported.
	 */
	while (ib_next_resource(device, IB_RESOURCE_QP, reader->number, &reader->info) == 0 &&
	       reader->info.qp.number != qp->qp_num)
		reader->number = reader->info.number + 1;
	EXPECT_EQ(reader->info.qp.state, IB_QPS_RTS);
	EXPECT_EQ(reader->info.qp.dest_number, pair.qp_b.number());
	soft_fail(device, SOFT_QUERY_QP, 1, -EIO);
	EXPECT_EQ(ib_next_resource(device, IB_RESOURCE_QP, reader->number, &reader->info), 0);
	EXPECT_EQ(reader->info.qp.number, pair.qp_b.number());
}

u32 count_ids(ib_device *)
{
	return 7;
}

int one_id(ib_device *, u32 number, ib_resource_info *info)
{
	info->number = 3;
	return number > 3 ? -ENOENT : 0;
}

void only_one_module_can_register_callbacks_that_supply_cm_ids_to_resource_tracking(Test &test)
{
	static constexpr ib_resource_source source = {.count = count_ids, .next = one_id};
	Device device;
	ASSERT_TRUE(device.ok());
	kern::kunit::Boxed<ib_resource_info> info;
	ASSERT_TRUE(info.there());
	EXPECT_EQ(ib_set_resource_source(IB_RESOURCE_PD, &source), -EINVAL);
	ASSERT_EQ(ib_set_resource_source(IB_RESOURCE_CM_ID, &source), 0);
	EXPECT_EQ(ib_set_resource_source(IB_RESOURCE_CM_ID, &source), -EBUSY);
	EXPECT_EQ(ib_count_resources(device, IB_RESOURCE_CM_ID), 7u);
	EXPECT_EQ(ib_next_resource(device, IB_RESOURCE_CM_ID, 0, &*info), 0);
	EXPECT_EQ(info->number, 3u);
	EXPECT_EQ(ib_next_resource(device, IB_RESOURCE_CM_ID, 4, &*info), -ENOENT);
	EXPECT_EQ(ib_set_resource_source(IB_RESOURCE_CM_ID, nullptr), 0);
	EXPECT_EQ(ib_count_resources(device, IB_RESOURCE_CM_ID), 0u);
	EXPECT_EQ(ib_next_resource(device, IB_RESOURCE_CM_ID, 0, &*info), -ENOENT);
}

/*
 * The module with port counters and the module that shows them can be loaded in either order. There
 * is one of each.
 */
void port_counter_and_sysfs_modules_load_in_either_order(Test &test)
{
	static const ib_port_counters *seen;
	static unsigned int times;
	static constexpr ib_port_counters_notifier notifier = {
		.show = [](const ib_port_counters *counters) {
			seen = counters;
			times++;
		}};
	static constexpr ib_port_counters counters{};
	seen = nullptr;
	times = 0;
	ASSERT_EQ(ib_set_port_counters_notifier(&notifier), 0);
	EXPECT_EQ(ib_set_port_counters_notifier(&notifier), -EBUSY);
	EXPECT_EQ(times, 0u);
	EXPECT_EQ(ib_set_port_counters(&counters), 0);
	EXPECT_EQ(ib_set_port_counters(&counters), -EBUSY);
	EXPECT_TRUE(seen == &counters && times == 1);
	EXPECT_EQ(ib_set_port_counters(nullptr), 0);
	EXPECT_TRUE(seen == nullptr && times == 2);
	EXPECT_EQ(ib_set_port_counters_notifier(nullptr), 0);
	EXPECT_EQ(ib_set_port_counters(&counters), 0);
	EXPECT_EQ(times, 2u);
	EXPECT_EQ(ib_set_port_counters_notifier(&notifier), 0);
	EXPECT_TRUE(seen == &counters && times == 3);
	EXPECT_EQ(ib_set_port_counters_notifier(nullptr), 0);
	EXPECT_EQ(ib_set_port_counters(nullptr), 0);
	EXPECT_EQ(times, 3u);
}

void ib_find_node_finds_a_char_device_only_between_publish_and_withdraw(Test &test)
{
	Device device;
	ASSERT_TRUE(device.ok());
	ib_node node = {.kind = IB_NODE_UMAD,
			.device = device,
			.port = 1,
			.name = "umad9",
			.major = 231,
			.minor = 9,
			.abi_version = 5,
			.links = {}};
	ib_node_info info;
	EXPECT_EQ(ib_find_node(IB_NODE_UMAD, device, 1, &info), -ENOENT);
	ib_publish_node(&node);
	EXPECT_EQ(ib_find_node(IB_NODE_UMAD, device, 1, &info), 0);
	EXPECT_TRUE(__builtin_strcmp(info.name, "umad9") == 0 && info.major == 231 &&
		    info.minor == 9 && info.abi_version == 5);
	EXPECT_EQ(ib_find_node(IB_NODE_ISSM, device, 1, &info), -ENOENT);
	EXPECT_EQ(ib_find_node(IB_NODE_UMAD, device, 2, &info), -ENOENT);
	EXPECT_EQ(ib_find_node(IB_NODE_UMAD, nullptr, 1, &info), -ENOENT);
	ib_withdraw_node(&node);
	ib_withdraw_node(&node);
	EXPECT_EQ(ib_find_node(IB_NODE_UMAD, device, 1, &info), -ENOENT);
}

void index_of_a_removed_device_is_not_reused(Test &test)
{
	u32 gone;
	{
		Device device;
		ASSERT_TRUE(device.ok());
		gone = ib_device_index(device);
	}
	Device device;
	ASSERT_TRUE(device.ok());
	EXPECT_GT(ib_device_index(device), gone);
	ib_device *found = ib_device_get_from(gone, KERN_NET_INITIAL);
	ASSERT_TRUE(found == device.get());
	ib_device_put(found);
	EXPECT_TRUE(ib_device_get_from(ib_device_index(device) + 1, KERN_NET_INITIAL) == nullptr);
}

SOFT_SUITES(
	verbs_resources,
	KUNIT_CASE(resource_tracking_lists_objects_in_creation_order_with_their_owner),
	KUNIT_CASE(object_is_not_destroyed_while_resource_tracking_lists_it),
	KUNIT_CASE(resource_tracking_lists_an_object_again_if_its_destruction_fails),
	KUNIT_CASE(only_one_module_can_register_callbacks_that_supply_cm_ids_to_resource_tracking),
	KUNIT_CASE(port_counter_and_sysfs_modules_load_in_either_order),
	KUNIT_CASE(ib_find_node_finds_a_char_device_only_between_publish_and_withdraw),
	KUNIT_CASE(index_of_a_removed_device_is_not_reused));

} // namespace
