// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// An event queue and the interrupt it raises.
#pragma once
#include <kern/irq.hpp>
#include "eq.hpp"

namespace connectx {

class EventVector {
public:
	/* name: stays. May sleep. */
	static kern::Result<kern::Owned<EventVector>> create(const EqResources &resources, u32 eqn, u32 vector,
							     u32 log_entries, unsigned int irq, const char *name)
	{
		auto eq = TRY(Eq::create(resources, eqn, vector, log_entries));
		auto made = TRY(kern::make<EventVector>(kern::Gfp::kernel, std::move(eq)));
		TRY(made->irq_.request(irq, name));
		return made;
	}
	explicit EventVector(kern::Owned<Eq> eq) : eq_(std::move(eq)) {}
	~EventVector() { irq_.free(); }

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

} // namespace connectx
