// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "id.hpp"
#include "convert.hpp"
#include "table.hpp"

namespace rdma_ucm
{

kern::Result<kern::Ref<Id>> Id::create(File &file, u64 uid, rdma_ucm_port_space ps, ib_qp_type type)
{
	auto id = KERN_TRY(kern::adopt_ref(new (kern::Gfp::kernel_account) Id(uid, type, nullptr)));
	KERN_TRY(table().add(*id));
	const auto made = [&]() -> kern::Result<> {
		{
			kern::Guard guard(id->commands_);
			rdma_cm_id *cm = rdma_create_user_id(on_event, id.get(), ps, type);
			KERN_TRY_ERRNO(kern::pointer_error(cm));
			id->cm_ = cm;
		}
		return table().publish(*id, file);
	}();
	if (!made) {
		end(id);
		return kern::Error{made.error()};
	}
	return id;
}

kern::Result<kern::Ref<Id>> Id::create_fresh(rdma_cm_id &cm)
{
	auto id = KERN_TRY(kern::adopt_ref(new (kern::Gfp::kernel) Id(0, cm.qp_type, &cm)));
	if (const kern::Result<> added = table().add(*id); !added) {
		id->forget_cm();
		return kern::Error{added.error()};
	}
	return id;
}

Id::~Id() = default;

void Id::end_cm()
{
	kern::Guard guard(commands_);
	if (cm_)
		rdma_destroy_id(std::exchange(cm_, nullptr));
}

u32 Id::end(kern::Ref<Id> id)
{
	Table::Events unread;

	id->end_cm();
	while (kern::Ref<Membership> membership = table().claim_any(*id))
		leave(std::move(membership));
	const u32 read = table().remove(*id, unread);
	while (Event *event = unread.pop_front())
		discard(kern::Owned<Event>::adopt(event));
	return read;
}

u32 Id::leave(kern::Ref<Membership> membership)
{
	Table::Events unread;

	/* If rdma_cm's ID has been destroyed, so has the membership. */
	kern::ignore(membership->id->with_cm([&](rdma_cm_id &cm) -> kern::Result<> {
		rdma_leave_multicast(&cm, &membership->address);
		return {};
	}));
	const u32 read = table().remove(*membership, unread);
	while (Event *event = unread.pop_front())
		discard(kern::Owned<Event>::adopt(event));
	return read;
}

void Id::discard(kern::Owned<Event> event)
{
	if (!event || !event->fresh)
		return;
	if (kern::Ref<Id> fresh = table().claim(*event->fresh))
		end(std::move(fresh));
}

kern::Result<kern::Owned<Event>> Id::make_event(const rdma_cm_event &cm_event)
{
	auto event = KERN_TRY(kern::make<Event>(kern::Gfp::kernel));

	event->id = kern::Ref<Id>::share(*this);
	if (cm_event.event == RDMA_CM_EVENT_MULTICAST_JOIN ||
	    cm_event.event == RDMA_CM_EVENT_MULTICAST_ERROR)
		event->membership = kern::Ref<Membership>::share(
			*static_cast<Membership *>(cm_event.join_context));
	event->record.event = cm_event.event;
	event->record.status = cm_event.status;
	if (type_ == IB_QPT_UD)
		show(cm_event.param.ud, event->record.param.ud);
	else
		show(cm_event.param.conn, event->record.param.conn);
	return event;
}

void Id::deliver(const rdma_cm_event &cm_event)
{
	auto made = make_event(cm_event);
	if (!made)
		return;
	kern::Owned<Event> event = made.take();
	table().push(event);
}

kern::Result<> Id::take_request(rdma_cm_id &cm, const rdma_cm_event &cm_event)
{
	auto event = KERN_TRY(make_event(cm_event));
	event->fresh = KERN_TRY(create_fresh(cm));
	const kern::Ref<Id> fresh = event->fresh;

	cm.context = fresh.get();
	const kern::Result<> published = table().publish(event);
	if (!published) {
		Table::Events none;
		cm.context = this;
		fresh->forget_cm();
		table().remove(*fresh, none);
	}
	return published;
}

int Id::on_event(rdma_cm_id *cm, rdma_cm_event *event)
{
	Id &id = *static_cast<Id *>(cm->context);

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		/* A request beyond the limits is dropped, as if it had been lost. */
		return id.take_request(*cm, *event) ? 0 : -ENOMEM;
	id.deliver(*event);
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		table().lose_device(id);
	return 0;
}

} // namespace rdma_ucm
