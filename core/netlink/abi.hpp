// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines constants of the netlink protocol that iproute2's rdma and libibverbs use (NETLINK_RDMA,
 * client NLDEV). The values are those of the kernel's include/uapi/rdma/rdma_netlink.h.
 */
#pragma once
#include <kern/types.h>

namespace nldev::abi
{

inline constexpr unsigned int protocol = 20;
inline constexpr u16 client = 5;

/* The type of a message contains the client and the operation. */
constexpr u16 client_of(u16 type)
{
	return static_cast<u16>(type >> 10);
}
constexpr u16 operation_of(u16 type)
{
	return type & 0x3ff;
}
constexpr u16 type_of(u16 operation)
{
	return static_cast<u16>(client << 10 | operation);
}

/* Linux's names without their prefixes. NOLINTBEGIN(readability-identifier-naming) */

enum Operation : u16 {
	GET = 1,
	SET = 2,
	PORT_GET = 5,
	SYS_GET = 6,
	SYS_SET = 7,
	RES_GET = 9,
	RES_QP_GET = 10,
	RES_CM_ID_GET = 11,
	RES_CQ_GET = 12,
	RES_MR_GET = 13,
	RES_PD_GET = 14,
	GET_CHARDEV = 15,
	STAT_GET = 17,
	RES_CTX_GET = 22,
	RES_SRQ_GET = 23,
	STAT_GET_STATUS = 24,
	OPERATIONS,
};

enum Attribute : u16 {
	DEV_INDEX = 1,
	DEV_NAME = 2,
	PORT_INDEX = 3,
	CAP_FLAGS = 4,
	FW_VERSION = 5,
	NODE_GUID = 6,
	SYS_IMAGE_GUID = 7,
	SUBNET_PREFIX = 8,
	LID = 9,
	SM_LID = 10,
	LMC = 11,
	PORT_STATE = 12,
	PORT_PHYS_STATE = 13,
	DEV_NODE_TYPE = 14,
	RES_SUMMARY = 15,
	RES_SUMMARY_ENTRY = 16,
	RES_SUMMARY_ENTRY_NAME = 17,
	RES_SUMMARY_ENTRY_CURR = 18,
	RES_QP = 19,
	RES_QP_ENTRY = 20,
	RES_LQPN = 21,
	RES_RQPN = 22,
	RES_RQ_PSN = 23,
	RES_SQ_PSN = 24,
	RES_PATH_MIG_STATE = 25,
	RES_TYPE = 26,
	RES_STATE = 27,
	RES_PID = 28,
	RES_KERN_NAME = 29,
	RES_CM_ID = 30,
	RES_CM_ID_ENTRY = 31,
	RES_PS = 32,
	RES_SRC_ADDR = 33,
	RES_DST_ADDR = 34,
	RES_CQ = 35,
	RES_CQ_ENTRY = 36,
	RES_CQE = 37,
	RES_USECNT = 38,
	RES_POLL_CTX = 39,
	RES_MR = 40,
	RES_MR_ENTRY = 41,
	RES_RKEY = 42,
	RES_LKEY = 43,
	RES_MRLEN = 45,
	RES_PD = 46,
	RES_PD_ENTRY = 47,
	RES_LOCAL_DMA_LKEY = 48,
	RES_UNSAFE_GLOBAL_RKEY = 49,
	RES_PDN = 60,
	RES_CQN = 61,
	RES_MRN = 62,
	RES_CM_IDN = 63,
	RES_CTXN = 64,
	SYS_ATTR_NETNS_MODE = 66,
	DEV_PROTOCOL = 67,
	NET_NS_FD = 68,
	CHARDEV_TYPE = 69,
	CHARDEV_NAME = 70,
	CHARDEV_ABI = 71,
	CHARDEV = 72,
	UVERBS_DRIVER_ID = 73,
	STAT_RES = 75,
	STAT_HWCOUNTERS = 80,
	STAT_HWCOUNTER_ENTRY = 81,
	STAT_HWCOUNTER_ENTRY_NAME = 82,
	STAT_HWCOUNTER_ENTRY_VALUE = 83,
	DEV_DIM = 84,
	RES_CTX = 86,
	RES_CTX_ENTRY = 87,
	RES_SRQ = 88,
	RES_SRQ_ENTRY = 89,
	RES_SRQN = 90,
	MIN_RANGE = 91,
	MAX_RANGE = 92,
	SYS_ATTR_COPY_ON_FORK = 93,
	STAT_HWCOUNTER_INDEX = 94,
	STAT_HWCOUNTER_DYNAMIC = 95,
	SYS_ATTR_PRIVILEGED_QKEY_MODE = 96,
};

/* Context in which a kernel CQ is polled, as reported to user space. */
enum PollContext : u8 { POLL_DIRECT, POLL_SOFTIRQ, POLL_WORKQUEUE, POLL_UNBOUND_WORKQUEUE };

/* NOLINTEND(readability-identifier-naming) */

} // namespace nldev::abi
