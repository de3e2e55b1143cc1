// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// XRC domains and their target QPs.
#include "xrc.hpp"

namespace uverbs
{

kern::Result<ib_qp *> XrcDomain::create_target(ib_qp_init_attr &attr)
{
	kern::Guard guard(targets_lock_);
	/*
	 * It outlives its creator, so its events go to the files that have a handle. A driver
	 * reports events only of QPs with a handler.
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
	 * The target is busy as long as another handle exists. A target that the device fails to
	 * destroy also keeps the domain, whose destruction then reports it.
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
	 * The domain and the targets in it belong to a program, so they do not have the permissions
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
	/* Without the lock: the last to hold a file may have to wait for its file system. */
	kern::destroy(&domain);
	return {};
}

} // namespace uverbs
