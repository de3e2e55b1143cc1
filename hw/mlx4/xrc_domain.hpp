// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// XRC domains (IBA annex A14).
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
 * A number, and what the card wants a target QP to have although it uses neither: a protection
 * domain, in which there is no memory, and a CQ, in which nothing completes.
 */
class XrcDomain
{
public:
	using Object = rdma::DriverObject<ib_xrcd, XrcDomain>;
	static XrcDomain &of(ib_xrcd *xrcd) { return Object::state(xrcd); }

	XrcDomain(Hca &hca, ib_xrcd &verbs);
	/* May sleep. */
	kern::Result<> start();

	u32 number() const { return number_.value(); }
	u32 pd_number() const { return pd_.value(); }
	u32 cqn() const { return cq_.number(); }

	/* Adds an SRQ to the domain, and removes it before its destruction. May sleep. */
	void add(Srq &srq);
	void remove(Srq &srq);
	/* A target QP that no CQ finds by its number any more: none still uses it after this. How many
	 * completions it leaves in them. May sleep. */
	u32 forget(Qp &target);

private:
	Hca &hca_;
	ib_cq cq_verbs_{};
	Number number_, pd_;
	Cq cq_;
	/* Outside of the locks of CQs. */
	kern::Mutex lock_;
	kern::List<Srq, &Srq::domain_node> srqs_ KERN_GUARDED_BY(lock_);
};

/* 0, which no domain has, for a QP without one. */
inline u32 xrcd_number(ib_xrcd *xrcd)
{
	return xrcd ? XrcDomain::of(xrcd).number() : 0;
}

} // namespace mlx4
