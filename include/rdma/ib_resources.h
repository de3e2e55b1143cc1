/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Who has what of a device, for those who show it: the tool `rdma`, by weft_netlink. Whoever asks
 * gets copies, one object at a time; the object waits with its end until the copy is made, and for
 * nothing else.
 *
 * The verbs' objects are known to the midlayer. Others are shown by the module that has them, one
 * source for a kind:
 *
 *	static const struct ib_resource_source ids = { .count = count_ids, .next = next_id };
 *	ib_set_resource_source(IB_RESOURCE_CM_ID, &ids);	… on the way out: ib_set_resource_source(IB_RESOURCE_CM_ID, NULL);
 */
#pragma once
#include <rdma/ib_verbs.h>

/* In the order in which they are counted up to people. */
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

/* The number of an object that there is not. */
#define IB_NO_RESOURCE (~(u32)0)

/* So many ranges of numbers of its QPs are told of an SRQ at most. */
#define IB_RESOURCE_RANGES 32

/**
 * struct ib_resource_info - an object as it was a moment ago
 * @number: of its kind on its device
 * @process: of whom it is, by the number that the caller knows him by; 0 for the kernel, or for a
 * process that is no more or out of sight
 * @owner: the module that made it, for itself or for a process
 * @context: number of the program's context that it is in; IB_NO_RESOURCE for the kernel's
 * @pd: number of its PD, or IB_NO_RESOURCE
 * @users: how many objects use it (PD, CQ)
 * @qp: of a QP; of a cm_id that has one: port, number and type
 * @srq: of an SRQ; the numbers of the QPs that take from it, in the order in which those were made
 * @cm_id: @port_space and @state as rdma_cm counts them, addresses as struct sockaddr_storage
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
 * struct ib_resource_source - a module that has objects of a kind
 * @count: how many there are of a device
 * @next: fills in the first of a number not less than @number; 0, or -ENOENT if there is none
 *
 * Both are called in process context and may sleep, but wait for no program. The device is a
 * registered one; its client's remove may have returned.
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
 * @kind: what it is for
 * @device: whose; NULL for all devices'
 * @port: of @device; 0 for the whole device
 * @name: below infiniband/
 * @major: device number
 * @minor: device number
 * @abi_version: as the entry in the node's class says
 * @links: the midlayer's
 */
struct ib_node {
	enum ib_node_kind kind;
	struct ib_device *device;
	u32 port;
	const char *name;
	u32 major;
	u32 minor;
	u64 abi_version;
	struct ib_links links;
};

/* What is to be known of a node for those who look for it. */
struct ib_node_info {
	char name[32];
	u32 major;
	u32 minor;
	u64 abi_version;
};

RDMA_C_BEGIN

/**
 * ib_device_index - a device's number
 * @device: a registered one
 *
 * Numbers are given in the order of registration, and not again. Context: any. Return: the number.
 */
u32 ib_device_index(const struct ib_device *device);

/**
 * ib_device_get_from - find a registered device by its number
 * @index: the least number
 * @net: the network namespace whose tasks may use it, ib_device_in_net()
 *
 * Context: process. Return: the device of the least number that is not less, for which
 * ib_device_put() is due, or NULL.
 */
struct ib_device *ib_device_get_from(u32 index, u64 net);

/**
 * ib_count_resources - how many objects a device has
 * @device: a registered one
 * @kind: of which kind
 *
 * Context: process. Return: how many; 0 of a kind that nobody shows.
 */
u32 ib_count_resources(struct ib_device *device, enum ib_resource_kind kind);

/**
 * ib_next_resource - look at an object
 * @device: a registered one, kept so by the caller
 * @kind: of which kind
 * @number: the least number
 * @info: filled in
 *
 * Context: process. Return: 0 for the object of the least number that is not less; -ENOENT if there
 * is none.
 */
RDMA_MUST_CHECK int ib_next_resource(struct ib_device *device, enum ib_resource_kind kind,
				     u32 number, struct ib_resource_info *info);

/**
 * ib_find_qp_resource - find a queue pair by its number in packets
 * @device: a registered one, kept so by the caller
 * @qp_num: its number in packets
 * @port: its port, where it has one: QP0 and QP1
 * @number: set to its number among the objects, for ib_next_resource()
 *
 * The driver is not asked of the others. Context: process. Return: 0; -ENOENT if there is none.
 */
RDMA_MUST_CHECK int ib_find_qp_resource(struct ib_device *device, u32 qp_num, u32 port,
					u32 *number);

/**
 * ib_process_has_qp - has the calling process the queue pair of that number?
 * @device: a registered one, kept so by the caller
 * @qp_num: its number in packets
 *
 * A process has what it has made, and an XRC target that it has opened. The kernel's are no
 * process's. It takes no longer with more queue pairs, but where thousands are there. Context:
 * task, without locks that turn interrupts off. Return: false also where there is none.
 */
bool ib_process_has_qp(struct ib_device *device, u32 qp_num);

/**
 * ib_hold_qp - find the queue pair of a number, and keep it
 * @device: the device
 * @qp_num: the number
 * @of_caller: only if the calling process has it, as ib_process_has_qp() says
 *
 * Its destruction waits until ib_release_qp(), so it is held for the length of a call only.
 * Context: process. Return: the queue pair, or NULL.
 */
struct ib_qp *ib_hold_qp(struct ib_device *device, u32 qp_num, bool of_caller);

/**
 * ib_release_qp - undo ib_hold_qp()
 * @qp: the queue pair, or NULL
 *
 * Context: process.
 */
void ib_release_qp(struct ib_qp *qp);

/**
 * ib_set_resource_source - show objects that are not the verbs'
 * @kind: IB_RESOURCE_CM_ID
 * @source: kept by the caller; NULL to end it, and then nobody calls it any more when this has
 * returned
 *
 * Context: process, without locks that the source takes. Return: 0; -EBUSY if the kind has a
 * source; -EINVAL if it is the verbs' own.
 */
RDMA_MUST_CHECK int ib_set_resource_source(enum ib_resource_kind kind,
					   const struct ib_resource_source *source);

/**
 * ib_publish_node - let programs find a node
 * @node: kept by the caller until ib_withdraw_node(); the node is there
 *
 * Context: process.
 */
void ib_publish_node(struct ib_node *node);

/**
 * ib_withdraw_node - undo ib_publish_node()
 * @node: a published one, or one that never was
 *
 * Context: process.
 */
void ib_withdraw_node(struct ib_node *node);

/**
 * ib_find_node - a published node
 * @kind: what for
 * @device: whose, compared only; NULL for all devices'
 * @port: as in struct ib_node
 * @info: filled in
 *
 * Context: process. Return: 0, or -ENOENT.
 */
RDMA_MUST_CHECK int ib_find_node(enum ib_node_kind kind, const struct ib_device *device, u32 port,
				 struct ib_node_info *info);

RDMA_C_END
