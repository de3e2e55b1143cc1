// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// One card from its reset to its next: firmware, tables, numbers, event queues.
#pragma once
#include <kern/debugfs.hpp>
#include <kern/memory.hpp>
#include <kern/mmio.hpp>
#include <kern/pci.hpp>
#include <kern/work.hpp>
#include <rdma/driver.hpp>
#include "capabilities.hpp"
#include "eq.hpp"
#include "family.hpp"
#include "icm_layout.hpp"
#include "mr.hpp"
#include "port_commands.hpp"
#include "records.hpp"

namespace infinihost
{

class Cq;
class Qp;
class Srq;

/*
 * A QP by its number. One who polls a CQ may use the QP if the entry names that CQ for the
 * direction in question: the names are written and cleared under the CQ's lock, the pointer before
 * the first and after the last. So a card that puts another's number into a CQ gets nobody to touch
 * a QP that may be going.
 */
struct QpEntry {
	Qp *qp;
	u32 send_cqn;
	u32 recv_cqn;
};

/*
 * Bring-up, in this order, and its mirror: QUERY_FW, firmware area, RUN_FW, capabilities, ICM,
 * INIT_HCA, a key of all memory, event queues, interrupts, commands by events, special QPs, ports.
 *
 * Everything that later objects need of the card is reached from here. What is const after create()
 * is read without locks.
 */
class Hca final : public EventSink
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
	~Hca();

	kern::pci::Device pci() const { return pci_; }
	struct device *dma_device() { return pci_.dev(); }
	CommandInterface &commands() { return *commands_; }
	const Firmware &firmware() const { return firmware_; }
	const Capabilities &capabilities() const { return capabilities_; }
	const IcmLayout &layout() const { return layout_; }
	IcmTable &table(IcmRegion region) { return *tables_[static_cast<int>(region)]; }
	Records &records() { return *records_; }
	MttTable &mtts() { return *mtts_; }
	/* By which the card reaches the queues that belong to no domain. */
	OwnMemory own_memory() const { return {own_key_.key(), own_pd_.value()}; }
	MulticastGroups &multicast() { return *multicast_; }
	Port &port(u32 number) { return *ports_[number - 1]; }
	u32 num_ports() const { return capabilities_.num_ports; }
	bool failed() const { return commands_->failed(); }
	/* Of one who has rung a doorbell: see attend(). */
	bool wants_attention() const { return commands_->wants_attention(); }

	NumberAllocator &qpns() { return *qpns_; }
	NumberAllocator &cqns() { return *cqns_; }
	NumberAllocator &srqns() { return *srqns_; }
	NumberAllocator &pdns() { return *pdns_; }
	NumberAllocator &mpts() { return *mpts_; }
	/* User access regions for programs. */
	NumberAllocator &uars() { return *uars_; }

	/* The hardware's number of QP0 or QP1 of a port. */
	u32 special_qpn(bool gsi, u32 port) const
	{
		return special_base_ + (gsi ? 2 : 0) + port - 1;
	}

	/*
	 * The page by which all kernel queues ring: behind the card's own, and the one that
	 * firmware rings by before a driver is there.
	 */
	u32 uar_page() const { return capabilities_.reserved_uars + 1; }
	kern::Mmio kernel_uar() const
	{
		return uar_.view(u64{uar_page()} * wire::uar::page_size, wire::uar::page_size);
	}

	unsigned int completion_vectors() const { return events_.completions(); }
	Eq &completion_eq(unsigned int vector) { return events_.completion(vector); }
	Eq &async_eq() { return events_.async(); }

	/*
	 * Objects by number, for interrupts and polling. An entry is set before the card can name
	 * the object, cleared when it no longer can; the owner then waits for the interrupts that
	 * may have read it (synchronize_events) before it ends.
	 */
	QpEntry &qp_entry(u32 qpn) { return qp_table_[qpn & qp_mask()]; }
	QpEntry *qp_table() { return qp_table_.data(); }
	u32 qp_mask() const { return static_cast<u32>(qp_table_.size()) - 1; }
	/* For event handlers. */
	Qp *find_qp(u32 qpn) const { return kern::read_once(qp_table_[qpn & qp_mask()].qp); }
	Cq *find_cq(u32 cqn) const
	{
		return cqn < cq_table_.size() ? kern::read_once(cq_table_[cqn]) : nullptr;
	}
	void set_cq(u32 cqn, Cq *cq);
	Srq *find_srq(u32 srqn) const
	{
		return srqn < srq_table_.size() ? kern::read_once(srq_table_[srqn]) : nullptr;
	}
	void set_srq(u32 srqn, Srq *srq) { kern::write_once(srq_table_[srqn], srq); }
	/* Waits for every event handler that runs now. May sleep. */
	void synchronize_events() { events_.synchronize(); }

	/*
	 * The card has failed: has every CQ's consumer come for its flushed requests. Any context.
	 */
	void announce_failure() { failure_work_.queue(); }

	/*
	 * Where events that concern the ports and the whole device go, between registration and
	 * unregistration.
	 */
	void set_event_device(struct ib_device *device);

	/* For debugfs: event queues, tables, and every queue in use. May sleep. */
	void dump(kern::debugfs::Output &out);

	/* EventSink. Hard interrupt. */
	void async_event(const u8 *eqe) override;
	void completion_event(u32 cqn) override;

private:
	/* A test, of what does without a card. */
	friend class Bench;
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
	kern::Result<u32> query_interrupt_pin();
	kern::Result<> check_interrupt();
	kern::Result<> configure_special_qps();
	kern::Result<> create_ports();
	void stop();
	void tell_of_failure();
	void port_event(ib_event_type type, u32 port);

	kern::pci::Device pci_;
	const kern::Mmio &bar0_;
	const kern::Mmio &uar_;
	FailureListener &listener_;

	kern::Owned<CommandInterface> commands_;
	Firmware firmware_{};
	Capabilities capabilities_{};
	IcmLayout layout_{};
	u32 special_base_ = 0;

	PageArea firmware_area_;
	PageArea auxiliary_area_;
	kern::Owned<IcmTable> tables_[icm_regions];
	kern::Owned<Buddy> mtt_entries_;
	kern::Owned<MttTable> mtts_;
	kern::Owned<NumberAllocator> qpns_, cqns_, srqns_, pdns_, mpts_, uars_;
	kern::Owned<Records> records_;
	Number own_pd_;
	ProtectionEntry own_key_;
	kern::OwnedArray<QpEntry> qp_table_;
	kern::OwnedArray<Cq *> cq_table_;
	kern::OwnedArray<Srq *> srq_table_;
	EventQueues<Eq> events_;
	// Held while the table of CQs is walked in a task, and while an entry of it is cleared.
	kern::Mutex cq_table_lock_;
	kern::Work failure_work_{kern::method<&Hca::tell_of_failure>, this};
	kern::Owned<MulticastGroups> multicast_;
	kern::Owned<PortCommands> port_commands_;
	kern::Owned<Port> ports_[2];

	/* How far start() came, for stop(). */
	enum class Stage {
		none,
		firmware_mapped,
		auxiliary_mapped,
		running,
		special_qps
	} stage_ = Stage::none;
};

} // namespace infinihost
