/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Makes the module a client of the midlayer: it creates an interface for every InfiniBand port, and
 * children of these interfaces.
 */
#pragma once

#include <kern/result.hpp>
#include <rdma/ib_sa.h>

struct net_device;

namespace ipoib
{

class Interface;

/*
 * Registers and unregisters the module with the midlayer and the SA client. Context: module init
 * and exit. Errors: ENOMEM, those of ib_register_client().
 */
kern::Result<> start_client();
void stop_client();

/* Returns the module's registration with the SA client. */
ib_sa_client &sa_client();

/* Returns a port's own interface, which is no child, or nullptr. Context: rtnl lock held. */
Interface *own_interface(ib_device *device, u32 port_num);

/**
 * add_child() - create another interface on the port of @parent
 * @parent: a port's own interface
 * @dev: the device that the network stack has allocated, or nullptr to allocate one whose name is
 * derived from the parent's
 * @pkey: the child's partition
 *
 * User space may add any number of children with devices of its own (rtnetlink) for a partition,
 * including the parent's. There can be only one child without such a device for each P_Key, because
 * create_child and delete_child in sysfs identify it by its P_Key.
 *
 * Context: rtnl lock held. Errors: EINVAL for partition 0 or a parent that is a child; ENODEV if
 * the device is being removed; ENOTUNIQ without @dev, if the parent or such a child already has the
 * partition; those of Interface::create().
 */
kern::Result<> add_child(Interface &parent, net_device *dev, u16 pkey);
/*
 * Returns the child of a port's own interface that was created through sysfs with this P_Key, or
 * nullptr. Context: rtnl lock held.
 */
Interface *find_child(Interface &parent, u16 pkey);
/* Calls `call` for each child. Context: rtnl lock held. */
void each_child(Interface &parent, void (*call)(Interface &child));
/*
 * Removes a child from the list of its port, before the network stack unregisters it. Context: rtnl
 * lock held.
 */
void remove_child(Interface &child);

} // namespace ipoib
