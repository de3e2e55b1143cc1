// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// State of one card between two resets: firmware, ICM tables, allocators of object numbers, EQs.
#pragma once
#include <kern/memory.hpp>
#include <kern/mmio.hpp>
#include <kern/pci.hpp>
#include "../mellanox_icm/hca.hpp"
#include "capabilities.hpp"
#include "eq.hpp"
#include "family.hpp"
#include "icm_layout.hpp"
#include "mr.hpp"
#include "port_commands.hpp"
#include "records.hpp"

namespace mthca
{

class Cq;
class Qp;
class Srq;

using QpEntry = mellanox_icm::QpEntryOf<Qp>;

/*
 * Bring-up, in this order, and its mirror: QUERY_FW, firmware area, RUN_FW, capabilities, ICM,
 * INIT_HCA, a key of all memory, event queues, interrupts, commands by events, special QPs, ports.
 *
 * Everything that later objects need of the card is reached from here. Members that are const after
 * create() are read without locks.
 */
class Hca final : public mellanox_icm::HcaBase<Hca, Cq, Eq, QpEntry>
{
public:
	/*
	 * The card has just been reset and may master the bus.
	 * Errors: those of commands and allocations; EPROTO for a card that contradicts itself;
	 * EOPNOTSUPP for one with memory of its own. May sleep.
	 */
	static kern::Result<kern::Owned<Hca>> create(kern::pci::Device pci, const kern::Mmio &bar0,
						     const kern::Mmio &uar,
						     FailureListener &listener);
	/*
	 * Without a card, for tests: QPs and CQs can be posted to and polled, commands fail.
	 */
	struct Parts {
		kern::Owned<CommandInterface> commands;
		kern::OwnedArray<QpEntry> qp_table;
		kern::Owned<NumberAllocator> cqns;
		u32 reserved_uars;
	};
	Hca(const kern::Mmio &bar0, const kern::Mmio &uar, FailureListener &listener, Parts parts);
	~Hca();

	const Firmware &firmware() const { return firmware_; }
	const Capabilities &capabilities() const { return capabilities_; }
	const IcmLayout &layout() const { return layout_; }
	IcmTable &table(IcmRegion region) { return *tables_[static_cast<int>(region)]; }
	Records &records() { return *records_; }
	/* Region through which the card accesses queues that belong to no domain. */
	OwnMemory own_memory() const { return {own_key_.key(), own_pd_.value()}; }
	u32 num_ports() const { return capabilities_.num_ports; }
	/*
	 * The page by which all kernel queues ring: behind the card's own, and the one that
	 * firmware rings by before a driver is there.
	 */
	u32 uar_page() const { return capabilities_.reserved_uars + 1; }
	kern::Mmio kernel_uar() const
	{
		return uar_.view(u64{uar_page()} * wire::uar::page_size, wire::uar::page_size);
	}

	Srq *find_srq(u32 srqn) const
	{
		return srqn < srq_table_.size() ? kern::read_once(srq_table_[srqn]) : nullptr;
	}
	void set_srq(u32 srqn, Srq *srq) { kern::write_once(srq_table_[srqn], srq); }
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
	kern::Result<> create_own_objects();
	kern::Result<> create_event_queues();
	kern::Result<> configure_special_qps();
	kern::Result<> create_ports();
	void stop();
	/* Event callbacks of HcaBase. Hard interrupt. */
	static u32 event_port(const u8 *eqe);
	bool own_event(hw::mellanox_icm::EventType type, const u8 *eqe);

	Firmware firmware_{};
	Capabilities capabilities_{};
	IcmLayout layout_{};

	kern::Owned<IcmTable> tables_[icm_regions];
	kern::Owned<Records> records_;
	Number own_pd_;
	ProtectionEntry own_key_;
	kern::OwnedArray<Srq *> srq_table_;
	kern::Owned<PortCommands> port_commands_;
};

} // namespace mthca
