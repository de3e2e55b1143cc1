/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Devices and network namespaces, as rdma-system(8) and rdma-dev(8) have them. At first tasks of
 * every network namespace may use every device. When devices are not shared, each belongs to one
 * network namespace, the initial one at first, and tasks of others can neither see it by netlink
 * nor open its nodes, and their connections do not use it. Namespaces are named by their numbers,
 * kern_net_number().
 *
 * Linux keeps a copy of each device's directory in sysfs for each namespace. Here
 * /sys/class/infiniband has all devices in every namespace and in both modes.
 */
#pragma once
#include <rdma/ib_verbs.h>

RDMA_C_BEGIN

/**
 * ib_devices_are_shared - whether tasks of all network namespaces may use all devices
 *
 * Context: any. Return: true at first, and after ib_share_devices(true).
 */
bool ib_devices_are_shared(void);

/**
 * ib_share_devices - let tasks of all network namespaces use all devices, or not
 * @shared: whether they may
 *
 * Context: process. Return: 0, also if it is so already; -EBUSY while a network namespace exists
 * beside the initial one.
 */
RDMA_MUST_CHECK int ib_share_devices(bool shared);

/**
 * ib_device_in_net - whether tasks of a network namespace may use a device
 * @device: a registered one
 * @net: the number of the namespace
 *
 * Context: any. Return: true while devices are shared, and for the namespace that the device is in.
 */
bool ib_device_in_net(const struct ib_device *device, u64 net);

/**
 * ib_move_device - move a device into another network namespace
 * @device: a registered one, by ib_device_try_get()
 * @from: the number of the namespace that it is taken from
 * @to: the number of the one that it is moved to, which the caller keeps from ending
 *
 * All clients lose the device, as when it is removed, and get it again. When a namespace ends, its
 * devices move into the initial one.
 * Context: process, no callback of a client. Return: 0; -EOPNOTSUPP while devices are shared;
 * -ENODEV if it is not in @from, or is being removed; -EDEADLK from within a client's callback.
 */
RDMA_MUST_CHECK int ib_move_device(struct ib_device *device, u64 from, u64 to);

RDMA_C_END
