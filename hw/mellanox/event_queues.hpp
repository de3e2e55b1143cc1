// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// All event queues of a card.
#pragma once
#include <kern/abi/debug.h>
#include <kern/budget.hpp>
#include <kern/debugfs.hpp>
#include <kern/log.hpp>
#include <kern/pci.hpp>
#include "event_vector.hpp"

namespace mellanox
{

/*
 * The first is for all that is no completion: objects, ports, the answers of commands. The others
 * are for completions, each with a vector and a CPU of its own. Without MSI-X there is one of
 * these, and all share the interrupt pin.
 */
template<class Eq>
class EventQueues
{
public:
	/* What the interrupts are called. They stay. */
	struct Names {
		const char *line, *async, *completion;
	};
	/*
	 * Where an interrupt at the pin is cleared: a bit for each of 64, the first 32 in the
	 * register's second half.
	 */
	struct ClearRegister {
		const kern::Mmio &bar;
		u64 offset;
	};

	/*
	 * completions: vectors that are wanted for them, 0 to do without MSI-X. available: queues
	 * that the card has. query_pin(): which pin it raises. make(i, vector, by_pin,
	 * log_entries): makes queue i. May sleep. Errors: those of both, and of the kernel's
	 * interrupts.
	 */
	template<class QueryPin, class Make>
	kern::Result<> create(kern::pci::Device pci, u32 completions, u32 available,
			      const Names &names, const ClearRegister &clear, QueryPin query_pin,
			      Make make);
	/* Room in the first for the events that belong to no object. Errors: ENOMEM. */
	kern::Result<> take_own_room(u32 events)
	{
		own_events_ = TRY(async().room().take(events));
		return {};
	}
	void arm()
	{
		for (const auto &vector : vectors_)
			vector->eq().arm();
	}
	/* Interrupts end, and queues. May sleep. */
	void stop()
	{
		line_.reset();
		own_events_ = {};
		vectors_ = {};
		interrupts_ = {};
	}

	/* Whether there is the first. */
	bool begun() const { return vectors_.size() && vectors_[0]; }
	Eq &async() { return vectors_[0]->eq(); }
	Eq &completion(unsigned int vector) { return vectors_[1 + vector]->eq(); }
	unsigned int completions() const { return static_cast<unsigned int>(vectors_.size()) - 1; }
	/* Waits for every handler that runs now. May sleep. */
	void synchronize()
	{
		for (const auto &vector : vectors_)
			vector->synchronize();
		if (line_)
			line_->synchronize();
	}
	/* For debugfs. */
	void dump(kern::debugfs::Output &out)
	{
		for (const auto &vector : vectors_)
			out.print("EQ %u: vector %u, %lu interrupts, %lu events\n",
				  vector->eq().number(), vector->eq().vector(),
				  vector->eq().interrupts(), vector->eq().events());
	}

private:
	/*
	 * Half a megabyte: room for the events of nearly four thousand QPs, each with a CQ of its
	 * own (Eq::room()).
	 */
	static constexpr u32 log_async_events = 14;
	static constexpr u32 log_completion_events = 13;

	typename InterruptLine<Eq>::Vectors vectors_;
	kern::Portion own_events_;
	// Where there is but the interrupt pin; before the queues go.
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
		interrupts_ = TRY(kern::pci::InterruptVectors::create_line(pci));
		pin = TRY(query_pin());
	}

	vectors_ = TRY(kern::make_array<kern::Owned<EventVector<Eq>>>(
		kern::Gfp::kernel, msix ? interrupts_.count() : 2));
	for (unsigned int i = 0; i < vectors_.size(); i++) {
		vectors_[i] = TRY(make(i, msix ? i : pin, !msix,
				       i ? log_completion_events : log_async_events));
		if (!msix)
			continue;
		TRY(vectors_[i]->request(interrupts_.irq(i), i ? names.completion : names.async));
		if (i)
			vectors_[i]->set_cpu((i - 1) % kern_cpu_count());
	}
	if (msix)
		return {};
	line_ = TRY(kern::make<InterruptLine<Eq>>(kern::Gfp::kernel, vectors_, clear.bar,
						  clear.offset + (pin < 32 ? 4 : 0),
						  1u << (pin & 31)));
	TRY(line_->request(interrupts_.irq(0), names.line));
	kern_dev_info(pci.dev(), "no MSI-X; all queues share the interrupt pin\n");
	return {};
}

} // namespace mellanox
