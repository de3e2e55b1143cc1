// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements network interfaces, with their life cycle and queues (include/kern/abi/netdev.h), and
// the actions of an administrator (kern/abi/explore.h).
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>
#include <kern/abi/explore.h>
#include <kern/abi/kunit.h>
#include <kern/abi/memory.h>
#include <kern/abi/rcu.h>
#include "calls.hpp"
#include "failure.hpp"
#include "lock_order.hpp"
#include "memory.hpp"
#include "reset.hpp"
#include "scheduler.hpp"
#include "netdev.hpp"

using namespace sim;

struct kern_link_kind {
	const kern_link_ops *ops;
};

namespace
{

// Protected by the rtnl lock, like all members for which nothing else is documented.
std::vector<net_device *> devices;
// Interfaces that were unregistered with the rtnl lock held. They are destroyed after the lock has
// been released.
std::vector<net_device *> ending;
kern_mutex rtnl;
kern_lock_class_key rtnl_class, transmit_class;
int last_index;
const kern_link_kind *kinds;

void *&owner_of(net_device *dev)
{
	return *reinterpret_cast<void **>(reinterpret_cast<char *>(dev) + KERN_NETDEV_PRIVATE);
}

net_device *find(const std::string &name)
{
	const auto found = std::find_if(devices.begin(), devices.end(),
					[&](const net_device *dev) { return dev->name == name; });

	return found == devices.end() ? nullptr : *found;
}

void assert_rtnl()
{
	kern_mutex_assert_held(&rtnl);
}

void drop_backlog(netdev_queue &queue)
{
	while (sk_buff *skb = kern_skb_dequeue(&queue.backlog))
		kern_skb_drop(skb);
}

/*
 * Passes waiting packets to the interface until the queue is stopped. Called with soft interrupts
 * disabled.
 */
void run_queue(netdev_queue &queue)
{
	net_device *dev = queue.dev;

	SIM_STEP(&queue);
	/* Called by start_xmit: the outer call continues. */
	if (queue.runner == &scheduler().current())
		return;
	kern_spin_lock(&queue.transmit);
	queue.runner = &scheduler().current();
	while (dev->up && !queue.stopped) {
		sk_buff *skb = kern_skb_dequeue(&queue.backlog);
		if (!skb)
			break;
		dev->start_xmit(skb, dev);
	}
	queue.runner = nullptr;
	kern_spin_unlock(&queue.transmit);
}

/* Closes the interface: first stops passing packets to it, then calls its stop method. */
void close(net_device *dev)
{
	if (!std::exchange(dev->up, false))
		return;
	kern_rcu_synchronize();
	for (unsigned int i = 0; i < dev->queue_count; i++) {
		calls::cancel_and_wait(&dev->queues[i], true);
		drop_backlog(dev->queues[i]);
	}
	dev->ops->stop(owner_of(dev));
}

/* Destroys an unregistered interface after its last reference has been dropped. */
void end(net_device *dev)
{
	while (dev->references)
		scheduler().block(&dev->references);
	for (unsigned int i = 0; i < dev->queue_count; i++)
		drop_backlog(dev->queues[i]);
	dev->ops->destroy(owner_of(dev));
	kern_netdev_free(dev);
}

net_device *allocate(const char *name, unsigned int queues)
{
	constexpr unsigned int flags = KERN_GFP_KERNEL | KERN_GFP_ZERO;
	auto *dev = static_cast<net_device *>(
		kern_alloc_large(1, KERN_NETDEV_PRIVATE + sizeof(void *), flags));
	if (!dev)
		return nullptr;
	std::snprintf(dev->name, sizeof(dev->name), "%s", name);
	dev->queues =
		static_cast<netdev_queue *>(kern_alloc_large(queues, sizeof(netdev_queue), flags));
	if (!dev->queues) {
		kern_free_large(dev);
		return nullptr;
	}
	dev->queue_count = dev->queues_used = queues;
	for (unsigned int i = 0; i < queues; i++) {
		kern_spin_init(&dev->queues[i].transmit, "netdev.transmit", &transmit_class);
		dev->queues[i].dev = dev;
	}
	return dev;
}

} // namespace

namespace sim
{

void reset_interfaces()
{
	devices.clear();
	ending.clear();
	last_index = 0;
	kinds = nullptr;
	kern_mutex_init(&rtnl, "rtnl", &rtnl_class);
}

std::string left_interfaces()
{
	return devices.empty() ? kinds ? kinds->ops->kind : "" : devices.front()->name;
}

} // namespace sim

extern "C" {

void kern_rtnl_lock(void)
{
	kern_mutex_lock(&rtnl);
}

/*
 * Releases the lock, and waits until the interfaces that the caller has unregistered have been
 * destroyed.
 */
void kern_rtnl_unlock(void)
{
	std::vector<net_device *> mine;

	std::swap(mine, ending);
	kern_mutex_unlock(&rtnl);
	if (!mine.empty())
		kern_rcu_barrier();
	for (net_device *dev : mine)
		end(dev);
}

struct net_device *kern_netdev_alloc(const char *name, unsigned int tx_queues)
{
	SIM_STEP(nullptr);
	return allocate(name, tx_queues);
}

struct net_device *kern_netdev_alloc_child(const struct net_device *parent, unsigned int number,
					   unsigned int tx_queues)
{
	char name[48];

	SIM_STEP(parent);
	std::snprintf(name, sizeof(name), "%s.%04x", parent->name, number);
	return allocate(name, tx_queues);
}

void kern_netdev_configure(struct net_device *dev, const struct kern_netdev_config *config)
{
	dev->ops = config->ops;
	dev->start_xmit = config->ops->start_xmit;
	dev->mtu = config->mtu;
	dev->max_mtu = config->max_mtu;
	dev->rx_checksum = config->features & KERN_NETDEV_CSUM;
	dev->address_length = config->addr_len;
	std::memcpy(dev->address, config->address, config->addr_len);
	std::memcpy(dev->broadcast, config->broadcast, config->addr_len);
	owner_of(dev) = config->owner;
}

void kern_netdev_free(struct net_device *dev)
{
	if (dev->registration == Registration::registered)
		fail("a registered interface is freed", dev->name);
	for (unsigned int i = 0; i < dev->queue_count; i++)
		calls::cancel_and_wait(&dev->queues[i], true);
	kern_free_large(dev->queues);
	kern_free_large(dev);
}

int kern_netdev_register_locked(struct net_device *dev)
{
	SIM_STEP(dev);
	assert_rtnl();
	if (memory::fails(KERN_GFP_KERNEL, __builtin_return_address(0)))
		return -ENOMEM;
	char *place = std::strstr(dev->name, "%d");
	for (int number = 0; place; number++) {
		const std::string name = std::string(dev->name, place) + std::to_string(number);
		if (find(name))
			continue;
		std::snprintf(dev->name, sizeof(dev->name), "%s", name.c_str());
		break;
	}
	if (find(dev->name))
		return -EEXIST;
	dev->index = ++last_index;
	dev->registration = Registration::registered;
	devices.push_back(dev);
	return 0;
}

void kern_netdev_unregister_locked(struct net_device *dev)
{
	SIM_STEP(dev);
	assert_rtnl();
	if (dev->registration != Registration::registered)
		fail("unregistration of an interface that is not registered", dev->name);
	close(dev);
	std::erase(devices, dev);
	dev->registration = Registration::ended;
	kern_rcu_synchronize();
	dev->ops->uninit(owner_of(dev));
	ending.push_back(dev);
}

const char *kern_netdev_name(const struct net_device *dev)
{
	return dev->name;
}

bool kern_netdev_rx_checksum(const struct net_device *dev)
{
	return dev->rx_checksum;
}

int kern_netdev_ifindex(const struct net_device *dev)
{
	return dev->index;
}

unsigned int kern_netdev_mtu(const struct net_device *dev)
{
	SIM_STEP(dev);
	return dev->mtu;
}

int kern_netdev_set_mtu(struct net_device *dev, unsigned int mtu)
{
	assert_rtnl();
	const int status = mtu > dev->max_mtu ? -EINVAL : dev->ops->change_mtu(owner_of(dev), mtu);

	if (!status)
		dev->mtu = mtu;
	return status;
}

void kern_netdev_set_max_mtu(struct net_device *dev, unsigned int max_mtu)
{
	dev->max_mtu = max_mtu;
}

void kern_netdev_set_start_xmit(struct net_device *dev,
				int (*start_xmit)(struct sk_buff *skb, struct net_device *dev))
{
	dev->start_xmit = start_xmit;
}

void kern_netdev_set_segmentation(struct net_device *dev, bool on)
{
	assert_rtnl();
	dev->segmentation = on;
}

void kern_netdev_set_address(struct net_device *dev, const u8 *address)
{
	std::memcpy(dev->address, address, dev->address_length);
}

const u8 *kern_netdev_address(const struct net_device *dev)
{
	return dev->address;
}

void kern_netdev_carrier(struct net_device *dev, bool on)
{
	SIM_STEP(dev);
	dev->carrier = on;
}

bool kern_netdev_carrier_ok(const struct net_device *dev)
{
	SIM_STEP(dev);
	return dev->carrier;
}

/* Stops all queues, and waits for running transmissions. */
void kern_netdev_stop_queues(struct net_device *dev)
{
	for (unsigned int i = 0; i < dev->queue_count; i++) {
		netdev_queue &queue = dev->queues[i];
		kern_spin_lock_bh(&queue.transmit);
		queue.stopped = true;
		kern_spin_unlock_bh(&queue.transmit);
	}
}

unsigned int kern_netdev_multicast_count(const struct net_device *dev)
{
	return dev->multicast_count;
}

void kern_netdev_for_each_multicast(struct net_device *dev,
				    bool (*each)(void *context, const u8 *address), void *context)
{
	SIM_STEP(dev);
	for (unsigned int i = 0; i < dev->multicast_count; i++)
		if (!each(context, dev->multicast[i]))
			break;
}

void *kern_netdev_owner_of(struct net_device *dev, const struct kern_netdev_ops *ops)
{
	return dev->ops == ops ? owner_of(dev) : nullptr;
}

unsigned int kern_netdev_tx_queue_count(const struct net_device *dev)
{
	return dev->queue_count;
}

int kern_netdev_use_tx_queues(struct net_device *dev, unsigned int count)
{
	assert_rtnl();
	dev->queues_used = count;
	return 0;
}

struct netdev_queue *kern_netdev_tx_queue(struct net_device *dev, unsigned int index)
{
	return &dev->queues[index];
}

void kern_txq_stop(struct netdev_queue *queue)
{
	SIM_STEP(queue);
	queue->stopped = true;
	SIM_STEP(queue);
}

void kern_txq_wake(struct netdev_queue *queue)
{
	SIM_STEP(queue);
	if (std::exchange(queue->stopped, false))
		calls::request(queue, {.kind = Kind::soft_interrupt,
				       .name = "transmit",
				       .run = [queue] { run_queue(*queue); }});
	SIM_STEP(queue);
}

bool kern_txq_stopped(const struct netdev_queue *queue)
{
	SIM_STEP(queue);
	return queue->stopped;
}

void kern_txq_reset(struct netdev_queue *queue)
{
	SIM_STEP(queue);
	queue->bytes = 0;
}

bool kern_txq_sent(struct netdev_queue *queue, unsigned int bytes)
{
	SIM_STEP(queue);
	queue->bytes += bytes;
	return true;
}

void kern_txq_completed(struct netdev_queue *queue, unsigned int, unsigned int bytes)
{
	SIM_STEP(queue);
	if (bytes > queue->bytes)
		fail("more bytes are completed than were sent",
		     std::string(queue->dev->name) + ": " + std::to_string(bytes) + " of " +
			     std::to_string(queue->bytes) + " bytes; " +
			     describe(scheduler().current().place));
	queue->bytes -= bytes;
}

bool kern_xmit_more(void)
{
	return false;
}

/* Sends a packet through the network stack, on the queue of the CPU. */
int kern_skb_requeue(struct sk_buff *skb, struct net_device *dev)
{
	SIM_STEP(dev);
	if (!dev->up) {
		kern_skb_drop(skb);
		return -ENETDOWN;
	}
	dev->references++;
	enter_section(&Fiber::bh_off);
	skb->dev = dev;
	skb->queue_mapping = static_cast<u16>(scheduler().current().id % dev->queues_used);
	netdev_queue &queue = dev->queues[skb->queue_mapping];
	kern_skb_enqueue(&queue.backlog, skb);
	run_queue(queue);
	leave_section(&Fiber::bh_off);
	if (--dev->references == 0)
		scheduler().wake(&dev->references);
	return 0;
}

int kern_kunit_netdev_up(struct net_device *dev, bool up)
{
	SIM_STEP(dev);
	assert_rtnl();
	if (!up) {
		close(dev);
		return 0;
	}
	if (dev->up)
		return 0;
	if (const int status = dev->ops->open(owner_of(dev)))
		return status;
	dev->up = true;
	dev->ops->set_rx_mode(owner_of(dev));
	return 0;
}

void kern_kunit_netdev_stats(struct net_device *dev, struct kern_net_stats *stats)
{
	*stats = {};
	kern_rcu_read_lock();
	dev->ops->get_stats(owner_of(dev), stats);
	kern_rcu_read_unlock();
}

struct kern_link_kind *kern_link_register(const struct kern_link_ops *ops)
{
	auto *kind =
		static_cast<kern_link_kind *>(kern_alloc(sizeof(kern_link_kind), KERN_GFP_KERNEL));

	if (!kind)
		return nullptr;
	kind->ops = ops;
	kinds = kind;
	return kind;
}

void kern_link_unregister(struct kern_link_kind *kind)
{
	kern_rtnl_lock();
	for (const net_device *dev : devices)
		if (dev->kind == kind->ops)
			fail("a link type is unregistered while an interface of it exists",
			     dev->name);
	kinds = nullptr;
	kern_rtnl_unlock();
	kern_free(kind);
}

void kern_link_adopt(struct kern_link_kind *kind, struct net_device *dev)
{
	dev->kind = kind->ops;
}

struct net_device *kern_explore_netdev(const char *name)
{
	assert_rtnl();
	return find(name);
}

int kern_explore_send(const char *name, const void *address, unsigned int length)
{
	SIM_STEP(nullptr);
	net_device *dev = find(name);
	if (!dev)
		return -ENODEV;
	dev->references++;
	const int status = kern_kunit_netdev_send(dev, address, 0x0800, length);
	if (--dev->references == 0)
		scheduler().wake(&dev->references);
	return status;
}

int kern_explore_listen(const char *name, const void *address)
{
	int status = -ENODEV;

	kern_rtnl_lock();
	if (net_device *dev = find(name)) {
		status = dev->multicast_count < std::size(dev->multicast) ? 0 : -ENOSPC;
		if (!status)
			std::memcpy(dev->multicast[dev->multicast_count++], address,
				    dev->address_length);
		if (dev->up)
			dev->ops->set_rx_mode(owner_of(dev));
	}
	kern_rtnl_unlock();
	return status;
}

int kern_explore_link_add(const char *parent, u16 pkey)
{
	kern_rtnl_lock();
	net_device *dev = find(parent);
	const int status = dev ? dev->kind->create_child(owner_of(dev), pkey) : -ENODEV;
	kern_rtnl_unlock();
	return status;
}

/*
 * Implements netns_refund, which core/kern/linux/link.c requests: the interface is closed, but it
 * is not unregistered and gets no notification.
 */
int kern_explore_namespace_end(const char *name)
{
	kern_rtnl_lock();
	net_device *dev = find(name);
	if (dev) {
		close(dev);
		std::erase(devices, dev);
		kern_rcu_synchronize();
		dev->index = ++last_index;
		devices.push_back(dev);
	}
	kern_rtnl_unlock();
	return dev ? 0 : -ENODEV;
}

int kern_explore_link_delete(const char *name)
{
	kern_rtnl_lock();
	net_device *dev = find(name);
	const int status = !dev ? -ENODEV : dev->kind->may_delete(owner_of(dev)) ? 0 : -EPERM;
	if (!status)
		kern_netdev_unregister_locked(dev);
	kern_rtnl_unlock();
	return status;
}
}
