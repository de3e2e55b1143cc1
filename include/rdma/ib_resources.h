/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares resource tracking: the objects of a device and their owners, which weft_netlink reports
 * to the command `rdma resource`. A reader gets copies, one object at a time. The destruction of an
 * object waits only until its copy has been made.
 *
 * The midlayer tracks the objects of the verbs. Other objects are reported by the module that
 * creates them, with one source for each kind:
 *
 *	static const struct ib_resource_source ids = { .count = count_ids, .next = next_id };
 *	ib_set_resource_source(IB_RESOURCE_CM_ID, &ids);	… on the way out: ib_set_resource_source(IB_RESOURCE_CM_ID, NULL);
 */
#pragma once
#include <rdma/ib_verbs.h>

/* Kinds of objects, in the order in which they are displayed. */
enum ib_resource_kind {
	IB_RESOURCE_PD,
	IB_RESOURCE_CQ,
	IB_RESOURCE_QP,
	IB_RESOURCE_CM_ID,
	IB_RESOURCE_MR,
	IB_RESOURCE_CTX,
	IB_RESOURCE_SRQ,
	IB_RESOURCE_KINDS,
};

/* The number of an object that does not exist. */
#define IB_NO_RESOURCE (~(u32)0)

/* Maximum number of ranges of QP numbers that are reported for an SRQ. */
#define IB_RESOURCE_RANGES 32

/**
 * struct ib_resource_info - a copy of an object's properties
 * @number: number of the object among those of its kind on its device
 * @process: number of the process that it belongs to, in the caller's PID namespace; 0 for the
 * kernel, or for a process that has exited or is in another namespace
 * @owner: name of the module that created it, for itself or for a process
 * @context: number of the program's context that it is in; IB_NO_RESOURCE for the kernel's
 * @pd: number of its PD, or IB_NO_RESOURCE
 * @users: number of objects that use it (PD, CQ)
 * @pd_keys.local_dma_lkey: PD: key for any DMA address
 * @pd_keys.unsafe_global_rkey: PD: key for all memory, 0 if it has none
 * @cq.cqe: CQ: completions that it holds
 * @cq.poll_ctx: CQ: the context that polls it
 * @qp.port: QP: its port, 0 if none
 * @qp.number: QP: its number in packets
 * @qp.type: QP: enum ib_qp_type
 * @qp.state: QP: enum ib_qp_state
 * @qp.path_mig_state: QP: state of automatic path migration
 * @qp.dest_number: QP: the peer's QP number
 * @qp.rq_psn: QP: next PSN expected
 * @qp.sq_psn: QP: next PSN sent
 * @cm_id.port: connection ID: its port, 0 if it has none
 * @cm_id.qp_number: connection ID: number of its QP
 * @cm_id.has_qp: connection ID: whether it has a QP
 * @cm_id.qp_type: connection ID: type of its QP
 * @cm_id.port_space: connection ID: enum rdma_ucm_port_space
 * @cm_id.state: connection ID: state, with the numbers of rdma_cm
 * @cm_id.source: connection ID: its address, as struct sockaddr_storage
 * @cm_id.destination: connection ID: the peer's address, as struct sockaddr_storage
 * @mr.rkey: MR: remote key
 * @mr.lkey: MR: local key
 * @mr.length: MR: bytes
 * @srq.type: SRQ: enum ib_srq_type
 * @srq.cq: SRQ: number of its CQ, or IB_NO_RESOURCE
 * @srq.ranges: SRQ: number of ranges in qps, 0 to IB_RESOURCE_RANGES
 * @srq.qps.first: SRQ: first QP of a range of QPs that receive from it; ranges are in the order in
 * which the QPs were created
 * @srq.qps.last: SRQ: last QP of the range
 */
struct ib_resource_info {
	u32 number;
	u32 process;
	char owner[32];
	u32 context;
	u32 pd;
	u64 users;
	union {
		struct {
			u32 local_dma_lkey;
			u32 unsafe_global_rkey;
		} pd_keys;
		struct {
			u32 cqe;
			enum ib_poll_context poll_ctx;
		} cq;
		struct {
			u32 port;
			u32 number;
			enum ib_qp_type type;
			enum ib_qp_state state;
			enum ib_mig_state path_mig_state;
			u32 dest_number;
			u32 rq_psn;
			u32 sq_psn;
		} qp;
		struct {
			u32 port;
			u32 qp_number;
			bool has_qp;
			enum ib_qp_type qp_type;
			u32 port_space;
			u8 state;
			u8 source[128];
			u8 destination[128];
		} cm_id;
		struct {
			u32 rkey;
			u32 lkey;
			u64 length;
		} mr;
		struct {
			enum ib_srq_type type;
			u32 cq;
			u32 ranges;
			struct {
				u32 first;
				u32 last;
			} qps[IB_RESOURCE_RANGES];
		} srq;
	};
};

/**
 * struct ib_resource_source - a module that reports objects of a kind
 * @count: returns the number of objects of a device
 * @next: fills in the object with the least number that is not less than its argument number;
 * returns 0, or -ENOENT if there is none
 *
 * Both are called in process context and may sleep, but must not wait for a program. The device is
 * registered; remove of the module's client may have returned.
 */
struct ib_resource_source {
	u32 (*count)(struct ib_device *device);
	int (*next)(struct ib_device *device, u32 number, struct ib_resource_info *info);
};

enum ib_node_kind {
	IB_NODE_UVERBS,
	IB_NODE_UMAD,
	IB_NODE_ISSM,
	IB_NODE_RDMA_CM,
};

/**
 * struct ib_node - a node in /dev/infiniband
 * @kind: enum ib_node_kind
 * @device: the device; NULL for a node that serves all devices
 * @port: port of @device; 0 for the whole device
 * @name: file name below infiniband/
 * @major: device number
 * @minor: device number
 * @abi_version: version of the node's ABI, as its class reports it
 * @links: for the midlayer
 */
struct ib_node {
	enum ib_node_kind kind;
	struct ib_device *device;
	u32 port;
	const char *name;
	u32 major;
	u32 minor;
	u64 abi_version;
	struct ib_list_head links;
};

/**
 * struct ib_node_info - a copy of a node's properties
 * @name: file name below infiniband/
 * @major: device number
 * @minor: device number
 * @abi_version: version of the node's ABI
 */
struct ib_node_info {
	char name[32];
	u32 major;
	u32 minor;
	u64 abi_version;
};

RDMA_C_BEGIN

/**
 * ib_device_index - get a device's number
 * @device: a registered device
 *
 * Numbers are assigned in the order of registration, and are not reused.
 *
 * Context: any. Return: the number.
 */
u32 ib_device_index(const struct ib_device *device);

/**
 * ib_device_get_from - find a registered device by its number
 * @index: least number to find
 * @net: number of the network namespace whose tasks may use it, ib_device_in_net()
 *
 * Context: process. Return: the device with the least number that is not less than @index, which
 * the caller releases by ib_device_put(); NULL if there is none.
 */
struct ib_device *ib_device_get_from(u32 index, u64 net);

/**
 * ib_count_resources - count the objects of a device
 * @device: a registered device, kept by the caller
 * @kind: kind of the objects
 *
 * Context: process. Return: number of objects; 0 for a kind that has no source.
 */
u32 ib_count_resources(struct ib_device *device, enum ib_resource_kind kind);

/**
 * ib_next_resource - get a copy of an object's properties
 * @device: a registered device, kept by the caller
 * @kind: kind of the object
 * @number: least number to find
 * @info: filled in for the object with the least number that is not less than @number
 *
 * Context: process. Return: 0; -ENOENT if there is no such object; -EINVAL for an unknown kind.
 */
RDMA_MUST_CHECK int ib_next_resource(struct ib_device *device, enum ib_resource_kind kind,
				     u32 number, struct ib_resource_info *info);

/**
 * ib_find_qp_resource - find a queue pair by its number in packets
 * @device: a registered device, kept by the caller
 * @qp_num: number of the QP in packets, 24 bits
 * @port: port to which the QP belongs; not used for a QP without one
 * @number: filled in: its number among the objects, for ib_next_resource()
 *
 * Does not call the driver.
 *
 * Context: process. Return: 0; -ENOENT if the device has no such QP.
 */
RDMA_MUST_CHECK int ib_find_qp_resource(struct ib_device *device, u32 qp_num, u32 port,
					u32 *number);

/**
 * ib_process_has_qp - test whether the calling process has a queue pair
 * @device: a registered device, kept by the caller
 * @qp_num: number of the QP in packets, 24 bits
 *
 * A process has the QPs that it has created, and XRC target QPs that it has opened. QPs of the
 * kernel belong to no process. The time does not depend on the number of QPs unless there are
 * thousands.
 *
 * Context: task, without locks that disable interrupts. Return: true if the process has it; false
 * if not, or if no QP has the number.
 */
bool ib_process_has_qp(struct ib_device *device, u32 qp_num);

/**
 * ib_hold_qp - find a queue pair by its number, and prevent its destruction
 * @device: a registered device, kept by the caller
 * @qp_num: number of the QP in packets, 24 bits
 * @of_caller: find it only if the calling process has it, as ib_process_has_qp() tests
 *
 * Its destruction waits for ib_release_qp(), so the caller should hold it only for the duration of
 * a call.
 *
 * Context: process. Return: the QP; NULL if there is none.
 */
struct ib_qp *ib_hold_qp(struct ib_device *device, u32 qp_num, bool of_caller);

/**
 * ib_release_qp - undo ib_hold_qp()
 * @qp: the QP, or NULL
 *
 * Context: process.
 */
void ib_release_qp(struct ib_qp *qp);

/**
 * ib_set_resource_source - register the source of objects that do not belong to the verbs
 * @kind: IB_RESOURCE_CM_ID
 * @source: the source, which the caller keeps; NULL to unregister it. When this has returned, the
 * previous one is not called any more
 *
 * Context: process, without locks that the source takes. Return: 0; -EBUSY if the kind has a
 * source; -EINVAL for a kind that belongs to the verbs.
 */
RDMA_MUST_CHECK int ib_set_resource_source(enum ib_resource_kind kind,
					   const struct ib_resource_source *source);

/**
 * ib_publish_node - let programs find a node
 * @node: the node, which exists; the caller keeps the structure until ib_withdraw_node() has
 * returned
 *
 * Context: process.
 */
void ib_publish_node(struct ib_node *node);

/**
 * ib_withdraw_node - undo ib_publish_node()
 * @node: a node that is published, or never was
 *
 * Context: process.
 */
void ib_withdraw_node(struct ib_node *node);

/**
 * ib_find_node - find a published node
 * @kind: kind of the node
 * @device: its device, which is compared only; NULL for a node that serves all devices
 * @port: its port, as in struct ib_node
 * @info: filled in
 *
 * Context: process. Return: 0; -ENOENT if there is no such node.
 */
RDMA_MUST_CHECK int ib_find_node(enum ib_node_kind kind, const struct ib_device *device, u32 port,
				 struct ib_node_info *info);

RDMA_C_END
