// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the state that mlx4 and mthca cards have in common, from one reset to the next: number
// allocators, tables of objects, event queues and ports.
#pragma once
#include <kern/bits.hpp>
#include <kern/debugfs.hpp>
#include <kern/lock.hpp>
#include <kern/log.hpp>
#include <kern/memory.hpp>
#include <kern/mmio.hpp>
#include <kern/pci.hpp>
#include <kern/work.hpp>
#include <rdma/driver.hpp>
#include "event_queues.hpp"
#include "icm_table.hpp"
#include "mtt.hpp"
#include "multicast.hpp"
#include "number_allocator.hpp"
#include "object_events.hpp"
#include "page_area.hpp"
#include "port.hpp"

namespace mellanox_icm
{

/*
 * The entry of a QP number. Code that polls a CQ may use the QP only if the entry contains the
 * number of that CQ for the direction. These CQ numbers are set and cleared with the CQ's lock
 * held. The pointer is set before the first number and cleared after the last. So a card that
 * writes another QP's number into a CQ cannot cause access to a QP that is being destroyed.
 */
template<class Qp>
struct QpEntryOf {
	Qp *qp;
	u32 send_cqn;
	u32 recv_cqn;
};

/*
 * Base class of a card's own Hca. Own starts and stops the card; it has
 *
 *	capabilities();
 *	Srq *find_srq(u32 srqn);
 *	u32 event_port(const u8 *eqe);			// the port of a port event
 *	// Handles an event that only this kind of card has; returns false for all other events.
 *	bool own_event(EventType type, const u8 *eqe);
 *
 * An entry of a table is set before the card can report the object's number, and cleared when it
 * cannot any more. Then the owner waits for interrupt handlers that may use the object
 * (synchronize_events). Constants need no lock.
 */
template<class Own, class Cq, class Eq, class QpEntry>
class HcaBase : public EventSink
{
public:
	kern::pci::Device pci() const { return pci_; }
	struct device *dma_device() { return pci_.dev(); }
	CommandInterface &commands() { return *commands_; }
	MttTable &mtts() { return *mtts_; }
	MulticastGroups &multicast() { return *multicast_; }
	Port &port(u32 number) { return *ports_[number - 1]; }
	bool failed() const { return commands_->failed(); }
	/* Returns true if post_slow_path() must be called after a doorbell. */
	bool wants_attention() const { return commands_->wants_attention(); }

	NumberAllocator &qpns() { return *qpns_; }
	NumberAllocator &cqns() { return *cqns_; }
	NumberAllocator &srqns() { return *srqns_; }
	NumberAllocator &pdns() { return *pdns_; }
	NumberAllocator &mpts() { return *mpts_; }
	/* User access regions for programs. */
	NumberAllocator &uars() { return *uars_; }

	/* Returns the hardware's number of a port's QP0 or QP1. */
	u32 special_qpn(bool gsi, u32 port) const
	{
		return special_base_ + (gsi ? 2 : 0) + port - 1;
	}

	unsigned int completion_vectors() const { return events_.completions(); }
	Eq &completion_eq(unsigned int vector) { return events_.completion(vector); }
	Eq &async_eq() { return events_.async(); }
	EventQueues<Eq> &events() { return events_; }

	QpEntry &qp_entry(u32 qpn) { return qp_table_[qpn & qp_mask()]; }
	QpEntry *qp_table() { return qp_table_.data(); }
	u32 qp_mask() const { return static_cast<u32>(qp_table_.size()) - 1; }
	/* Return the object of a number, or nullptr. For event handlers. */
	auto *find_qp(u32 qpn) const { return kern::read_once(qp_table_[qpn & qp_mask()].qp); }
	Cq *find_cq(u32 cqn) const
	{
		return cqn < cq_table_.size() ? kern::read_once(cq_table_[cqn]) : nullptr;
	}
	/* May sleep. */
	void set_cq(u32 cqn, Cq *cq)
	{
		kern::Guard guard(cq_table_lock_);
		kern::write_once(cq_table_[cqn], cq);
	}
	/* Waits until all event handlers that are running now have returned. May sleep. */
	void synchronize_events() { events_.synchronize(); }

	/*
	 * Called when the card has failed: notifies the consumer of each CQ, which then polls the
	 * flushed requests. Context: any.
	 */
	void announce_failure() { failure_work_.queue(); }

	/*
	 * Sets the device that gets the events of ports and of the whole device, from its
	 * registration to its unregistration.
	 */
	void set_event_device(ib_device *device)
	{
		for (kern::Owned<Port> &port : ports_)
			if (port)
				port->set_device(device);
	}

	/* EventSink. Hard interrupt. */
	void async_event(const u8 *entry) override;
	void completion_event(u32 cqn) override
	{
		// The CQ may have been destroyed while the event was in the queue.
		if (Cq *cq = find_cq(cqn)) [[likely]]
			cq->event();
	}

protected:
	HcaBase(kern::pci::Device pci, const kern::Mmio &bar0, const kern::Mmio &uar,
		FailureListener &listener, kern::LockClass &cq_table_class)
	    : pci_(pci), bar0_(bar0), uar_(uar), listener_(listener), cq_table_lock_(cq_table_class)
	{
	}
	~HcaBase() = default;

	/* Maximum number of port events that can be queued before the first of them is handled. */
	static constexpr u32 max_port_events = 256;
	/* The last step of the start that has succeeded. */
	enum class Stage {
		none,
		firmware_mapped,
		auxiliary_mapped,
		running,
		special_qps
	} stage_ = Stage::none;

	/*
	 * Gives the firmware its pages (as QUERY_FW requests), and starts it (RUN_FW). Errors:
	 * those of allocations and commands. May sleep.
	 */
	kern::Result<> run_firmware(u32 pages);
	/*
	 * Sets the size of ICM (SET_ICM_SIZE), and gives the card the auxiliary pages that it
	 * requests. Errors: those of run_firmware(); EPROTO for more pages than any card needs. May
	 * sleep.
	 */
	kern::Result<> size_icm(u64 bytes);
	/*
	 * Creates the allocator of page lists for a table whose first entries are the card's own.
	 * Errors: ENOMEM. May sleep.
	 */
	kern::Result<> create_mtts(IcmTable &table, u32 log_entries, u32 reserved,
				   unsigned int least_order = 0);
	/*
	 * Creates the allocators of object numbers, from the first number that the card has not
	 * reserved, and the tables that these numbers index. Errors: ENOMEM. May sleep.
	 */
	struct Counts {
		u32 first_qpn, qps, cqs, srqs, mpts, uars;
	};
	kern::Result<> create_numbers(const Counts &counts);
	/*
	 * Maps these events to the asynchronous queue, and arms all queues. Errors: those of
	 * commands; ENOSPC. May sleep.
	 */
	kern::Result<> start_events(u64 events);
	/*
	 * Returns which of 64 pins the card uses (QUERY_ADAPTER). Errors: EPROTO for an invalid
	 * number. May sleep.
	 */
	kern::Result<u32> query_pin();
	/* Switches to commands that complete by events, and tests this with a NOP. May sleep. */
	kern::Result<> check_interrupt(u32 log_max_commands);
	/*
	 * These undo the functions above, in reverse order. If a command fails, the reset before
	 * the next use of the card has the same effect. unmapped: the parameter of MAP_EQ.
	 */
	void stop_events(u64 unmapped);
	void close();
	template<unsigned int regions>
	void free_tables(kern::Owned<IcmTable> (&tables)[regions])
	{
		mtts_.reset();
		for (kern::Owned<IcmTable> &table : tables)
			table.reset();
	}
	void unmap_firmware_areas();
	void stop_ports()
	{
		failure_work_.cancel();
		for (kern::Owned<Port> &port : ports_)
			port.reset();
		multicast_.reset();
	}

	void port_event(u32 events, u32 port)
	{
		if (port >= 1 && port <= 2 && ports_[port - 1])
			ports_[port - 1]->changed(events);
	}
	/* Print the event queues, ports and CQs; and the tables. For debugfs. May sleep. */
	void dump_objects(kern::debugfs::Output &out);
	template<unsigned int regions, class Layout>
	static void dump_tables(kern::debugfs::Output &out, const char *const (&names)[regions],
				const Layout &layout,
				const kern::Owned<IcmTable> (&tables)[regions])
	{
		for (unsigned int i = 0; i < regions; i++)
			out.print("%s: 2^%u entries of %u bytes at %#lx, %zu bytes resident\n",
				  names[i], layout.extent[i].log_entries,
				  layout.extent[i].entry_bytes, layout.extent[i].base,
				  tables[i] ? tables[i]->resident_bytes() : size_t{0});
	}

	kern::pci::Device pci_;
	const kern::Mmio &bar0_;
	const kern::Mmio &uar_;
	FailureListener &listener_;
	kern::Owned<CommandInterface> commands_;
	u32 special_base_ = 0;
	kern::Owned<Buddy> mtt_entries_;
	kern::Owned<MttTable> mtts_;
	kern::Owned<NumberAllocator> qpns_, cqns_, srqns_, pdns_, mpts_, uars_;
	kern::OwnedArray<QpEntry> qp_table_;
	kern::OwnedArray<Cq *> cq_table_;
	EventQueues<Eq> events_;
	kern::Owned<MulticastGroups> multicast_;
	kern::Owned<Port> ports_[2];

private:
	void report_failure()
	{
		// The card raises no interrupts any more, but a handler may still be running.
		synchronize_events();
		kern::Guard guard(cq_table_lock_);
		for (Cq *cq : cq_table_)
			if (cq)
				cq->announce_failure();
	}

	PageArea firmware_area_;
	PageArea auxiliary_area_;
	// Held while a task walks the table of CQs, and while an entry is cleared.
	kern::Mutex cq_table_lock_;
	kern::Work failure_work_{kern::method<&HcaBase::report_failure>, this};
};

template<class Own, class Cq, class Eq, class QpEntry>
kern::Result<> HcaBase<Own, Cq, Eq, QpEntry>::run_firmware(u32 pages)
{
	using hw::mellanox_icm::Opcode;
	if (pages) {
		firmware_area_ = KERN_TRY(PageArea::create(dma_device(), size_t{pages} * 4096));
		KERN_TRY(firmware_area_.map(*commands_, Opcode::map_fa));
		stage_ = Stage::firmware_mapped;
	}
	KERN_TRY(commands_->execute({.opcode = Opcode::run_fw}));
	return {};
}

template<class Own, class Cq, class Eq, class QpEntry>
kern::Result<> HcaBase<Own, Cq, Eq, QpEntry>::size_icm(u64 bytes)
{
	using hw::mellanox_icm::Opcode;
	const u64 pages =
		KERN_TRY(commands_->execute({.opcode = Opcode::set_icm_size, .in_param = bytes}));
	if (pages > 1 << 16) {
		kern_dev_error(dma_device(), "the card requests %#lx auxiliary pages\n", pages);
		return kern::Error{-EPROTO};
	}
	if (pages) {
		auxiliary_area_ = KERN_TRY(PageArea::create(dma_device(), pages * 4096));
		KERN_TRY(auxiliary_area_.map(*commands_, Opcode::map_icm_aux));
		stage_ = Stage::auxiliary_mapped;
	}
	return {};
}

template<class Own, class Cq, class Eq, class QpEntry>
kern::Result<> HcaBase<Own, Cq, Eq, QpEntry>::create_mtts(IcmTable &table, u32 log_entries,
							  u32 reserved, unsigned int least_order)
{
	mtt_entries_ = KERN_TRY(Buddy::create(log_entries));
	const u32 first = KERN_TRY(mtt_entries_->allocate(kern::log2_ceil(reserved)));
	kern_assert(first == 0);
	(void)first;
	mtts_ = KERN_TRY(
		kern::make<MttTable>(kern::Gfp::kernel, table, *mtt_entries_, least_order));
	return {};
}

template<class Own, class Cq, class Eq, class QpEntry>
kern::Result<> HcaBase<Own, Cq, Eq, QpEntry>::create_numbers(const Counts &counts)
{
	Own &own = static_cast<Own &>(*this);
	const auto &has = own.capabilities();
	qpns_ = KERN_TRY(NumberAllocator::create(counts.first_qpn, counts.qps));
	cqns_ = KERN_TRY(NumberAllocator::create(has.reserved_cqs, counts.cqs));
	srqns_ = KERN_TRY(NumberAllocator::create(has.reserved_srqs, counts.srqs));
	mpts_ = KERN_TRY(NumberAllocator::create(has.reserved_mpts, counts.mpts));
	// Number 0 means that there is no protection domain.
	pdns_ = KERN_TRY(NumberAllocator::create(has.reserved_pds + 1, 1 << 15));
	// The first usable page is the kernel's own.
	uars_ = KERN_TRY(NumberAllocator::create(own.uar_page() + 1, counts.uars));
	qp_table_ = KERN_TRY(kern::make_array<QpEntry>(kern::Gfp::kernel, counts.qps));
	cq_table_ = KERN_TRY(kern::make_array<Cq *>(kern::Gfp::kernel, counts.cqs));
	return {};
}

template<class Own, class Cq, class Eq, class QpEntry>
kern::Result<> HcaBase<Own, Cq, Eq, QpEntry>::start_events(u64 events)
{
	// The driver's own events are completions of commands and port events.
	KERN_TRY(events_.reserve_own_entries(CommandInterface::max_slots +
					     static_cast<Own &>(*this).num_ports() *
						     max_port_events));
	KERN_TRY(commands_->execute({.opcode = hw::mellanox_icm::Opcode::map_eq,
				     .in_modifier = async_eq().number(),
				     .in_param = events}));
	events_.arm();
	return {};
}

template<class Own, class Cq, class Eq, class QpEntry>
kern::Result<u32> HcaBase<Own, Cq, Eq, QpEntry>::query_pin()
{
	auto mailbox = KERN_TRY(commands_->mailbox());
	KERN_TRY(commands_->execute_out({.opcode = hw::mellanox_icm::Opcode::query_adapter},
					mailbox));
	const u32 pin = hw::mellanox_icm::QueryAdapter::interrupt_pin.get(mailbox.bytes());
	// The register that clears the interrupt has 64 bits (EventQueues::ClearRegister).
	if (pin >= 64)
		return kern::Error{-EPROTO};
	return pin;
}

template<class Own, class Cq, class Eq, class QpEntry>
kern::Result<> HcaBase<Own, Cq, Eq, QpEntry>::check_interrupt(u32 log_max_commands)
{
	KERN_TRY(commands_->use_events(log_max_commands));
	KERN_TRY(
		commands_->execute({.opcode = hw::mellanox_icm::Opcode::nop, .in_modifier = 0x1f}));
	return {};
}

template<class Own, class Cq, class Eq, class QpEntry>
void HcaBase<Own, Cq, Eq, QpEntry>::stop_events(u64 unmapped)
{
	commands_->use_polling();
	if (events_.has_async_queue())
		kern::ignore(commands_->execute(
			{.opcode = hw::mellanox_icm::Opcode::map_eq,
			 .in_modifier = hw::mellanox_icm::map_eq_unmap.mask() | async_eq().number(),
			 .in_param = unmapped}));
	events_.stop();
}

template<class Own, class Cq, class Eq, class QpEntry>
void HcaBase<Own, Cq, Eq, QpEntry>::close()
{
	if (stage_ >= Stage::running)
		kern::ignore(commands_->execute_closing(
			{.opcode = hw::mellanox_icm::Opcode::close_hca}));
}

template<class Own, class Cq, class Eq, class QpEntry>
void HcaBase<Own, Cq, Eq, QpEntry>::unmap_firmware_areas()
{
	if (stage_ >= Stage::auxiliary_mapped)
		kern::ignore(commands_->execute_closing(
			{.opcode = hw::mellanox_icm::Opcode::unmap_icm_aux}));
	if (stage_ >= Stage::firmware_mapped)
		kern::ignore(
			commands_->execute_closing({.opcode = hw::mellanox_icm::Opcode::unmap_fa}));
}

template<class Own, class Cq, class Eq, class QpEntry>
void HcaBase<Own, Cq, Eq, QpEntry>::dump_objects(kern::debugfs::Output &out)
{
	events_.dump(out);
	for (kern::Owned<Port> &port : ports_)
		if (port)
			port->dump(out);
	kern::Guard guard(cq_table_lock_);
	for (Cq *cq : cq_table_)
		if (cq)
			cq->dump(out);
}

template<class Own, class Cq, class Eq, class QpEntry>
void HcaBase<Own, Cq, Eq, QpEntry>::async_event(const u8 *entry)
{
	using hw::mellanox_icm::Eqe;
	using hw::mellanox_icm::EventType;
	Own &own = static_cast<Own &>(*this);
	// Work on a copy, because the card might change the entry between two reads.
	u8 eqe[sizeof(Eqe)];
	__builtin_memcpy(eqe, entry, sizeof(eqe));
	const auto type = static_cast<EventType>(Eqe::type.get(eqe));
	switch (type) {
	case EventType::command:
		commands_->completed(static_cast<u16>(Eqe::command_token.get(eqe)),
				     static_cast<u8>(Eqe::command_status.get(eqe)),
				     Eqe::command_out_param.get(eqe));
		break;
	case EventType::port_change: {
		const bool active =
			Eqe::subtype.get(eqe) == hw::mellanox_icm::port_change_subtype::active;
		port_event(1u << (active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR),
			   own.event_port(eqe));
		break;
	}
	case EventType::local_catastrophic:
		listener_.card_failed("the card reports an internal error");
		break;
	case EventType::eq_overflow:
		listener_.card_failed("an event queue has overflowed");
		break;
	default:
		if (!own.own_event(type, eqe))
			object_event(own, type, Eqe::number.get(eqe));
	}
}

} // namespace mellanox_icm
