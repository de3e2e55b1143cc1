// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* An agent of a program: the midlayer's agent, and the number that the program uses for it. */
#pragma once
#include <kern/atomic.hpp>
#include <kern/memory.hpp>
#include <rdma/ib_mad.h>

namespace umad
{

class File;

/* A program's registration, by either of the two commands. */
struct Registration {
	u32 qpn;
	u32 flags;
	/* The class 0 is none: such an agent only asks. */
	ib_mad_reg_req request;
	u8 rmpp_version;
};

class Agent
{
public:
	/*
	 * Context: process. Errors: EINVAL for what does not fit together, or is another agent's;
	 * ENODEV; ENOMEM.
	 */
	static kern::Result<kern::Owned<Agent>> create(File &file, ib_device &device, u32 port,
						       u32 id, Registration what);
	/* Cancels its sends and stops its receives. Context: process. */
	~Agent();

	u32 id() const { return id_; }
	ib_mad_agent &mad() const { return *mad_; }
	/* True if the kernel does RMPP for it, in this class. */
	bool segments(u8 mgmt_class) const
	{
		return ib_is_mad_class_rmpp(mgmt_class) && ib_mad_kernel_rmpp_agent(mad_);
	}
	/* True if it does RMPP itself, in this class. */
	bool leaves_segments(u8 mgmt_class) const
	{
		return ib_is_mad_class_rmpp(mgmt_class) && !ib_mad_kernel_rmpp_agent(mad_);
	}

private:
	Agent(File &file, u32 id) : file_(file), id_(id) {}
	static void on_sent(ib_mad_agent *mad, ib_mad_send_wc *how);
	static void on_received(ib_mad_agent *mad, ib_mad_send_buf *asked,
				ib_mad_recv_wc *received);

	File &file_;
	const u32 id_;
	ib_mad_agent *mad_ = nullptr;
	/* Set while it is destroyed: its sends are no longer reported. */
	kern::Atomic<bool> ending_{false};
};

} // namespace umad
