// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines XRC domains (IBA annex A14). Programs share a domain through a file in any file system:
 * all programs that specify the same file get the same domain. It exists while any program has it
 * open.
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
	 * Create a target QP, or find one by its number, and open a handle on it. Context: process.
	 * Errors: those of ib_create_qp() and ib_open_qp().
	 */
	kern::Result<ib_qp *> create_target(ib_qp_init_attr &attr);
	kern::Result<ib_qp *> open_target(ib_qp_open_attr &attr);
	/* Closes a handle, and destroys the QP with its last handle. Context: process. */
	void close_target(ib_qp &handle);

	ib_xrcd &ib() { return ib_; }

private:
	friend class XrcDomains;
	XrcDomain(ib_xrcd &ib, kern::Inode inode) : ib_(ib), inode_(std::move(inode)) {}

	ib_xrcd &ib_;
	/* The inode of the file; empty if the domain is not shared. */
	const kern::Inode inode_;
	/* Number of users; protected by the lock of XrcDomains. */
	u32 users_ = 1;
	kern::ListNode node_;
	/*
	 * Held from the closing of a handle until its QP has been destroyed, so that no other task
	 * finds the QP when it has no handle.
	 */
	kern::Mutex targets_lock_{KERN_LOCK_CLASS("uverbs.xrc_targets")};
};

/*
 * The domains of a device. Lock order: the lock is inside of that of ObjectTable, and outside of
 * those of the midlayer.
 */
class XrcDomains
{
public:
	XrcDomains() = default;
	~XrcDomains()
	{
		/* Domains that the device failed to destroy are leaked. */
		while (domains_.pop_back()) {
		}
	}

	/*
	 * Whether open() uses an existing domain, creates a domain, or both. Corresponds to the
	 * flags of open(2).
	 */
	enum class Mode : u8 { existing, existing_or_new, only_new };

	/*
	 * Opens the domain of a file or, without a file, a new domain for the caller only. Context:
	 * process. Errors, depending on the mode: EAGAIN if there is no domain, EINVAL if there is
	 * one; ENOMEM; those of ib_alloc_xrcd_user().
	 */
	kern::Result<XrcDomain *> open(ib_device &device, kern::Inode inode, Mode mode,
				       ib_udata &udata);
	/* Errors: those of ib_dealloc_xrcd(), after which the domain stays open. */
	kern::Result<> close(XrcDomain &domain);

private:
	XrcDomain *find(const kern::Inode &inode) KERN_REQUIRES(lock_);

	kern::Mutex lock_{KERN_LOCK_CLASS("uverbs.xrc_domains")};
	kern::List<XrcDomain, &XrcDomain::node_> domains_ KERN_GUARDED_BY(lock_);
};

/* A program's handle to a domain. */
class Xrcd : public Object
{
public:
	static constexpr Kind kind = Kind::xrcd;

	explicit Xrcd(XrcDomains &domains) : Object(kind), domains_(domains) {}

	/* Must be called once. */
	void take(XrcDomain &domain) { domain_ = &domain; }
	/* The domain; valid until the object is destroyed. */
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
