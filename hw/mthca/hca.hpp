// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the state of an InfiniHost III between two resets: firmware, ICM tables, allocators of
// object numbers, EQs.
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
 * The steps of the start; stop() undoes them in reverse order: QUERY_FW, firmware area, RUN_FW,
 * capabilities, ICM, INIT_HCA, a key for all memory, event queues, interrupts, event-driven
 * commands, special QPs, ports.
 *
 * All objects access the card through this class. Members that do not change after create() are
 * read without locks.
 */
class Hca final : public mellanox_icm::HcaBase<Hca, Cq, Eq, QpEntry>
{
public:
	/*
	 * Starts the card, which has just been reset and may access host memory. May sleep.
	 * Errors: those of commands and allocations; EPROTO for inconsistent capabilities;
	 * EOPNOTSUPP for a card with its own memory.
	 */
	static kern::Result<kern::Owned<Hca>> create(kern::pci::Device pci, const kern::Mmio &bar0,
						     const kern::Mmio &uar,
						     FailureListener &listener);
	/*
	 * Creates an object without a card, for tests. QPs and CQs can be posted to and polled;
	 * commands fail.
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
	/*
	 * The memory region through which the card accesses queues that belong to no protection
	 * domain.
	 */
	OwnMemory own_memory() const { return {own_key_.key(), own_pd_.value()}; }
	u32 num_ports() const { return capabilities_.num_ports; }
	/*
	 * The number of the page in which all kernel queues ring doorbells. The reserved pages and
	 * the page that firmware uses before a driver is loaded precede it.
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
	kern::Result<> create_own_objects();
	kern::Result<> create_event_queues();
	kern::Result<> configure_special_qps();
	kern::Result<> create_ports();
	void stop();
	/* Event callbacks of HcaBase. Context: hard interrupt. */
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
