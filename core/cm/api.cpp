// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the functions of rdma/ib_cm.h. Most of them take the device's lock and call a method
 * of the ID (calls.cpp).
 */
#include "init.hpp"

using cm::Id;

namespace
{

/*
 * Calls `body` with the ID while the device's lock is held. Fails if the device has been removed.
 */
template<class Body>
int call(ib_cm_id *cm_id, Body body)
{
	KERN_MIGHT_SLEEP();
	Id &id = Id::of(cm_id);
	kern::Guard guard(id.owner().lock());
	if (id.owner().gone())
		return -ENODEV;
	return body(id).error();
}

/* Like call(), but also passes private data. */
template<class Body>
int call_with(ib_cm_id *cm_id, const void *private_data, u8 private_data_len, Body body)
{
	const auto data = cm::data_of(private_data, private_data_len);
	if (!data.ok())
		return data.error();
	return call(cm_id, [&](Id &id) { return body(id, data.value()); });
}

kern::Result<ib_cm_id *> create_id(ib_device *ib, ib_cm_handler handler, void *context)
{
	if (!handler)
		return kern::Error{-EINVAL};
	auto device = cm::device_of(ib);
	if (!device)
		return kern::Error{-ENODEV};
	auto id = KERN_TRY(Id::create(device, handler, context));
	kern::Guard guard(device->lock());
	const auto added = device->gone() ? kern::Result<>(kern::Error{-ENODEV}) : device->add(*id);
	if (!added.ok()) {
		id->finish(true);
		return kern::Error{added.error()};
	}
	return static_cast<ib_cm_id *>(id.release());
}

} // namespace

extern "C" {

ib_cm_id *ib_create_cm_id(ib_device *device, ib_cm_handler cm_handler, void *context)
{
	KERN_MIGHT_SLEEP();
	auto created = create_id(device, cm_handler, context);
	return created.ok() ? created.take() : rdma::err_ptr<ib_cm_id>(created.error());
}

void ib_destroy_cm_id(ib_cm_id *cm_id)
{
	KERN_MIGHT_SLEEP();
	Id &id = Id::of(cm_id);
	/* A handler that destroyed its own ID would wait for itself. The ID is not destroyed. */
	if (KERN_WARN_ON(id.in_own_handler()))
		return;
	ib_end_cm_id(cm_id);
	id.wait_for_handlers();
	kern::destroy(&id);
}

void ib_end_cm_id(ib_cm_id *cm_id)
{
	KERN_MIGHT_SLEEP();
	Id &id = Id::of(cm_id);
	kern::Guard guard(id.owner().lock());
	if (!id.ended())
		id.finish();
}

int ib_cm_listen(ib_cm_id *cm_id, __be64 service_id, __be64 service_mask)
{
	return call(cm_id,
		    [&](Id &id) { return id.listen(service_id.value(), service_mask.value()); });
}

int ib_cm_set_backlog(ib_cm_id *cm_id, unsigned int backlog)
{
	return call(cm_id, [&](Id &id) { return id.set_backlog(backlog); });
}

int ib_send_cm_req(ib_cm_id *cm_id, const ib_cm_req_param *param)
{
	return call(cm_id, [&](Id &id) { return id.send_req(*param); });
}

int ib_send_cm_rep(ib_cm_id *cm_id, const ib_cm_rep_param *param)
{
	return call(cm_id, [&](Id &id) { return id.send_rep(*param); });
}

int ib_send_cm_rtu(ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	return call_with(cm_id, private_data, private_data_len,
			 [](Id &id, kern::ConstBytes data) { return id.send_rtu(data); });
}

int ib_send_cm_dreq(ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	return call_with(cm_id, private_data, private_data_len,
			 [](Id &id, kern::ConstBytes data) { return id.send_dreq(data); });
}

int ib_send_cm_drep(ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	return call_with(cm_id, private_data, private_data_len,
			 [](Id &id, kern::ConstBytes data) { return id.send_drep(data); });
}

int ib_send_cm_rej(ib_cm_id *cm_id, ib_cm_rej_reason reason, const void *ari, u8 ari_length,
		   const void *private_data, u8 private_data_len)
{
	const auto info = cm::data_of(ari, ari_length);
	if (!info.ok())
		return info.error();
	return call_with(cm_id, private_data, private_data_len, [&](Id &id, kern::ConstBytes data) {
		return id.send_rej(reason, info.value(), data);
	});
}

int ib_send_cm_mra(ib_cm_id *cm_id, u8 service_timeout, const void *private_data,
		   u8 private_data_len)
{
	return call_with(cm_id, private_data, private_data_len, [&](Id &id, kern::ConstBytes data) {
		return id.send_mra(service_timeout, data);
	});
}

int ib_send_cm_lap(ib_cm_id *cm_id, const sa_path_rec *alternate_path, const void *private_data,
		   u8 private_data_len)
{
	return call_with(cm_id, private_data, private_data_len, [&](Id &id, kern::ConstBytes data) {
		return id.send_lap(*alternate_path, data);
	});
}

int ib_send_cm_apr(ib_cm_id *cm_id, ib_cm_apr_status status, const void *info, u8 info_length,
		   const void *private_data, u8 private_data_len)
{
	const auto infos = cm::data_of(info, info_length);
	if (!infos.ok())
		return infos.error();
	return call_with(cm_id, private_data, private_data_len, [&](Id &id, kern::ConstBytes data) {
		return id.send_apr(status, infos.value(), data);
	});
}

int ib_send_cm_sidr_req(ib_cm_id *cm_id, const ib_cm_sidr_req_param *param)
{
	return call(cm_id, [&](Id &id) { return id.send_sidr_req(*param); });
}

int ib_send_cm_sidr_rep(ib_cm_id *cm_id, const ib_cm_sidr_rep_param *param)
{
	return call(cm_id, [&](Id &id) { return id.send_sidr_rep(*param); });
}

int ib_cm_notify(ib_cm_id *cm_id, ib_event_type event)
{
	return call(cm_id, [&](Id &id) -> kern::Result<> {
		switch (event) {
		case IB_EVENT_COMM_EST:
			return id.communicates();
		case IB_EVENT_PATH_MIG:
			return id.migrated();
		default:
			return kern::Error{-EINVAL};
		}
	});
}

int ib_cm_init_qp_attr(ib_cm_id *cm_id, ib_qp_attr *qp_attr, int *qp_attr_mask)
{
	return call(cm_id, [&](const Id &id) { return id.qp_attributes(*qp_attr, *qp_attr_mask); });
}

ib_cm_state ib_cm_query_state(ib_cm_id *cm_id)
{
	KERN_MIGHT_SLEEP();
	const Id &id = Id::of(cm_id);
	kern::Guard guard(id.owner().lock());
	return cm::is_established(id.state()) ? IB_CM_ESTABLISHED
					      : static_cast<ib_cm_state>(id.state());
}

int ib_cm_query_counters(ib_device *ib, u32 port_num, ib_cm_counters *counters)
{
	KERN_MIGHT_SLEEP();
	const auto device = cm::device_of(ib);
	if (!rdma_is_port_valid(ib, port_num))
		return -EINVAL;
	if (!device)
		return -ENODEV;
	kern::Guard guard(device->lock());
	const cm::Port *port = device->port(port_num);
	if (!port)
		return -ENODEV;
	*counters = port->counters;
	return 0;
}

} // extern "C"
