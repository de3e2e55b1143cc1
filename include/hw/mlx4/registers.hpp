// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the contents of the ConnectX-2's BARs: registers, including the command register, and
 * doorbells. All registers are big-endian on the bus. (Documentation/connectx.rst, "PCI function"
 * and "Command interface")
 */
#pragma once

#include <hw/mlx4/field.hpp>
#include <hw/mellanox_icm/commands.hpp>

namespace hw::mlx4
{

inline constexpr uint16_t pci_vendor_id = 0x15b3;
inline constexpr uint16_t pci_device_id = 0x673c; /* ConnectX-2, QDR, PCIe 2.0 */

/* BAR 0: device configuration space. */
namespace bar0
{
inline constexpr size_t size = 1 << 20;
inline constexpr size_t hcr = mellanox_icm::hcr::at;
inline constexpr size_t ownership = 0x8069c;
inline constexpr size_t reset = 0xf0010;
inline constexpr uint32_t reset_bit = 1;
inline constexpr size_t semaphore = 0xf03fc;
} // namespace bar0

namespace hcr = mellanox_icm::hcr;

/* BAR 2: user access regions, one page each. BlueFlame pages would follow. */
namespace uar
{
inline constexpr size_t page_size = 4096;
inline constexpr size_t send_doorbell = 0x014;
inline constexpr Field send_doorbell_qpn{0x00, 31, 8};
inline constexpr size_t cq_doorbell = 0x020;
inline constexpr Field cq_doorbell_sequence{0x00, 29, 28};
inline constexpr Field cq_doorbell_command{0x00, 26, 24};
inline constexpr Field cq_doorbell_cqn{0x00, 23, 0};
inline constexpr Field cq_doorbell_consumer_index{0x04, 23, 0};
inline constexpr uint32_t cq_arm_solicited = 1;
inline constexpr uint32_t cq_arm_next = 2;

/* The doorbell of event queue n is in page n / 4. */
inline constexpr size_t eq_doorbell = 0x800;
inline constexpr size_t eq_doorbell_stride = 8;
inline constexpr unsigned eqs_per_page = 4;
inline constexpr Field eq_doorbell_arm{0x00, 31, 31};
inline constexpr Field eq_doorbell_consumer_index{0x00, 23, 0};

constexpr size_t eq_doorbell_offset(uint32_t eqn)
{
	return page_size * (eqn / eqs_per_page) + eq_doorbell +
	       eq_doorbell_stride * (eqn % eqs_per_page);
}

/* Software does not use pages below this one for send and CQ doorbells. */
inline constexpr uint32_t first_usable_page = 128;
} // namespace uar

/* Doorbell records, in host memory. */
namespace doorbell_record
{
inline constexpr size_t receive_size = 4;
inline constexpr Field receive_counter{0x00, 15, 0};
inline constexpr size_t cq_size = 8;
inline constexpr Field cq_consumer_index{0x00, 23, 0};
inline constexpr Field cq_arm_sequence{0x04, 29, 28};
inline constexpr Field cq_arm_command{0x04, 26, 24};
inline constexpr Field cq_arm_consumer_index{0x04, 23, 0};
} // namespace doorbell_record

} // namespace hw::mlx4
