// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines an event queue with the interrupt that it raises.
#pragma once
#include <kern/irq.hpp>
#include <kern/memory.hpp>
#include <kern/mmio.hpp>

namespace mellanox_icm
{

/* Receives events. Context: hard interrupt. */
class EventSink
{
public:
	virtual void completion_event(u32 cqn) = 0;
	/*
	 * Called for all other events. eqe: 32 bytes that the card may still change, so they must
	 * be read only once.
	 */
	virtual void async_event(const u8 *eqe) = 0;

protected:
	~EventSink() = default;
};

/* An event queue with its own vector, or without one if all queues share the interrupt pin. */
template<class Eq>
class EventVector
{
public:
	/* The arguments are those of Eq::create(). May sleep. */
	template<class... Arguments>
	static kern::Result<kern::Owned<EventVector>> create(const Arguments &...arguments)
	{
		auto eq = KERN_TRY(Eq::create(arguments...));
		return kern::make<EventVector>(kern::Gfp::kernel, std::move(eq));
	}
	explicit EventVector(kern::Owned<Eq> eq) : eq_(std::move(eq)) {}
	~EventVector() { irq_.free(); }

	/* Requests the vector's interrupt. name: must outlive this object. May sleep. */
	kern::Result<> request(unsigned int irq, const char *name)
	{
		return irq_.request(irq, name);
	}

	Eq &eq() { return *eq_; }
	void synchronize() { irq_.synchronize(); }
	void set_cpu(unsigned int cpu) { irq_.set_affinity_hint(cpu); }

private:
	bool interrupt()
	{
		eq_->interrupt();
		return true;
	}

	kern::Owned<Eq> eq_;
	kern::Irq irq_{kern::method<&EventVector::interrupt>, this};
};

/*
 * The interrupt pin, which all event queues share. It stays asserted until a register is written.
 * Events that are in the queues at that time raise no other interrupt, so the register must be
 * written before the queues are read.
 */
template<class Eq>
class InterruptLine
{
public:
	using Vectors = kern::OwnedArray<kern::Owned<EventVector<Eq>>>;

	/*
	 * clear: `mask` is written there at `offset`. vectors: all queues exist, and have no
	 * interrupts of their own.
	 */
	InterruptLine(Vectors &vectors, const kern::Mmio &clear, u64 offset, u32 mask)
	    : vectors_(vectors), clear_(clear), offset_(offset), mask_(mask)
	{
	}
	~InterruptLine() { irq_.free(); }

	/* Requests the interrupt. name: must outlive this object. May sleep. */
	kern::Result<> request(unsigned int irq, const char *name)
	{
		return irq_.request(irq, name, true);
	}
	void synchronize() { irq_.synchronize(); }

private:
	bool interrupt()
	{
		clear_.write_be32(offset_, mask_);
		bool ours = false;
		for (const auto &vector : vectors_)
			ours = vector->eq().interrupt() || ours;
		return ours;
	}

	Vectors &vectors_;
	const kern::Mmio &clear_;
	u64 offset_;
	u32 mask_;
	kern::Irq irq_{kern::method<&InterruptLine::interrupt>, this};
};

} // namespace mellanox_icm
