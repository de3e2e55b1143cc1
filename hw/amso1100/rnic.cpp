// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "rnic.hpp"

#include <hw/amso1100/events.hpp>
#include <kern/log.hpp>
#include "qp.hpp"

namespace amso1100
{
namespace
{

/* Limits of this driver, which also apply if the card supports more. */
constexpr u32 max_qps = 16384, max_depth = 4096, max_sges = 4, max_reads = 128,
	      max_objects = 1 << 20;

constexpr u32 at_most(u32 value, u32 limit)
{
	return value < limit ? value : limit;
}

} // namespace

Rnic::Rnic(Parts parts)
    : parts_(parts), channel_({parts.dev, parts.window, parts.layout, parts.reply_timeout_ms, this})
{
}

kern::Result<> Rnic::start()
{
	events_ =
		KERN_TRY(kern::WorkQueue::create("weft_amso1100", kern::WorkQueue::Kind::ordered));
	words_ = KERN_TRY(kern::DmaPool::create("weft_amso1100_words", parts_.dev, 64, 64));
	KERN_TRY(channel_.start());
	Message open(wire::MessageId::rnic_open);
	open.put_opaque(wire::rnic_open::user_context, u64{1});
	open.put(wire::rnic_open::flags, wire::rnic_open::privileged);
	KERN_TRY(channel_.call(open, wire::rnic_open::flags + sizeof(u32)));
	handle_ = open.get_opaque<u32>(wire::rnic_open::reply_handle);
	KERN_TRY(query());
	qps_ = KERN_TRY(kern::make_array<QpEntry>(kern::Gfp::kernel, limits_.qps + 1));
	handles_events_.store_release(true);
	events_.queue(events_work_);
	return {};
}

kern::Result<> Rnic::query()
{
	namespace at = wire::rnic_query;
	Message message(wire::MessageId::rnic_query);
	message.put_opaque(wire::rnic_handle, handle_);
	KERN_TRY(channel_.call(message, wire::rnic_handle + sizeof(u32)));
	limits_ = {
		.firmware = u64{message.get<u32>(at::firmware_major)} << 32 |
			    message.get<u32>(at::firmware_minor) << 16 |
			    message.get<u32>(at::firmware_patch),
		.vendor = message.get<u32>(at::vendor_id),
		.part = message.get<u32>(at::part_number),
		.hardware = message.get<u32>(at::hardware_version),
		.qps = at_most(message.get<u32>(at::max_qps), max_qps),
		.qp_depth = at_most(message.get<u32>(at::max_qp_depth), max_depth),
		.cqs = at_most(message.get<u32>(at::max_cqs), max_objects),
		.cq_depth = at_most(message.get<u32>(at::max_cq_depth), max_depth),
		.mrs = at_most(message.get<u32>(at::max_mrs), max_objects),
		.page_list = message.get<u32>(at::max_page_list),
		.pds = at_most(message.get<u32>(at::max_pds), max_objects),
		.sges = at_most(message.get<u32>(at::max_send_sges), max_sges),
		.ird = at_most(message.get<u32>(at::max_qp_ird), max_reads),
		.ord = at_most(message.get<u32>(at::max_qp_ord), max_reads),
	};
	return {};
}

void Rnic::stop()
{
	rejects_work_.cancel();
	flush_address_changes();
	if (handle_) {
		Message message(wire::MessageId::rnic_close);
		message.put_opaque(wire::rnic_handle, handle_);
		kern::ignore(channel_.call(message, wire::rnic_handle + sizeof(u32)));
	}
	handle_ = 0;
	channel_.stop();
	events_work_.cancel();
}

kern::Result<> Rnic::set_address(wire::ConfigOption option, u32 address, u32 mask)
{
	namespace at = wire::rnic_setconfig;
	Message message(wire::MessageId::rnic_setconfig);
	message.put_opaque(wire::rnic_handle, handle_);
	message.put(at::option, static_cast<u32>(option));
	message.put_opaque(at::address, address);
	message.put_opaque(at::mask, mask);
	return channel_.call(message, at::mask + 2 * sizeof(u32));
}

void Rnic::change_address(wire::ConfigOption option, u32 address, u32 mask)
{
	auto made = kern::make<AddressChange>(kern::Gfp::kernel, option, address, mask);
	if (!made) {
		kern_dev_error_limited(parts_.dev, "no memory for a change of an address\n");
		return;
	}
	{
		kern::Guard guard(addresses_lock_);
		addresses_.push_back(*made.take().release());
	}
	addresses_work_.queue();
}

void Rnic::report_addresses()
{
	for (;;) {
		kern::Owned<AddressChange> change;
		{
			kern::Guard guard(addresses_lock_);
			change = kern::Owned<AddressChange>::adopt(addresses_.pop_front());
		}
		if (!change)
			return;
		const auto done = set_address(change->option, change->address, change->mask);
		if (!done)
			kern_dev_error_limited(parts_.dev, "an address cannot be %s (%d)\n",
					       change->option == wire::ConfigOption::add_address
						       ? "added"
						       : "removed",
					       done.error());
	}
}

bool Rnic::interrupt()
{
	const u32 status = parts_.registers->read32(wire::reg::disr);
	if (!status)
		return false;
	handle_status(status);
	return true;
}

void Rnic::message()
{
	handle_status(wire::disr_hints);
}

/*
 * Acknowledges the interrupt before it reads any hints, so that no later hint is missed. The write
 * may be delayed on the bus. When the first read has returned, the card has received the write, and
 * raises another interrupt for later hints. The card counts its hints in host memory, so the count
 * shows which hint is the last, and no additional read is needed.
 *
 * Hints from before INIT are not counted. When the hint register is empty, all hints that were
 * counted so far have been read, so the two counts are made equal.
 *
 * Replies are processed before events: the reply to an accept establishes a connection, whose end
 * an event may report.
 */
void Rnic::handle_status(u32 status)
{
	parts_.registers->write32(wire::reg::disr, status);
	u16 pushed = channel_.hints();
	u32 index = parts_.registers->read32(wire::reg::host_hint);
	channel_.drain_replies();
	if (handles_events_.load_acquire())
		events_.queue(events_work_);
	/*
	 * Handle at most one hint for each queue. If there are more, the card raises another
	 * interrupt.
	 */
	for (u32 i = 0; !(index & wire::hint_none); i++) {
		hints_read_++;
		/* If the card has failed, only give_up() may call the handlers (LOCK-06). */
		if (!channel_.failed())
			hint(index);
		pushed = channel_.hints();
		if (hints_read_ == pushed || i == wire::most_queue_index)
			return;
		index = parts_.registers->read32(wire::reg::host_hint);
	}
	hints_read_ = pushed;
}

void Rnic::hint(u32 index)
{
	if (index < wire::least_queue_index)
		return;
	if (EventHandler *const queue = queues_.load(index))
		queue->hint();
}

/*
 * Handles at most as many events as the queue holds, and then schedules itself again. So a caller
 * of flush_events() only waits for existing events.
 */
void Rnic::handle_events()
{
	Message event;
	u32 handled = 0;
	while (handled < parts_.layout.events.entries && channel_.next_event(event)) {
		handle_event(event);
		handled++;
	}
	if (handled == parts_.layout.events.entries)
		events_.queue(events_work_);
	if (channel_.failed() && (flushes_more_.exchange(false) || !given_up_)) {
		given_up_ = true;
		give_up();
	}
}

void Rnic::flush_events()
{
	/* Schedule the work item, because the interrupt may not have arrived yet. */
	if (handles_events_.load_acquire())
		events_.queue(events_work_);
	events_work_.flush();
}

void Rnic::failed()
{
	events_.queue(events_work_);
	parts_.function->failed();
}

void Rnic::give_up()
{
	/* An interrupt handler that has not seen the failure may still be running. */
	parts_.function->synchronize();
	for (u32 number = 1; number < qps_.size(); number++)
		if (Qp *const qp = kern::read_once(qps_[number].qp))
			qp->give_up();
	for (u32 index = wire::least_queue_index; index <= wire::most_queue_index; index++)
		hint(index);
}

void Rnic::reject(u32 endpoint)
{
	Message message(wire::MessageId::request_reject);
	message.put_opaque(wire::rnic_handle, handle_);
	message.put_opaque(wire::object_handle, endpoint);
	/*
	 * The card rejects this request if the endpoint does not exist any more, so do not wait for
	 * its reply.
	 */
	kern::ignore(channel_.post(message, wire::object_request_size));
}

void Rnic::reject_later(u32 endpoint)
{
	kern::Guard guard(rejects_lock_);
	if (rejects_pending_ == max_rejects)
		return;
	rejects_[rejects_pending_++] = endpoint;
	rejects_work_.queue();
}

void Rnic::reject_pending()
{
	for (;;) {
		u32 endpoint;
		{
			kern::Guard guard(rejects_lock_);
			if (rejects_pending_ == 0)
				return;
			endpoint = rejects_[--rejects_pending_];
		}
		reject(endpoint);
	}
}

void Rnic::handle_event(const Message &event)
{
	const auto id = static_cast<wire::EventId>(event.bytes()[wire::header::id]);
	const auto type =
		static_cast<wire::ResourceType>(event.get<u32>(wire::event::resource_type));
	const auto context = event.get_opaque<u64>(wire::event::user_context);
	const u32 number = static_cast<u32>(context);
	if (id == wire::EventId::rnic_catastrophic)
		return channel_.fail("reports a failure");
	if (type == wire::ResourceType::qp) {
		const QpEntry *const entry = qp_entry(number);
		if (Qp *const qp = entry ? kern::read_once(entry->qp) : nullptr;
		    qp && entry->generation == context >> 32)
			qp->handle_event(id, event);
	} else if (EventHandler *const other = handlers_.load(number)) {
		other->handle_event(event);
	}
}

} // namespace amso1100
