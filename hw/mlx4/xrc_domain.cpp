// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "xrc_domain.hpp"

namespace mlx4
{

XrcDomain::XrcDomain(Hca &hca, ib_xrcd &verbs)
    : hca_(hca), cq_verbs_{.device = verbs.device, .comp_handler = [](ib_cq *, void *) {}},
      cq_(hca, cq_verbs_), lock_(KERN_LOCK_CLASS("mlx4.xrc_domain"))
{
}

kern::Result<> XrcDomain::start()
{
	number_ = KERN_TRY(Number::create(hca_.xrcdns()));
	pd_ = KERN_TRY(Number::create(hca_.pdns()));
	return cq_.start({.cqe = 1, .comp_vector = 0, .flags = 0});
}

// An SRQ is in the list as long as its CQ can find it, so detach_target() reaches every CQ that may
// have an entry of the target.

void XrcDomain::add(Srq &srq)
{
	kern::Guard guard(lock_);
	srqs_.push_back(srq);
	Cq::of(srq.verbs().ext.cq).attach(srq, number());
}

void XrcDomain::remove(Srq &srq)
{
	kern::Guard guard(lock_);
	Cq::of(srq.verbs().ext.cq).detach(srq);
	srq.domain_node.unlink();
}

u32 XrcDomain::detach_target(Qp &target)
{
	u32 left = 0;
	kern::Guard guard(lock_);
	for (Srq &srq : srqs_)
		left += Cq::of(srq.verbs().ext.cq).detach_target(target);
	return left;
}

} // namespace mlx4
