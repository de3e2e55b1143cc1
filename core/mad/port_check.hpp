/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A device whose own agent answers SMPs changes behind the midlayer's back, and not every one says
 * so by an event. Whenever its agent has dealt with a Set, the port is asked again, and what is new
 * is reported like an event of the device's own (MGMT-04, EVENT-02).
 */
#pragma once

#include <ib/mad.hpp>
#include <kern/atomic.hpp>
#include <kern/work.hpp>
#include <rdma/ib_verbs.h>

namespace mad
{

class PortCheck
{
public:
	PortCheck(ib_device *device, u32 port_num) : device_(device), port_num_(port_num) {}

	/* The device's agent has been given this MAD. Context: any. */
	void suspect(const ib::MadHeader &header);
	/* Waits for a check that runs. Nothing is suspected any more. Context: process. */
	void stop() { work_.cancel(); }

private:
	void run();
	void check_port();
	void check_pkeys();
	void check_gids();
	void report(ib_event_type type);

	ib_device *const device_;
	const u32 port_num_;
	kern::Atomic<u32> suspected_{0};
	kern::Work work_{kern::method<&PortCheck::run>, this};
};

} // namespace mad
