// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the files mode, umcast, pkey, create_child and delete_child of an IPoIB interface in
 * /sys/class/net. They show and change settings for which `ip link` has options, too, and create
 * and delete child interfaces.
 */
#include <linux/device.h>
#include <linux/rtnetlink.h>
#include <linux/sysfs.h>
#include "netdev.h"

static struct kern_link_settings settings_of(struct device *device)
{
	struct net_device *dev = to_net_dev(device);
	struct kern_netdev_private *private = netdev_priv(dev);
	struct kern_link_settings settings;

	kern_link_ops_of(dev)->get(private->owner, &settings);
	return settings;
}

static int change_settings(const struct kern_link_ops *ops, void *owner,
			   const struct kern_link_settings *settings)
{
	return ops->change(owner, settings);
}

/*
 * Calls `act` with the rtnl lock held. If the lock is busy, the system call is restarted instead of
 * waiting, because the holder of the lock may wait for the users of this file.
 */
static ssize_t under_rtnl(struct device *device, size_t count,
			  int (*act)(const struct kern_link_ops *ops, void *owner,
				     const struct kern_link_settings *settings),
			  const struct kern_link_settings *settings)
{
	struct net_device *dev = to_net_dev(device);
	struct kern_netdev_private *private = netdev_priv(dev);
	int status;

	if (!rtnl_trylock())
		return restart_syscall();
	status = dev->reg_state == NETREG_REGISTERED
			 ? act(kern_link_ops_of(dev), private->owner, settings)
			 : -ENODEV;
	rtnl_unlock();
	return status ? status : (ssize_t)count;
}

static ssize_t mode_show(struct device *device, struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%s\n",
			  settings_of(device).mode == KERN_LINK_CONNECTED ? "connected"
									  : "datagram");
}

static ssize_t mode_store(struct device *device, struct device_attribute *attribute,
			  const char *text, size_t count)
{
	struct kern_link_settings settings = {.pkey = -1, .umcast = -1};

	if (sysfs_streq(text, "connected"))
		settings.mode = KERN_LINK_CONNECTED;
	else if (sysfs_streq(text, "datagram"))
		settings.mode = KERN_LINK_DATAGRAM;
	else
		return -EINVAL;
	return under_rtnl(device, count, change_settings, &settings);
}
static DEVICE_ATTR_RW(mode);

static ssize_t umcast_show(struct device *device, struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%d\n", settings_of(device).umcast);
}

static ssize_t umcast_store(struct device *device, struct device_attribute *attribute,
			    const char *text, size_t count)
{
	struct kern_link_settings settings = {.pkey = -1, .mode = -1};
	unsigned int value;
	int status = kstrtouint(text, 0, &value);

	if (status)
		return status;
	settings.umcast = value != 0;
	return under_rtnl(device, count, change_settings, &settings);
}
static DEVICE_ATTR_RW(umcast);

static ssize_t pkey_show(struct device *device, struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "0x%04x\n", settings_of(device).pkey);
}
static DEVICE_ATTR_RO(pkey);

static int create_child(const struct kern_link_ops *ops, void *owner,
			const struct kern_link_settings *settings)
{
	return ops->create_child(owner, settings->pkey);
}

static int delete_child(const struct kern_link_ops *ops, void *owner,
			const struct kern_link_settings *settings)
{
	return ops->delete_child(owner, settings->pkey);
}

static int child_settings(const char *text, struct kern_link_settings *settings)
{
	u16 pkey;
	int status = kstrtou16(text, 0, &pkey);

	*settings = (struct kern_link_settings){.pkey = pkey, .mode = -1, .umcast = -1};
	return status;
}

static ssize_t create_child_store(struct device *device, struct device_attribute *attribute,
				  const char *text, size_t count)
{
	struct kern_link_settings settings;
	int status = child_settings(text, &settings);

	return status ? status : under_rtnl(device, count, create_child, &settings);
}
static DEVICE_ATTR_WO(create_child);

/*
 * Deletes a child interface. When the rtnl lock is released, the kernel waits until the interface
 * has been unregistered, and thereby for work items that take the rtnl lock. A holder of the lock
 * may at the same time wait for the users of this file. So active protection is broken, by which
 * this call is not counted as a user meanwhile.
 */
static ssize_t delete_child_store(struct device *device, struct device_attribute *attribute,
				  const char *text, size_t count)
{
	struct kern_link_settings settings;
	struct kernfs_node *node;
	ssize_t result = child_settings(text, &settings);

	if (result)
		return result;
	node = sysfs_break_active_protection(&device->kobj, &attribute->attr);
	if (!node)
		return -ENODEV;
	result = under_rtnl(device, count, delete_child, &settings);
	sysfs_unbreak_active_protection(node);
	return result;
}
static DEVICE_ATTR_WO(delete_child);

static struct attribute *link_attributes[] = {
	&dev_attr_mode.attr,         &dev_attr_umcast.attr,       &dev_attr_pkey.attr,
	&dev_attr_create_child.attr, &dev_attr_delete_child.attr, NULL,
};

const struct attribute_group kern_link_files = {.attrs = link_attributes};
