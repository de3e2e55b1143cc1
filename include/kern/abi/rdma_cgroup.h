/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares functions that charge resources of programs to the rdma cgroup controller. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/*
 * The rdma controller of control groups. rdma.max limits the number of contexts and objects of each
 * group and device, and rdma.current shows the numbers. On a kernel without the controller, all
 * functions succeed.
 */
struct kern_cgroup_device;
struct rdma_cgroup;

enum kern_cgroup_resource {
	KERN_CGROUP_HANDLE, /* hca_handle: an opened context */
	KERN_CGROUP_OBJECT, /* hca_object */
};

/*
 * name: shown for the device. It is stored in the device, may be changed there, and must exist
 * until the device has been removed. Returns NULL if there is no memory. Context: process.
 */
struct kern_cgroup_device *kern_cgroup_device_add(char *name);
/* All charges must have been returned, except those of leaked objects. Context: process. */
void kern_cgroup_device_remove(struct kern_cgroup_device *device);

/*
 * Charges one object to the control group of the calling process. Returns -EAGAIN if that exceeds
 * rdma.max of the group or of a parent; -ENOMEM. Context: process.
 */
int kern_cgroup_charge(struct kern_cgroup_device *device, enum kern_cgroup_resource resource,
		       struct rdma_cgroup **charged);
void kern_cgroup_uncharge(struct kern_cgroup_device *device, enum kern_cgroup_resource resource,
			  struct rdma_cgroup *charged);

KERN_C_END
