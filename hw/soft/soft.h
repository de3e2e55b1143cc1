/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The software device: a second kind of hardware, for tests. All its devices share one fabric in
 * memory, on which a port is reached by its LID or, if a datagram goes to the permissive LID, by
 * the cable that soft_connect() adds. It moves whole messages, not packets; addresses are CPU
 * addresses, unless a device is given a device to map for. Module weft_soft.ko; valid in C and C++.
 */
#pragma once
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

/* The kinds of hardware of NOTIFY-06. */
enum soft_notify {
	/* Arming a CQ that holds completions raises an event. */
	SOFT_NOTIFY_FIRES,
	/* It does not; the driver checks after arming, and reports missed completions. */
	SOFT_NOTIFY_REPORTS,
	/*
	 * Arming raises an event for completions for which none has been raised; the driver
	 * reports the others that still wait to be polled.
	 */
	SOFT_NOTIFY_FIRES_ONCE,
	/*
	 * Arming works in the same way, but the driver does not check for missed completions: a
	 * defect that tests must detect.
	 */
	SOFT_NOTIFY_FORGETS,
};

/* The context in which completion handlers run. */
enum soft_context {
	SOFT_HARD_INTERRUPT,
	SOFT_SOFT_INTERRUPT,
	SOFT_TASK,
	/* Immediately, from within the method, which is a defect (LOCK-05). */
	SOFT_INLINE,
};

/*
 * Behaviour of a QP where the specification allows more than one. The plain one allows all
 * transitions of the midlayer's own table, flushes everything before ib_modify_qp() to ERR returns,
 * and does not remove completions. One like a card has its own table, which checks the actual state
 * of the QP and not the one that the caller claims. It refuses ERR for a QP in RESET, flushes a few
 * requests at a time, purges the completions of a QP that is reset, and reads the address of a
 * datagram when it is sent, not when it is posted. A channel adapter does not report the port of a
 * received datagram.
 */
enum soft_behaviour {
	/* As set by soft_set_behaviour(). */
	SOFT_BEHAVIOUR_DEFAULT,
	SOFT_PLAIN,
	/* Like a card that flushes all sends before the first receive, or vice versa. */
	SOFT_CARD_SENDS_FIRST,
	SOFT_CARD_RECEIVES_FIRST,
};

/* Methods that can be made to fail; soft_fail(). */
enum soft_method {
	SOFT_POST_SEND,
	SOFT_POST_RECV,
	SOFT_POST_SRQ_RECV,
	SOFT_POLL_CQ,
	SOFT_REQ_NOTIFY_CQ,
	SOFT_MAP_MR_SG,
	SOFT_CREATE_AH,
	SOFT_QUERY_PORT,
	SOFT_QUERY_GID,
	SOFT_QUERY_PKEY,
	SOFT_ALLOC_PD,
	SOFT_ALLOC_XRCD,
	SOFT_CREATE_CQ,
	SOFT_RESIZE_CQ,
	SOFT_CREATE_SRQ,
	SOFT_CREATE_QP,
	SOFT_MODIFY_QP,
	SOFT_GET_DMA_MR,
	SOFT_ALLOC_MR,
	SOFT_ALLOC_MW,
	SOFT_ATTACH_MCAST,
	SOFT_DETACH_MCAST,
	SOFT_MODIFY_AH,
	SOFT_QUERY_AH,
	SOFT_MODIFY_CQ,
	SOFT_PEEK_CQ,
	SOFT_MODIFY_SRQ,
	SOFT_QUERY_SRQ,
	SOFT_QUERY_QP,
	SOFT_DESTROY_QP,
	SOFT_DEREG_MR,
	SOFT_DEALLOC_MW,
	SOFT_DEALLOC_XRCD,
	SOFT_GET_HW_STATS,
	SOFT_METHOD_COUNT,
};

/**
 * struct soft_options - what a device is like; zeroes are a plain one with one port
 * @ports: ports, at most 4
 * @is_switch: they are those of a switch, which has its QPs and its LID at port 0; its packets go
 * only where QP0 sends them
 * @vectors: completion vectors, at most 16
 * @notify: enum soft_notify
 * @context: enum soft_context
 * @behaviour: enum soft_behaviour
 * @lid: of port 1 (a switch: of port 0), the next for port 2, and so on; 0: the ports come up
 * without, in state INIT
 * @gids: GIDs per port, 8 by default
 * @pkeys: P_Keys per port, 8 by default
 * @lacks: RDMA_CORE_CAP_…: usual capabilities that its ports do not have
 * @process_mad: the agents that the device has built in, or NULL
 * @dma_device: device for which memory must be mapped (kern::kunit::FakeDevice), to detect
 * consumers that do not use rdma/dma.hpp; NULL for none
 */
struct soft_options {
	unsigned int ports;
	bool is_switch;
	unsigned int vectors;
	enum soft_notify notify;
	enum soft_context context;
	enum soft_behaviour behaviour;
	u16 lid;
	unsigned int gids;
	unsigned int pkeys;
	u32 lacks;
	int (*process_mad)(struct ib_device *device, int process_mad_flags, u32 port_num,
			   const struct ib_wc *in_wc, const struct ib_grh *in_grh,
			   const struct ib_mad *in_mad, struct ib_mad *out_mad,
			   size_t *out_mad_size, u16 *out_mad_pkey_index);
	struct device *dma_device;
};

RDMA_C_BEGIN

/* A registered device, or an error pointer. Context: process. */
struct ib_device *soft_create(const struct soft_options *options);
/* Unregisters and frees it. Context: process. */
void soft_destroy(struct ib_device *device);

/*
 * The behaviour of devices that are created from now on and name none; at first those of a plain
 * one.
 * Context: any.
 */
void soft_set_behaviour(enum soft_behaviour behaviour);

/*
 * The port as it shall be from now on: its attributes, a GID, a P_Key. No event; see
 * ib_dispatch_event(). Context: any.
 */
void soft_set_port(struct ib_device *device, u32 port_num, const struct ib_port_attr *attr);
void soft_set_gid(struct ib_device *device, u32 port_num, unsigned int index,
		  const union ib_gid *gid);
void soft_set_pkey(struct ib_device *device, u32 port_num, unsigned int index, u16 pkey);

/* A cable between two ports, for datagrams to the permissive LID. Context: process. */
void soft_connect(struct ib_device *a, u32 port_a, struct ib_device *b, u32 port_b);

/* The next @count calls of a method return @error. Context: any. */
void soft_fail(struct ib_device *device, enum soft_method method, unsigned int count, int error);
/* The next @count calls of ib_req_notify_cq() for this CQ return @error. Context: any. */
void soft_fail_arms(struct ib_cq *cq, unsigned int count, int error);
/*
 * Every call of a method begins with one of @function, until that is NULL and all calls are
 * through. Context: any.
 */
void soft_interpose(struct ib_device *device, enum soft_method method,
		    void (*function)(void *context), void *context);
/* Returns the number of calls of a method. Context: any. */
unsigned long soft_calls(struct ib_device *device, enum soft_method method);

/*
 * Disturbs messages that a device sends: of a thousand, @lost are lost, and @reordered change
 * places with the next one to the same QP (datagrams only). Repeatable by @seed. Context: process.
 */
void soft_disturb(struct ib_device *device, unsigned int lost, unsigned int reordered, u64 seed);
/*
 * Registers a function that is called with each message before a device sends it; the message is
 * lost if it returns true. NULL unregisters it. Context: process.
 */
void soft_watch(struct ib_device *device,
		bool (*lose)(void *context, const void *payload, size_t length), void *context);

/* Adds a completion to a CQ as the hardware would. False if the CQ is full. Context: any. */
bool soft_complete(struct ib_cq *cq, const struct ib_wc *wc, bool solicited);
/*
 * From now on, or no longer: completions of a CQ that is not armed show themselves when it is. Each
 * so falls between its consumer's last poll and the arm (NOTIFY-09). Not for consumers that poll a
 * CQ without arming it. Context: any.
 */
void soft_complete_late(struct ib_device *device, bool late);
/*
 * From now on, or no longer: what UD QPs are to send stays in their queues, as where the link is
 * busy. Context: process.
 */
void soft_hold_datagrams(struct ib_device *device, bool hold);
/*
 * Returns the number of address handles that were destroyed before all requests with them were
 * completed. Context: any.
 */
unsigned long soft_addresses_lost(struct ib_device *device);
/* Returns the number of events of a vector, for all its CQs. Context: any. */
unsigned long soft_interrupts(struct ib_device *device, unsigned int vector);
/*
 * Returns the number of times that the driver has checked for completions after arming (NOTIFY-05).
 * Context: any.
 */
unsigned long soft_missed_event_checks(struct ib_cq *cq);
/* Returns the number of requests in a QP's receive queue. Context: any. */
unsigned int soft_posted_receives(struct ib_qp *qp);
/* Returns the number of events of a CQ. Context: any. */
unsigned long soft_events(struct ib_cq *cq);

RDMA_C_END
