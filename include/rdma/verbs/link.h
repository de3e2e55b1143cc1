/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines the properties of links and ports: MTU, width, speed, rate, state (IBA 14.2.5.6). */
#pragma once
#include <rdma/types.h>

enum rdma_transport_type {
	RDMA_TRANSPORT_IB,
	RDMA_TRANSPORT_IWARP,
	RDMA_TRANSPORT_USNIC,
	RDMA_TRANSPORT_USNIC_UDP,
	RDMA_TRANSPORT_UNSPECIFIED,
};

enum rdma_link_layer {
	IB_LINK_LAYER_UNSPECIFIED,
	IB_LINK_LAYER_INFINIBAND,
	IB_LINK_LAYER_ETHERNET,
};

enum rdma_node_type {
	RDMA_NODE_IB_CA = 1,
	RDMA_NODE_IB_SWITCH,
	RDMA_NODE_IB_ROUTER,
	RDMA_NODE_RNIC,
	RDMA_NODE_USNIC,
	RDMA_NODE_USNIC_UDP,
	RDMA_NODE_UNSPECIFIED,
};

enum ib_mtu {
	IB_MTU_256 = 1,
	IB_MTU_512 = 2,
	IB_MTU_1024 = 3,
	IB_MTU_2048 = 4,
	IB_MTU_4096 = 5,
};

enum ib_port_state {
	IB_PORT_NOP = 0,
	IB_PORT_DOWN = 1,
	IB_PORT_INIT = 2,
	IB_PORT_ARMED = 3,
	IB_PORT_ACTIVE = 4,
	IB_PORT_ACTIVE_DEFER = 5,
};

enum ib_port_phys_state {
	IB_PORT_PHYS_STATE_SLEEP = 1,
	IB_PORT_PHYS_STATE_POLLING = 2,
	IB_PORT_PHYS_STATE_DISABLED = 3,
	IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING = 4,
	IB_PORT_PHYS_STATE_LINK_UP = 5,
	IB_PORT_PHYS_STATE_LINK_ERROR_RECOVERY = 6,
	IB_PORT_PHYS_STATE_PHY_TEST = 7,
};

enum ib_port_width {
	IB_WIDTH_1X = 1,
	IB_WIDTH_4X = 2,
	IB_WIDTH_8X = 4,
	IB_WIDTH_12X = 8,
	IB_WIDTH_2X = 16,
};

enum ib_port_speed {
	IB_SPEED_SDR = 1,
	IB_SPEED_DDR = 2,
	IB_SPEED_QDR = 4,
	IB_SPEED_FDR10 = 8,
	IB_SPEED_FDR = 16,
	IB_SPEED_EDR = 32,
	IB_SPEED_HDR = 64,
	IB_SPEED_NDR = 128,
};

/* Static rates, with the numbers of address vectors and path records. */
enum ib_rate {
	IB_RATE_PORT_CURRENT = 0,
	IB_RATE_2_5_GBPS = 2,
	IB_RATE_10_GBPS = 3,
	IB_RATE_30_GBPS = 4,
	IB_RATE_5_GBPS = 5,
	IB_RATE_20_GBPS = 6,
	IB_RATE_40_GBPS = 7,
	IB_RATE_60_GBPS = 8,
	IB_RATE_80_GBPS = 9,
	IB_RATE_120_GBPS = 10,
	IB_RATE_14_GBPS = 11,
	IB_RATE_56_GBPS = 12,
	IB_RATE_112_GBPS = 13,
	IB_RATE_168_GBPS = 14,
	IB_RATE_25_GBPS = 15,
	IB_RATE_100_GBPS = 16,
	IB_RATE_200_GBPS = 17,
	IB_RATE_300_GBPS = 18,
	IB_RATE_28_GBPS = 19,
	IB_RATE_50_GBPS = 20,
	IB_RATE_400_GBPS = 21,
	IB_RATE_600_GBPS = 22,
};

/* Capabilities of a port, as its driver states them in ib_port_immutable::core_cap_flags. */
enum {
	RDMA_CORE_CAP_IB_MAD = 0x00000001,
	RDMA_CORE_CAP_IB_SMI = 0x00000002,
	RDMA_CORE_CAP_IB_CM = 0x00000004,
	RDMA_CORE_CAP_IW_CM = 0x00000008,
	RDMA_CORE_CAP_IB_SA = 0x00000010,
	RDMA_CORE_CAP_AF_IB = 0x00001000,
	RDMA_CORE_CAP_ETH_AH = 0x00002000,
	RDMA_CORE_CAP_IB_GRH_REQUIRED = 0x00008000,
	RDMA_CORE_CAP_PROT_IB = 0x00100000,
	RDMA_CORE_CAP_PROT_ROCE = 0x00200000,
	RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP = 0x00800000,
	RDMA_CORE_PORT_IBA_IB = RDMA_CORE_CAP_PROT_IB | RDMA_CORE_CAP_IB_MAD |
				RDMA_CORE_CAP_IB_SMI | RDMA_CORE_CAP_IB_CM | RDMA_CORE_CAP_IB_SA |
				RDMA_CORE_CAP_AF_IB,
	RDMA_CORE_PORT_IB_GRH_REQUIRED = RDMA_CORE_CAP_IB_GRH_REQUIRED | RDMA_CORE_CAP_PROT_ROCE |
					 RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP,
};

/**
 * ib_mtu_enum_to_int - convert an MTU code to bytes of payload (IBA 14.2.5.6)
 * @mtu: enum ib_mtu, or any number
 *
 * Context: any. Return: bytes, 256 to 4096; -1 if @mtu is not an MTU code.
 */
static inline int ib_mtu_enum_to_int(enum ib_mtu mtu)
{
	return mtu >= IB_MTU_256 && mtu <= IB_MTU_4096 ? 128 << mtu : -1;
}

/**
 * ib_mtu_int_to_enum - get the largest MTU code that fits into a number of bytes (IBA 14.2.5.6)
 * @mtu: bytes
 *
 * Context: any. Return: the code; IB_MTU_256 for anything smaller than 512.
 */
static inline enum ib_mtu ib_mtu_int_to_enum(int mtu)
{
	int code = IB_MTU_4096;

	while (code > IB_MTU_256 && 128 << code > mtu)
		code--;
	return (enum ib_mtu)code;
}

/**
 * ib_width_enum_to_int - convert a link width to a number of lanes (IBA 14.2.5.6)
 * @width: one bit of enum ib_port_width
 *
 * Context: any. Return: lanes, 1 to 12; -1 if @width is not exactly one known width.
 */
static inline int ib_width_enum_to_int(enum ib_port_width width)
{
	switch (width) {
	case IB_WIDTH_1X:
		return 1;
	case IB_WIDTH_2X:
		return 2;
	case IB_WIDTH_4X:
		return 4;
	case IB_WIDTH_8X:
		return 8;
	case IB_WIDTH_12X:
		return 12;
	}
	return -1;
}

RDMA_C_BEGIN

/**
 * ib_rate_to_mult - convert a static rate to a multiple of 2.5 Gbit/s (IBA 9.11)
 * @rate: enum ib_rate, or any number
 *
 * Context: any. Return: the multiple; -1 for IB_RATE_PORT_CURRENT and unknown codes.
 */
int ib_rate_to_mult(enum ib_rate rate);

/**
 * mult_to_ib_rate - convert a multiple of 2.5 Gbit/s to a static rate (IBA 9.11)
 * @mult: the multiple
 *
 * Context: any. Return: the code; IB_RATE_PORT_CURRENT if there is none.
 */
enum ib_rate mult_to_ib_rate(int mult);

/**
 * ib_rate_to_mbps - convert a static rate to Mbit/s of signalling (IBA 9.11)
 * @rate: enum ib_rate, or any number
 *
 * Context: any. Return: Mbit/s; -1 for IB_RATE_PORT_CURRENT and unknown codes.
 */
int ib_rate_to_mbps(enum ib_rate rate);

RDMA_C_END
