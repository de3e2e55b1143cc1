/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines the asynchronous events of devices, ports, QPs, CQs and SRQs (IBA 11.6.3). */
#pragma once
#include <rdma/types.h>

enum ib_event_type {
	IB_EVENT_CQ_ERR,
	IB_EVENT_QP_FATAL,
	IB_EVENT_QP_REQ_ERR,
	IB_EVENT_QP_ACCESS_ERR,
	IB_EVENT_COMM_EST,
	IB_EVENT_SQ_DRAINED,
	IB_EVENT_PATH_MIG,
	IB_EVENT_PATH_MIG_ERR,
	IB_EVENT_DEVICE_FATAL,
	IB_EVENT_PORT_ACTIVE,
	IB_EVENT_PORT_ERR,
	IB_EVENT_LID_CHANGE,
	IB_EVENT_PKEY_CHANGE,
	IB_EVENT_SM_CHANGE,
	IB_EVENT_SRQ_ERR,
	IB_EVENT_SRQ_LIMIT_REACHED,
	IB_EVENT_QP_LAST_WQE_REACHED,
	IB_EVENT_CLIENT_REREGISTER,
	IB_EVENT_GID_CHANGE,
	IB_EVENT_WQ_FATAL,
};

struct ib_device;
struct ib_cq;
struct ib_qp;
struct ib_srq;

/**
 * struct ib_event - an asynchronous event (IBA 11.6.3)
 * @device: the device
 * @element.cq: the CQ, for IB_EVENT_CQ_ERR
 * @element.qp: the QP, for affiliated events of QPs
 * @element.srq: the SRQ, for affiliated events of SRQs
 * @element.port_num: the port, for all unaffiliated events; 0 if the event is the whole device's
 * @event: enum ib_event_type
 */
struct ib_event {
	struct ib_device *device;
	union {
		struct ib_cq *cq;
		struct ib_qp *qp;
		struct ib_srq *srq;
		u32 port_num;
	} element;
	enum ib_event_type event;
};

/**
 * struct ib_event_handler - a handler of a device's unaffiliated events
 * @device: the device
 * @handler: called in the order of dispatch, one event at a time for each device (EVENT-03). It
 * must not sleep (LOCK-07), and must not register or unregister handlers of the same device
 * @owner: name of the module, by which a leaked handler is reported (LOCK-10)
 * @links: for the midlayer
 *
 * The consumer owns the structure and keeps it until ib_unregister_event_handler() has returned.
 *
 * Linux: differs by @owner.
 */
struct ib_event_handler {
	struct ib_device *device;
	void (*handler)(struct ib_event_handler *handler, struct ib_event *event);
	const char *owner;
	struct ib_list_head links;
};

#ifdef __cplusplus
/**
 * ib_init_event_handler - fill in an event handler; C++ only, by INIT_IB_EVENT_HANDLER()
 * @handler: filled in
 * @device: the device
 * @function: the function that is called with each event
 * @owner: name of the module
 *
 * Context: any.
 */
inline void ib_init_event_handler(ib_event_handler *handler, ib_device *device,
				  void (*function)(ib_event_handler *, ib_event *),
				  const char *owner)
{
	*handler = {device, function, owner, {}};
}
/**
 * INIT_IB_EVENT_HANDLER - fill in an event handler
 * @pointer: the struct ib_event_handler
 * @device: the device
 * @function: the function that is called with each event
 *
 * Linux: differs by recording the module that uses it, so that a leaked handler is
 * reported with its owner (LOCK-10).
 *
 * Context: any.
 */
#define INIT_IB_EVENT_HANDLER(pointer, device, function)                                           \
	ib_init_event_handler(pointer, device, function, RDMA_CALLER)
#else
#define INIT_IB_EVENT_HANDLER(pointer, _device, _function)                                         \
	(*(pointer) = (struct ib_event_handler){                                                   \
		 .device = (_device), .handler = (_function), .owner = RDMA_CALLER})
#endif

RDMA_C_BEGIN

/**
 * ib_event_msg - describe an event in words (IBA 11.6.3)
 * @event: enum ib_event_type, or any number
 *
 * Context: any. Return: a constant string, never NULL.
 */
const char *ib_event_msg(enum ib_event_type event);

/**
 * ib_register_event_handler - receive the unaffiliated events of a device (IBA 11.5)
 * @event_handler: the handler, initialized by INIT_IB_EVENT_HANDLER(); the caller keeps it until
 * ib_unregister_event_handler() has returned
 *
 * Context: process, not from an event handler of the same device. The device stays registered
 * meanwhile.
 */
void ib_register_event_handler(struct ib_event_handler *event_handler);

/**
 * ib_unregister_event_handler - stop receiving events
 * @event_handler: a registered handler; one that is not registered causes a warning
 *
 * When this has returned, the handler does not run and will not run (LOCK-12).
 *
 * Context: process, not from an event handler of the same device.
 */
void ib_unregister_event_handler(struct ib_event_handler *event_handler);

/**
 * ib_dispatch_event - report an event (drivers)
 * @event: the event; copied, may be on the caller's stack
 *
 * An affiliated event reaches the handler of its CQ, QP or SRQ before this returns; the driver
 * keeps the object alive until then. An unaffiliated event is queued: the midlayer's caches contain
 * the change before the first handler sees it (EVENT-02). An event of a port that the device does
 * not have is logged and dropped.
 *
 * Context: any, hard interrupt included (LOCK-03).
 */
void ib_dispatch_event(const struct ib_event *event);

RDMA_C_END
