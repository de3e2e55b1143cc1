// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages a port: its attributes as the card's agents report them, and its events.
#pragma once
#include <kern/atomic.hpp>
#include <kern/debugfs.hpp>
#include <kern/lock.hpp>
#include <kern/work.hpp>
#include <rdma/driver.hpp>
#include <ib/pma.hpp>
#include <ib/smp.hpp>
#include "command.hpp"

namespace mellanox_icm
{

/* Attributes of a port that do not depend on its state. */
struct PortCapabilities {
	u32 max_mtu;     // enum ib_mtu
	u32 gids, pkeys; // table lengths
	u32 max_vls;
};

/*
 * Operations on a port that differ between the kinds of cards. May sleep. Errors: those of
 * commands.
 */
class PortControl
{
public:
	/* Enables or disables the link. */
	virtual kern::Result<> open(u32 port) = 0;
	virtual kern::Result<> close(u32 port) = 0;
	virtual kern::Result<> set_capabilities(u32 port, u32 capability_mask,
						bool reset_qkey_violations) = 0;

protected:
	~PortControl() = default;
};

/* The port's tables that are needed to build the headers of management packets. */
struct PortTables {
	u64 gid_prefix;
	u64 guids[128];
	u16 pkeys[128];
	ib::SlToVl sl_to_vl;
};

class Port
{
public:
	/* Reads the tables. May sleep. */
	static kern::Result<kern::Owned<Port>> create(CommandInterface &commands,
						      PortControl &control, u32 number,
						      const PortCapabilities &capabilities,
						      u32 log_max_message);
	~Port();

	u32 number() const { return number_; }
	const PortCapabilities &capabilities() const { return capabilities_; }

	/*
	 * Enables the link, which may then become active; close() disables it. May sleep. Errors:
	 * those of commands.
	 */
	kern::Result<> open();
	void close();

	/*
	 * These implement the verbs. May sleep. Errors: EINVAL for an index out of range, those of
	 * commands.
	 */
	kern::Result<> query(ib_port_attr &attr);
	kern::Result<ib_gid> gid(u32 index);
	kern::Result<u16> pkey(u32 index);
	kern::Result<> modify(int mask, const ib_port_modify &change);
	/*
	 * Reads an attribute of the port's performance management agent. May sleep. Errors: EIO if
	 * the agent refuses.
	 */
	kern::Result<ib::PerfMad> performance(ib::PerfAttribute attribute);
	kern::Result<ib::PortCountersExtended> counters();
	/* For debugfs: the traffic of the port. May sleep. */
	void dump(kern::debugfs::Output &out);

	/* Calls body(tables) with the lock that protects the tables held. Context: any. */
	template<class Body>
	decltype(auto) with_tables(Body body)
	{
		kern::Guard guard(tables_lock_);
		return body(const_cast<const PortTables &>(*tables_));
	}

	/* Reads the tables from the card. May sleep. Errors: those of commands. */
	kern::Result<> read_tables();
	/*
	 * Called when something has changed: schedules work that reads the tables and then reports
	 * `events` (a mask of bits by ib_event_type). Context: any.
	 */
	void changed(u32 events);
	/*
	 * Sets the device whose events are reported. nullptr ends the reports; none is in progress
	 * when this returns. May sleep.
	 */
	void set_device(ib_device *device);

private:
	Port(CommandInterface &commands, PortControl &control, u32 number,
	     const PortCapabilities &capabilities, u32 log_max_message);
	void refresh();

	CommandInterface &commands_;
	PortControl &control_;
	u32 number_;
	PortCapabilities capabilities_;
	u32 log_max_message_;
	/* Serializes read_tables(), so that a call that starts later stores the newer values. */
	kern::Mutex read_lock_;
	kern::IrqSpinLock tables_lock_;
	kern::Owned<PortTables> tables_;
	kern::Mutex device_lock_;
	ib_device *device_ KERN_GUARDED_BY(device_lock_) = nullptr;
	kern::Mutex modify_lock_;
	bool open_ KERN_GUARDED_BY(modify_lock_) = false;
	kern::Atomic<u32> pending_{0};
	kern::Work refresh_work_{kern::method<&Port::refresh>, this};
};

} // namespace mellanox_icm
