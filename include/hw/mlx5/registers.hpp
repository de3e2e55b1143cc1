// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the registers of a ConnectX-4 or later in PCI space: the initialization segment at the
 * start of BAR 0, followed by user access regions (UARs) of 4 KiB, one per page. All registers are
 * big-endian dwords. (Documentation/mlx5.rst, "Registers")
 */
#pragma once

#include <hw/mellanox_icm/field.hpp>

namespace hw::mlx5
{

using mellanox_icm::Field;
using mellanox_icm::Field64;
using mellanox_icm::Storage;
using mellanox_icm::load_be32;
using mellanox_icm::load_be64;
using mellanox_icm::store_be32;
using mellanox_icm::store_be64;

constexpr std::uint16_t pci_vendor_id = 0x15b3;
constexpr std::uint16_t pci_device_id = 0x1017; /* ConnectX-5, physical function */
constexpr std::uint16_t pci_subsystem_id = 0x0008;
constexpr std::uint32_t pci_class_infiniband = 0x020700;

/* Offsets of the initialization segment. */
namespace segment
{
constexpr std::uint32_t firmware_revision = 0x000; /* minor in the upper half, major in the lower */
constexpr std::uint32_t interface_revision = 0x004; /* in the upper half; firmware subminor below */
constexpr std::uint32_t command_queue_high = 0x010;
constexpr std::uint32_t command_queue_low = 0x014;
constexpr std::uint32_t command_doorbell = 0x018; /* bit n: entry n is ready */
constexpr std::uint32_t initializing = 0x1fc;     /* bit 31 */
constexpr std::uint32_t health_buffer = 0x200;
constexpr std::uint32_t health_buffer_end = 0x240;
constexpr std::uint32_t timer_high = 0x1000;
constexpr std::uint32_t timer_low = 0x1004;
constexpr std::uint32_t health_counter = 0x1010; /* bits 23..0; syndrome above */
constexpr std::uint32_t end = 0x4000;

constexpr std::uint32_t command_interface_revision = 5;
/*
 * Fields of command_queue_low. The sizes are the binary logarithms of the queue's number of entries
 * and of the size of an entry.
 */
constexpr std::uint32_t queue_address_mask = 0xfffff000;
constexpr Field nic_interface{0, 10, 8};
constexpr Field log_queue_size{0, 7, 4};
constexpr Field log_queue_stride{0, 3, 0};

/* Offsets of the health buffer's dwords that the card fills. */
constexpr std::uint32_t health_firmware = 0x230;
constexpr std::uint32_t health_hardware = 0x234;
constexpr std::uint32_t health_flags = 0x238; /* bit 31, with a syndrome: fatal */
constexpr std::uint32_t health_fatal = 1u << 31;
constexpr std::uint32_t health_syndrome = 0x23c;
constexpr Field health_syndrome_code{0, 23, 16};
} // namespace segment

/* Health syndromes. */
namespace health
{
constexpr std::uint32_t well = 0;
constexpr std::uint32_t unrecoverable = 0x08;
constexpr std::uint32_t eq_overrun = 0x0c;
constexpr std::uint32_t eq_error = 0x0d;
} // namespace health

/* Values of nic_interface. */
namespace nic_interface
{
constexpr std::uint32_t full = 0;
constexpr std::uint32_t disabled = 1;
constexpr std::uint32_t software_reset = 7;
} // namespace nic_interface

/* Offsets in a UAR page. */
namespace uar
{
constexpr std::uint32_t page_size = 4096;
constexpr std::uint32_t cq_doorbell = 0x20; /* two dwords; the card acts on the second one */
constexpr std::uint32_t eq_doorbell_arm = 0x40;
constexpr std::uint32_t eq_doorbell = 0x48;
/* Four BlueFlame registers, each with two halves. The first two dwords of a half are a doorbell. */
constexpr std::uint32_t blue_flame = 0x800;
constexpr std::uint32_t blue_flame_half = 0x100;

constexpr Field cq_sequence{0, 29, 28};
constexpr Field cq_solicited{0, 24, 24};
constexpr Field cq_consumer_index{0, 23, 0};
constexpr Field cq_number{0, 23, 0};
constexpr Field eq_number{0, 31, 24};
constexpr Field eq_consumer_index{0, 23, 0};
constexpr Field send_qpn{0, 31, 8}; /* in the second dword */
} // namespace uar

} // namespace hw::mlx5
