// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements event queues of an InfiniHost: creation, and dispatch of their entries.
#pragma once
#include <kern/budget.hpp>
#include <kern/dma.hpp>
#include <kern/mmio.hpp>
#include <hw/mellanox_icm/eqe.hpp>
#include "capabilities.hpp"
#include "family.hpp"

namespace mthca
{

/* The key for all memory, and its protection domain, which the driver's own queues use. */
struct OwnMemory {
	u32 lkey;
	u32 pd;
};

struct EqResources {
	CommandInterface &commands;
	struct device *dma_device;
	OwnMemory memory;
	IcmTable &contexts;
	const kern::Mmio &bar0;
	const Firmware &firmware;
	EventSink &sink;
};

class Eq
{
public:
	/*
	 * Creates a queue. vector: the MSI-X vector that it raises or, with by_pin, the interrupt
	 * pin. log_entries: log2 of its size. May sleep.
	 */
	static kern::Result<kern::Owned<Eq>> create(const EqResources &resources, u32 eqn,
						    u32 vector, bool by_pin, u32 log_entries);
	/* The queue's interrupt must be disabled. */
	~Eq();

	/*
	 * Handles all events, and arms the queue. Returns true if there were any events. Context:
	 * hard interrupt; code that polls because an interrupt may have been lost also calls it.
	 */
	bool interrupt();
	/* Arms the queue for the first time; interrupt() does so later. */
	void arm() { arm_register_.write32(0, arm_value_); }

	u32 number() const { return eqn_; }
	u32 vector() const { return vector_; }
	u64 interrupts() const { return interrupts_; }
	u64 events() const { return consumer_; }

	/*
	 * The queue's entries. The card does not wait for free entries, so an object that can raise
	 * events must reserve entries before it is created. Errors of a reservation: ENOMEM.
	 */
	kern::Budget &budget() { return budget_; }

private:
	Eq(const EqResources &resources, u32 eqn, u32 vector, u32 log_entries);
	void report() { index_register_.write_be32(0, consumer_); }

	/* The consumer index must be reported well before the queue is full. */
	static constexpr u32 report_interval = 128;

	u8 *entries_ = nullptr;
	u32 consumer_ = 0;
	u32 mask_;
	EventSink &sink_;
	kern::Mmio index_register_, arm_register_;
	// In big-endian format.
	u32 arm_value_;
	u64 interrupts_ = 0;

	CommandInterface &commands_;
	u32 eqn_;
	u32 vector_;
	bool live_ = false;
	kern::DmaBuffer buffer_;
	IcmHold context_;
	kern::Budget budget_;
};

} // namespace mthca
