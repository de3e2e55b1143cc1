// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates the event queues of a card. Their sizes suffice for the events of all objects, so that no
// queue can overflow.
#pragma once
#include <kern/abi/debug.h>
#include <kern/budget.hpp>
#include <kern/debugfs.hpp>
#include <kern/log.hpp>
#include <kern/pci.hpp>
#include <kern/shares.hpp>
#include <kern/user.hpp>
#include "event_vector.hpp"

namespace mellanox_icm
{

/*
 * The maximum numbers of events of an object that can be in a queue at the same time. A QP raises
 * an event for its peer's first packet, one for its error, and one for its last request from an
 * SRQ. Before any of these can be raised again, the driver must issue commands, and the completions
 * of these commands are behind the first event in the queue. The same holds for the event that a
 * command requests (SQD). An SRQ raises one event each time that its limit is set, and one for its
 * error. A CQ raises one completion event that is being handled and one for the arming that the
 * handler requests. It raises one error event, after which it stays in error.
 */
constexpr u32 qp_events = 3, srq_events = 2, cq_events = 2, cq_errors = 1;

/* Entries of an event queue that are reserved for an object's events until it is destroyed. */
struct EventCapacity {
	kern::BudgetCharge entries;
	/* Charged to the user, if it is a program's object. */
	kern::Charge charge;
};

/*
 * Returns log2 of the size of each of @queues event queues, on a host with @host_pages of memory.
 * An event queue that cannot overflow has entries for the events of all objects, so its size limits
 * the number of objects. All queues together use at most 1/32 of the memory. Context: any.
 */
constexpr u32 log_events_for(u64 host_pages, u32 queues)
{
	constexpr u32 least = 13, most = 17, log_per_page = 7;
	u32 log = least;

	while (log < most && u64{queues} << (log + 1 - log_per_page) <= host_pages / 32)
		log++;
	return log;
}

/*
 * The first queue is for all events except completions: those of objects, ports and commands. The
 * others are for completions, each with its own vector and CPU. Without MSI-X there is only one
 * queue for completions, and both queues share the interrupt pin.
 */
template<class Eq>
class EventQueues
{
public:
	/* Names of the interrupts. They must outlive the queues. */
	struct Names {
		const char *line, *async, *completion;
	};
	/*
	 * The register that clears an interrupt of the pin. It has a bit for each of 64 pins, with
	 * the first 32 in its second dword.
	 */
	struct ClearRegister {
		const kern::Mmio &bar;
		u64 offset;
	};

	/*
	 * Creates the queues and their interrupts. completions: the wanted number of vectors for
	 * completions, or 0 to do without MSI-X. available: the number of queues that the card has.
	 * query_pin(): returns the number of the card's interrupt pin. make(i, vector, by_pin,
	 * log_entries): creates queue i. May sleep. Errors: those of query_pin() and make(), and of
	 * the kernel's interrupts.
	 */
	template<class QueryPin, class Make>
	kern::Result<> create(kern::pci::Device pci, u32 completions, u32 available,
			      const Names &names, const ClearRegister &clear, QueryPin query_pin,
			      Make make);
	/*
	 * Reserves entries in the first queue for the events that belong to no object. Errors:
	 * ENOMEM.
	 */
	kern::Result<> reserve_own_entries(u32 events)
	{
		own_events_ = KERN_TRY(async().budget().take(events));
		async_for_programs_ = KERN_TRY(kern::make<kern::SharedPool>(
			kern::Gfp::kernel, async_entries_for_programs(), -EDQUOT,
			KERN_LOCK_CLASS("mellanox.event_shares")));
		return {};
	}
	/*
	 * Reserve entries for an object's events in the first queue, or in that of a completion
	 * vector. All programs together leave a sixteenth of each queue to the kernel. In the first
	 * queue, one user must leave a part to other users (EDQUOT); in the others, the limits on
	 * CQs ensure this. May sleep. Errors: ENOMEM, EDQUOT.
	 */
	kern::Result<EventCapacity> reserve_async_entries(u32 events, bool for_program)
	{
		EventCapacity capacity;
		if (for_program)
			capacity.charge =
				KERN_TRY(async_for_programs_->take(kern_current_user(), events));
		capacity.entries = KERN_TRY(reserve_entries(async(), events, for_program));
		return capacity;
	}
	kern::Result<kern::BudgetCharge> reserve_completion_entries(unsigned int vector, u32 events,
								    bool for_program)
	{
		return reserve_entries(completion(vector), events, for_program);
	}
	/*
	 * The number of entries that programs' objects can use if the kernel has used as many as
	 * its reserve.
	 */
	u32 async_entries_for_programs()
	{
		const u32 all = async().budget().limit();
		return all - 2 * reserve(all) - own_events_.amount();
	}
	u32 completion_entries_for_programs()
	{
		u32 least = ~0u;
		for (unsigned int i = 0; i < completions(); i++) {
			const u32 all = completion(i).budget().limit();
			if (all - 2 * reserve(all) < least)
				least = all - 2 * reserve(all);
		}
		return least;
	}
	void arm()
	{
		for (const auto &vector : vectors_)
			vector->eq().arm();
	}
	/* Releases the interrupts and then the queues. May sleep. */
	void stop()
	{
		line_.reset();
		own_events_ = {};
		async_for_programs_.reset();
		vectors_ = {};
		interrupts_ = {};
	}

	/* Returns true if the first queue exists. */
	bool has_async_queue() const { return vectors_.size() && vectors_[0]; }
	Eq &async() { return vectors_[0]->eq(); }
	Eq &completion(unsigned int vector) { return vectors_[1 + vector]->eq(); }
	unsigned int completions() const { return static_cast<unsigned int>(vectors_.size()) - 1; }
	/* Waits until all handlers that are running now have returned. May sleep. */
	void synchronize()
	{
		for (const auto &vector : vectors_)
			vector->synchronize();
		if (line_)
			line_->synchronize();
	}
	/* Prints the queues, for debugfs. */
	void dump(kern::debugfs::Output &out)
	{
		for (const auto &vector : vectors_)
			out.print("EQ %u: vector %u, %lu interrupts, %lu events\n",
				  vector->eq().number(), vector->eq().vector(),
				  vector->eq().interrupts(), vector->eq().events());
	}

private:
	static constexpr u32 reserve(u32 entries) { return entries / 16; }
	static kern::Result<kern::BudgetCharge> reserve_entries(Eq &eq, u32 events,
								bool for_program)
	{
		return eq.budget().take(events, for_program ? reserve(eq.budget().limit()) : 0);
	}
	/*
	 * Creates a queue, whose memory is one block. Tries a smaller queue as long as memory
	 * allocation fails.
	 */
	template<class Make>
	static kern::Result<kern::Owned<EventVector<Eq>>> make_largest(u32 log_entries, Make make)
	{
		constexpr u32 least = 13;
		while (true) {
			auto made = make(log_entries);
			if (made || made.error() != -ENOMEM || log_entries <= least)
				return made;
			log_entries--;
		}
	}

	typename InterruptLine<Eq>::Vectors vectors_;
	kern::BudgetCharge own_events_;
	kern::Owned<kern::SharedPool> async_for_programs_;
	// Exists if there is only the interrupt pin. Destroyed before the queues.
	kern::Owned<InterruptLine<Eq>> line_;
	kern::pci::InterruptVectors interrupts_;
};

template<class Eq>
template<class QueryPin, class Make>
kern::Result<> EventQueues<Eq>::create(kern::pci::Device pci, u32 completions, u32 available,
				       const Names &names, const ClearRegister &clear,
				       QueryPin query_pin, Make make)
{
	const u32 vectors = completions < kern_cpu_count() ? completions : kern_cpu_count();
	const u32 wanted = vectors + 1;
	if (vectors)
		if (auto got = kern::pci::InterruptVectors::create(
			    pci, 2, wanted < available ? wanted : available))
			interrupts_ = got.take();
	const bool msix = interrupts_.count();
	u32 pin = 0;
	if (!msix) {
		interrupts_ = KERN_TRY(kern::pci::InterruptVectors::create_line(pci));
		pin = KERN_TRY(query_pin());
	}

	vectors_ = KERN_TRY(kern::make_array<kern::Owned<EventVector<Eq>>>(
		kern::Gfp::kernel, msix ? interrupts_.count() : 2));
	const u32 log_entries = log_events_for(kern_ram_pages(), static_cast<u32>(vectors_.size()));
	for (unsigned int i = 0; i < vectors_.size(); i++) {
		vectors_[i] = KERN_TRY(make_largest(
			log_entries, [&](u32 log) { return make(i, msix ? i : pin, !msix, log); }));
		if (!msix)
			continue;
		KERN_TRY(vectors_[i]->request(interrupts_.irq(i),
					      i ? names.completion : names.async));
		if (i)
			vectors_[i]->set_cpu((i - 1) % kern_cpu_count());
	}
	if (msix)
		return {};
	line_ = KERN_TRY(kern::make<InterruptLine<Eq>>(kern::Gfp::kernel, vectors_, clear.bar,
						       clear.offset + (pin < 32 ? 4 : 0),
						       1u << (pin & 31)));
	KERN_TRY(line_->request(interrupts_.irq(0), names.line));
	kern_dev_info(pci.dev(), "no MSI-X; all queues share the interrupt pin\n");
	return {};
}

} // namespace mellanox_icm
