// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements XRC domains (IBA annex A14).
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include "cq.hpp"
#include "family.hpp"
#include "srq.hpp"

namespace mlx4
{

/*
 * A domain number, and two objects that the card requires for a target QP although the QP does not
 * use them: a protection domain without memory, and a CQ in which nothing completes.
 */
class XrcDomain
{
public:
	using Object = rdma::DriverObject<ib_xrcd, XrcDomain>;
	static XrcDomain &of(ib_xrcd *xrcd) { return Object::state(xrcd); }

	XrcDomain(Hca &hca, ib_xrcd &verbs);
	/* Errors: ENOSPC, ENOMEM, those of commands. May sleep. */
	kern::Result<> start();

	u32 number() const { return number_.value(); }
	u32 pd_number() const { return pd_.value(); }
	u32 cqn() const { return cq_.number(); }

	/* Add an SRQ to the domain; remove it before it is destroyed. May sleep. */
	void add(Srq &srq);
	void remove(Srq &srq);
	/*
	 * Removes a target QP, which must not be found by its number any more, from the CQs of all
	 * SRQs. No CQ uses it afterwards. Returns the number of completions that remain. May sleep.
	 */
	u32 detach_target(Qp &target);

private:
	Hca &hca_;
	ib_cq cq_verbs_{};
	Number number_, pd_;
	Cq cq_;
	/* Taken outside the locks of CQs. */
	kern::Mutex lock_;
	kern::List<Srq, &Srq::domain_node> srqs_ KERN_GUARDED_BY(lock_);
};

/* Returns the number of an XRC domain. A QP without one gets 0, which no domain has. */
inline u32 xrcd_number(ib_xrcd *xrcd)
{
	return xrcd ? XrcDomain::of(xrcd).number() : 0;
}

} // namespace mlx4
