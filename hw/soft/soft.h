/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Creates software devices, which have no hardware, for tests. All devices share one fabric in
 * memory. A datagram reaches a port by its LID; a datagram to the permissive LID takes the cable
 * that soft_connect() adds. The devices transfer whole messages, not packets. Addresses in requests
 * are CPU addresses, unless the options have a device for DMA mappings. The devices are implemented
 * by weft_soft.ko. This header is valid in C and C++.
 */
#pragma once
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

/* What arming does on different hardware (NOTIFY-06). */
enum soft_notify {
	/* Arming a CQ that holds completions raises an event. */
	SOFT_NOTIFY_FIRES,
	/*
	 * Arming never raises an event. The driver checks the CQ afterwards, and reports missed
	 * completions.
	 */
	SOFT_NOTIFY_REPORTS,
	/*
	 * Arming raises an event if there are completions for which none has been raised. The
	 * driver reports the other completions that have not been polled.
	 */
	SOFT_NOTIFY_FIRES_ONCE,
	/*
	 * Like SOFT_NOTIFY_FIRES_ONCE, but the driver does not check for missed completions. This
	 * is a defect, which tests must detect.
	 */
	SOFT_NOTIFY_FORGETS,
};

/* The context in which completion handlers run. */
enum soft_context {
	SOFT_HARD_INTERRUPT,
	SOFT_SOFT_INTERRUPT,
	SOFT_TASK,
	/* Immediately, within the method that completes the request. This is a defect (LOCK-05). */
	SOFT_INLINE,
};

/*
 * The behaviour of a QP where the specification permits several.
 *
 * SOFT_PLAIN allows all transitions of the midlayer's table. It flushes all requests before
 * ib_modify_qp() to ERR returns, and leaves completions in the CQ. It reports the port of every
 * received datagram.
 *
 * A QP that behaves like a card has its own table of transitions, which it applies to the actual
 * state, not to the state that the caller specifies. It rejects the transition from RESET to ERR.
 * It flushes a few requests at a time. When it is reset, it removes its completions from the CQs.
 * It reads the address handle of a datagram when it sends the datagram, not when the request is
 * posted. It does not report the port of a received datagram, except on a switch.
 */
enum soft_behaviour {
	/* The one set by soft_set_behaviour(). */
	SOFT_BEHAVIOUR_DEFAULT,
	SOFT_PLAIN,
	/* Like a card. A flush completes all sends before the first receive, or vice versa. */
	SOFT_CARD_SENDS_FIRST,
	SOFT_CARD_RECEIVES_FIRST,
};

/* Methods that soft_fail() can make fail. */
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
 * struct soft_options - options of a software device; all zero: a plain channel adapter with one
 * port
 * @ports: number of ports, at most 4; 1 by default
 * @is_switch: the device is a switch, which has its QPs and its LID at port 0; a packet leaves it
 * only by the port that QP0 specifies
 * @vectors: number of completion vectors, at most 16; 1 by default
 * @notify: what arming a CQ does
 * @context: context of completion handlers
 * @behaviour: behaviour of QPs
 * @lid: LID of port 1 (of a switch: port 0); each further port has the next LID; 0: the ports have
 * no LID and start in state INIT
 * @gids: number of GIDs per port, 8 by default
 * @pkeys: number of P_Keys per port, 8 by default
 * @lacks: RDMA_CORE_CAP_…: usual capabilities that the ports do not have
 * @process_mad: the device's built-in management agents, or NULL
 * @dma_device: the device for which consumers must map memory (kern::kunit::FakeDevice), to detect
 * those that do not use rdma/dma.hpp; NULL for none
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

/* Creates and registers a device. Returns an error pointer on failure. Context: process. */
struct ib_device *soft_create(const struct soft_options *options);
/* Unregisters the device and frees it. Context: process. */
void soft_destroy(struct ib_device *device);

/*
 * Sets the behaviour of devices created with SOFT_BEHAVIOUR_DEFAULT from now on. It is SOFT_PLAIN
 * at first. Context: any.
 */
void soft_set_behaviour(enum soft_behaviour behaviour);

/*
 * Set the attributes, a GID or a P_Key of a port. They dispatch no event; see ib_dispatch_event().
 * Context: any.
 */
void soft_set_port(struct ib_device *device, u32 port_num, const struct ib_port_attr *attr);
void soft_set_gid(struct ib_device *device, u32 port_num, unsigned int index,
		  const union ib_gid *gid);
void soft_set_pkey(struct ib_device *device, u32 port_num, unsigned int index, u16 pkey);

/* Adds a cable between two ports, for datagrams to the permissive LID. Context: process. */
void soft_connect(struct ib_device *a, u32 port_a, struct ib_device *b, u32 port_b);

/* Makes the next @count calls of a method return @error. Context: any. */
void soft_fail(struct ib_device *device, enum soft_method method, unsigned int count, int error);
/* Makes the next @count calls of ib_req_notify_cq() for this CQ return @error. Context: any. */
void soft_fail_arms(struct ib_cq *cq, unsigned int count, int error);
/*
 * Sets a function that each call of the method first calls. NULL removes it; after that, it may
 * still run until all calls of the method have returned. Context: any.
 */
void soft_interpose(struct ib_device *device, enum soft_method method,
		    void (*function)(void *context), void *context);
/* Returns the number of calls of a method. Context: any. */
unsigned long soft_calls(struct ib_device *device, enum soft_method method);

/*
 * Disturbs the messages that a device sends. Of a thousand messages, @lost are lost. Of a thousand
 * datagrams, @reordered arrive after the next datagram from the same QP. The same @seed gives the
 * same sequence. Context: process.
 */
void soft_disturb(struct ib_device *device, unsigned int lost, unsigned int reordered, u64 seed);
/*
 * Sets a function that is called with each message before the device sends it. If the function
 * returns true, the message is lost. NULL removes it. Context: process.
 */
void soft_watch(struct ib_device *device,
		bool (*lose)(void *context, const void *payload, size_t length), void *context);

/*
 * Adds a completion to a CQ, as the hardware would. Returns false if the CQ is full. Context: any.
 */
bool soft_complete(struct ib_cq *cq, const struct ib_wc *wc, bool solicited);
/*
 * Determines whether completions in a CQ that is not armed are hidden until the CQ is armed. Each
 * of them then seems to arrive between the consumer's last poll and the arming (NOTIFY-09). Not for
 * consumers that poll a CQ without arming it. Context: any.
 */
void soft_complete_late(struct ib_device *device, bool late);
/*
 * Determines whether UD QPs keep their datagrams in the send queue, as on a busy link. Context:
 * process.
 */
void soft_hold_datagrams(struct ib_device *device, bool hold);
/*
 * The next @sends completions of a QP's sends, and the next @receives completions of its receives,
 * are lost, even if the requests are flushed. The hardware is done with a request whose completion
 * is lost, so no error state flushes it. Context: any.
 */
void soft_lose_completions(struct ib_qp *qp, unsigned int sends, unsigned int receives);
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
