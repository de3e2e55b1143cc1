// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the registers of the InfiniHost III in memory-free mode. The command register is the
 * common one of mlx4 and mthca (hw/mellanox_icm/commands.hpp, hcr), without the toggle bit.
 * (Documentation/infinihost.rst, "Registers")
 */
#pragma once

#include <hw/mellanox_icm/field.hpp>

namespace hw::mthca
{

using mellanox_icm::Field;
using mellanox_icm::Field64;
using mellanox_icm::load_be32;
using mellanox_icm::load_be64;
using mellanox_icm::Storage;
using mellanox_icm::store_be32;
using mellanox_icm::store_be64;

inline constexpr uint16_t pci_vendor_id = 0x15b3;
inline constexpr uint16_t pci_device_id = 0x6282; /* InfiniHost III Ex, memory-free, two ports */

/* BAR 0. QUERY_FW returns the bus addresses of the event queues' registers. */
namespace bar0
{
inline constexpr size_t size = 1 << 20;
inline constexpr size_t hcr = 0x80680;
inline constexpr size_t reset = 0xf0010;
inline constexpr uint32_t reset_bit = 1;
} // namespace bar0

/*
 * The register that arms event queues has a bit for each; those from 32 on are in the first dword.
 */
inline constexpr size_t eq_arm_size = 8;
/* The consumer index of event queue n, which runs freely, is a dword at offset n times this. */
inline constexpr size_t eq_ci_stride = 8;
inline constexpr unsigned eqs = 64;

/* BAR 2: user access regions, one page each. */
namespace uar
{
inline constexpr size_t page_size = 4096;
inline constexpr size_t send_doorbell = 0x10;
inline constexpr Field send_count{0x00, 31, 24};
inline constexpr Field send_index{0x00, 23, 8}; /* index of the first request */
inline constexpr Field send_fence{0x00, 5, 5};
inline constexpr Field send_opcode{0x00, 4, 0};
inline constexpr Field send_qpn{0x04, 31, 8};
inline constexpr Field send_units{0x04, 5, 0};
inline constexpr size_t cq_doorbell = 0x20;
inline constexpr Field cq_sequence{0x00, 29, 28};
inline constexpr Field cq_command{0x00, 26, 24};
inline constexpr Field cq_cqn{0x00, 23, 0};
inline constexpr Field cq_consumer_index{0x04, 31, 0};
inline constexpr uint32_t cq_arm_solicited = 1;
inline constexpr uint32_t cq_arm_next = 2;
} // namespace uar

/*
 * A doorbell record. Records are in the context memory of a user access region (UARC), and have an
 * index.
 */
struct DoorbellRecord : Storage<8> {
	static constexpr size_t counter =
		0x00; /* 16 bits for work queues, 32 for consumer indexes */
	static constexpr Field number{0x04, 31, 8};
	static constexpr Field type{0x04, 7, 5};
	static constexpr Field arm_sequence{0x04, 4, 3};
	static constexpr Field arm_command{0x04, 2, 0};
};
static_assert(sizeof(DoorbellRecord) == 8);

namespace record_type
{
inline constexpr uint32_t none = 0;
inline constexpr uint32_t cq_consumer_index = 1;
inline constexpr uint32_t cq_arm = 2;
inline constexpr uint32_t send_queue = 3;
inline constexpr uint32_t receive_queue = 4;
inline constexpr uint32_t shared_receive_queue = 5;
inline constexpr uint32_t separator = 7;
} // namespace record_type

} // namespace hw::mthca
