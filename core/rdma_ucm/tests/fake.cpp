// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fake.hpp"
#include <kern/memory.hpp>
#include <rdma/ib_resources.h>

namespace fake
{

constinit ib_device device{};

namespace
{

constinit kern::Atomic<unsigned int> alive_now{0};
constinit kern::Atomic<Cm *> latest{nullptr};
constinit kern::Atomic<int> result{0};
constinit kern::Atomic<unsigned int> counts[static_cast<std::size_t>(Call::calls)];

constinit kern::Atomic<u32> anothers_qp{~u32{0}};

constinit kern::Static<kern::Mutex> speaking;
constinit Cm *spoken_for = nullptr;

int called(Call which)
{
	counts[static_cast<std::size_t>(which)].fetch_add(1);
	return result.load_relaxed();
}

int say(Call which, rdma_cm_id *id, const rdma_conn_param *param)
{
	Cm &cm = Cm::of(id);
	if (param) {
		cm.param = *param;
		__builtin_memcpy(cm.private_data, param->private_data, param->private_data_len);
	}
	return called(which);
}

/* A new id's lock is taken under its listener's. */
kern::LockClass &handling_class(bool fresh)
{
	return fresh ? KERN_LOCK_CLASS("ucm_test.fresh") : KERN_LOCK_CLASS("ucm_test.handling");
}

} // namespace

unsigned int alive()
{
	return alive_now.load_acquire();
}

Cm *newest()
{
	return latest.load_acquire();
}

unsigned int calls(Call which)
{
	return counts[static_cast<std::size_t>(which)].load_acquire();
}

void set_spoken_for(Cm *cm)
{
	kern::Guard guard(*speaking);
	spoken_for = cm;
}

bool speak(int (*what)(Cm &cm))
{
	kern::Guard guard(*speaking);
	if (!spoken_for)
		return false;
	what(*spoken_for);
	return true;
}

void set_result(int error)
{
	result.store_release(error);
}

void set_anothers_qp(u32 number)
{
	anothers_qp.store_release(number);
}

void reset()
{
	speaking.construct(KERN_LOCK_CLASS("ucm_test.speaking"));
	spoken_for = nullptr;
	device.node_guid = 0x0123456789abcdef;
	set_result(0);
	set_anothers_qp(~u32{0});
	for (auto &count : counts)
		count.store_release(0);
}

Cm::Cm(rdma_cm_event_handler handler, void *of, rdma_ucm_port_space space, ib_qp_type type)
    : rdma_cm_id{}, handling(handling_class(of == nullptr))
{
	event_handler = handler;
	context = of;
	ps = space;
	qp_type = type;
	alive_now.fetch_add(1);
	latest.store_release(this);
}

Cm::~Cm()
{
	alive_now.fetch_sub(1);
}

int Cm::deliver(rdma_cm_event event)
{
	kern::Guard guard(handling);
	return event_handler(this, &event);
}

int Cm::request(const void *data, u8 length)
{
	auto made = kern::make<Cm>(kern::Gfp::kernel, event_handler, nullptr, ps, qp_type);
	if (!made)
		return made.error();
	kern::Owned<Cm> fresh = made.take();
	rdma_cm_event event{.event = RDMA_CM_EVENT_CONNECT_REQUEST,
			    .status = 0,
			    .param = {},
			    .join_context = nullptr};
	event.param.conn.private_data = data;
	event.param.conn.private_data_len = length;
	fresh->resolve();
	kern::Guard guard(handling);
	kern::Guard fresh_guard(fresh->handling);
	fresh->context = context;
	const int result = event_handler(fresh.get(), &event);
	if (!result)
		(void)fresh.release();
	return result;
}

void Cm::resolve()
{
	device = &fake::device;
	port_num = 1;
	route.addr.pkey = 0xffff;
	route.addr.sgid.raw[15] = 1;
	route.addr.dgid.raw[15] = 2;
	route.addr.src_addr.in = {
		.family = RDMA_AF_INET, .port = u16{18515}, .addr = {10, 0, 0, 1}, .zero = {}};
	route.addr.dst_addr.in = {
		.family = RDMA_AF_INET, .port = u16{7471}, .addr = {10, 0, 0, 2}, .zero = {}};
	route.path_rec.pkey = u16{0xffff};
	route.path_rec.mtu = IB_MTU_2048;
	sa_path_set_dlid(&route.path_rec, 2);
	sa_path_set_slid(&route.path_rec, 1);
	route.num_paths = 1;
}

} // namespace fake

using fake::Call;
using fake::called;
using fake::Cm;
using fake::say;

extern "C" {

rdma_cm_id *__rdma_create_id(rdma_cm_event_handler handler, void *context, rdma_ucm_port_space ps,
			     ib_qp_type type, bool, const char *)
{
	if (type == IB_QPT_SMI || type == IB_QPT_GSI)
		return rdma::err_ptr<rdma_cm_id>(-EINVAL);
	Cm *cm = new (kern::Gfp::kernel) Cm(handler, context, ps, type);
	return cm ? cm : rdma::err_ptr<rdma_cm_id>(-ENOMEM);
}

void rdma_destroy_id(rdma_cm_id *id)
{
	{
		kern::Guard guard(*fake::speaking);
		if (fake::spoken_for == id)
			fake::spoken_for = nullptr;
	}
	{
		kern::Guard guard(Cm::of(id).handling);
	}
	kern::destroy(&Cm::of(id));
}

void rdma_lock_handler(rdma_cm_id *id) KERN_NO_THREAD_SAFETY_ANALYSIS
{
	Cm::of(id).handling.lock();
}

void rdma_unlock_handler(rdma_cm_id *id) KERN_NO_THREAD_SAFETY_ANALYSIS
{
	Cm::of(id).handling.unlock();
}

int rdma_bind_addr(rdma_cm_id *id, const rdma_sockaddr *addr)
{
	id->route.addr.src_addr = *addr;
	return called(Call::bind);
}

int rdma_resolve_addr(rdma_cm_id *, const rdma_sockaddr *, const rdma_sockaddr *, unsigned long)
{
	return called(Call::resolve_addr);
}

int rdma_resolve_route(rdma_cm_id *, unsigned long)
{
	return called(Call::resolve_route);
}

int rdma_set_ib_path(rdma_cm_id *id, const sa_path_rec *path)
{
	id->route.path_rec = *path;
	return called(Call::set_path);
}

int rdma_init_qp_attr(rdma_cm_id *, ib_qp_attr *attr, int *mask)
{
	attr->port_num = 1;
	attr->dest_qp_num = 0x123;
	rdma_ah_set_dlid(&attr->ah_attr, 7);
	*mask = IB_QP_STATE | IB_QP_PORT;
	return 0;
}

int rdma_connect(rdma_cm_id *id, const rdma_conn_param *param)
{
	return say(Call::connect, id, param);
}

bool ib_process_has_qp(ib_device *, u32 qp_num)
{
	return qp_num != fake::anothers_qp.load_acquire();
}

int rdma_listen(rdma_cm_id *, int)
{
	return called(Call::listen);
}

int rdma_accept(rdma_cm_id *id, const rdma_conn_param *param)
{
	Cm::of(id).handling.assert_held();
	return say(Call::accept, id, param);
}

int rdma_reject(rdma_cm_id *, const void *, u8, u8)
{
	return called(Call::reject);
}

int rdma_notify(rdma_cm_id *, ib_event_type)
{
	return called(Call::notify);
}

int rdma_disconnect(rdma_cm_id *)
{
	return called(Call::disconnect);
}

int rdma_join_multicast(rdma_cm_id *id, const rdma_sockaddr *, u8, void *context)
{
	Cm::of(id).join_context = context;
	return called(Call::join);
}

void rdma_leave_multicast(rdma_cm_id *id, const rdma_sockaddr *)
{
	/* Waits for the handler. */
	kern::Guard guard(Cm::of(id).handling);
	called(Call::leave);
}

void rdma_set_service_type(rdma_cm_id *, int)
{
	called(Call::option);
}

int rdma_set_ack_timeout(rdma_cm_id *, u8)
{
	return called(Call::option);
}

int rdma_set_reuseaddr(rdma_cm_id *, int)
{
	return called(Call::option);
}

int rdma_set_afonly(rdma_cm_id *, int)
{
	return called(Call::option);
}

__be64 rdma_get_service_id(rdma_cm_id *id, const rdma_sockaddr *addr)
{
	return static_cast<u64>(id->ps) << 16 | addr->in.port.value();
}
}
