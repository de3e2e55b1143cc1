// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the Ammasso 1100's registers and its Ethernet rings, for its model (tools/cards/amso1100)
 * and its driver (hw/amso1100).
 *
 * BAR 0 is little-endian. All of BAR 4 is big-endian. In host memory, only the header before a
 * received frame is little-endian.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace hw::amso1100
{

inline constexpr uint16_t pci_vendor_id = 0x18b8;
inline constexpr uint16_t pci_device_id = 0xb001;

/*
 * The sizes of the BARs, which are also the minimum for a driver. The purpose of BAR 2 on the real
 * board is unknown.
 */
inline constexpr uint64_t bar0_size = 16 << 10;
inline constexpr uint64_t bar2_size = 2 << 20;
inline constexpr uint64_t bar4_size = 256 << 20;

/*
 * The real board has only an interrupt pin. The emulated one also supports MSI-X, with one vector
 * for each function. The MSI-X table and pending bits are in BAR 2.
 */
enum class Vector : uint8_t { network, rnic };
inline constexpr unsigned int vectors = 2;
inline constexpr uint32_t vector_table = 0;
inline constexpr uint32_t pending_vectors = 0x1000;

/* BAR 0: registers of 32 bits. */
namespace reg
{
inline constexpr size_t hisr = 0x0000;
inline constexpr size_t disr = 0x0004; /* the RNIC has queued hints; cleared by writing ones */
inline constexpr size_t himr = 0x0008;
inline constexpr size_t dimr = 0x000c;
/* status of the Ethernet function; cleared by writing ones */
inline constexpr size_t nisr0 = 0x0010;
inline constexpr size_t nisr1 = 0x0014;
inline constexpr size_t nimr0 = 0x0018; /* ones mask interrupts */
inline constexpr size_t nimr1 = 0x001c;
inline constexpr size_t idis = 0x0020; /* not 0: the pin is disabled for both functions */
inline constexpr size_t host_hint = 0x0100;
inline constexpr size_t adapter_hint = 0x2000;
} // namespace reg

inline constexpr uint32_t disr_hints = 1;
inline constexpr uint32_t nisr_receive = 1u << 8;
inline constexpr uint32_t nisr_transmit = 1u << 17;
inline constexpr uint32_t hint_none = 1u << 31; /* host_hint: empty; adapter_hint: full */

/* BAR 4. Offsets that the card reports are relative to the register page. */
inline constexpr uint64_t page_base = 0x10000;
inline constexpr uint64_t receive_ring = 0x08000000;
inline constexpr uint64_t transmit_ring = 0x08001000;
inline constexpr uint64_t receive_index = 0x08001ffc;
inline constexpr uint64_t rings_end = 0x08002000;

/* Addresses in the card's own address space, by which the register page refers to descriptors. */
inline constexpr uint32_t receive_ring_address = 0xffffc000;
inline constexpr uint32_t transmit_ring_address = 0xffffd000;

/* The register page: offsets in it. */
namespace page
{
inline constexpr size_t magic = 0x00; /* "CEPHEUS" and a zero byte */
inline constexpr size_t version = 0x08;
inline constexpr size_t ivn = 0x0c;
inline constexpr size_t window_size = 0x10;
inline constexpr size_t q0_q_size = 0x14;
inline constexpr size_t q0_msg_size = 0x18;
inline constexpr size_t q0_pool_start = 0x1c;
inline constexpr size_t q0_shared = 0x20;
inline constexpr size_t q1_q_size = 0x24;
inline constexpr size_t q1_msg_size = 0x28;
inline constexpr size_t q1_pool_start = 0x2c;
inline constexpr size_t q1_shared = 0x30;
inline constexpr size_t q2_q_size = 0x34;
inline constexpr size_t q2_msg_size = 0x38;
inline constexpr size_t q2_pool_start = 0x3c;
inline constexpr size_t q2_shared = 0x40;
inline constexpr size_t host_address = 0x4c; /* six bytes: the address of the Ethernet function */
inline constexpr size_t rdma_address = 0x54; /* address of the card's own network stack */
inline constexpr size_t next_transmit = 0x68;
inline constexpr size_t next_receive = 0x6c;
inline constexpr size_t size = 0x74;
} // namespace page

inline constexpr char page_magic[8] = "CEPHEUS";
inline constexpr uint32_t interface_version = 4;
inline constexpr uint32_t message_version = 18;

/* Transmit ring. */
inline constexpr unsigned transmit_entries = 341;
inline constexpr unsigned most_transmits = transmit_entries - 1;
enum class TransmitFlags : uint16_t {
	done = 0,
	ready = 1,
	unused = 2,
};
namespace transmit
{
inline constexpr size_t flags = 0;
inline constexpr size_t length = 2;
inline constexpr size_t address = 4; /* 64 bits, a multiple of four */
inline constexpr size_t size = 12;
} // namespace transmit
static_assert(transmit_ring + transmit_entries * transmit::size == receive_index);

/* Receive ring. */
inline constexpr unsigned receive_entries = 256;
enum class ReceiveFlags : uint16_t {
	unused = 0,
	ready = 1,
	done = 2,
};
namespace receive
{
inline constexpr size_t flags = 0;
inline constexpr size_t status = 2;
inline constexpr size_t count = 4;
inline constexpr size_t length = 6; /* space for a frame: size of the buffer minus the header */
inline constexpr size_t address = 8;
inline constexpr size_t size = 16;
} // namespace receive
static_assert(receive_ring + receive_entries * receive::size == transmit_ring);

/*
 * Written with the index, this bit makes the card forget all buffers. The card responds by writing
 * its own index, without the bit.
 */
inline constexpr uint32_t receive_quiesce = 1u << 31;

enum class ReceiveStatus : uint16_t {
	none = 0,
	good = 1,
	overflow = 2,
};

/* Precedes a received frame in host memory. Little-endian. */
struct ReceiveHeader {
	uint16_t flags; /* ReceiveFlags::done; written last */
	uint16_t status;
	uint16_t length; /* length of the frame, without this header and without the FCS */
	uint16_t reserved;
};
static_assert(sizeof(ReceiveHeader) == 8 && offsetof(ReceiveHeader, length) == 4);

inline constexpr unsigned least_mtu = 60;
inline constexpr unsigned most_mtu = 9000;

} // namespace hw::amso1100
