// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * XRC domains (IBA annex A14). Programs share a domain through a file in any file system: all that
 * open a domain by the same file get the same one. It exists while any program has it open.
 *
 * Its target QPs belong to no single program: each program that uses one, including its creator,
 * has a handle on it, and the QP is destroyed with the last handle.
 */
#pragma once
#include <kern/file.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <rdma/ib_verbs.h>
#include "object.hpp"

namespace uverbs
{

class XrcDomain
{
public:
	/*
	 * A handle on a new target QP, or on that of a number. Context: process. Errors: those of
	 * ib_create_qp(), ib_open_qp().
	 */
	kern::Result<ib_qp *> create_target(ib_qp_init_attr &attr);
	kern::Result<ib_qp *> open_target(ib_qp_open_attr &attr);
	/* Closes a handle. Context: process. */
	void close_target(ib_qp &handle);

	ib_xrcd &ib() { return ib_; }

private:
	friend class XrcDomains;
	XrcDomain(ib_xrcd &ib, kern::Inode inode) : ib_(ib), inode_(std::move(inode)) {}

	ib_xrcd &ib_;
	/* Empty if only one program uses the domain. */
	const kern::Inode inode_;
	/* Number of users; protected by the lock of XrcDomains. */
	u32 users_ = 1;
	kern::ListNode node_;
	/*
	 * Held from the destruction of a handle to that of its QP, so that no other task finds the
	 * QP without a handle.
	 */
	kern::Mutex targets_lock_{KERN_LOCK_CLASS("uverbs.xrc_targets")};
};

/*
 * The domains of a device. Lock order: its lock nests inside that of ObjectTable, and outside the
 * midlayer's.
 */
class XrcDomains
{
public:
	XrcDomains() = default;
	~XrcDomains()
	{
		/* Domains that the device failed to release are leaked. */
		while (domains_.pop_back()) {
		}
	}

	/*
	 * The mode says whether open() uses an existing domain, creates one, or both, like the
	 * flags of open(2).
	 */
	enum class Mode : u8 { existing, existing_or_new, only_new };

	/*
	 * Opens the domain of a file, or without a file one for the caller only. Context: process.
	 * Errors, depending on the mode: EAGAIN if there is no domain, EINVAL if there is one;
	 * ENOMEM; those of ib_alloc_xrcd_user().
	 */
	kern::Result<XrcDomain *> open(ib_device &device, kern::Inode inode, Mode mode,
				       ib_udata &udata);
	/* Errors: those of ib_dealloc_xrcd(); then the domain stays open. */
	kern::Result<> close(XrcDomain &domain);

private:
	XrcDomain *find(const kern::Inode &inode) KERN_REQUIRES(lock_);

	kern::Mutex lock_{KERN_LOCK_CLASS("uverbs.xrc_domains")};
	kern::List<XrcDomain, &XrcDomain::node_> domains_ KERN_GUARDED_BY(lock_);
};

/* A program's handle of a domain. */
class Xrcd : public Object
{
public:
	static constexpr Kind kind = Kind::xrcd;

	explicit Xrcd(XrcDomains &domains) : Object(kind), domains_(domains) {}

	/* Once. */
	void take(XrcDomain &domain) { domain_ = &domain; }
	/* Valid until the object is destroyed. */
	XrcDomain &domain() { return *domain_; }

	kern::Result<> end(Reason) override
	{
		if (domain_) {
			KERN_TRY(domains_.close(*domain_));
			domain_ = nullptr;
		}
		return {};
	}
	bool ended() const override { return !domain_; }

private:
	XrcDomains &domains_;
	XrcDomain *domain_ = nullptr;
};

} // namespace uverbs
