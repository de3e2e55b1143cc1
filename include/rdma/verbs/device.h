/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines RDMA devices, and the clients of the midlayer, which are notified of each device. */
#pragma once
#include <rdma/verbs/device_ops.h>

struct device;
struct ib_device_registry;
struct ib_device_verbs;
struct ib_client_registry;

/* Driver numbers in the ABI of user verbs, as in Linux, for the drivers that exist here. */
enum rdma_driver_id {
	RDMA_DRIVER_UNKNOWN = 0,
	RDMA_DRIVER_MLX4 = 2,
	RDMA_DRIVER_MTHCA = 5,
};

enum { IB_FW_VERSION_NAME_MAX = 32, IB_BOARD_ID_MAX = 32 };

/**
 * struct ib_device - a device
 * @ops: the driver's methods, by ib_set_device_ops()
 * @name: the name; may change while the device is registered: ib_copy_device_name()
 * @dma_device: the device for which DMA addresses are valid; NULL if the device reads memory by the
 * CPU's addresses
 * @phys_port_cnt: number of ports, 1 to 254, numbered from 1; the driver fills it in
 * @num_comp_vectors: completion vectors (CHAN-01); the driver fills it in, at least 1
 * @local_dma_lkey: key for any DMA address, if attrs.kernel_cap_flags has IBK_LOCAL_DMA_LKEY; the
 * driver fills it in
 * @node_guid: GUID of the node; the driver fills it in
 * @node_type: enum rdma_node_type; the driver fills it in. It determines the transport of the ports
 * @is_switch: the device is a switch, and consumers use its port 0 only; the driver fills it in
 * @node_desc: description for people, need not end in 0 (IBA 14.2.5.2); the driver fills it in
 * @board_id: the board's name for its vendor's tools, empty if it has none; the driver fills it in
 * @attrs: limits, from query_device at registration
 * @port_immutable: array by port number, from get_port_immutable at registration
 * @registry: state of core/registry; NULL unless the device is registered
 * @verbs: state of core/verbs
 *
 * ib_alloc_device() allocates it, as the first part of the driver's own structure.
 */
struct ib_device {
	struct ib_device_ops ops;
	char name[IB_DEVICE_NAME_MAX];
	struct device *dma_device;
	u32 phys_port_cnt;
	int num_comp_vectors;
	u32 local_dma_lkey;
	__be64 node_guid;
	u8 node_type;
	bool is_switch;
	char node_desc[IB_DEVICE_NODE_DESC_MAX];
	char board_id[IB_BOARD_ID_MAX];
	struct ib_device_attr attrs;
	struct ib_port_immutable *port_immutable;
	struct ib_device_registry *registry;
	struct ib_device_verbs *verbs;
};

/**
 * struct ib_client - a user of all devices
 * @name: name for messages
 * @add: called once for each device, in process context; may sleep. An errno means that the client
 * does not use the device; it is logged unless it is -EOPNOTSUPP
 * @remove: called once for each device whose add succeeded, in reverse order of the adds, in
 * process context; may sleep. When it returns, the client must have freed everything that it had on
 * the device (LOCK-10). Its argument client_data is what ib_set_client_data() has set
 * @registry: state of core/registry
 *
 * The caller keeps it until ib_unregister_client() has returned. Rules: LOCK-08 to LOCK-12.
 */
struct ib_client {
	const char *name;
	int (*add)(struct ib_device *device);
	void (*remove)(struct ib_device *device, void *client_data);
	struct ib_client_registry *registry;
};

RDMA_C_BEGIN

/**
 * _ib_alloc_device - allocate a device (drivers)
 * @size: bytes of the driver's structure, which begins with its struct ib_device
 *
 * The caller frees it with ib_dealloc_device().
 *
 * Context: process. Return: zeroed memory; NULL if there is none, or if @size is less than that of
 * struct ib_device.
 */
RDMA_MUST_CHECK struct ib_device *_ib_alloc_device(size_t size);

/**
 * ib_alloc_device - allocate a device of the driver's own type (drivers)
 * @drv_struct: the driver's structure, without the word struct
 * @member: its struct ib_device, which must be its first member: checked by the compiler
 *
 * C++ drivers use rdma::alloc_device() of rdma/driver.hpp.
 *
 * Context: process. Return: as _ib_alloc_device().
 */
#define ib_alloc_device(drv_struct, member)                                                        \
	((struct drv_struct *)_ib_alloc_device(                                                    \
		sizeof(struct drv_struct) +                                                        \
		0 / (__builtin_offsetof(struct drv_struct, member) == 0)))

/**
 * ib_dealloc_device - free a device that is not registered (drivers)
 * @device: a device from ib_alloc_device(), or NULL. One that is still registered is leaked, with a
 * warning
 *
 * Context: process.
 */
void ib_dealloc_device(struct ib_device *device);

/**
 * ib_set_device_ops - set the methods of a device (drivers)
 * @device: not yet registered
 * @ops: the methods and sizes; copied. A member that is NULL or 0 leaves the device's as it was
 *
 * Context: any.
 */
void ib_set_device_ops(struct ib_device *device, const struct ib_device_ops *ops);

/**
 * ib_register_device - make a device available to clients (drivers)
 * @device: the device, which must be fully operational (LOCK-09)
 * @name: name with at most one %d, which becomes the lowest free number; printable, without blanks
 * and slashes, neither . nor .., shorter than IB_DEVICE_NAME_MAX
 * @dma_device: the device for DMA; NULL if the device uses the CPU's addresses
 *
 * Calls add of all clients before it returns. On an error, the device is not registered.
 *
 * Linux: differs by a registration that fails as a whole if there is no memory to add one of the
 * clients (LOCK-11).
 *
 * Context: process; the driver holds no lock that its methods need (LOCK-08).
 *
 * Return: 0; -EINVAL for a missing mandatory method, node type or vector count, which is logged,
 * for a port that does not fit the node type, and for a bad name or port count; -EEXIST if the name
 * is taken or the device is registered already; -ENOMEM if there is no memory for the device, or to
 * add it to a client; the errors that the driver's query_device, get_port_immutable, query_port,
 * query_gid and query_pkey return, which for the drivers in hw/ are the command errors of
 * rdma/ib_verbs.h.
 */
RDMA_MUST_CHECK int ib_register_device(struct ib_device *device, const char *name,
				       struct device *dma_device);

/**
 * ib_unregister_device - remove a device from its clients (drivers)
 * @device: a registered device
 *
 * Calls remove of all clients, and waits for ib_device_put() by all that hold the device. When this
 * has returned, no client uses the device and no handler of it runs (LOCK-12). Objects that clients
 * leaked are reported by owner and count (LOCK-10).
 *
 * Linux: differs by refusing a call from within an add or remove that it would wait for: it warns,
 * and the device stays registered (LOCK-08). Linux deadlocks there.
 *
 * Context: process; the driver holds no lock that its methods need.
 */
void ib_unregister_device(struct ib_device *device);

/**
 * ib_device_try_get - prevent the unregistration of a device until ib_device_put()
 * @device: a device whose memory cannot be freed meanwhile
 *
 * Context: any. Return: true, and the caller must call ib_device_put(); false if the device is not
 * registered, or is being unregistered.
 */
RDMA_MUST_CHECK bool ib_device_try_get(struct ib_device *device);

/**
 * ib_device_put - undo ib_device_try_get()
 * @device: the device; may be freed as soon as this has been called
 *
 * Context: any.
 */
void ib_device_put(struct ib_device *device);

/**
 * ib_device_get_by_name - find a registered device
 * @name: the present name of the device
 *
 * Context: process. Return: the device, which the caller releases by ib_device_put(); NULL if no
 * device has that name.
 */
RDMA_MUST_CHECK struct ib_device *ib_device_get_by_name(const char *name);

/**
 * ib_register_client - use all devices, including those that are registered later
 * @client: the client; the caller keeps it until ib_unregister_client() has returned
 *
 * Calls add for all devices that are present. A call from within an add or remove of another client
 * may return before all of them have been added (LOCK-11).
 *
 * Linux: differs by a registration that fails as a whole: if there is no memory to add a device,
 * the client is removed from all others.
 *
 * Context: process. Return: 0; -ENOMEM if there is no memory for the client, or to add a device to
 * it.
 */
RDMA_MUST_CHECK int ib_register_client(struct ib_client *client);

/**
 * ib_unregister_client - stop using all devices
 * @client: a registered client
 *
 * Calls remove for all devices that the client has. When this has returned, no callback of the
 * client runs or will run (LOCK-12).
 *
 * Linux: differs by refusing a call from within an add or remove: it warns, and the client stays
 * registered (LOCK-08). Linux deadlocks there.
 *
 * Context: process.
 */
void ib_unregister_client(struct ib_client *client);

/**
 * ib_set_client_data - store a client's pointer for a device
 * @device: a device for which the client's add has been called, and remove has not returned. For
 * another, nothing is set, with a warning
 * @client: the client
 * @data: the pointer, which remove gets
 *
 * Context: any.
 */
void ib_set_client_data(struct ib_device *device, struct ib_client *client, void *data);

/**
 * ib_get_client_data - get the pointer of ib_set_client_data()
 * @device: the device
 * @client: the client
 *
 * Context: any. Return: the pointer; NULL if none was set, or the client does not have the device.
 */
void *ib_get_client_data(struct ib_device *device, struct ib_client *client);

RDMA_C_END
