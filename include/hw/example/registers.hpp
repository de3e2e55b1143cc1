// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the complete interface of the example device, which its model (tools/cards/example) and
 * its driver (hw/example) share.
 *
 * The device copies bytes within its guest's memory. It has one register, one queue of requests in
 * memory, and one interrupt (MSI-X vector 0). All numbers are little-endian.
 *
 * The driver writes 64 bits to the doorbell: the address of the queue and, in the low 12 bits, the
 * number of requests that it has posted since it first wrote that address, modulo 4096. The device
 * executes the requests in order, writes a status to each, and raises an interrupt, perhaps one for
 * several requests.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace hw::example
{

inline constexpr uint16_t pci_vendor_id = 0x5745;
inline constexpr uint16_t pci_device_id = 0x0001;

/* BAR 0: one register of 64 bits, which must be accessed as a whole. */
inline constexpr size_t register_bar_size = 4096;
inline constexpr size_t doorbell = 0;

/*
 * A write has the queue's address, which is a multiple of `counts`, and the count in its low bits.
 */
inline constexpr uint64_t counts = 4096;
inline constexpr uint64_t count_mask = counts - 1;

/* A read returns the state in the low byte. */
enum class State : uint8_t {
	/* no queue: after power-on or a reset, and while bus mastering is off */
	idle = 0,
	/* the device has a queue */
	running = 1,
	/*
	 * The driver broke a rule, or the device cannot access the queue. Ends with a reset, or
	 * when bus mastering is turned off.
	 */
	failed = 2,
};

/* BAR 2: the MSI-X table and PBA. */
inline constexpr size_t msix_bar_size = 4096;
inline constexpr size_t msix_pba_offset = 2048;

/* The size of the ring, which is the maximum number of outstanding requests. */
inline constexpr uint32_t queue_entries = 64;
inline constexpr uint32_t most_bytes = 4096; /* maximum size of a request */

enum class Status : uint32_t {
	posted = 0,
	done = 1,
	bad_length = 2, /* 0, or more than most_bytes */
	no_memory = 3,  /* the device cannot access the source or the destination */
};

struct Request {
	uint64_t source;
	uint64_t destination;
	uint32_t length;
	Status status; /* written by the device, after everything else */
	uint64_t reserved;
};
static_assert(sizeof(Request) == 32 && offsetof(Request, status) == 20);
static_assert(queue_entries * sizeof(Request) <= counts,
	      "the queue fits into one page, whose address is in the doorbell");

} // namespace hw::example
