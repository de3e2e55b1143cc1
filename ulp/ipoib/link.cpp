// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* `ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001`, and its undoing. */
#include "client.hpp"
#include "interface.hpp"

namespace ipoib
{
namespace
{

kern_link_kind *link_kind;

int new_link(net_device *dev, net_device *parent_dev, int pkey)
{
	Interface *parent = Interface::of(parent_dev);
	if (!parent)
		return -ENODEV;
	if (pkey < 0)
		pkey = parent->pkey();
	return add_child(*parent, dev, static_cast<u16>(pkey)).error();
}

bool may_delete(void *owner)
{
	auto &interface = *static_cast<Interface *>(owner);
	/* The port's own interface lives as long as the port. */
	if (!interface.parent())
		return false;
	forget_child(interface);
	return true;
}

u16 get_pkey(void *owner)
{
	return static_cast<Interface *>(owner)->pkey();
}

constexpr kern_link_ops link_ops = {
	.kind = "ipoib",
	.newlink = new_link,
	.may_delete = may_delete,
	.get_pkey = get_pkey,
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
