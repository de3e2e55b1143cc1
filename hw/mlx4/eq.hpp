// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements event queues of a ConnectX: creation, and dispatch of their entries.
#pragma once
#include <kern/budget.hpp>
#include <kern/mmio.hpp>
#include <kern/pci.hpp>
#include <hw/mlx4/eqe.hpp>
#include "family.hpp"

namespace mlx4
{

struct EqResources {
	CommandInterface &commands;
	struct device *dma_device;
	MttTable &mtts;
	IcmTable &contexts;
	IcmTable &protection;
	const kern::Mmio &uar;
	EventSink &sink;
};

class Eq
{
public:
	/*
	 * Creates a queue. log_entries: log2 of its size. vector: the MSI-X vector that it raises,
	 * or the interrupt pin. May sleep.
	 */
	static kern::Result<kern::Owned<Eq>> create(const EqResources &resources, u32 eqn,
						    u32 vector, u32 log_entries);
	/* The queue's interrupt must be disabled. */
	~Eq();

	/*
	 * Handles all events, and arms the queue. Returns true if there were any events. Context:
	 * hard interrupt; code that polls because an interrupt may have been lost also calls it.
	 */
	bool interrupt();
	/* Arms the queue for the first time; interrupt() does so later. */
	void arm() { ring(true); }

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
	void ring(bool arm)
	{
		using namespace wire::uar;
		uar_.write_be32(doorbell_,
				eq_doorbell_arm.in(arm) | eq_doorbell_consumer_index.in(consumer_));
	}

	/* The consumer index must be reported well before the queue is full. */
	static constexpr u32 report_interval = 128;

	u8 *entries_;
	u32 consumer_ = 0;
	u32 log_entries_;
	EventSink &sink_;
	const kern::Mmio &uar_;
	size_t doorbell_;
	u64 interrupts_ = 0;

	CommandInterface &commands_;
	u32 eqn_;
	u32 vector_;
	bool live_ = false;
	QueueBuffer buffer_;
	IcmHold context_;
	IcmHold protection_;
	kern::Budget budget_;
};

} // namespace mlx4
