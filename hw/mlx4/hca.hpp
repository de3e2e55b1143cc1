// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the state of a ConnectX-2 between two resets: firmware, ICM tables, allocators of object
// numbers, EQs.
#pragma once
#include <kern/memory.hpp>
#include <kern/mmio.hpp>
#include <kern/pci.hpp>
#include "../mellanox_icm/hca.hpp"
#include "capabilities.hpp"
#include "family.hpp"
#include "doorbell.hpp"
#include "eq.hpp"
#include "icm_layout.hpp"
#include "port_commands.hpp"

namespace mlx4
{

class Cq;
class Qp;
class Srq;

struct QpEntry : mellanox_icm::QpEntryOf<Qp> {
	/*
	 * Flag in recv_cqn. The other bits are then the number of the XRC domain instead of a CQ
	 * number, because the receives of an XRC target complete in the CQ of each SRQ.
	 */
	static constexpr u32 xrc_target = 1u << 31;
};

/* The counterpart of QpEntry for an XRC SRQ, whose receives complete in its own CQ. */
struct SrqEntry {
	Srq *srq;
	u32 cqn;
	u32 domain; // the same format as QpEntry::recv_cqn
};

/*
 * The steps of the start; stop() undoes them in reverse order: QUERY_FW, firmware area, RUN_FW,
 * capabilities, ICM, INIT_HCA, event queues, interrupts, event-driven commands, special QPs, ports.
 *
 * All objects access the card through this class. Members that do not change after create() are
 * read without locks.
 */
class Hca final : public mellanox_icm::HcaBase<Hca, Cq, Eq, QpEntry>
{
public:
	/*
	 * Starts the card, which has just been reset and may access host memory. May sleep.
	 * Errors: those of commands and allocations; EPROTO for inconsistent capabilities.
	 */
	static kern::Result<kern::Owned<Hca>> create(kern::pci::Device pci, const kern::Mmio &bar0,
						     const kern::Mmio &uar,
						     FailureListener &listener);
	/*
	 * Creates an object without a card, for tests. CQs can be polled and armed; commands fail.
	 */
	Hca(const kern::Mmio &bar0, const kern::Mmio &uar, FailureListener &listener,
	    kern::Owned<CommandInterface> commands);
	~Hca();

	const Firmware &firmware() const { return firmware_; }
	const Capabilities &capabilities() const { return capabilities_; }
	const IcmLayout &layout() const { return layout_; }
	IcmTable &table(IcmRegion region) { return *tables_[static_cast<int>(region)]; }
	DoorbellPool &doorbells() { return doorbells_; }
	u32 num_ports() const { return capabilities_.num_ports; }
	NumberAllocator &xrcdns() { return *xrcdns_; }

	/* The number of the page in which all kernel queues ring doorbells. */
	u32 uar_page() const { return wire::uar::first_usable_page; }
	kern::Mmio kernel_uar() const
	{
		return uar_.view(u64{uar_page()} * wire::uar::page_size, wire::uar::page_size);
	}

	/* Returns the entry of an SRQ number, or nullptr if the number is out of range. */
	SrqEntry *srq_entry(u32 srqn)
	{
		return srqn < srq_table_.size() ? &srq_table_[srqn] : nullptr;
	}
	Srq *find_srq(u32 srqn) const
	{
		return srqn < srq_table_.size() ? kern::read_once(srq_table_[srqn].srq) : nullptr;
	}
	/* Prints the event queues, the tables and all queues in use, for debugfs. May sleep. */
	void dump(kern::debugfs::Output &out);

private:
	friend HcaBase;
	Hca(kern::pci::Device pci, const kern::Mmio &bar0, const kern::Mmio &uar,
	    FailureListener &listener);

	kern::Result<> start();
	kern::Result<> start_firmware();
	kern::Result<> query_capabilities();
	kern::Result<> map_icm();
	kern::Result<> init_hca();
	kern::Result<> create_numbers();
	kern::Result<> create_event_queues();
	kern::Result<u32> query_interrupt_pin();
	kern::Result<> create_ports();
	void stop();
	/* Event callbacks of HcaBase. Context: hard interrupt. */
	static u32 event_port(const u8 *eqe);
	bool own_event(wire::EventType type, const u8 *eqe);
	void management_event(const u8 *eqe);

	Firmware firmware_{};
	Capabilities capabilities_{};
	PortCapabilities port_capabilities_[2]{};
	IcmLayout layout_{};

	kern::Owned<IcmTable> tables_[icm_regions];
	DoorbellPool doorbells_;
	kern::Owned<NumberAllocator> xrcdns_;
	kern::OwnedArray<SrqEntry> srq_table_;
	kern::Owned<PortCommands> port_commands_;
};

} // namespace mlx4
