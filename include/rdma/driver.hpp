// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Provides helpers for hardware drivers, in addition to ib_verbs.h.
 *
 * A driver lists its methods and the sizes of its objects in one constant table:
 *
 *	using Cq = rdma::DriverObject<ib_cq, CqState>;
 *	using Qp = rdma::DriverObject<ib_qp, QpState>;
 *
 *	constexpr ib_device_ops ops = {
 *		.post_send = [](ib_qp *qp, const ib_send_wr *wr, const ib_send_wr **bad) {
 *			return Qp::state(qp).post_send(wr, bad);
 *		},
 *		...
 *		.size_ib_cq = sizeof(Cq),
 *		.size_ib_qp = sizeof(Qp),
 *	};
 *
 * The midlayer allocates each object once, in that size and zeroed; create_qp() begins with
 * Qp::construct(), and destroy_qp() ends with Qp::destruct(). So ib_post_send() is one indirect
 * call, and post_send() finds its state at a constant offset from its argument.
 *
 * A driver calls rdma::alloc_device(), fills in struct ib_device, and calls ib_set_device_ops() and
 * ib_register_device(). To remove the device, it calls ib_unregister_device() and
 * rdma::dealloc_device().
 */
#pragma once
#include <new>
#include <type_traits>
#include <utility>
#include <kern/errno.h>
#include <rdma/ib_verbs.h>

namespace rdma
{

/*
 * A verbs object with the driver's state after it, in one allocation of the midlayer. The
 * structure's own constructor is never called: the midlayer fills in `ib`, and the driver
 * constructs `driver_state`.
 */
template<class Verbs, class State>
struct DriverObject {
	Verbs ib;
	union {
		State driver_state;
	};

	DriverObject() = delete;
	~DriverObject() = delete;

	static DriverObject *of(Verbs *object)
	{
		static_assert(__builtin_offsetof(DriverObject, ib) == 0);
		static_assert(alignof(DriverObject) <= 64,
			      "the midlayer allocates to a cache line at most");
		return reinterpret_cast<DriverObject *>(object);
	}
	static State &state(Verbs *object) { return of(object)->driver_state; }

	/* Constructs the state. Called at the beginning of a create method. */
	template<class... Args>
	static State &construct(Verbs *object, Args &&...args)
	{
		return *new (&of(object)->driver_state) State(std::forward<Args>(args)...);
	}
	/*
	 * Destroys the state. Called at the end of a destroy method, and if a create method fails.
	 */
	static void destruct(Verbs *object) { state(object).~State(); }

	/* Returns the verbs object that contains a state. */
	static Verbs *verbs(State *state)
	{
		return reinterpret_cast<Verbs *>(reinterpret_cast<char *>(state) -
						 __builtin_offsetof(DriverObject, driver_state));
	}
};

/*
 * Allocates a driver's device in zeroed memory. `Device::ib` must be its first member. Returns
 * nullptr if there is no memory. dealloc_device() frees it. Context: process.
 */
template<class Device>
Device *alloc_device()
{
	static_assert(__builtin_offsetof(Device, ib) == 0 &&
		      std::is_same_v<decltype(Device::ib), ib_device>);
	static_assert(alignof(Device) <= 8, "devices are allocated with no more than that");
	return reinterpret_cast<Device *>(_ib_alloc_device(sizeof(Device)));
}

/* Frees a device that is not registered. Context: process. */
template<class Device>
void dealloc_device(Device *device)
{
	ib_dealloc_device(&device->ib);
}

/* Returns the driver's device for the midlayer's pointer. */
template<class Device>
Device *device_of(ib_device *device)
{
	return reinterpret_cast<Device *>(device);
}

/*
 * Reports a completion event on a CQ: once per event, one call at a time on one CQ (LOCK-06), not
 * from inside post_send, post_recv, poll_cq or req_notify_cq (LOCK-05). Context: any.
 */
inline void complete(ib_cq *cq)
{
	cq->comp_handler(cq, cq->cq_context);
}

/*
 * Returns ib_wc.qp of a completion that outlives its QP. The midlayer keeps the memory of a QP
 * until it has polled the completions itself; for a consumer that polls itself, the QP no longer
 * exists.
 */
inline ib_qp *remaining_qp(const ib_cq &cq, ib_qp &qp)
{
	return cq.poller && (&cq == qp.send_cq || &cq == qp.recv_cq) ? &qp : nullptr;
}

/*
 * Returns true if the flags of req_notify_cq are valid; otherwise req_notify_cq returns -EINVAL
 * (NOTIFY-01).
 */
constexpr bool valid_notify_flags(ib_cq_notify_flags flags)
{
	const int kind = flags & IB_CQ_SOLICITED_MASK;

	return (kind == IB_CQ_SOLICITED || kind == IB_CQ_NEXT_COMP) &&
	       !(flags & ~(IB_CQ_SOLICITED_MASK | IB_CQ_REPORT_MISSED_EVENTS));
}

/* Report an event of a QP, CQ, SRQ, port or device, as ib_dispatch_event() does. Context: any. */
inline void dispatch(ib_event_type type, ib_qp *qp)
{
	ib_event event = {.device = qp->device, .element = {.qp = qp}, .event = type};
	ib_dispatch_event(&event);
}
inline void dispatch(ib_event_type type, ib_cq *cq)
{
	ib_event event = {.device = cq->device, .element = {.cq = cq}, .event = type};
	ib_dispatch_event(&event);
}
inline void dispatch(ib_event_type type, ib_srq *srq)
{
	ib_event event = {.device = srq->device, .element = {.srq = srq}, .event = type};
	ib_dispatch_event(&event);
}
inline void dispatch(ib_event_type type, ib_device *device, u32 port_num)
{
	ib_event event = {.device = device, .element = {.port_num = port_num}, .event = type};
	ib_dispatch_event(&event);
}

} // namespace rdma
