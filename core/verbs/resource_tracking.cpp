// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the access to objects and device nodes for modules that list them (ib_resources.h).
#include <kern/abi/process.h>
#include <kern/atomic.hpp>
#include <kern/log.hpp>
#include <kern/time.hpp>
#include <rdma/ib_port_counters.h>
#include <rdma/ib_resources.h>
#include "checks.hpp"
#include "device.hpp"
#include "qp.hpp"
#include "verbs.hpp"

using namespace verbs;

namespace
{

/* State of this module that does not belong to a device. */
struct Shown {
	Shown() { ring_init(nodes); }

	/* Held while the source is called. */
	kern::Mutex source_lock{KERN_LOCK_CLASS("verbs.source")};
	const ib_resource_source *cm_ids KERN_GUARDED_BY(source_lock) = nullptr;
	/* Held while the notifier is called. */
	kern::Mutex counter_lock{KERN_LOCK_CLASS("verbs.port_counters")};
	const ib_port_counters *counters KERN_GUARDED_BY(counter_lock) = nullptr;
	const ib_port_counters_notifier *notifier KERN_GUARDED_BY(counter_lock) = nullptr;
	kern::Mutex node_lock{KERN_LOCK_CLASS("verbs.nodes")};
	ib_list_head nodes KERN_GUARDED_BY(node_lock);
};

constinit kern::Static<Shown> shown;

template<class T>
T &object_of(const Record &record)
{
	return whole_of<T, &T::res>(*record.resource);
}

/* Returns the number of an object, or IB_NO_RESOURCE for nullptr. */
template<class T>
u32 number_of(const T *object)
{
	return object ? Record::of(object->res).number : IB_NO_RESOURCE;
}

u64 users_of(const int &usecnt)
{
	return static_cast<u64>(kern::count_of(usecnt));
}

bool fill(ib_pd &pd, ib_resource_info &info)
{
	info.users = users_of(pd.usecnt);
	info.pd_keys = {.local_dma_lkey = pd.local_dma_lkey,
			.unsafe_global_rkey = pd.unsafe_global_rkey};
	return true;
}

bool fill(ib_cq &cq, ib_resource_info &info)
{
	info.users = users_of(cq.usecnt);
	info.cq = {.cqe = static_cast<u32>(kern::read_once(cq.cqe)), .poll_ctx = cq.poll_ctx};
	return true;
}

/* Returns false if the QP cannot be queried. */
bool fill(ib_qp &qp, ib_resource_info &info)
{
	ib_qp_attr attr = {};
	ib_qp_init_attr init = {};

	if (ib_query_qp(&qp, &attr, IB_QP_STATE, &init))
		return false;
	info.pd = number_of(qp.pd);
	info.qp = {
		.port = kern::read_once(qp.real_qp->port),
		.number = qp.qp_num,
		.type = qp.qp_type,
		.state = attr.qp_state,
		.path_mig_state = attr.path_mig_state,
		.dest_number = attr.dest_qp_num,
		.rq_psn = attr.rq_psn,
		.sq_psn = attr.sq_psn,
	};
	return true;
}

bool fill(ib_mr &mr, ib_resource_info &info)
{
	info.pd = number_of(mr.pd);
	info.mr = {.rkey = mr.rkey, .lkey = mr.lkey, .length = mr.length};
	return true;
}

bool fill(ib_ucontext &context, ib_resource_info &info)
{
	info.context = number_of(&context);
	return true;
}

/* Calls body(object) for each visible object until body returns false. Does not call the driver. */
template<class T, class Body>
void for_each_shown(ib_device &device, Body body)
{
	ResourceTable &table = device.verbs->resources[static_cast<unsigned int>(kind_of<T>())];
	u32 number = 0;

	for (bool on = true; on; kern::cond_resched()) {
		Record *record = table.hold(number);
		if (!record)
			return;
		number = record->number + 1;
		on = body(object_of<T>(*record));
		table.release(*record);
	}
}

/* Adds a QP number to the ranges. Returns false if there is no space for another range. */
bool add_number(ib_resource_info &info, u32 number)
{
	auto &srq = info.srq;

	if (srq.ranges && srq.qps[srq.ranges - 1].last + 1 == number) {
		srq.qps[srq.ranges - 1].last = number;
		return true;
	}
	if (srq.ranges == IB_RESOURCE_RANGES)
		return false;
	srq.qps[srq.ranges++] = {.first = number, .last = number};
	return true;
}

bool fill(ib_srq &srq, ib_resource_info &info)
{
	info.pd = number_of(srq.pd);
	info.srq.type = srq.srq_type;
	info.srq.cq = number_of(srq.ext.cq);
	for_each_shown<ib_qp>(*srq.device, [&](const ib_qp &qp) {
		return qp.srq != &srq || add_number(info, qp.qp_num);
	});
	return true;
}

void identify(const Record &record, ib_resource_info &info)
{
	info = {};
	info.number = record.number;
	info.context = record.resource->user ? record.context : IB_NO_RESOURCE;
	info.pd = IB_NO_RESOURCE;
	if (record.process)
		info.process = kern_process_number(record.process);
	kern_format(info.owner, sizeof(info.owner), "%s", record.resource->owner);
}

template<class T>
int next(ib_device &device, u32 number, ib_resource_info &info)
{
	ResourceTable &table = device.verbs->resources[static_cast<unsigned int>(kind_of<T>())];

	while (Record *record = table.hold(number)) {
		identify(*record, info);
		const bool known = fill(object_of<T>(*record), info);
		table.release(*record);
		if (known)
			return 0;
		number = info.number + 1;
		kern::cond_resched();
	}
	return -ENOENT;
}

/*
 * Returns true if the process has created the QP, or has opened a handle on it if it is an XRC
 * target.
 */
bool is_of(ib_qp &qp, const kern_process *process)
{
	if (Record::of(qp.res).process == process)
		return true;
	if (qp.qp_type != IB_QPT_XRC_TGT)
		return false;
	kern::Guard guard(qp.core->handles_lock);
	return ring_any_of<ib_qp, &ib_qp::links>(qp.core->handles, [&](const ib_qp &handle) {
		return Record::of(handle.res).process == process;
	});
}

/* Returns the verbs' Kind for a kind of ib_resources.h. */
constexpr Kind kind_of(ib_resource_kind kind)
{
	switch (kind) {
	case IB_RESOURCE_PD:
		return Kind::pd;
	case IB_RESOURCE_CQ:
		return Kind::cq;
	case IB_RESOURCE_QP:
		return Kind::qp;
	case IB_RESOURCE_MR:
		return Kind::mr;
	case IB_RESOURCE_CTX:
		return Kind::ucontext;
	default:
		return Kind::srq;
	}
}

} // namespace

void verbs::init_resource_tracking()
{
	shown.construct();
}

void verbs::exit_resource_tracking()
{
	shown.destruct();
}

extern "C" {

u32 ib_count_resources(struct ib_device *device, enum ib_resource_kind kind)
{
	may_sleep(device, "ib_count_resources");
	if (kind != IB_RESOURCE_CM_ID)
		return device->verbs->resources[static_cast<unsigned int>(kind_of(kind))].count();
	kern::Guard guard(shown->source_lock);
	return shown->cm_ids ? shown->cm_ids->count(device) : 0;
}

int ib_next_resource(struct ib_device *device, enum ib_resource_kind kind, u32 number,
		     struct ib_resource_info *info)
{
	may_sleep(device, "ib_next_resource");
	switch (kind) {
	case IB_RESOURCE_PD:
		return next<ib_pd>(*device, number, *info);
	case IB_RESOURCE_CQ:
		return next<ib_cq>(*device, number, *info);
	case IB_RESOURCE_QP:
		return next<ib_qp>(*device, number, *info);
	case IB_RESOURCE_MR:
		return next<ib_mr>(*device, number, *info);
	case IB_RESOURCE_CTX:
		return next<ib_ucontext>(*device, number, *info);
	case IB_RESOURCE_SRQ:
		return next<ib_srq>(*device, number, *info);
	case IB_RESOURCE_CM_ID: {
		kern::Guard guard(shown->source_lock);
		*info = {};
		return shown->cm_ids ? shown->cm_ids->next(device, number, info) : -ENOENT;
	}
	default:
		return -EINVAL;
	}
}

int ib_find_qp_resource(struct ib_device *device, u32 qp_num, u32 port, u32 *number)
{
	int status = -ENOENT;

	may_sleep(device, "ib_find_qp_resource");
	for_each_shown<ib_qp>(*device, [&](const ib_qp &qp) {
		const u32 its = kern::read_once(qp.real_qp->port);
		if (qp.qp_num != qp_num || (its && its != port))
			return true;
		*number = number_of(&qp);
		status = 0;
		return false;
	});
	return status;
}

bool ib_process_has_qp(struct ib_device *device, u32 qp_num)
{
	kern_process *const caller = kern_process_get();
	const bool has = device->verbs->qp_numbers.any_of(
		qp_num, [&](ib_qp &qp) { return is_of(qp, caller); });

	kern_process_put(caller);
	return has;
}

struct ib_qp *ib_hold_qp(struct ib_device *device, u32 qp_num, bool of_caller)
{
	KERN_MIGHT_SLEEP();
	kern_process *const caller = kern_process_get();
	ib_qp *const qp = device->verbs->qp_numbers.hold(
		qp_num, [&](ib_qp &one) { return !of_caller || is_of(one, caller); });

	kern_process_put(caller);
	return qp;
}

void ib_release_qp(struct ib_qp *qp)
{
	KERN_MIGHT_SLEEP();
	if (qp)
		qp->device->verbs->qp_numbers.release(*qp);
}

int ib_set_resource_source(enum ib_resource_kind kind, const struct ib_resource_source *source)
{
	KERN_MIGHT_SLEEP();
	if (kind != IB_RESOURCE_CM_ID)
		return -EINVAL;
	kern::Guard guard(shown->source_lock);
	if (source && shown->cm_ids)
		return -EBUSY;
	shown->cm_ids = source;
	return 0;
}

int ib_set_port_counters(const struct ib_port_counters *counters)
{
	KERN_MIGHT_SLEEP();
	kern::Guard guard(shown->counter_lock);
	if (counters && shown->counters)
		return -EBUSY;
	shown->counters = counters;
	if (shown->notifier)
		shown->notifier->show(counters);
	return 0;
}

int ib_set_port_counters_notifier(const struct ib_port_counters_notifier *notifier)
{
	KERN_MIGHT_SLEEP();
	kern::Guard guard(shown->counter_lock);
	if (notifier && shown->notifier)
		return -EBUSY;
	shown->notifier = notifier;
	if (notifier && shown->counters)
		notifier->show(shown->counters);
	return 0;
}

void ib_publish_node(struct ib_node *node)
{
	KERN_MIGHT_SLEEP();
	kern::Guard guard(shown->node_lock);
	ring_push(shown->nodes, node->links);
}

void ib_withdraw_node(struct ib_node *node)
{
	KERN_MIGHT_SLEEP();
	kern::Guard guard(shown->node_lock);
	ring_remove(node->links);
}

int ib_find_node(enum ib_node_kind kind, const struct ib_device *device, u32 port,
		 struct ib_node_info *info)
{
	KERN_MIGHT_SLEEP();
	kern::Guard guard(shown->node_lock);
	const bool found = ring_any_of<ib_node, &ib_node::links>(shown->nodes, [&](ib_node &node) {
		if (node.kind != kind || node.device != device || node.port != port)
			return false;
		*info = {.name = {},
			 .major = node.major,
			 .minor = node.minor,
			 .abi_version = node.abi_version};
		kern_format(info->name, sizeof(info->name), "%s", node.name);
		return true;
	});

	return found ? 0 : -ENOENT;
}
}
