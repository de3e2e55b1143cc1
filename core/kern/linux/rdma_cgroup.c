// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Charges resources of programs to the kernel's rdma cgroup controller
// (include/kern/abi/rdma_cgroup.h).
#include <linux/cgroup_rdma.h>
#include <linux/export.h>
#include <linux/slab.h>
#include <kern/abi/rdma_cgroup.h>

#if IS_ENABLED(CONFIG_CGROUP_RDMA)

struct kern_cgroup_device {
	struct rdmacg_device native;
};

static enum rdmacg_resource_type native_resource(enum kern_cgroup_resource resource)
{
	return resource == KERN_CGROUP_HANDLE ? RDMACG_RESOURCE_HCA_HANDLE
					      : RDMACG_RESOURCE_HCA_OBJECT;
}

struct kern_cgroup_device *kern_cgroup_device_add(char *name)
{
	struct kern_cgroup_device *device = kzalloc(sizeof(*device), GFP_KERNEL);

	if (!device)
		return NULL;
	device->native.name = name;
	rdmacg_register_device(&device->native);
	return device;
}

void kern_cgroup_device_remove(struct kern_cgroup_device *device)
{
	rdmacg_unregister_device(&device->native);
	kfree(device);
}

int kern_cgroup_charge(struct kern_cgroup_device *device, enum kern_cgroup_resource resource,
		       struct rdma_cgroup **charged)
{
	return rdmacg_try_charge(charged, &device->native, native_resource(resource));
}

void kern_cgroup_uncharge(struct kern_cgroup_device *device, enum kern_cgroup_resource resource,
			  struct rdma_cgroup *charged)
{
	rdmacg_uncharge(charged, &device->native, native_resource(resource));
}

#else

/* The structure has no contents; its address identifies the device. */
struct kern_cgroup_device {
	char nothing;
};
static struct kern_cgroup_device no_controller;

struct kern_cgroup_device *kern_cgroup_device_add(char *name)
{
	return &no_controller;
}

void kern_cgroup_device_remove(struct kern_cgroup_device *device) {}

int kern_cgroup_charge(struct kern_cgroup_device *device, enum kern_cgroup_resource resource,
		       struct rdma_cgroup **charged)
{
	*charged = NULL;
	return 0;
}

void kern_cgroup_uncharge(struct kern_cgroup_device *device, enum kern_cgroup_resource resource,
			  struct rdma_cgroup *charged)
{
}

#endif

EXPORT_SYMBOL_GPL(kern_cgroup_device_add);
EXPORT_SYMBOL_GPL(kern_cgroup_device_remove);
EXPORT_SYMBOL_GPL(kern_cgroup_charge);
EXPORT_SYMBOL_GPL(kern_cgroup_uncharge);
