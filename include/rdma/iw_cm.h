/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections of devices that speak iWARP (rdma/iwarp.h). The device makes them itself, by TCP and
 * MPA (RFC 5044): its driver says how in struct iw_cm_ops; consumers have ids, whose states are
 * the manager's (weft_iw_cm.ko). Most consumers want rdma/rdma_cm.h, which lies above. Valid in C
 * and C++.
 */
#pragma once
#include <rdma/ib_verbs.h>

struct iw_cm_id;

enum { IW_CM_PRIVATE_DATA_SIZE = 255 };

/* An IP address, of IPv4 in the first four bytes, and a TCP port, in the host's order. */
struct iw_cm_address {
	u8 bytes[16];
	bool v6;
	u16 port;
};

enum iw_cm_event_type {
	/* To a listener: a peer wants to connect. */
	IW_CM_EVENT_CONNECT_REQUEST,
	/* The answer to a connect, once: status 0, or what it failed for. */
	IW_CM_EVENT_CONNECT_REPLY,
	/* What was accepted is connected. */
	IW_CM_EVENT_ESTABLISHED,
	/* A connection is over, once, whoever ended it. */
	IW_CM_EVENT_CLOSE,
};

/**
 * struct iw_cm_event - what has happened to an id
 * @event: enum iw_cm_event_type
 * @status: 0 or a negative errno; of a reply: -ECONNREFUSED nobody listens, -ECONNRESET the peer
 *	has refused
 * @local: of a request and a reply: our end
 * @remote: the same, the peer's
 * @private_data: of a request and a reply: what the peer has sent along; valid during the call
 * @private_data_len: its length
 * @provider_data: of a request: the driver's name for it, which the new id has
 */
struct iw_cm_event {
	enum iw_cm_event_type event;
	int status;
	struct iw_cm_address local;
	struct iw_cm_address remote;
	const void *private_data;
	u8 private_data_len;
	void *provider_data;
};

/**
 * struct iw_cm_param - what a connection is made with
 * @qp: the QP, which stays until the call has returned
 * @ord: RDMA reads that it may have under way
 * @ird: of the peer's, that it answers
 * @private_data: for the peer
 * @private_data_len: its length
 */
struct iw_cm_param {
	struct ib_qp *qp;
	u32 ord;
	u32 ird;
	const void *private_data;
	u8 private_data_len;
};

typedef int (*iw_cm_handler)(struct iw_cm_id *id, const struct iw_cm_event *event);

/**
 * struct iw_cm_id - one end of a connection, or who waits for some
 * @device: whose
 * @local: where to listen (all zero: any address); a connection's own end, once it is known
 * @remote: where to connect to; a request's peer
 * @cm_handler: the consumer's. Called in process context, never twice at once for one id; it may
 *	change this and @context of a new id during the call that tells of it. What it returns counts
 *	for a request alone: 0 takes the id, which is the consumer's then; anything else refuses it.
 * @context: the consumer's
 * @provider_data: the driver's
 * @event_handler: the manager's, for the driver: process context. Of a request 0 means that it is
 *	taken; anything else that the driver refuses it.
 */
struct iw_cm_id {
	struct ib_device *device;
	struct iw_cm_address local;
	struct iw_cm_address remote;
	iw_cm_handler cm_handler;
	void *context;
	void *provider_data;
	iw_cm_handler event_handler;
};

/**
 * struct iw_cm_ops - how a driver connects
 * @connect: 0 promises exactly one reply, and, if that is good, exactly one close; an error neither
 * @accept: 0 promises that the connection is told to be established, and exactly one close; an
 * error
 *	ends the request, and nothing is told
 * @reject: ends the request
 * @disconnect: closes in order, which takes as long as it takes; or abruptly: then the reply or the
 *	close that was promised has been told when it returns
 * @create_listen: requests may be told of from now on, also before it returns; after an error none
 *	is any more
 * @destroy_listen: when it has returned, none is
 *
 * All in process context; they may sleep. What is told is told by the id's event_handler.
 */
struct iw_cm_ops {
	int (*connect)(struct iw_cm_id *id, const struct iw_cm_param *param);
	int (*accept)(struct iw_cm_id *id, const struct iw_cm_param *param);
	int (*reject)(struct iw_cm_id *id, const void *private_data, u8 private_data_len);
	void (*disconnect)(struct iw_cm_id *id, bool abrupt);
	int (*create_listen)(struct iw_cm_id *id, unsigned int backlog);
	void (*destroy_listen)(struct iw_cm_id *id);
};

RDMA_C_BEGIN

/**
 * iw_cm_add_device - say how a device connects
 * @device: the device, which is about to be registered
 * @ops: how; stays as long as the device
 *
 * Context: process. Return: 0, or -ENOMEM.
 */
RDMA_MUST_CHECK int iw_cm_add_device(struct ib_device *device, const struct iw_cm_ops *ops);

/**
 * iw_cm_remove_device - take that back
 * @device: the device, which has been unregistered: it has no ids
 *
 * Context: process.
 */
void iw_cm_remove_device(struct ib_device *device);

/**
 * iw_create_cm_id - make an id
 * @device: on which device
 * @cm_handler: see struct iw_cm_id
 * @context: the same
 *
 * Context: process. Return: the id, or an error pointer: -ENODEV if the device connects in no way
 * that the manager knows, -ENOMEM.
 */
struct iw_cm_id *iw_create_cm_id(struct ib_device *device, iw_cm_handler cm_handler, void *context);

/**
 * iw_destroy_cm_id - end an id
 * @id: the id; its connection ends abruptly, a request is refused, and a listener listens no more
 *
 * When it has returned the handler does not run, nor will it. Context: process, not a handler
 * of any id's.
 */
void iw_destroy_cm_id(struct iw_cm_id *id);

/**
 * iw_cm_listen - wait for requests
 * @id: the id, new, with its local address
 * @backlog: how many may wait to be told of
 *
 * If it fails, requests may have been told of before, and the handler may run yet: the id's end
 * waits for it, and so holds nothing that a handler waits for. Context: process. Return: 0;
 * -EINVAL if it is not new; -EADDRINUSE, -EADDRNOTAVAIL, and what else the driver says.
 */
RDMA_MUST_CHECK int iw_cm_listen(struct iw_cm_id *id, unsigned int backlog);

/**
 * iw_cm_stop_listening - wait for no more requests
 * @id: the id, which listens; it can only be destroyed then
 *
 * What it listened to is free when this has returned. Requests that are being told of are told of
 * to their end; this does not wait for them. Context: process.
 */
void iw_cm_stop_listening(struct iw_cm_id *id);

/**
 * iw_cm_connect - connect
 * @id: the id, new, with its remote address
 * @param: by which QP, and with what
 *
 * Context: process. Return: 0, and a reply comes; -EINVAL if it is not new, or has no QP; what the
 * driver says.
 */
RDMA_MUST_CHECK int iw_cm_connect(struct iw_cm_id *id, const struct iw_cm_param *param);

/**
 * iw_cm_accept - take a request
 * @id: the id of the request
 * @param: by which QP, and with what
 *
 * Context: process. Return: 0, and it is told to be established; -EINVAL if there is nothing to
 * accept, or no QP; what the driver says, and the request is over.
 */
RDMA_MUST_CHECK int iw_cm_accept(struct iw_cm_id *id, const struct iw_cm_param *param);

/**
 * iw_cm_reject - refuse a request
 * @id: the id of the request
 * @private_data: for the peer, where the device can carry it
 * @private_data_len: its length
 *
 * Context: process. Return: 0; -EINVAL if there is nothing to refuse; what the driver says.
 */
RDMA_MUST_CHECK int iw_cm_reject(struct iw_cm_id *id, const void *private_data,
				 u8 private_data_len);

/**
 * iw_cm_disconnect - end a connection
 * @id: its id
 * @abrupt: whether now, or when what was posted has been sent; one that connects yet ends now
 *
 * Context: process. Return: 0; -EINVAL if there is none.
 */
RDMA_MUST_CHECK int iw_cm_disconnect(struct iw_cm_id *id, bool abrupt);

RDMA_C_END
