// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the functions of rdma/rdma_cm.h. Most of them take the ID's lock and call a method of
 * the ID (calls.cpp).
 */
#include "manager.hpp"

using rdma_cm::Id;
using rdma_cm::Manager;

namespace
{

/* Calls `body` with the ID while the ID's lock is held. */
template<class Body>
int call(rdma_cm_id *cm_id, Body body)
{
	KERN_MIGHT_SLEEP();
	Id &id = Id::of(cm_id);
	kern::Guard guard(id.lock());
	return body(id).error();
}

} // namespace

extern "C" {

rdma_cm_id *__rdma_create_id(rdma_cm_event_handler event_handler, void *context,
			     rdma_ucm_port_space ps, ib_qp_type qp_type, bool of_process,
			     const char *caller)
{
	KERN_MIGHT_SLEEP();
	auto created = Id::create(event_handler, context, ps, qp_type, of_process, caller);
	return created.ok() ? created.take().release() : rdma::err_ptr<rdma_cm_id>(created.error());
}

void rdma_destroy_id(rdma_cm_id *cm_id)
{
	KERN_MIGHT_SLEEP();
	Id &id = Id::of(cm_id);
	/* A handler that destroyed its own ID would wait for itself. The ID is not destroyed. */
	if (KERN_WARN_ON(id.in_own_handler()))
		return;
	if (id.begin_end())
		id.end();
}

/* The lock is released by rdma_unlock_handler(). */
void rdma_lock_handler(rdma_cm_id *id) KERN_NO_THREAD_SAFETY_ANALYSIS
{
	KERN_MIGHT_SLEEP();
	(void)Id::of(id).handler_lock().lock();
}

void rdma_unlock_handler(rdma_cm_id *id) KERN_NO_THREAD_SAFETY_ANALYSIS
{
	Id::of(id).handler_lock().unlock();
}

int rdma_bind_addr(rdma_cm_id *cm_id, const rdma_sockaddr *addr)
{
	return call(cm_id, [&](Id &id) { return id.bind(*addr); });
}

int rdma_resolve_addr(rdma_cm_id *cm_id, const rdma_sockaddr *src_addr,
		      const rdma_sockaddr *dst_addr, unsigned long timeout_ms)
{
	return call(cm_id,
		    [&](Id &id) { return id.resolve_addr(src_addr, *dst_addr, timeout_ms); });
}

int rdma_resolve_route(rdma_cm_id *cm_id, unsigned long timeout_ms)
{
	return call(cm_id, [&](Id &id) { return id.resolve_route(timeout_ms); });
}

int rdma_set_ib_path(rdma_cm_id *cm_id, const sa_path_rec *path_rec)
{
	return call(cm_id, [&](Id &id) { return id.set_path(*path_rec); });
}

int rdma_create_qp(rdma_cm_id *cm_id, ib_pd *pd, ib_qp_init_attr *qp_init_attr)
{
	return call(cm_id, [&](Id &id) { return id.create_qp(*pd, *qp_init_attr); });
}

void rdma_destroy_qp(rdma_cm_id *cm_id)
{
	call(cm_id, [](Id &id) -> kern::Result<> {
		id.destroy_qp();
		return {};
	});
}

int rdma_init_qp_attr(rdma_cm_id *cm_id, ib_qp_attr *qp_attr, int *qp_attr_mask)
{
	return call(cm_id, [&](Id &id) { return id.qp_attributes(*qp_attr, *qp_attr_mask); });
}

int rdma_connect(rdma_cm_id *cm_id, const rdma_conn_param *conn_param)
{
	KERN_MIGHT_SLEEP();
	kern::Guard handling(Id::of(cm_id).handler_lock());
	return rdma_connect_locked(cm_id, conn_param);
}

int rdma_connect_locked(rdma_cm_id *cm_id, const rdma_conn_param *conn_param)
{
	return call(cm_id, [&](Id &id) {
		id.handler_lock().assert_held();
		return id.connect(*conn_param);
	});
}

int rdma_listen(rdma_cm_id *cm_id, int backlog)
{
	rdma_cm::Listeners doomed;
	const int status = call(cm_id, [&](Id &id) { return id.listen(backlog, doomed); });
	Manager::destroy_listeners(doomed);
	return status;
}

int rdma_accept(rdma_cm_id *cm_id, const rdma_conn_param *conn_param)
{
	return call(cm_id, [&](Id &id) {
		id.handler_lock().assert_held();
		return id.accept(conn_param);
	});
}

int rdma_reject(rdma_cm_id *cm_id, const void *private_data, u8 private_data_len, u8 reason)
{
	return call(cm_id,
		    [&](Id &id) { return id.reject(private_data, private_data_len, reason); });
}

int rdma_notify(rdma_cm_id *cm_id, ib_event_type event)
{
	return call(cm_id, [&](Id &id) { return id.notify(event); });
}

int rdma_disconnect(rdma_cm_id *cm_id)
{
	return call(cm_id, [](Id &id) { return id.disconnect(); });
}

int rdma_join_multicast(rdma_cm_id *cm_id, const rdma_sockaddr *addr, u8 join_state, void *context)
{
	return call(cm_id, [&](Id &id) { return id.join(*addr, join_state, context); });
}

void rdma_leave_multicast(rdma_cm_id *cm_id, const rdma_sockaddr *addr)
{
	KERN_MIGHT_SLEEP();
	Id &id = Id::of(cm_id);
	/* A handler that left a group of its own ID would wait for itself. The membership stays. */
	if (!KERN_WARN_ON(id.in_own_handler()))
		id.leave(*addr);
}

void rdma_set_service_type(rdma_cm_id *cm_id, int tos)
{
	call(cm_id, [&](Id &id) -> kern::Result<> {
		id.set_service_type(static_cast<u8>(tos));
		return {};
	});
}

int rdma_set_ack_timeout(rdma_cm_id *cm_id, u8 timeout)
{
	return call(cm_id, [&](Id &id) { return id.set_ack_timeout(timeout); });
}

int rdma_set_min_rnr_timer(rdma_cm_id *cm_id, u8 min_rnr_timer)
{
	return call(cm_id, [&](Id &id) { return id.set_min_rnr_timer(min_rnr_timer); });
}

int rdma_set_reuseaddr(rdma_cm_id *cm_id, int reuse)
{
	return call(cm_id, [&](Id &id) { return id.set_reuse(reuse != 0); });
}

int rdma_set_afonly(rdma_cm_id *cm_id, int afonly)
{
	return call(cm_id, [&](Id &id) { return id.set_afonly(afonly != 0); });
}

__be64 rdma_get_service_id(rdma_cm_id *id, const rdma_sockaddr *addr)
{
	return rdma_cm::service_of(id->ps, *addr);
}

} // extern "C"
