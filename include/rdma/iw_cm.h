/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the connections of devices that use iWARP (rdma/iwarp.h). The device establishes them
 * itself by TCP and MPA (RFC 5044), with the methods of struct iw_cm_ops. Consumers use IDs, whose
 * states weft_iw_cm.ko manages. Most consumers use rdma/rdma_cm.h, which is based on this
 * interface. The header is valid in C and C++.
 */
#pragma once
#include <rdma/ib_verbs.h>

struct iw_cm_id;

enum { IW_CM_PRIVATE_DATA_SIZE = 255 };

/**
 * struct iw_cm_address - an IP address and a TCP port
 * @bytes: the address as on the wire; IPv4 uses the first four bytes
 * @v6: whether it is one of IPv6
 * @port: TCP port, host order; 0 for none
 */
struct iw_cm_address {
	u8 bytes[16];
	bool v6;
	u16 port;
};

enum iw_cm_event_type {
	/* A peer requests a connection of a listener. */
	IW_CM_EVENT_CONNECT_REQUEST,
	/* The result of a connect, reported once: status 0 or an error. */
	IW_CM_EVENT_CONNECT_REPLY,
	/* A connection that was accepted is established. */
	IW_CM_EVENT_ESTABLISHED,
	/* A connection was closed by either side; reported once. */
	IW_CM_EVENT_CLOSE,
};

/**
 * struct iw_cm_event - an event of an ID
 * @event: enum iw_cm_event_type
 * @status: 0 or a negative errno; with IW_CM_EVENT_CONNECT_REPLY: -ECONNREFUSED if no program
 * listens, -ECONNRESET if the peer has refused
 * @local: request and reply: local address
 * @remote: request and reply: the peer's address
 * @private_data: request and reply: private data from the peer; valid during the call
 * @private_data_len: length of @private_data in bytes
 * @provider_data: request: the driver's data of the new ID
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
 * struct iw_cm_param - parameters of a connection
 * @qp: the QP, which the caller keeps until the call has returned
 * @ord: outstanding RDMA reads of the QP
 * @ird: outstanding RDMA reads of the peer that the QP answers
 * @private_data: private data for the peer, or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IW_CM_PRIVATE_DATA_SIZE
 */
struct iw_cm_param {
	struct ib_qp *qp;
	u32 ord;
	u32 ird;
	const void *private_data;
	u8 private_data_len;
};

/**
 * iw_cm_handler - called with the events of an ID
 * @id: the ID; with IW_CM_EVENT_CONNECT_REQUEST a new one
 * @event: the event; valid during the call
 *
 * Context: process, never two at a time for one ID. Return: used only for a request: 0 accepts the
 * ownership of the new ID, any other value refuses the request.
 */
typedef int (*iw_cm_handler)(struct iw_cm_id *id, const struct iw_cm_event *event);

/**
 * struct iw_cm_id - one side of a connection, or a listener
 * @device: the device
 * @local: the address to listen on (all zero: any address); local address of a connection, once it
 * is known
 * @remote: the address to connect to; the peer of a request
 * @cm_handler: the consumer's handler. When it is called with a new ID, it may change the new ID's
 * handler and context
 * @context: for the consumer
 * @provider_data: for the driver
 * @event_handler: for the driver, which calls it with each event in process context. It returns 0
 * if a request is accepted; otherwise the driver refuses the request
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
 * struct iw_cm_ops - the methods of a driver for connections
 *
 * All methods may sleep. The driver reports events by the event_handler of the ID. The rules
 * IWCM-01 to IWCM-03 apply.
 */
struct iw_cm_ops {
	/**
	 * connect - connect to a peer
	 * @id: the ID, with its remote address
	 * @param: the QP and the parameters; valid during the call
	 *
	 * After success, the driver reports exactly one IW_CM_EVENT_CONNECT_REPLY and, if its
	 * status is 0, exactly one IW_CM_EVENT_CLOSE. After an error, it reports neither.
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*connect)(struct iw_cm_id *id, const struct iw_cm_param *param);
	/**
	 * accept - accept a request
	 * @id: the ID of the request
	 * @param: the QP and the parameters; valid during the call
	 *
	 * After success, the driver reports IW_CM_EVENT_ESTABLISHED and exactly one
	 * IW_CM_EVENT_CLOSE. An error ends the request, and nothing is reported.
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*accept)(struct iw_cm_id *id, const struct iw_cm_param *param);
	/**
	 * reject - refuse a request, which ends it
	 * @id: the ID of the request
	 * @private_data: private data for the peer, or NULL
	 * @private_data_len: length of @private_data in bytes, 0 to IW_CM_PRIVATE_DATA_SIZE
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*reject)(struct iw_cm_id *id, const void *private_data, u8 private_data_len);
	/**
	 * disconnect - close a connection
	 * @id: the ID of the connection, which may still be connecting
	 * @abrupt: true to reset the connection, false to close it after all posted data has been
	 * sent
	 *
	 * A graceful close may complete later. After an abrupt one, the reply or the close has been
	 * reported when this returns.
	 *
	 * Context: process.
	 */
	void (*disconnect)(struct iw_cm_id *id, bool abrupt);
	/**
	 * create_listen - begin to listen
	 * @id: the ID, with its local address
	 * @backlog: number of requests that may wait
	 *
	 * Requests may be reported before this returns. After an error, none is reported.
	 *
	 * Context: process. Return: 0; -EADDRINUSE if the address is in use; -EADDRNOTAVAIL if the
	 * device does not have it; another negative errno. The consumer gets the error.
	 */
	int (*create_listen)(struct iw_cm_id *id, unsigned int backlog);
	/**
	 * destroy_listen - stop listening
	 * @id: the ID
	 *
	 * When this has returned, no request is reported.
	 *
	 * Context: process.
	 */
	void (*destroy_listen)(struct iw_cm_id *id);
};

RDMA_C_BEGIN

/**
 * iw_cm_add_device - add a device's methods for connections (drivers)
 * @device: the device, which is not yet registered
 * @ops: the methods; the driver keeps them until iw_cm_remove_device()
 *
 * Context: process. Return: 0; -ENOMEM if there is no memory.
 */
RDMA_MUST_CHECK int iw_cm_add_device(struct ib_device *device, const struct iw_cm_ops *ops);

/**
 * iw_cm_remove_device - undo iw_cm_add_device() (drivers)
 * @device: the device, which has been unregistered and has no IDs
 *
 * Context: process.
 */
void iw_cm_remove_device(struct ib_device *device);

/**
 * iw_create_cm_id - create an ID
 * @device: the device
 * @cm_handler: called with the ID's events
 * @context: for the consumer
 *
 * The caller destroys it with iw_destroy_cm_id().
 *
 * Context: process. Return: the ID; -ENODEV if the device has no methods of iw_cm_add_device();
 * -ENOMEM if there is no memory.
 */
struct iw_cm_id *iw_create_cm_id(struct ib_device *device, iw_cm_handler cm_handler, void *context);

/**
 * iw_destroy_cm_id - destroy an ID
 * @id: the ID. An existing connection is reset, a pending request is refused, and a listener stops
 * listening
 *
 * When this has returned, the handler does not run and will not run (IWCM-02).
 *
 * Context: process, not from a handler of any ID.
 */
void iw_destroy_cm_id(struct iw_cm_id *id);

/**
 * iw_cm_listen - listen for requests
 * @id: a new ID, with its local address
 * @backlog: number of requests that may wait for the handler
 *
 * If this fails, the handler may have been called with requests before, and may still run. The
 * consumer holds no lock that the handler takes when it destroys the ID.
 *
 * Context: process. Return: 0; -EINVAL if the ID is not new; -EADDRINUSE if the address is in use;
 * -EADDRNOTAVAIL if the device does not have it; -EPROTONOSUPPORT for an IPv6 address on a device
 * without IPv6; -ENOMEM if there is no memory; and the command errors of rdma/ib_verbs.h.
 */
RDMA_MUST_CHECK int iw_cm_listen(struct iw_cm_id *id, unsigned int backlog);

/**
 * iw_cm_stop_listening - stop listening for requests
 * @id: an ID that listens. Afterwards it can only be destroyed; on another ID this does nothing
 *
 * The address is free when this has returned. Handlers that process a request may still run.
 *
 * Context: process.
 */
void iw_cm_stop_listening(struct iw_cm_id *id);

/**
 * iw_cm_connect - connect to a peer (RFC 5044, 7.1)
 * @id: a new ID, with its remote address
 * @param: the QP and the parameters; valid during the call
 *
 * Completes with the event IW_CM_EVENT_CONNECT_REPLY.
 *
 * Context: process. Return: 0; -EINVAL if the ID is not new, for no QP, a length without private
 * data, or more private data than the device can send; -EPROTONOSUPPORT for an IPv6 address on a
 * device without IPv6; -EISCONN if the QP has a connection already; the command errors of
 * rdma/ib_verbs.h.
 */
RDMA_MUST_CHECK int iw_cm_connect(struct iw_cm_id *id, const struct iw_cm_param *param);

/**
 * iw_cm_accept - accept a request (RFC 5044, 7.1)
 * @id: the ID of the request
 * @param: the QP and the parameters; valid during the call
 *
 * Completes with the event IW_CM_EVENT_ESTABLISHED.
 *
 * Context: process. Return: 0; -EINVAL if the ID has no request to accept, for no QP, a length
 * without private data, or more private data than the device can send; and, after which the request
 * has ended, -EISCONN if the QP has a connection already, -ECONNRESET if the peer has ended the
 * request, and the command errors of rdma/ib_verbs.h.
 */
RDMA_MUST_CHECK int iw_cm_accept(struct iw_cm_id *id, const struct iw_cm_param *param);

/**
 * iw_cm_reject - refuse a request (RFC 5044, 7.1)
 * @id: the ID of the request
 * @private_data: private data for the peer, if the device can send it; or NULL
 * @private_data_len: length of @private_data in bytes, 0 to IW_CM_PRIVATE_DATA_SIZE
 *
 * Context: process. Return: 0; -EINVAL if the ID has no request to refuse, or for a length without
 * private data; the drivers in hw/ return no error.
 */
RDMA_MUST_CHECK int iw_cm_reject(struct iw_cm_id *id, const void *private_data,
				 u8 private_data_len);

/**
 * iw_cm_disconnect - close a connection (RFC 5044, 7.2)
 * @id: the ID of the connection
 * @abrupt: true to reset the connection, false to close it after all posted data has been sent. A
 * connection that is not established yet is always reset
 *
 * Context: process. Return: 0; -EINVAL if the ID has no connection.
 */
RDMA_MUST_CHECK int iw_cm_disconnect(struct iw_cm_id *id, bool abrupt);

RDMA_C_END
