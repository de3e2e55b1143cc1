/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Charges resources of programs to the rdma controller. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/*
 * The rdma controller of control groups: rdma.max limits, for each group and device, how many
 * contexts and objects processes have, and rdma.current shows them. On a kernel without the
 * controller everything succeeds.
 */
struct kern_cgroup_device;
struct rdma_cgroup;

enum kern_cgroup_resource {
	KERN_CGROUP_HANDLE, /* hca_handle: an opened context */
	KERN_CGROUP_OBJECT, /* hca_object */
};

/*
 * name: shown for the device; it is stored in the device, may change there, and stays until the
 * device has been removed. Returns NULL without memory. Process context.
 */
struct kern_cgroup_device *kern_cgroup_device_add(char *name);
/* Everything that was charged has been returned, except what is lost. Process context. */
void kern_cgroup_device_remove(struct kern_cgroup_device *device);

/*
 * Charges one to the control group of the calling process. Errors: -EAGAIN beyond rdma.max of it or
 * of a parent; -ENOMEM. Process context.
 */
int kern_cgroup_charge(struct kern_cgroup_device *device, enum kern_cgroup_resource resource,
		       struct rdma_cgroup **charged);
void kern_cgroup_uncharge(struct kern_cgroup_device *device, enum kern_cgroup_resource resource,
			  struct rdma_cgroup *charged);

KERN_C_END
