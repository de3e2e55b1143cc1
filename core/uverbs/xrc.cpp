// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the XRC domains that programs share, and their target QPs (xrc.hpp).
#include "xrc.hpp"

namespace uverbs
{

kern::Result<ib_qp *> XrcDomain::create_target(ib_qp_init_attr &attr)
{
	kern::Guard guard(targets_lock_);
	/*
	 * The target QP outlives its creator, so its events are reported to the handles. The QP has
	 * an empty handler because a driver reports only the events of QPs with a handler.
	 */
	ib_qp_init_attr own = attr;
	own.event_handler = [](ib_event *, void *) {};
	own.qp_context = nullptr;
	ib_qp *const made = ib_create_qp(nullptr, &own);
	KERN_TRY_ERRNO(kern::pointer_error(made));
	attr.cap = own.cap;
	ib_qp_open_attr handle = {.event_handler = attr.event_handler,
				  .qp_context = attr.qp_context,
				  .qp_num = made->qp_num,
				  .qp_type = attr.qp_type};
	ib_qp *const opened = ib_open_qp(&ib_, &handle);
	if (const int error = kern::pointer_error(opened)) {
		KERN_WARN_ON(ib_destroy_qp(made));
		return kern::Error{error};
	}
	return opened;
}

kern::Result<ib_qp *> XrcDomain::open_target(ib_qp_open_attr &attr)
{
	kern::Guard guard(targets_lock_);
	ib_qp *const opened = ib_open_qp(&ib_, &attr);
	KERN_TRY_ERRNO(kern::pointer_error(opened));
	return opened;
}

void XrcDomain::close_target(ib_qp &handle)
{
	kern::Guard guard(targets_lock_);
	ib_qp *const target = handle.real_qp;

	KERN_WARN_ON(ib_close_qp(&handle));
	/*
	 * This fails if another handle exists. If the device fails to destroy the target, the
	 * target stays in the domain, whose destruction then fails.
	 */
	(void)ib_destroy_qp(target);
}

XrcDomain *XrcDomains::find(const kern::Inode &inode)
{
	for (XrcDomain &domain : domains_)
		if (domain.inode_ && domain.inode_ == inode)
			return &domain;
	return nullptr;
}

kern::Result<XrcDomain *> XrcDomains::open(ib_device &device, kern::Inode inode, Mode mode,
					   ib_udata &udata)
{
	kern::Guard guard(lock_);

	if (XrcDomain *const shared = inode ? find(inode) : nullptr) {
		if (mode == Mode::only_new)
			return kern::Error{-EINVAL};
		shared->users_++;
		return shared;
	}
	if (inode && mode == Mode::existing)
		return kern::Error{-EAGAIN};
	/*
	 * The domain and its target QPs belong to programs, so they must not have the permissions
	 * of the kernel's QPs.
	 */
	ib_xrcd *const made = ib_alloc_xrcd_user(&device, &udata);
	KERN_TRY_ERRNO(kern::pointer_error(made));
	auto *const domain = new (kern::Gfp::kernel_account) XrcDomain(*made, std::move(inode));
	if (!domain) {
		KERN_WARN_ON(ib_dealloc_xrcd(made));
		return kern::Error{-ENOMEM};
	}
	domains_.push_back(*domain);
	return domain;
}

kern::Result<> XrcDomains::close(XrcDomain &domain)
{
	{
		kern::Guard guard(lock_);
		if (domain.users_ > 1) {
			domain.users_--;
			return {};
		}
		KERN_TRY_ERRNO(ib_dealloc_xrcd(&domain.ib_));
		domain.node_.unlink();
	}
	/*
	 * Called without the lock, because dropping the last reference to the inode may wait for
	 * the file system.
	 */
	kern::destroy(&domain);
	return {};
}

} // namespace uverbs
