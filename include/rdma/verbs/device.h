/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Devices, the methods of their drivers, and the clients that use them. */
#pragma once
#include <rdma/verbs/attributes.h>
#include <rdma/verbs/objects.h>
#include <rdma/verbs/user.h>

struct device;
struct ib_device_registry;
struct ib_device_verbs;
struct ib_client_registry;
struct ib_mad;
struct rdma_hw_counters;

enum ib_process_mad_flags {
	IB_MAD_IGNORE_MKEY = 1 << 0,
	IB_MAD_IGNORE_BKEY = 1 << 1,
	IB_MAD_IGNORE_ALL = IB_MAD_IGNORE_MKEY | IB_MAD_IGNORE_BKEY,
};

enum ib_mad_result {
	IB_MAD_RESULT_FAILURE = 0,
	IB_MAD_RESULT_SUCCESS = 1 << 0,
	IB_MAD_RESULT_REPLY = 1 << 1,
	IB_MAD_RESULT_CONSUMED = 1 << 2,
};

/*
 * On whose behalf a QP joins a multicast group: a driver keeps a part of its table for the kernel.
 */
enum ib_mcast_owner {
	IB_MCAST_KERNEL,
	IB_MCAST_USER,
};

/**
 * struct ib_device_ops - the methods of a driver
 *
 * Each returns 0, or what it counts, or a negative errno, unless its comment says otherwise. All
 * are reentrant, on one object too (LOCK-04). Those under "any context" must not sleep (LOCK-01);
 * the others may (LOCK-02). None calls a handler of a consumer from within (LOCK-05). A create
 * method gets an object that the midlayer has allocated, zeroed and given device and parents; a
 * destroy method leaves the freeing to it, and after it has returned no handler of the object runs.
 * A destroy method may fail only if the object was in use by the hardware's own reasons, and then
 * has changed nothing. destroy_qp flushes what is outstanding (MGMT-09) and returns how many
 * completions of the QP it has left in CQs; as the QP's number and memory are used again, they
 * stand for themselves, their ib_wc.qp being what rdma::remaining_qp() says.
 *
 * udata is NULL unless the call is on behalf of a program (see struct ib_udata), and NULL always in
 * those that end an object, which may outlive the program: the object knows (ib_resource.user). Of
 * a program's QP destroy_qp leaves nothing in CQs and returns 0.
 *
 * A method that is NULL makes its ib_* function return -EOPNOTSUPP, where that says so; query_port,
 * query_gid, query_pkey, the methods of PD, CQ and QP, and the any-context methods are obligatory.
 */
struct ib_device_ops {
	/* Any context. First, and together: one cache line or two. */
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *send_wr,
			 const struct ib_send_wr **bad_send_wr);
	int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *recv_wr,
			 const struct ib_recv_wr **bad_recv_wr);
	int (*poll_cq)(struct ib_cq *cq, int num_entries, struct ib_wc *wc);
	int (*req_notify_cq)(struct ib_cq *cq, enum ib_cq_notify_flags flags);
	int (*post_srq_recv)(struct ib_srq *srq, const struct ib_recv_wr *recv_wr,
			     const struct ib_recv_wr **bad_recv_wr);
	int (*peek_cq)(struct ib_cq *cq, int wc_cnt);
	int (*map_mr_sg)(struct ib_mr *mr, const struct ib_dma_segment *sg, int sg_nents,
			 unsigned int *sg_offset);

	/* Any context, unless the flags say that the caller may sleep. */
	int (*create_ah)(struct ib_ah *ah, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
	int (*destroy_ah)(struct ib_ah *ah, u32 flags);
	/* Any context. */
	int (*modify_ah)(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
	int (*query_ah)(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);

	/*
	 * The device. query_device is called once, at registration, and for programs; fw_str has
	 * IB_FW_VERSION_NAME_MAX bytes.
	 */
	int (*query_device)(struct ib_device *device, struct ib_device_attr *device_attr,
			    struct ib_udata *udata);
	int (*modify_device)(struct ib_device *device, int device_modify_mask,
			     struct ib_device_modify *device_modify);
	void (*get_dev_fw_str)(struct ib_device *device, char *str);

	/*
	 * Its ports. get_port_immutable is called once for each, at registration, and may use the
	 * queries.
	 */
	int (*get_port_immutable)(struct ib_device *device, u32 port_num,
				  struct ib_port_immutable *immutable);
	enum rdma_link_layer (*get_link_layer)(struct ib_device *device, u32 port_num);
	int (*query_port)(struct ib_device *device, u32 port_num, struct ib_port_attr *port_attr);
	int (*modify_port)(struct ib_device *device, u32 port_num, int port_modify_mask,
			   struct ib_port_modify *port_modify);
	int (*query_gid)(struct ib_device *device, u32 port_num, int index, union ib_gid *gid);
	int (*query_pkey)(struct ib_device *device, u32 port_num, u16 index, u16 *pkey);

	/*
	 * What the hardware counts (ib_hw_counters.h), of a port or, as port 0, of the device; both
	 * or neither. hw_counters: any context.
	 */
	const struct rdma_hw_counters *(*hw_counters)(struct ib_device *device, u32 port_num);
	int (*get_hw_stats)(struct ib_device *device, u32 port_num, u64 *values);

	/*
	 * The agents that the device has built in; returns enum ib_mad_result. NULL if it has none
	 * (MGMT-04).
	 */
	int (*process_mad)(struct ib_device *device, int process_mad_flags, u32 port_num,
			   const struct ib_wc *in_wc, const struct ib_grh *in_grh,
			   const struct ib_mad *in_mad, struct ib_mad *out_mad,
			   size_t *out_mad_size, u16 *out_mad_pkey_index);

	int (*alloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	int (*dealloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	int (*alloc_xrcd)(struct ib_xrcd *xrcd, struct ib_udata *udata);
	int (*dealloc_xrcd)(struct ib_xrcd *xrcd, struct ib_udata *udata);

	int (*create_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			 struct ib_udata *udata);
	int (*modify_cq)(struct ib_cq *cq, u16 cq_count, u16 cq_period);
	int (*resize_cq)(struct ib_cq *cq, int cqe, struct ib_udata *udata);
	int (*destroy_cq)(struct ib_cq *cq, struct ib_udata *udata);

	int (*create_srq)(struct ib_srq *srq, struct ib_srq_init_attr *srq_init_attr,
			  struct ib_udata *udata);
	int (*modify_srq)(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
			  enum ib_srq_attr_mask srq_attr_mask, struct ib_udata *udata);
	int (*query_srq)(struct ib_srq *srq, struct ib_srq_attr *srq_attr);
	int (*destroy_srq)(struct ib_srq *srq, struct ib_udata *udata);

	/*
	 * modify_qp is called with attributes that the transition table allows from the state the midlayer knows;
	 * the driver refuses those that its own view of the state forbids. drain_sq and drain_rq are NULL where
	 * the midlayer's own way (a marker request behind all others in a QP in error) will do.
	 */
	int (*create_qp)(struct ib_qp *qp, struct ib_qp_init_attr *qp_init_attr,
			 struct ib_udata *udata);
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
			 struct ib_udata *udata);
	int (*query_qp)(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
			struct ib_qp_init_attr *qp_init_attr);
	int (*destroy_qp)(struct ib_qp *qp, struct ib_udata *udata);
	void (*drain_sq)(struct ib_qp *qp);
	void (*drain_rq)(struct ib_qp *qp);
	/*
	 * Once for each GID, whatever LIDs the consumer gives it; lid is the first, or the last, of
	 * them.
	 */
	int (*attach_mcast)(struct ib_qp *qp, const union ib_gid *gid, u16 lid,
			    enum ib_mcast_owner owner);
	int (*detach_mcast)(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

	/*
	 * Departure from Linux: these too get their object from the midlayer instead of returning
	 * one.
	 */
	int (*get_dma_mr)(struct ib_mr *mr, int mr_access_flags);
	int (*reg_user_mr)(struct ib_mr *mr, u64 start, u64 length, u64 virt_addr,
			   int mr_access_flags, struct ib_udata *udata);
	int (*alloc_mr)(struct ib_mr *mr, enum ib_mr_type mr_type, u32 max_num_sg);
	/*
	 * See ib_rereg_user_mr(); the midlayer has checked what it names, and changes pd, iova and
	 * length of the region itself.
	 */
	int (*rereg_user_mr)(struct ib_mr *mr, int flags, u64 start, u64 length, u64 virt_addr,
			     int mr_access_flags, struct ib_pd *pd, struct ib_udata *udata);
	int (*dereg_mr)(struct ib_mr *mr, struct ib_udata *udata);
	int (*alloc_mw)(struct ib_mw *mw, struct ib_udata *udata);
	int (*dealloc_mw)(struct ib_mw *mw);

	/* A device without alloc_ucontext is not for programs. mmap: see ib_mmap_ucontext(). */
	int (*alloc_ucontext)(struct ib_ucontext *context, struct ib_udata *udata);
	void (*dealloc_ucontext)(struct ib_ucontext *context);
	int (*mmap)(struct ib_ucontext *context, u64 page_offset, size_t length,
		    struct ib_user_mapping *mapping);
	/*
	 * How a library knows what it talks to: enum rdma_driver_id, and the version of what lies
	 * in udata.
	 */
	unsigned long driver_id;
	unsigned long uverbs_abi_ver;

	/* Bytes of the driver's objects, each beginning with the struct of the name. */
	size_t size_ib_ah;
	size_t size_ib_cq;
	size_t size_ib_mr;
	size_t size_ib_mw;
	size_t size_ib_pd;
	size_t size_ib_qp;
	size_t size_ib_srq;
	size_t size_ib_ucontext;
	size_t size_ib_xrcd;
};

/* As libraries know them; the rest have no driver here. */
enum rdma_driver_id {
	RDMA_DRIVER_UNKNOWN = 0,
	RDMA_DRIVER_MLX4 = 2,
	RDMA_DRIVER_MTHCA = 5,
};

enum { IB_FW_VERSION_NAME_MAX = 32, IB_BOARD_ID_MAX = 32 };

/**
 * struct ib_device - a device
 * @ops: the driver's methods, by ib_set_device_ops()
 * @name: may change from registration on: ib_copy_device_name()
 * @dma_device: what DMA addresses are for; NULL if the device reads memory by the CPU's addresses
 * @phys_port_cnt: ports, numbered from 1; the driver fills it in
 * @num_comp_vectors: completion vectors (CHAN-01); the driver fills it in, at least 1
 * @local_dma_lkey: key for any DMA address, if attrs.kernel_cap_flags has IBK_LOCAL_DMA_LKEY; the
 * driver's
 * @node_guid: the driver fills it in
 * @node_type: enum rdma_node_type; the same
 * @is_switch: the ports are those of a switch: its port 0 is the one port that counts
 * @node_desc: for people, need not end in 0; the same
 * @board_id: the board's name for its vendor's tools; the same, empty if it has none
 * @attrs: from query_device, at registration
 * @port_immutable: by port number, from get_port_immutable, at registration
 * @registry: state of core/registry
 * @verbs: state of core/verbs
 */
struct ib_device {
	struct ib_device_ops ops;
	char name[IB_DEVICE_NAME_MAX];
	struct device *dma_device;
	u32 phys_port_cnt;
	int num_comp_vectors;
	u32 local_dma_lkey;
	__be64 node_guid;
	u8 node_type;
	bool is_switch;
	char node_desc[IB_DEVICE_NODE_DESC_MAX];
	char board_id[IB_BOARD_ID_MAX];
	struct ib_device_attr attrs;
	struct ib_port_immutable *port_immutable;
	struct ib_device_registry *registry;
	struct ib_device_verbs *verbs;
};

/**
 * struct ib_client - a user of all devices
 * @name: for messages
 * @add: called once for each device; may sleep; an errno means that the client does not want the
 * device
 * @remove: called once for each device whose add succeeded, in reverse order; may sleep; when it
 * returns the client
 *	has freed everything it had on the device (LOCK-10). @client_data is what ib_set_client_data() set.
 * @registry: state of core/registry
 */
struct ib_client {
	const char *name;
	int (*add)(struct ib_device *device);
	void (*remove)(struct ib_device *device, void *client_data);
	struct ib_client_registry *registry;
};

RDMA_C_BEGIN

/**
 * _ib_alloc_device - memory for a device (drivers)
 * @size: of the driver's structure, which begins with its struct ib_device
 *
 * Context: process. Return: zeroed memory, or NULL. Freed by ib_dealloc_device().
 */
RDMA_MUST_CHECK struct ib_device *_ib_alloc_device(size_t size);

/*
 * The driver's own type; @member must be its first. In C++, rdma::alloc_device() in rdma/driver.hpp
 * is kinder.
 */
#define ib_alloc_device(drv_struct, member)                                                        \
	((struct drv_struct *)_ib_alloc_device(                                                    \
		sizeof(struct drv_struct) +                                                        \
		0 / (__builtin_offsetof(struct drv_struct, member) == 0)))

/**
 * ib_dealloc_device - free a device that is not, or no longer, registered (drivers)
 * @device: from ib_alloc_device()
 *
 * Context: process.
 */
void ib_dealloc_device(struct ib_device *device);

/**
 * ib_set_device_ops - give a device its driver's methods (drivers)
 * @device: not yet registered
 * @ops: copied: what is set in it is taken over, what is NULL or 0 is left as it was
 *
 * Context: any.
 */
void ib_set_device_ops(struct ib_device *device, const struct ib_device_ops *ops);

/**
 * ib_register_device - let the clients have a device (drivers)
 * @device: fully able to work (LOCK-09)
 * @name: with at most one %d, which becomes the lowest free number
 * @dma_device: for DMA; NULL if the device uses the CPU's addresses
 *
 * Context: process; the driver holds no lock that its methods need (LOCK-08).
 * Return: 0; -EINVAL for a missing obligatory method, which the log names, a bad name or port count; -EEXIST if the name is taken;
 * -ENOMEM; the errors of query_device, get_port_immutable and query_port.
 */
RDMA_MUST_CHECK int ib_register_device(struct ib_device *device, const char *name,
				       struct device *dma_device);

/**
 * ib_unregister_device - take a device from its clients (drivers)
 * @device: a registered one
 *
 * When this has returned, nobody uses the device and no handler of it runs (LOCK-12). What clients
 * left behind is reported by owner and count (LOCK-10).
 * Context: process.
 */
void ib_unregister_device(struct ib_device *device);

/**
 * ib_device_try_get - keep a device registered for a while
 * @device: one whose memory is known to be there
 *
 * Context: any. Return: true, and then ib_device_put() is due; false if it is going away, has gone,
 * or has not come.
 */
RDMA_MUST_CHECK bool ib_device_try_get(struct ib_device *device);

/**
 * ib_device_put - undo ib_device_try_get()
 * @device: the device
 *
 * Context: any.
 */
void ib_device_put(struct ib_device *device);

/**
 * ib_device_get_by_name - find a registered device
 * @name: its name at this moment
 *
 * Context: process. Return: the device, for which ib_device_put() is due, or NULL.
 */
RDMA_MUST_CHECK struct ib_device *ib_device_get_by_name(const char *name);

/**
 * ib_register_client - use all devices, those to come too
 * @client: kept by the caller until ib_unregister_client() has returned
 *
 * Context: process. Return: 0 or -ENOMEM.
 */
RDMA_MUST_CHECK int ib_register_client(struct ib_client *client);

/**
 * ib_unregister_client - give all devices back
 * @client: a registered one
 *
 * When this has returned, no callback of the client runs or will run (LOCK-12).
 * Context: process.
 */
void ib_unregister_client(struct ib_client *client);

/**
 * ib_set_client_data - keep a client's pointer with a device
 * @device: one whose add has been called and whose remove has not returned
 * @client: the client
 * @data: handed to remove
 *
 * Context: any.
 */
void ib_set_client_data(struct ib_device *device, struct ib_client *client, void *data);

/**
 * ib_get_client_data - the pointer again
 * @device: as above
 * @client: the client
 *
 * Context: any. Return: the pointer, or NULL.
 */
void *ib_get_client_data(struct ib_device *device, struct ib_client *client);

RDMA_C_END
