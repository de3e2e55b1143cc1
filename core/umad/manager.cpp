// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "manager.hpp"
#include <kern/abi/net.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_namespaces.h>

namespace umad
{

namespace
{

constinit kern::FileKind<Manager> kind;

} // namespace

kern::FileKind<Manager> &manager_kind()
{
	return kind;
}

kern::Result<kern::Ref<Manager>> Manager::create(ib_device &device, u32 port)
{
	return kern::adopt_ref(new (kern::Gfp::kernel) Manager(device, port));
}

kern::Result<> Manager::become(State next)
{
	if (state() == State::device_gone || next == state())
		return {};
	if (next != State::device_gone) {
		ib_port_modify change{};
		(next == State::taken ? change.set_port_cap_mask : change.clr_port_cap_mask) =
			IB_PORT_SM;
		const int status = ib_modify_port(&device_, port_, 0, &change);
		/*
		 * The file is closed even if the port could not be modified, so only opening can
		 * fail.
		 */
		if (next == State::taken)
			KERN_TRY_ERRNO(status);
	}
	state_.store_release(static_cast<u8>(next));
	waiting_.wake_all();
	return {};
}

kern::Result<Manager *> Manager::open(kern_file &file)
{
	/*
	 * The device exists during this call, because its removal waits for running open() calls.
	 */
	if (!ib_device_in_net(&device_, kern_net_number_of_caller()))
		return kern::Error{-EPERM};
	while (true) {
		{
			kern::Guard guard(lock_);
			if (state() == State::device_gone)
				return kern::Error{-ENXIO};
			if (state() == State::vacant) {
				KERN_TRY(become(State::taken));
				/* This reference belongs to the file; release() drops it. */
				return kern::Ref<Manager>::share(*this).release();
			}
		}
		if (!kern_file_waits(&file))
			return kern::Error{-EAGAIN};
		KERN_TRY(waiting_.wait_interruptible([&] { return state() != State::taken; }));
	}
}

void Manager::leave_device()
{
	kern::Guard guard(lock_);
	/* This does not modify the port, so it cannot fail. */
	kern::ignore(become(State::device_gone));
}

void Manager::release()
{
	{
		kern::Guard guard(lock_);
		/* The transition to vacant cannot fail. */
		kern::ignore(become(State::vacant));
	}
	kern::Ref<Manager>::adopt(this);
}

} // namespace umad
