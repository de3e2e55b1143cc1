/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The module as a client of the midlayer: an interface for every InfiniBand port, and its children.
 */
#pragma once

#include <kern/result.hpp>
#include <rdma/ib_sa.h>

struct net_device;

namespace ipoib
{

class Interface;

/* Context: module init and exit. */
kern::Result<> start_client();
void stop_client();

/* The module at the SA. */
ib_sa_client &sa_client();

/* The interface of a port itself, or nullptr. Context: rtnl lock held. */
Interface *own_interface(ib_device *device, u32 port_num);

/**
 * add_child() - a further interface on the port of another
 * @parent: a port's own interface
 * @dev: what the stack made for it, or nullptr to have one made by the name of its parent's
 * @pkey: its partition
 *
 * A partition may have any number of children for which user space gives the device, also that of
 * the parent, but only one that is made by its P_Key: create_child and delete_child in sysfs know
 * it by that.
 *
 * Context: rtnl lock held. Errors: EINVAL for partition 0 or a parent that is a child; ENOTUNIQ
 * without @dev, if the parent or such a child has the partition; those of Interface::create().
 */
kern::Result<> add_child(Interface &parent, net_device *dev, u16 pkey);
/*
 * The child of a port's own interface that was made by its P_Key, or nullptr. Context: rtnl lock
 * held.
 */
Interface *find_child(Interface &parent, u16 pkey);
/* Context: rtnl lock held. */
void each_child(Interface &parent, void (*call)(Interface &child));
/* A child is about to be unregistered by the stack. Context: rtnl lock held. */
void forget_child(Interface &child);

} // namespace ipoib
