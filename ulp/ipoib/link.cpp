// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Creates and deletes child interfaces: `ip link add link ib0 name ib0.8001 type ipoib pkey
 * 0x8001`.
 */
#include "client.hpp"
#include "interface.hpp"

namespace ipoib
{
namespace
{

kern_link_kind *link_kind;

static_assert(KERN_LINK_DATAGRAM == static_cast<int>(Interface::Mode::datagram) &&
	      KERN_LINK_CONNECTED == static_cast<int>(Interface::Mode::connected));

Interface &of(void *owner)
{
	return *static_cast<Interface *>(owner);
}

/*
 * Initializes a child that user space has requested. If this fails, the network stack frees the
 * device if it is not registered.
 */
int new_link(net_device *dev, net_device *parent_dev, const kern_link_settings *settings)
{
	Interface *parent = Interface::of(parent_dev);
	if (!parent)
		return -ENODEV;
	const auto pkey = settings->pkey < 0 ? parent->pkey() : static_cast<u16>(settings->pkey);
	if (settings->mode == KERN_LINK_CONNECTED &&
	    !Connected::possible(parent->device(), parent->port_num()))
		return -EOPNOTSUPP;
	if (const int status = add_child(*parent, dev, pkey).error())
		return status;
	/* The interface is down, so the change starts nothing and cannot fail. */
	kern::ignore(kern::check(Interface::of(dev)->change(*settings)));
	return 0;
}

int change(void *owner, const kern_link_settings *settings)
{
	return of(owner).change(*settings);
}

void get(void *owner, kern_link_settings *settings)
{
	const Interface &interface = of(owner);
	*settings = {interface.pkey(), static_cast<int>(interface.mode()),
		     interface.ignores_users_groups()};
}

int create_child(void *owner, u16 pkey)
{
	Interface &parent = of(owner);
	return add_child(parent, nullptr, pkey).error();
}

int delete_child(void *owner, u16 pkey)
{
	Interface *child = find_child(of(owner), pkey);
	if (!child)
		return -ENODEV;
	remove_child(*child);
	child->remove();
	return 0;
}

bool may_delete(void *owner)
{
	auto &interface = *static_cast<Interface *>(owner);
	/* A port's own interface exists as long as the port does. */
	if (!interface.parent())
		return false;
	remove_child(interface);
	return true;
}

constexpr kern_link_ops link_ops = {
	.kind = "ipoib",
	.newlink = new_link,
	.change = change,
	.get = get,
	.may_delete = may_delete,
	.create_child = create_child,
	.delete_child = delete_child,
	.tx_queues = Interface::transmit_queues_wanted,
	.netdev_ops = &netdev_ops,
};

} // namespace

kern::Result<> register_link_kind()
{
	link_kind = kern_link_register(&link_ops);
	if (!link_kind)
		return kern::Error{-ENOMEM};
	return {};
}

void unregister_link_kind()
{
	kern_link_unregister(link_kind);
}

void adopt_link_kind(net_device *dev)
{
	kern_link_adopt(link_kind, dev);
}

} // namespace ipoib
