/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the assignment of devices to network namespaces, as described in rdma-system(8) and
 * rdma-dev(8). Initially, tasks of every network namespace may use every device. If devices are not
 * shared, each belongs to one network namespace, initially the first one. Tasks of other namespaces
 * do not see it by netlink and cannot open its nodes, and their connections do not use it. A
 * namespace is identified by its number, kern_net_number().
 *
 * Linux: differs by a copy of each device's directory in sysfs for each namespace. Here the class
 * directory /sys/class/infiniband has all devices in every namespace and in both modes.
 */
#pragma once
#include <rdma/ib_verbs.h>

RDMA_C_BEGIN

/**
 * ib_devices_are_shared - test whether tasks of all network namespaces may use all devices
 *
 * Context: any. Return: true initially, and after ib_share_devices(true).
 */
bool ib_devices_are_shared(void);

/**
 * ib_share_devices - select whether tasks of all network namespaces may use all devices
 * @shared: whether they may
 *
 * Context: process. Return: 0, also if nothing changes; -EBUSY while a network namespace exists in
 * addition to the initial one.
 */
RDMA_MUST_CHECK int ib_share_devices(bool shared);

/**
 * ib_device_in_net - test whether tasks of a network namespace may use a device
 * @device: a registered device
 * @net: number of the namespace
 *
 * Context: any. Return: true while devices are shared, and for the namespace that the device is in.
 */
bool ib_device_in_net(const struct ib_device *device, u64 net);

/**
 * ib_move_device - move a device into another network namespace
 * @device: a registered device, kept by ib_device_try_get()
 * @from: number of the namespace in which it is now
 * @to: number of the namespace to which it is moved; the caller holds the namespace
 *
 * Calls remove of all clients, and then add again. If there is no memory to add the device to a
 * client, this is logged. When a namespace ends, its devices move into the initial one.
 *
 * Context: process, not from a callback of a client. Return: 0; -EOPNOTSUPP while devices are
 * shared; -ENODEV if the device is not in @from, or is being unregistered; -EDEADLK from within a
 * callback of a client for this device.
 */
RDMA_MUST_CHECK int ib_move_device(struct ib_device *device, u64 from, u64 to);

RDMA_C_END
