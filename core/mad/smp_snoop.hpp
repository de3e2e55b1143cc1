/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Detects changes that SMPs make to a port. If a device's own agent answers SMPs, the port can
 * change without the midlayer's knowledge, and not every device reports that by an event. So after
 * each Set that the agent handles, the port is queried again, and changes are reported like events
 * of the device (MGMT-04, EVENT-02).
 */
#pragma once

#include <ib/mad.hpp>
#include <kern/atomic.hpp>
#include <kern/work.hpp>
#include <rdma/ib_verbs.h>

namespace mad
{

class SmpSnoop
{
public:
	SmpSnoop(ib_device *device, u32 port_num) : device_(device), port_num_(port_num) {}

	/* Called after the device's agent has processed this MAD. Context: any. */
	void observe(const ib::MadHeader &header);
	/* Waits for a running check and cancels pending ones. Context: process. */
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
	kern::Work work_{kern::method<&SmpSnoop::run>, this};
};

} // namespace mad
