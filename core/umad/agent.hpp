// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines an agent of a program: the midlayer's agent, and the number by which the program refers
 * to it.
 */
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
	/* Class 0 means that the agent receives only responses. */
	ib_mad_reg_req request;
	u8 rmpp_version;
};

class Agent
{
public:
	/*
	 * Context: process. Errors: EINVAL for inconsistent values, or if another agent has
	 * registered for the same MADs; ENODEV; ENOMEM.
	 */
	static kern::Result<kern::Owned<Agent>> create(File &file, ib_device &device, u32 port,
						       u32 id, Registration what);
	/* Cancels the agent's sends and stops receiving. Context: process. */
	~Agent();

	u32 id() const { return id_; }
	ib_mad_agent &mad() const { return *mad_; }
	/* Returns true if the kernel does RMPP for this agent in this class. */
	bool segments(u8 mgmt_class) const
	{
		return ib_is_mad_class_rmpp(mgmt_class) && ib_mad_kernel_rmpp_agent(mad_);
	}
	/* Returns true if the program does RMPP itself in this class. */
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
	/* Set during the destruction: sends are no longer reported. */
	kern::Atomic<bool> ending_{false};
};

} // namespace umad
