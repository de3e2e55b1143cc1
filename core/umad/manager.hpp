// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements /dev/infiniband/issmN. While a program has it open, the port reports a subnet manager
 * (IsSM in PortInfo.CapabilityMask). Only one program at a time can have it open.
 */
#pragma once
#include <kern/atomic.hpp>
#include <kern/file.hpp>
#include <kern/lock.hpp>
#include <rdma/ib_verbs.h>

namespace umad
{

class Manager : public kern::RefCounted<Manager>
{
public:
	/* Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Ref<Manager>> create(ib_device &device, u32 port);

	/* Called when the port is removed. Pending open() calls fail. Context: process. */
	void leave_device();

	/*
	 * Opens the node. Errors: EAGAIN or EINTR while another program has it open; ENXIO; the
	 * errors of the driver.
	 */
	kern::Result<Manager *> open(kern_file &file);
	/* The only file operation. */
	void release();

private:
	enum class State : u8 {
		vacant,
		taken,
		device_gone, // the final state
	};

	Manager(ib_device &device, u32 port) : device_(device), port_(port) {}
	State state() const { return static_cast<State>(state_.load_acquire()); }
	/*
	 * The only function that changes the state. Modifies the port, and wakes waiting tasks.
	 * Errors: those of the driver.
	 */
	kern::Result<> become(State next) KERN_REQUIRES(lock_);

	/* Valid until the device is removed. */
	ib_device &device_;
	const u32 port_;
	kern::Mutex lock_{KERN_LOCK_CLASS("umad.manager")};
	/* A State. Changed with lock_ held. */
	kern::Atomic<u8> state_{static_cast<u8>(State::vacant)};
	kern::WaitQueue waiting_{KERN_LOCK_CLASS("umad.managers")};
};

kern::FileKind<Manager> &manager_kind();

} // namespace umad
