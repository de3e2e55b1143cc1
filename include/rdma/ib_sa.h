/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Subnet administration, as a client sees it (IBA 15). */
#pragma once
#include <rdma/ib_mad.h>

enum {
	IB_SA_CLASS_VERSION = 2,
	IB_SA_METHOD_GET_TABLE = 0x12,
	IB_SA_METHOD_GET_TABLE_RESP = 0x92,
	IB_SA_METHOD_GET_TRACE_TBL = 0x13,
	IB_SA_METHOD_GET_MULTI = 0x14,
	IB_SA_METHOD_GET_MULTI_RESP = 0x94,
	IB_SA_METHOD_DELETE = 0x15,
	IB_SA_METHOD_DELETE_RESP = 0x95,
};

enum {
	IB_SA_ATTR_CLASS_PORTINFO = 0x01,
	IB_SA_ATTR_NOTICE = 0x02,
	IB_SA_ATTR_INFORM_INFO = 0x03,
	IB_SA_ATTR_NODE_REC = 0x11,
	IB_SA_ATTR_PORT_INFO_REC = 0x12,
	IB_SA_ATTR_SL2VL_REC = 0x13,
	IB_SA_ATTR_SWITCH_REC = 0x14,
	IB_SA_ATTR_LINEAR_FDB_REC = 0x15,
	IB_SA_ATTR_RANDOM_FDB_REC = 0x16,
	IB_SA_ATTR_MCAST_FDB_REC = 0x17,
	IB_SA_ATTR_SM_INFO_REC = 0x18,
	IB_SA_ATTR_LINK_REC = 0x20,
	IB_SA_ATTR_GUID_INFO_REC = 0x30,
	IB_SA_ATTR_SERVICE_REC = 0x31,
	IB_SA_ATTR_PARTITION_REC = 0x33,
	IB_SA_ATTR_PATH_REC = 0x35,
	IB_SA_ATTR_VL_ARB_REC = 0x36,
	IB_SA_ATTR_MC_MEMBER_REC = 0x38,
	IB_SA_ATTR_TRACE_REC = 0x39,
	IB_SA_ATTR_MULTI_PATH_REC = 0x3a,
	IB_SA_ATTR_SERVICE_ASSOC_REC = 0x3b,
	IB_SA_ATTR_INFORM_INFO_REC = 0xf3,
};

enum ib_sa_selector {
	IB_SA_GT = 0,
	IB_SA_LT = 1,
	IB_SA_EQ = 2,
	IB_SA_BEST = 3,
};

/* Which components of a record count in a request. */
#ifdef __cplusplus
#define IB_SA_COMP_MASK(n) (u64{1} << (n))
#else
#define IB_SA_COMP_MASK(n) ((ib_sa_comp_mask)__builtin_bswap64(1ull << (n)))
#endif

#define IB_SA_PATH_REC_SERVICE_ID (IB_SA_COMP_MASK(0) | IB_SA_COMP_MASK(1))
#define IB_SA_PATH_REC_DGID IB_SA_COMP_MASK(2)
#define IB_SA_PATH_REC_SGID IB_SA_COMP_MASK(3)
#define IB_SA_PATH_REC_DLID IB_SA_COMP_MASK(4)
#define IB_SA_PATH_REC_SLID IB_SA_COMP_MASK(5)
#define IB_SA_PATH_REC_RAW_TRAFFIC IB_SA_COMP_MASK(6)
#define IB_SA_PATH_REC_FLOW_LABEL IB_SA_COMP_MASK(8)
#define IB_SA_PATH_REC_HOP_LIMIT IB_SA_COMP_MASK(9)
#define IB_SA_PATH_REC_TRAFFIC_CLASS IB_SA_COMP_MASK(10)
#define IB_SA_PATH_REC_REVERSIBLE IB_SA_COMP_MASK(11)
#define IB_SA_PATH_REC_NUMB_PATH IB_SA_COMP_MASK(12)
#define IB_SA_PATH_REC_PKEY IB_SA_COMP_MASK(13)
#define IB_SA_PATH_REC_QOS_CLASS IB_SA_COMP_MASK(14)
#define IB_SA_PATH_REC_SL IB_SA_COMP_MASK(15)
#define IB_SA_PATH_REC_MTU_SELECTOR IB_SA_COMP_MASK(16)
#define IB_SA_PATH_REC_MTU IB_SA_COMP_MASK(17)
#define IB_SA_PATH_REC_RATE_SELECTOR IB_SA_COMP_MASK(18)
#define IB_SA_PATH_REC_RATE IB_SA_COMP_MASK(19)
#define IB_SA_PATH_REC_PACKET_LIFE_TIME_SELECTOR IB_SA_COMP_MASK(20)
#define IB_SA_PATH_REC_PACKET_LIFE_TIME IB_SA_COMP_MASK(21)
#define IB_SA_PATH_REC_PREFERENCE IB_SA_COMP_MASK(22)

#define IB_SA_MCMEMBER_REC_MGID IB_SA_COMP_MASK(0)
#define IB_SA_MCMEMBER_REC_PORT_GID IB_SA_COMP_MASK(1)
#define IB_SA_MCMEMBER_REC_QKEY IB_SA_COMP_MASK(2)
#define IB_SA_MCMEMBER_REC_MLID IB_SA_COMP_MASK(3)
#define IB_SA_MCMEMBER_REC_MTU_SELECTOR IB_SA_COMP_MASK(4)
#define IB_SA_MCMEMBER_REC_MTU IB_SA_COMP_MASK(5)
#define IB_SA_MCMEMBER_REC_TRAFFIC_CLASS IB_SA_COMP_MASK(6)
#define IB_SA_MCMEMBER_REC_PKEY IB_SA_COMP_MASK(7)
#define IB_SA_MCMEMBER_REC_RATE_SELECTOR IB_SA_COMP_MASK(8)
#define IB_SA_MCMEMBER_REC_RATE IB_SA_COMP_MASK(9)
#define IB_SA_MCMEMBER_REC_PACKET_LIFE_TIME_SELECTOR IB_SA_COMP_MASK(10)
#define IB_SA_MCMEMBER_REC_PACKET_LIFE_TIME IB_SA_COMP_MASK(11)
#define IB_SA_MCMEMBER_REC_SL IB_SA_COMP_MASK(12)
#define IB_SA_MCMEMBER_REC_FLOW_LABEL IB_SA_COMP_MASK(13)
#define IB_SA_MCMEMBER_REC_HOP_LIMIT IB_SA_COMP_MASK(14)
#define IB_SA_MCMEMBER_REC_SCOPE IB_SA_COMP_MASK(15)
#define IB_SA_MCMEMBER_REC_JOIN_STATE IB_SA_COMP_MASK(16)
#define IB_SA_MCMEMBER_REC_PROXY_JOIN IB_SA_COMP_MASK(17)

#define IB_SA_SERVICE_REC_SERVICE_ID IB_SA_COMP_MASK(0)
#define IB_SA_SERVICE_REC_SERVICE_GID IB_SA_COMP_MASK(1)
#define IB_SA_SERVICE_REC_SERVICE_PKEY IB_SA_COMP_MASK(2)
#define IB_SA_SERVICE_REC_SERVICE_LEASE IB_SA_COMP_MASK(4)
#define IB_SA_SERVICE_REC_SERVICE_KEY IB_SA_COMP_MASK(5)
#define IB_SA_SERVICE_REC_SERVICE_NAME IB_SA_COMP_MASK(6)
#define IB_DEFAULT_SERVICE_LEASE 0xffffffffu

/* Components of a PathRecord, unpacked. LIDs are big-endian. */
struct sa_path_rec_ib {
	__be16 dlid;
	__be16 slid;
	u8 raw_traffic;
};

enum sa_path_rec_type {
	SA_PATH_REC_TYPE_IB,
	SA_PATH_REC_TYPE_ROCE_V1,
	SA_PATH_REC_TYPE_ROCE_V2,
	SA_PATH_REC_TYPE_OPA,
};

struct sa_path_rec {
	union ib_gid dgid;
	union ib_gid sgid;
	__be64 service_id;
	__be32 flow_label;
	u8 hop_limit;
	u8 traffic_class;
	u8 reversible;
	u8 numb_path;
	__be16 pkey;
	__be16 qos_class;
	u8 sl;
	u8 mtu_selector;
	u8 mtu;
	u8 rate_selector;
	u8 rate;
	u8 packet_life_time_selector;
	u8 packet_life_time;
	u8 preference;
	union {
		struct sa_path_rec_ib ib;
	};
	enum sa_path_rec_type rec_type;
	u32 flags;
};

/* LIDs of a path, said in the CPU's order; a path's own are of 16 bits. */
static inline void sa_path_set_slid(struct sa_path_rec *rec, u32 slid)
{
#ifdef __cplusplus
	rec->ib.slid = static_cast<u16>(slid);
#else
	rec->ib.slid = (__be16)__builtin_bswap16((u16)slid);
#endif
}

static inline void sa_path_set_dlid(struct sa_path_rec *rec, u32 dlid)
{
#ifdef __cplusplus
	rec->ib.dlid = static_cast<u16>(dlid);
#else
	rec->ib.dlid = (__be16)__builtin_bswap16((u16)dlid);
#endif
}

/* How a port belongs to a multicast group: bits of join_state (IBA 15.2.5.17). */
enum ib_sa_mc_join_states {
	FULLMEMBER_JOIN,
	NONMEMBER_JOIN,
	SENDONLY_NONMEBER_JOIN,
	SENDONLY_FULLMEMBER_JOIN,
	NUM_JOIN_MEMBERSHIP_TYPES,
};

/* Components of an MCMemberRecord, unpacked. */
struct ib_sa_mcmember_rec {
	union ib_gid mgid;
	union ib_gid port_gid;
	__be32 qkey;
	__be16 mlid;
	u8 mtu_selector;
	u8 mtu;
	u8 traffic_class;
	__be16 pkey;
	u8 rate_selector;
	u8 rate;
	u8 packet_life_time_selector;
	u8 packet_life_time;
	u8 sl;
	__be32 flow_label;
	u8 hop_limit;
	u8 scope;
	u8 join_state;
	u8 proxy_join;
};

/* Components of a ServiceRecord, unpacked. */
struct ib_sa_service_rec {
	__be64 id;
	union ib_gid gid;
	__be16 pkey;
	__be32 lease;
	u8 key[16];
	u8 name[64];
	u8 data8[16];
	__be16 data16[8];
	__be32 data32[4];
	__be64 data64[2];
};

struct ib_sa_query;
struct ib_sa_client_state;

/**
 * struct ib_sa_client - a module that queries the SA
 * @state: the midlayer's
 * @timeout_ms: how long joins and subscriptions wait for the SA's answer; 0 stands for one second,
 * and three retries
 * @retries: how many times they ask again
 *
 * Zeroed before it is registered, but for what is set of @timeout_ms and @retries; departure from
 * Linux: these two.
 */
struct ib_sa_client {
	struct ib_sa_client_state *state;
	unsigned long timeout_ms;
	int retries;
};

RDMA_C_BEGIN

/**
 * ib_sa_register_client - get ready for queries
 * @client: kept until ib_sa_unregister_client() has returned
 *
 * Context: process.
 */
void ib_sa_register_client(struct ib_sa_client *client);

/**
 * ib_sa_unregister_client - wait until no callback of the client runs or will run
 * @client: a registered one, whose queries are cancelled or done
 *
 * Context: process.
 */
void ib_sa_unregister_client(struct ib_sa_client *client);

/**
 * ib_sa_cancel_query - give up a query
 * @id: what the query function returned
 * @query: what it left; the callback comes, with -EINTR, unless it came already
 *
 * Context: any.
 */
void ib_sa_cancel_query(int id, struct ib_sa_query *query);

/**
 * ib_sa_path_rec_get - ask the SA for a path
 * @client: who asks
 * @device: the device
 * @port_num: the port
 * @rec: what is known of it
 * @comp_mask: which components that is
 * @timeout_ms: how long to wait for the answer, at least 1
 * @retries: how many times to ask again
 * @gfp: the kernel's allocation flags
 * @callback: called once, in process context; @resp is valid during the call only. @status: 0;
 * -ETIMEDOUT; -EINTR if
 *	cancelled; -EINVAL if the SA refused; -EIO
 * @context: handed to it
 * @query: for ib_sa_cancel_query()
 *
 * Departure from Linux: @retries. Context: as @gfp says.
 * Return: an id, greater than 0; -EINVAL for a bad @timeout_ms or @retries, or no @callback; -ENODEV for a port
 * without SA; -EAGAIN as long as no SM is known; -ENOMEM, also for a @client that could not be registered for want of it.
 */
RDMA_MUST_CHECK int
ib_sa_path_rec_get(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
		   struct sa_path_rec *rec, ib_sa_comp_mask comp_mask, unsigned long timeout_ms,
		   int retries, unsigned int gfp,
		   void (*callback)(int status, struct sa_path_rec *resp, void *context),
		   void *context, struct ib_sa_query **query);

/**
 * ib_sa_service_rec_query - get, set or delete a service record
 * @client: who asks
 * @device: the device
 * @port_num: the port
 * @method: IB_MGMT_METHOD_GET, IB_MGMT_METHOD_SET or IB_SA_METHOD_DELETE
 * @rec: the record
 * @comp_mask: which of its components count
 * @timeout_ms: as above
 * @retries: as above
 * @gfp: as above
 * @callback: as above
 * @context: as above
 * @query: as above
 *
 * Context, return: as ib_sa_path_rec_get(); -EINVAL for another method.
 */
RDMA_MUST_CHECK int
ib_sa_service_rec_query(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
			u8 method, struct ib_sa_service_rec *rec, ib_sa_comp_mask comp_mask,
			unsigned long timeout_ms, int retries, unsigned int gfp,
			void (*callback)(int status, struct ib_sa_service_rec *resp, void *context),
			void *context, struct ib_sa_query **query);

/**
 * ib_sa_class_port_info_query - ask the SA what it can do
 * @client: who asks
 * @device: the device
 * @port_num: the port
 * @timeout_ms: as above
 * @retries: as above
 * @gfp: as above
 * @callback: as above; @resp is as on the wire (IBA 13.4.8.1, 15.2.4)
 * @context: as above
 * @query: as above
 *
 * Context, return: as ib_sa_path_rec_get().
 */
RDMA_MUST_CHECK int ib_sa_class_port_info_query(
	struct ib_sa_client *client, struct ib_device *device, u32 port_num,
	unsigned long timeout_ms, int retries, unsigned int gfp,
	void (*callback)(int status, struct ib_class_port_info *resp, void *context), void *context,
	struct ib_sa_query **query);

/* All traps, for ib_sa_register_inform_info(). */
#define IB_SA_ANY_TRAP 0xffff

/**
 * struct ib_sa_notice - a trap that the SA reports (IBA 13.4.8.2)
 * @is_generic: whether it is one of the specification's
 * @type: fatal, urgent, security, subnet management, informational: 0 to 4
 * @producer: kind of node (1: channel adapter, 2: switch, 3: router, 4: class manager), or the
 * vendor
 * @trap_number: which trap, or the vendor's device
 * @issuer_lid: who raised it
 * @issuer_gid: the same
 * @data_details: of the trap; of the traps 64 to 67 the GID or MGID is at offset 6
 *
 * Numbers are in host order.
 */
struct ib_sa_notice {
	u8 is_generic;
	u8 type;
	u32 producer;
	u16 trap_number;
	u16 issuer_lid;
	union ib_gid issuer_gid;
	u8 data_details[54];
};

/**
 * struct ib_inform_info - a subscription to traps
 * @trap_number: as given
 * @callback: as given
 * @context: as given
 */
struct ib_inform_info {
	u16 trap_number;
	int (*callback)(int status, struct ib_inform_info *info, struct ib_sa_notice *notice);
	void *context;
};

/**
 * ib_sa_register_inform_info - hear of traps that reach the SA
 * @client: who wants to
 * @device: the device
 * @port_num: the port
 * @trap_number: one of the specification's, or IB_SA_ANY_TRAP for all of them
 * @callback: called in process context, one call at a time: with 0 and no @notice when the SA has
 * agreed, with 0 and a
 *	@notice for each report, valid during the call only, and with an error once: -ETIMEDOUT, -EINVAL if the SA
 *	refused, -EAGAIN as long as no SM is known, -ENETRESET when a subscription that stood is lost. A non-zero return
 *	frees the subscription.
 * @context: the consumer's
 *
 * Subscriptions to one trap on one port are shared and counted, and renewed when the SM has changed or asks for it.
 * Callbacks of one port's subscriptions are called one after the other: who stays long in one keeps the others waiting.
 * Reports that consumers are too slow for are left unacknowledged, for the SA to send again (IBA 13.4.9).
 * Context: process. Return: the subscription; -EINVAL without @callback; -ENODEV for a port without SA; -ENOMEM.
 */
RDMA_MUST_CHECK struct ib_inform_info *ib_sa_register_inform_info(
	struct ib_sa_client *client, struct ib_device *device, u32 port_num, u16 trap_number,
	int (*callback)(int status, struct ib_inform_info *info, struct ib_sa_notice *notice),
	void *context);

/**
 * ib_sa_unregister_inform_info - undo ib_sa_register_inform_info()
 * @info: the subscription; when this has returned its callback does not run
 *
 * Context: process, not from the callback.
 */
void ib_sa_unregister_inform_info(struct ib_inform_info *info);

/**
 * struct ib_sa_multicast - membership of a port in a multicast group
 * @rec: the group, once the join has succeeded
 * @comp_mask: what the consumer had asked for
 * @callback: as given
 * @context: as given
 */
struct ib_sa_multicast {
	struct ib_sa_mcmember_rec rec;
	ib_sa_comp_mask comp_mask;
	int (*callback)(int status, struct ib_sa_multicast *multicast);
	void *context;
};

/**
 * ib_sa_join_multicast - join a group, or create it
 * @client: who joins
 * @device: the device
 * @port_num: the port
 * @rec: the group: MGID, port GID and join state at least
 * @comp_mask: which components count
 * @gfp: the kernel's allocation flags
 * @callback: called in process context when the join has ended, and again, with -ENETRESET, when
 * the membership is
 *	lost; a non-zero return frees the membership
 * @context: the consumer's
 *
 * Memberships of one group are shared and counted, and taken up again by the consumer after -ENETRESET.
 * Context: process. Return: the membership; -EINVAL for a port without SA, no @callback, a @comp_mask without one of
 * those three, an MGID that is none or no join state; -ENODEV while the device goes away; -ENOMEM.
 */
RDMA_MUST_CHECK struct ib_sa_multicast *
ib_sa_join_multicast(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
		     struct ib_sa_mcmember_rec *rec, ib_sa_comp_mask comp_mask, unsigned int gfp,
		     int (*callback)(int status, struct ib_sa_multicast *multicast), void *context);

/**
 * ib_sa_free_multicast - undo ib_sa_join_multicast()
 * @multicast: the membership; when this has returned its callback does not run
 *
 * Context: process, not from the callback.
 */
void ib_sa_free_multicast(struct ib_sa_multicast *multicast);

/**
 * ib_sa_get_mcmember_rec - a group that someone on this port is a member of
 * @device: the device
 * @port_num: the port
 * @mgid: the group
 * @rec: filled in
 *
 * Context: any. Return: 0; -EADDRNOTAVAIL if nobody is, or the port has no SA.
 */
RDMA_MUST_CHECK int ib_sa_get_mcmember_rec(struct ib_device *device, u32 port_num,
					   const union ib_gid *mgid,
					   struct ib_sa_mcmember_rec *rec);

/**
 * ib_init_ah_from_mcmember - the address of a group
 * @device: the device
 * @port_num: the port
 * @rec: the group
 * @ah_attr: filled in
 *
 * Context: any. Return: 0; -EINVAL for a bad port; -ENOENT if the port does not have the GID it
 * joined with.
 */
RDMA_MUST_CHECK int ib_init_ah_from_mcmember(struct ib_device *device, u32 port_num,
					     struct ib_sa_mcmember_rec *rec,
					     struct rdma_ah_attr *ah_attr);

/**
 * ib_init_ah_attr_from_path - the address at the end of a path
 * @device: the device
 * @port_num: the port
 * @rec: the path
 * @ah_attr: filled in; with a GRH if the path leaves the subnet (hop limit above 1) or the port
 * needs one, and with
 *	the path's rate
 *
 * Context: any. Return: 0; -EINVAL for a bad port; -ENOENT if the port does not have the path's source GID.
 */
RDMA_MUST_CHECK int ib_init_ah_attr_from_path(struct ib_device *device, u32 port_num,
					      struct sa_path_rec *rec,
					      struct rdma_ah_attr *ah_attr);

/**
 * ib_sa_pack_path - a path as the SA has it
 * @rec: the path
 * @attribute: filled in: a PathRecord, 64 bytes (IBA 15.2.5.16)
 *
 * Context: any.
 */
void ib_sa_pack_path(const struct sa_path_rec *rec, void *attribute);

/**
 * ib_sa_unpack_path - undo ib_sa_pack_path()
 * @attribute: a PathRecord
 * @rec: filled in
 *
 * Context: any.
 */
void ib_sa_unpack_path(const void *attribute, struct sa_path_rec *rec);

RDMA_C_END
