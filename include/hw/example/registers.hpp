// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The complete interface of the example device, shared by its model (tools/cards/example) and its
 * driver (hw/example).
 *
 * The device copies bytes within its guest's memory. It has one register, one queue of requests in
 * memory, and one interrupt (MSI-X vector 0). All numbers are little-endian.
 *
 * A write to the doorbell has the address of the queue, and the number of requests posted since
 * that address was first written, modulo `counts`. The device executes the requests in order,
 * writes a status to each, and raises an interrupt, perhaps one for several.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace hw::example
{

inline constexpr uint16_t pci_vendor_id = 0x5745;
inline constexpr uint16_t pci_device_id = 0x0001;

/* BAR 0: the register, 64 bits, accessed whole. */
inline constexpr size_t register_bar_size = 4096;
inline constexpr size_t doorbell = 0;

/* Written: the queue's address, whose low bits are 0, and the count in their place. */
inline constexpr uint64_t counts = 4096;
inline constexpr uint64_t count_mask = counts - 1;

/* Read: the state in the low byte. */
enum class State : uint8_t {
	idle = 0, /* no queue: after power-on, a reset, and when the device may not access memory */
	running = 1, /* has one */
	failed =
		2, /* the driver has broken a rule, or the queue is out of reach; until a reset or until bus mastering ends */
};

/* BAR 2: what is MSI-X's. */
inline constexpr size_t msix_bar_size = 4096;
inline constexpr size_t msix_pba_offset = 2048;

/* size of the ring, and maximum number of outstanding requests */
inline constexpr uint32_t queue_entries = 64;
inline constexpr uint32_t most_bytes = 4096; /* maximum size of a request */

enum class Status : uint32_t {
	posted = 0,
	done = 1,
	bad_length = 2, /* 0, or more than most_bytes */
	no_memory = 3,  /* the device does not reach the source or the destination */
};

struct Request {
	uint64_t source;
	uint64_t destination;
	uint32_t length;
	Status status; /* the device's, written last */
	uint64_t reserved;
};
static_assert(sizeof(Request) == 32 && offsetof(Request, status) == 20);
static_assert(queue_entries * sizeof(Request) <= counts,
	      "the queue lies in one page, which the doorbell names");

} // namespace hw::example
