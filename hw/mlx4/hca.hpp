// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// State of one card between two resets: firmware, ICM tables, allocators of object numbers, EQs.
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
	 * Used in place of recv_cqn, with the domain's number: the receives of an XRC target
	 * complete in the CQ of each SRQ.
	 */
	static constexpr u32 xrc_target = 1u << 31;
};

/* The same as QpEntry for an XRC SRQ, whose completions go to its own CQ. */
struct SrqEntry {
	Srq *srq;
	u32 cqn;
	u32 domain; // as in QpEntry::recv_cqn
};

/*
 * Bring-up, in this order, and its mirror: QUERY_FW, firmware area, RUN_FW, capabilities, ICM,
 * INIT_HCA, event queues, interrupts, commands by events, special QPs, ports.
 *
 * Everything that later objects need of the card is reached from here. Members that are const after
 * create() are read without locks.
 */
class Hca final : public mellanox_icm::HcaBase<Hca, Cq, Eq, QpEntry>
{
public:
	/*
	 * The card has just been reset and may master the bus.
	 * Errors: those of commands and allocations; EPROTO for a card that contradicts itself. May
	 * sleep.
	 */
	static kern::Result<kern::Owned<Hca>> create(kern::pci::Device pci, const kern::Mmio &bar0,
						     const kern::Mmio &uar,
						     FailureListener &listener);
	/* Without a card, for tests: CQs can be polled and armed, commands fail. */
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

	/* The page by which all kernel queues ring. */
	u32 uar_page() const { return wire::uar::first_usable_page; }
	kern::Mmio kernel_uar() const
	{
		return uar_.view(u64{uar_page()} * wire::uar::page_size, wire::uar::page_size);
	}

	/* Returns nullptr for a number out of range. */
	SrqEntry *srq_entry(u32 srqn)
	{
		return srqn < srq_table_.size() ? &srq_table_[srqn] : nullptr;
	}
	Srq *find_srq(u32 srqn) const
	{
		return srqn < srq_table_.size() ? kern::read_once(srq_table_[srqn].srq) : nullptr;
	}
	/* For debugfs: event queues, tables, and every queue in use. May sleep. */
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
	/* Event callbacks of HcaBase. Hard interrupt. */
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
