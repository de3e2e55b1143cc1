// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Installs an interrupt handler, bool T::handler(), which returns true if its device has raised the
// interrupt. The handler runs in hard interrupt context, and never in parallel with itself.
#pragma once
#include <kern/abi/pci.h>
#include <kern/method.hpp>
#include <kern/result.hpp>

namespace kern
{

class Irq
{
public:
	/*
	 * The handler may be called as soon as request() has been called, and until free() or the
	 * destructor has returned.
	 */
	template<auto Member, class T>
	Irq(Method<Member>, T *object)
	{
		item_.handler = [](kern_irq_item *item) -> bool {
			return (static_cast<T *>(item->context)->*Member)();
		};
		item_.context = object;
	}
	~Irq() { free(); }
	Irq(const Irq &) = delete;
	Irq &operator=(const Irq &) = delete;

	/*
	 * @name must stay valid. @shared: the interrupt may be shared with other handlers. May
	 * sleep. Errors: those of the kernel's request_irq().
	 */
	Result<> request(unsigned int irq, const char *name, bool shared = false)
	{
		KERN_TRY_ERRNO(kern_irq_request(&item_, irq, name, shared));
		requested_ = true;
		return {};
	}
	/* Frees the interrupt, and waits for a running handler. May sleep. */
	void free()
	{
		if (requested_)
			kern_irq_free(&item_);
		requested_ = false;
	}
	/* Waits for a running handler. May sleep. */
	void synchronize()
	{
		if (requested_)
			kern_irq_synchronize(&item_);
	}
	void set_affinity_hint(unsigned int cpu) { kern_irq_set_affinity_hint(&item_, cpu); }

private:
	kern_irq_item item_{};
	bool requested_ = false;
};

} // namespace kern
