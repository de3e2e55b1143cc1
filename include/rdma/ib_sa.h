/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the SA client: queries to subnet administration, memberships in multicast groups, and
 * subscriptions to traps (IBA 15).
 */
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

/* Masks of the components of a record that a request uses. */
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

/**
 * struct sa_path_rec_ib - the part of a path that only InfiniBand has
 * @dlid: destination LID, big-endian
 * @slid: source LID, big-endian
 * @raw_traffic: whether the path is for raw packets
 */
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

/**
 * struct sa_path_rec - a path: a PathRecord, unpacked (IBA 15.2.5.16)
 * @dgid: destination
 * @sgid: source
 * @service_id: service that the path is for; 0 for none
 * @flow_label: flow label, 20 bits
 * @hop_limit: hop limit; more than 1 if the path leaves the subnet
 * @traffic_class: traffic class
 * @reversible: whether the path can be used in both directions: 0 or 1
 * @numb_path: number of requested paths, 7 bits
 * @pkey: P_Key
 * @qos_class: class of the quality of service, 12 bits
 * @sl: service level, 0 to 15
 * @mtu_selector: enum ib_sa_selector
 * @mtu: enum ib_mtu
 * @rate_selector: enum ib_sa_selector
 * @rate: enum ib_rate
 * @packet_life_time_selector: enum ib_sa_selector
 * @packet_life_time: longest time that a packet takes on the path, 4.096 us * 2^n
 * @preference: preference among several paths
 * @ib: LIDs
 * @rec_type: SA_PATH_REC_TYPE_IB
 * @flags: for the consumer; the midlayer does not use it
 */
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

/**
 * sa_path_set_slid - set the source LID of a path (IBA 15.2.5.16)
 * @rec: the path
 * @slid: LID, host order; the upper 16 bits are dropped
 *
 * Context: any.
 */
static inline void sa_path_set_slid(struct sa_path_rec *rec, u32 slid)
{
#ifdef __cplusplus
	rec->ib.slid = static_cast<u16>(slid);
#else
	rec->ib.slid = (__be16)__builtin_bswap16((u16)slid);
#endif
}

/**
 * sa_path_set_dlid - set the destination LID of a path (IBA 15.2.5.16)
 * @rec: the path
 * @dlid: LID, host order; the upper 16 bits are dropped
 *
 * Context: any.
 */
static inline void sa_path_set_dlid(struct sa_path_rec *rec, u32 dlid)
{
#ifdef __cplusplus
	rec->ib.dlid = static_cast<u16>(dlid);
#else
	rec->ib.dlid = (__be16)__builtin_bswap16((u16)dlid);
#endif
}

/* Kinds of membership in a multicast group: numbers of bits of join_state (IBA 15.2.5.17). */
enum ib_sa_mc_join_states {
	FULLMEMBER_JOIN,
	NONMEMBER_JOIN,
	SENDONLY_NONMEBER_JOIN,
	SENDONLY_FULLMEMBER_JOIN,
	NUM_JOIN_MEMBERSHIP_TYPES,
};

/**
 * struct ib_sa_mcmember_rec - a membership in a multicast group: an MCMemberRecord, unpacked (IBA
 * 15.2.5.17)
 * @mgid: GID of the group
 * @port_gid: GID of the member's port
 * @qkey: Q_Key of the group
 * @mlid: LID of the group
 * @mtu_selector: enum ib_sa_selector
 * @mtu: enum ib_mtu
 * @traffic_class: traffic class
 * @pkey: P_Key
 * @rate_selector: enum ib_sa_selector
 * @rate: enum ib_rate
 * @packet_life_time_selector: enum ib_sa_selector
 * @packet_life_time: longest time that a packet takes to a member, 4.096 us * 2^n
 * @sl: service level, 0 to 15
 * @flow_label: flow label, 20 bits
 * @hop_limit: hop limit
 * @scope: scope of the GID, 4 bits
 * @join_state: membership: bits with the numbers of enum ib_sa_mc_join_states
 * @proxy_join: whether another port has joined for the member
 */
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

/**
 * struct ib_sa_service_rec - a service: a ServiceRecord, unpacked (IBA 15.2.5.14)
 * @id: service ID
 * @gid: GID of the port that serves
 * @pkey: P_Key of the service
 * @lease: seconds that the record stays; IB_DEFAULT_SERVICE_LEASE for an unlimited time
 * @key: key that protects the record, zero for none
 * @name: name of the service
 * @data8: data of the service, in bytes
 * @data16: data of the service, in words of 16 bits
 * @data32: data of the service, in words of 32 bits
 * @data64: data of the service, in words of 64 bits
 */
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
 * @state: for the midlayer
 * @timeout_ms: milliseconds that joins and subscriptions wait for the SA's response; 0 means
 * one second and three retries
 * @retries: repetitions of joins and subscriptions without a response
 *
 * The caller zeroes it, except @timeout_ms and @retries, before it registers the client.
 *
 * Linux: differs by @timeout_ms and @retries.
 */
struct ib_sa_client {
	struct ib_sa_client_state *state;
	unsigned long timeout_ms;
	int retries;
};

RDMA_C_BEGIN

/**
 * ib_sa_register_client - register a client of the SA
 * @client: the client; the caller keeps it until ib_sa_unregister_client() has returned. If there
 * is no memory, its queries return -ENOMEM
 *
 * Context: process.
 */
void ib_sa_register_client(struct ib_sa_client *client);

/**
 * ib_sa_unregister_client - wait until no callback of the client runs or will run
 * @client: a registered client, whose queries are cancelled or done
 *
 * Context: process, not from a callback of the client.
 */
void ib_sa_unregister_client(struct ib_sa_client *client);

/**
 * ib_sa_cancel_query - cancel a query
 * @id: the ID that the query function returned
 * @query: the query that it set. Its callback is called with -EINTR, unless it was called already
 *
 * Context: any.
 */
void ib_sa_cancel_query(int id, struct ib_sa_query *query);

/**
 * ib_sa_path_rec_get - query the SA for a path (IBA 15.2.5.16)
 * @client: the client
 * @device: the device
 * @port_num: the port
 * @rec: the known components of the path; copied
 * @comp_mask: IB_SA_PATH_REC_*: the components that are known
 * @timeout_ms: milliseconds to wait for the response, at least 1
 * @retries: repetitions without a response, 0 or more
 * @gfp: the kernel's allocation flags
 * @callback: called once, in process context. Its argument resp is valid during the call only; its
 * status is 0, -ETIMEDOUT if no response came, -EINTR if the query was cancelled, -EINVAL if the SA
 * refused it, or -EIO if it could not be sent or received
 * @context: argument of the callback
 * @query: set for ib_sa_cancel_query() before the callback can be called; may be NULL
 *
 * Linux: differs by @retries.
 *
 * Context: any, unless @gfp allows sleeping.
 *
 * Return: an ID greater than 0; -EINVAL for a timeout of 0 or beyond INT_MAX, negative retries, or
 * no callback; -ENODEV for a port without SA; -EAGAIN while no subnet manager is known; -ENOMEM if
 * there is no memory, or was none to register @client; the errors of ib_post_send_mad().
 */
RDMA_MUST_CHECK int
ib_sa_path_rec_get(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
		   struct sa_path_rec *rec, ib_sa_comp_mask comp_mask, unsigned long timeout_ms,
		   int retries, unsigned int gfp,
		   void (*callback)(int status, struct sa_path_rec *resp, void *context),
		   void *context, struct ib_sa_query **query);

/**
 * ib_sa_service_rec_query - get, set or delete a service record (IBA 15.2.5.14)
 * @client: the client
 * @device: the device
 * @port_num: the port
 * @method: IB_MGMT_METHOD_GET, IB_MGMT_METHOD_SET or IB_SA_METHOD_DELETE
 * @rec: the record; copied
 * @comp_mask: IB_SA_SERVICE_REC_*: the components that are used
 * @timeout_ms: as for ib_sa_path_rec_get()
 * @retries: as for ib_sa_path_rec_get()
 * @gfp: the kernel's allocation flags
 * @callback: as for ib_sa_path_rec_get()
 * @context: argument of the callback
 * @query: as for ib_sa_path_rec_get()
 *
 * Context: any, unless @gfp allows sleeping. Return: as ib_sa_path_rec_get(); -EINVAL for another
 * method.
 */
RDMA_MUST_CHECK int
ib_sa_service_rec_query(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
			u8 method, struct ib_sa_service_rec *rec, ib_sa_comp_mask comp_mask,
			unsigned long timeout_ms, int retries, unsigned int gfp,
			void (*callback)(int status, struct ib_sa_service_rec *resp, void *context),
			void *context, struct ib_sa_query **query);

/**
 * ib_sa_class_port_info_query - query the SA for its capabilities (IBA 13.4.8.1, 15.2.4)
 * @client: the client
 * @device: the device
 * @port_num: the port
 * @timeout_ms: as for ib_sa_path_rec_get()
 * @retries: as for ib_sa_path_rec_get()
 * @gfp: the kernel's allocation flags
 * @callback: as for ib_sa_path_rec_get(); resp is as on the wire
 * @context: argument of the callback
 * @query: as for ib_sa_path_rec_get()
 *
 * Linux: differs by having no such function.
 *
 * Context: any, unless @gfp allows sleeping. Return: as ib_sa_path_rec_get().
 */
RDMA_MUST_CHECK int ib_sa_class_port_info_query(
	struct ib_sa_client *client, struct ib_device *device, u32 port_num,
	unsigned long timeout_ms, int retries, unsigned int gfp,
	void (*callback)(int status, struct ib_class_port_info *resp, void *context), void *context,
	struct ib_sa_query **query);

/* All traps in ib_sa_register_inform_info(). */
#define IB_SA_ANY_TRAP 0xffff

/**
 * struct ib_sa_notice - a trap that the SA reports (IBA 13.4.8.2)
 * @is_generic: whether the specification defines the trap
 * @type: 0 fatal, 1 urgent, 2 security, 3 subnet management, 4 informational
 * @producer: kind of node (1: channel adapter, 2: switch, 3: router, 4: class manager), or the
 * vendor
 * @trap_number: number of the trap, or of the vendor's device
 * @issuer_lid: LID of the port that sent the trap
 * @issuer_gid: GID of the port that sent the trap
 * @data_details: data of the trap; in those of traps 64 to 67, the GID or MGID is at offset 6
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
 * struct ib_inform_info - a subscription to traps (IBA 13.4.8.3)
 * @trap_number: argument of ib_sa_register_inform_info()
 * @callback: argument of ib_sa_register_inform_info()
 * @context: argument of ib_sa_register_inform_info()
 */
struct ib_inform_info {
	u16 trap_number;
	int (*callback)(int status, struct ib_inform_info *info, struct ib_sa_notice *notice);
	void *context;
};

/**
 * ib_sa_register_inform_info - subscribe to traps that reach the SA (IBA 13.4.8.3)
 * @client: the client that subscribes
 * @device: the device
 * @port_num: the port
 * @trap_number: number of a trap that the specification defines, or IB_SA_ANY_TRAP for all of them
 * @callback: called in process context, one call at a time: with status 0 and no notice when the SA
 * has accepted the subscription; with 0 and a notice, valid during the call, for each report; once
 * with an error: -ETIMEDOUT if no response came, -EINVAL if the SA refused, -EAGAIN if no subnet
 * manager is known, -ENETRESET if an accepted subscription is lost. A non-zero return value frees
 * the subscription
 * @context: for the consumer
 *
 * Subscriptions to one trap on one port are shared and counted. They are renewed when the subnet
 * manager changes or asks for it. The callbacks of one port's subscriptions are called one after
 * the other, so a slow one delays the others. Reports that arrive faster than consumers handle them
 * are not acknowledged, and the SA sends them again (IBA 13.4.9). The caller ends the subscription
 * with ib_sa_unregister_inform_info().
 *
 * Linux: differs by having no such function.
 *
 * Context: process. Return: the subscription; -EINVAL without callback; -ENODEV for a port without
 * SA; -ENOMEM if there is no memory.
 */
RDMA_MUST_CHECK struct ib_inform_info *ib_sa_register_inform_info(
	struct ib_sa_client *client, struct ib_device *device, u32 port_num, u16 trap_number,
	int (*callback)(int status, struct ib_inform_info *info, struct ib_sa_notice *notice),
	void *context);

/**
 * ib_sa_unregister_inform_info - undo ib_sa_register_inform_info() (IBA 13.4.8.3)
 * @info: the subscription. When this has returned, its callback does not run and will not run
 *
 * Context: process, not from the callback.
 */
void ib_sa_unregister_inform_info(struct ib_inform_info *info);

/**
 * struct ib_sa_multicast - membership of a port in a multicast group
 * @rec: the group; valid after the join has succeeded
 * @comp_mask: argument of ib_sa_join_multicast()
 * @callback: argument of ib_sa_join_multicast()
 * @context: argument of ib_sa_join_multicast()
 */
struct ib_sa_multicast {
	struct ib_sa_mcmember_rec rec;
	ib_sa_comp_mask comp_mask;
	int (*callback)(int status, struct ib_sa_multicast *multicast);
	void *context;
};

/**
 * ib_sa_join_multicast - join a multicast group, or create it (IBA 15.2.5.17)
 * @client: the client that joins
 * @device: the device
 * @port_num: the port
 * @rec: the group: MGID, port GID and join state at least; copied
 * @comp_mask: IB_SA_MCMEMBER_REC_*: the components that are used
 * @gfp: not used
 * @callback: called in process context when the join has ended: with status 0, -ETIMEDOUT if no
 * response came, -EINVAL if the SA refused or the group does not match @rec, -EAGAIN if no subnet
 * manager is known, -EIO for an unusable response, or -ENOMEM. Called again with -ENETRESET when
 * the membership is lost. A non-zero return value frees the membership
 * @context: for the consumer
 *
 * Memberships of one group are shared and counted. The consumer joins again after -ENETRESET. The
 * caller ends the membership with ib_sa_free_multicast().
 *
 * Linux: differs by the timeout and the retries, which are those of @client.
 *
 * Context: process. Return: the membership; -EINVAL for a port without SA, no callback, a
 * @comp_mask without one of those three components, an MGID that is not multicast, or no join
 * state; -ENODEV while the device is being removed; -ENOMEM if there is no memory.
 */
RDMA_MUST_CHECK struct ib_sa_multicast *
ib_sa_join_multicast(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
		     struct ib_sa_mcmember_rec *rec, ib_sa_comp_mask comp_mask, unsigned int gfp,
		     int (*callback)(int status, struct ib_sa_multicast *multicast), void *context);

/**
 * ib_sa_free_multicast - undo ib_sa_join_multicast() (IBA 15.2.5.17)
 * @multicast: the membership. When this has returned, its callback does not run and will not run
 *
 * Context: process, not from the callback.
 */
void ib_sa_free_multicast(struct ib_sa_multicast *multicast);

/**
 * ib_sa_get_mcmember_rec - get a group that a consumer of this port has joined (IBA 15.2.5.17)
 * @device: the device
 * @port_num: the port
 * @mgid: GID of the group
 * @rec: filled in
 *
 * Context: any. Return: 0; -EADDRNOTAVAIL if no consumer has joined the group, or the port has no
 * SA.
 */
RDMA_MUST_CHECK int ib_sa_get_mcmember_rec(struct ib_device *device, u32 port_num,
					   const union ib_gid *mgid,
					   struct ib_sa_mcmember_rec *rec);

/**
 * ib_init_ah_from_mcmember - get the address of a multicast group
 * @device: the device
 * @port_num: the port
 * @rec: the group
 * @ah_attr: filled in, with a GRH (IBA 9.6.1.5)
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist; -ENOENT if the port no longer
 * has the GID that it joined with.
 */
RDMA_MUST_CHECK int ib_init_ah_from_mcmember(struct ib_device *device, u32 port_num,
					     struct ib_sa_mcmember_rec *rec,
					     struct rdma_ah_attr *ah_attr);

/**
 * ib_init_ah_attr_from_path - get the address of a path's destination (IBA 15.2.5.16)
 * @device: the device
 * @port_num: the port
 * @rec: the path
 * @ah_attr: filled in, with the path's rate, and with a GRH if the path leaves the subnet (hop
 * limit above 1) or the port needs one
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist; -ENOENT if a GRH is needed and
 * the port does not have the path's source GID.
 */
RDMA_MUST_CHECK int ib_init_ah_attr_from_path(struct ib_device *device, u32 port_num,
					      struct sa_path_rec *rec,
					      struct rdma_ah_attr *ah_attr);

/**
 * ib_sa_pack_path - convert a path to a PathRecord as on the wire (IBA 15.2.5.16)
 * @rec: the path
 * @attribute: filled in, 64 bytes
 *
 * Context: any.
 */
void ib_sa_pack_path(const struct sa_path_rec *rec, void *attribute);

/**
 * ib_sa_unpack_path - convert a PathRecord as on the wire to a path (IBA 15.2.5.16)
 * @attribute: the PathRecord, 64 bytes
 * @rec: filled in
 *
 * Context: any.
 */
void ib_sa_unpack_path(const void *attribute, struct sa_path_rec *rec);

RDMA_C_END
