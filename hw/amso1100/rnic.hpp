// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages the RNIC: its capabilities, and the objects on it.
#pragma once
#include <kern/list.hpp>
#include <kern/work.hpp>
#include <kern/xarray.hpp>
#include <rdma/driver.hpp>
#include "channel.hpp"
#include "register_page.hpp"

namespace amso1100
{

class Cq;
class Qp;

/* Handles events and hints of objects other than QPs. */
class EventHandler
{
public:
	/* Called for queues only. Context: hard interrupt. */
	virtual void hint() {}
	/* Context: the work item that handles events. */
	virtual void handle_event(const Message &event) = 0;

protected:
	~EventHandler() = default;
};

/* The limits that RNIC_QUERY returns, reduced to those of this driver. */
struct Limits {
	u64 firmware;
	u32 vendor, part, hardware;
	u32 qps, qp_depth, cqs, cq_depth, mrs, page_list, pds;
	u32 sges;
	u32 ird, ord; /* limits of one QP */
};

/*
 * The entry of a QP number. The addresses of the CQs are only compared. Each of them is set and
 * cleared with that CQ's lock held, so code that holds this lock may use `qp`.
 */
struct QpEntry {
	Qp *qp = nullptr;
	u32 generation = 0;
	const Cq *send_cq = nullptr, *recv_cq = nullptr;
};

class Rnic final : private PciFunction
{
public:
	struct Parts {
		device *dev;
		const kern::Mmio *registers;
		const kern::Mmio *window; /* part of BAR 4 that begins with the register page */
		const RegisterPage *page;
		QueueLayout layout;
		unsigned int reply_timeout_ms;
		PciFunction *function;
	};

	explicit Rnic(Parts parts);
	~Rnic() { stop(); }
	/*
	 * Opens the RNIC. Interrupts must already be passed to this object. Errors: those of
	 * requests; ENOMEM. May sleep.
	 */
	kern::Result<> start();
	/*
	 * Closes the RNIC. It must have no objects, and interrupts must still be handled. May
	 * sleep.
	 */
	void stop();

	/*
	 * Handles the interrupt pin. Returns true if the RNIC has raised the interrupt. Context:
	 * hard interrupt.
	 */
	bool interrupt();
	/* Handles an MSI-X interrupt. Context: hard interrupt. */
	void message();
	/* Handles a hint of the card about the queue with this index. Context: hard interrupt. */
	void hint(u32 index);
	/* Waits until all events that the card has raised so far have been handled. May sleep. */
	void flush_events();
	/*
	 * Rejects a connection request without waiting for the card. endpoint: the card's handle of
	 * the request. If too many rejects are pending, the card's timeout ends the request.
	 * Context: process.
	 */
	void reject_later(u32 endpoint);
	/* Rejects a connection request; may wait for space in the request queue. May sleep. */
	void reject(u32 endpoint);

	device *dma_device() const { return parts_.dev; }
	const kern::Mmio &window() const { return *parts_.window; }
	Channel &channel() { return channel_; }
	PciFunction &function() { return *parts_.function; }
	const Limits &limits() const { return limits_; }
	const u8 (&address() const)[6] { return parts_.page->rdma_address; }
	/*
	 * Called when a CQ that had no space for all flushed completions has space again. Context:
	 * any.
	 */
	void flush_more()
	{
		flushes_more_.store_release(true);
		events_.queue(events_work_);
	}
	/* Returns the RNIC's handle, which requests contain. */
	u32 handle() const { return handle_; }
	/* Allocates 16-bit words in host memory, each in its own cache line. */
	kern::DmaPool &words() { return words_; }
	kern::IdAllocator &pds() { return pds_; }
	void ring(u32 index, u16 count) const
	{
		parts_.registers->write32(wire::reg::adapter_hint,
					  index << wire_index_shift | count);
	}

	/*
	 * Adds an IP address to the card, or removes it. The address is in network byte order. May
	 * sleep.
	 */
	kern::Result<> set_address(wire::ConfigOption option, u32 address, u32 mask);
	/*
	 * Does the same in a work item, in the order of the calls, because a caller that holds the
	 * rtnl lock must not wait for the card. A failure is logged. Context: process.
	 */
	void change_address(wire::ConfigOption option, u32 address, u32 mask);
	/* Waits until the card has received all earlier changes. May sleep. */
	void flush_address_changes() { addresses_work_.flush(); }

	/* Returns a generation for contexts, which is never 0. */
	u32 next_generation() { return generation_.fetch_add(1) | 1u << 31; }
	static constexpr u64 context_of(u32 number, u32 generation)
	{
		return u64{generation} << 32 | number;
	}
	/* Returns the entry of a QP number, or nullptr if the number is out of range. */
	QpEntry *qp_entry(u32 number) { return number < qps_.size() ? &qps_[number] : nullptr; }
	/*
	 * Held by code that uses a QP without protection by a caller of the verbs, so that the QP
	 * is not freed meanwhile.
	 */
	kern::Mutex &users_lock() KERN_RETURN_CAPABILITY(users_lock_) { return users_lock_; }
	kern::IdAllocator &qp_numbers() { return qp_numbers_; }
	/* CQs and listeners by the driver's numbers, and queues by the card's indices. */
	kern::XArray<EventHandler> &handlers() { return handlers_; }
	kern::XArray<EventHandler> &queues() { return queues_; }

private:
	static constexpr unsigned int wire_index_shift = 16;
	static constexpr u32 max_rejects = 64;

	struct AddressChange {
		wire::ConfigOption option;
		u32 address, mask;
		kern::ListNode node{};
	};

	kern::Result<> query();
	void handle_status(u32 status);
	void handle_events();
	void handle_event(const Message &event);
	void reject_pending();
	void report_addresses();

	/* Methods of PciFunction, which the channel calls. */
	void disable_bus_mastering() override { parts_.function->disable_bus_mastering(); }
	void synchronize() override { parts_.function->synchronize(); }
	void failed() override;
	/*
	 * Flushes all requests that the card will not complete any more, and calls the handlers of
	 * all CQs (MGMT-09).
	 */
	void give_up();

	const Parts parts_;
	Channel channel_;
	bool given_up_ = false; /* used only by the work item that handles events */
	kern::Atomic<bool> flushes_more_{false};
	u16 hints_read_ = 0; /* used only by the interrupt handler */
	u32 handle_ = 0;
	Limits limits_{};
	kern::DmaPool words_;
	kern::IdAllocator pds_, qp_numbers_;
	kern::Atomic<u32> generation_{1};
	kern::Mutex users_lock_{KERN_LOCK_CLASS("weft_amso1100_users")};
	kern::OwnedArray<QpEntry> qps_;
	kern::XArray<EventHandler> handlers_, queues_;
	kern::WorkQueue events_;
	/*
	 * Set when start() has created all objects to which events may refer. The card may report
	 * events before.
	 */
	kern::Atomic<bool> handles_events_{false};
	kern::Work events_work_{kern::method<&Rnic::handle_events>, this};
	/* Requests to reject: the handler that receives them must not wait for the card. */
	kern::SpinLock rejects_lock_{KERN_LOCK_CLASS("weft_amso1100_rejects")};
	u32 rejects_[max_rejects] KERN_GUARDED_BY(rejects_lock_) = {};
	u32 rejects_pending_ KERN_GUARDED_BY(rejects_lock_) = 0;
	kern::Work rejects_work_{kern::method<&Rnic::reject_pending>, this};
	/* Address changes of the interface that the card has not received yet. */
	kern::SpinLock addresses_lock_{KERN_LOCK_CLASS("weft_amso1100_addresses")};
	kern::List<AddressChange, &AddressChange::node> addresses_ KERN_GUARDED_BY(addresses_lock_);
	kern::Work addresses_work_{kern::method<&Rnic::report_addresses>, this};
};

} // namespace amso1100
