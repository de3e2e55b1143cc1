// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The RNIC: its capabilities, and the objects on it.
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
	/* Called for queues only, in a hard interrupt. */
	virtual void hint() {}
	/* Called in the task that processes events. */
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
	u32 ird, ord; /* limits of a QP */
};

/*
 * The QP that belongs to a context. The addresses of its CQs are only compared. A CQ's lock is held
 * while its address is set or cleared, so a holder of that lock may use `qp`.
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
		unsigned int patience_ms;
		PciFunction *function;
	};

	explicit Rnic(Parts parts);
	~Rnic() { stop(); }
	/*
	 * Opens the RNIC; interrupts must already be passed on. Errors: those of requests; ENOMEM.
	 * May sleep.
	 */
	kern::Result<> start();
	/* Closes the RNIC, which must have no objects; interrupts are still handled. May sleep. */
	void stop();

	/* Handles INTx: returns true if it was the RNIC's interrupt. Context: hard interrupt. */
	bool interrupt();
	/* Handles an MSI: there may be work. Context: hard interrupt. */
	void message();
	/* The card reports something about the queue with this index. Context: hard interrupt. */
	void hint(u32 index);
	/* Returns when all events that the card has raised so far are handled. May sleep. */
	void flush_events();
	/*
	 * Refuses a connection request without waiting for the card. endpoint: the card's handle of
	 * the request. If too many are pending, the request is left to the card's timeout. Context:
	 * process.
	 */
	void refuse_later(u32 endpoint);
	/* Does the same, but waits for space for the request. May sleep. */
	void refuse(u32 endpoint);

	device *dma_device() const { return parts_.dev; }
	const kern::Mmio &window() const { return *parts_.window; }
	Channel &channel() { return channel_; }
	PciFunction &function() { return *parts_.function; }
	const Limits &limits() const { return limits_; }
	const u8 (&address() const)[6] { return parts_.page->rdma_address; }
	/* A CQ that had no space for all flushed completions has space again. Context: any. */
	void flush_more()
	{
		flushes_more_.store_release(true);
		events_.queue(events_work_);
	}
	/* The RNIC's handle, for requests. */
	u32 handle() const { return handle_; }
	/* Words of 16 bits, each with its own cache line. */
	kern::DmaPool &words() { return words_; }
	kern::IdAllocator &pds() { return pds_; }
	void ring(u32 index, u16 count) const
	{
		parts_.registers->write32(wire::reg::adapter_hint,
					  index << wire_index_shift | count);
	}

	/* Adds an IP address to the card, or removes it. The address is in network byte order. */
	kern::Result<> set_address(wire::ConfigOption option, u32 address, u32 mask);
	/*
	 * Does the same, in the order of the calls, without waiting for the card, because a caller
	 * that holds the rtnl lock must not wait. A failure is logged. Context: process.
	 */
	void change_address(wire::ConfigOption option, u32 address, u32 mask);
	/* Returns when all earlier changes have reached the card. May sleep. */
	void settle_addresses() { addresses_work_.flush(); }

	/* Returns a number for contexts, which is never 0. */
	u32 next_generation() { return generation_.fetch_add(1) | 1u << 31; }
	static constexpr u64 context_of(u32 number, u32 generation)
	{
		return u64{generation} << 32 | number;
	}
	/* Returns nullptr if there is no such number. */
	QpEntry *qp_entry(u32 number) { return number < qps_.size() ? &qps_[number] : nullptr; }
	/*
	 * Held while a QP is used by code that no caller of the verbs protects, so that the QP is
	 * not freed meanwhile.
	 */
	kern::Mutex &users_lock() KERN_RETURN_CAPABILITY(users_lock_) { return users_lock_; }
	kern::IdAllocator &qp_numbers() { return qp_numbers_; }
	/* CQs and listeners by the driver's numbers, and queues by the card's numbers. */
	kern::XArray<EventHandler> &handlers() { return handlers_; }
	kern::XArray<EventHandler> &queues() { return queues_; }

private:
	static constexpr unsigned int wire_index_shift = 16;
	static constexpr u32 most_refusals = 64;

	struct AddressChange {
		wire::ConfigOption option;
		u32 address, mask;
		kern::ListNode node{};
	};

	kern::Result<> query();
	void handle_status(u32 status);
	void handle_events();
	void handle_event(const Message &event);
	void refuse_all();
	void report_addresses();

	/* PciFunction, for the channel. */
	void cut_off() override { parts_.function->cut_off(); }
	void synchronize() override { parts_.function->synchronize(); }
	void failed() override;
	/*
	 * Flushes all requests that the card will not complete any more, and wakes all waiters
	 * (MGMT-09).
	 */
	void give_up();

	const Parts parts_;
	Channel channel_;
	bool given_up_ = false; /* the events' task */
	kern::Atomic<bool> flushes_more_{false};
	u16 hints_read_ = 0; /* the interrupt's */
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
	 * Events are handled once start() has created all objects that they may refer to. A card
	 * may have events before.
	 */
	kern::Atomic<bool> handles_events_{false};
	kern::Work events_work_{kern::method<&Rnic::handle_events>, this};
	/* Requests without a listener: the handler that receives them cannot wait for the card. */
	kern::SpinLock refusals_lock_{KERN_LOCK_CLASS("weft_amso1100_refusals")};
	u32 refusals_[most_refusals] KERN_GUARDED_BY(refusals_lock_) = {};
	u32 refusals_waiting_ KERN_GUARDED_BY(refusals_lock_) = 0;
	kern::Work refusals_work_{kern::method<&Rnic::refuse_all>, this};
	/* Address changes of the interface to be sent to the card. */
	kern::SpinLock addresses_lock_{KERN_LOCK_CLASS("weft_amso1100_addresses")};
	kern::List<AddressChange, &AddressChange::node> addresses_ KERN_GUARDED_BY(addresses_lock_);
	kern::Work addresses_work_{kern::method<&Rnic::report_addresses>, this};
};

} // namespace amso1100
