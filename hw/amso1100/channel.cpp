// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "channel.hpp"

#include <kern/log.hpp>
#include <kern/time.hpp>

namespace amso1100
{

kern::Result<> Channel::start()
{
	const QueueLayout &layout = parts_.layout;
	words_ = KERN_TRY(kern::DmaBuffer::create(parts_.dev, sizeof(Words)));
	{
		auto pool = KERN_TRY(kern::DmaBuffer::create(
			parts_.dev, size_t{layout.replies.entries} * layout.replies.slot_bytes));
		kern::Guard guard(lock_);
		replies_.pool = std::move(pool);
	}
	events_.pool = KERN_TRY(kern::DmaBuffer::create(
		parts_.dev, size_t{layout.events.entries} * layout.events.slot_bytes));

	const auto address = [&](const Words::Word &word) {
		return words_.address() +
		       static_cast<u64>(reinterpret_cast<const char *>(&word) -
					reinterpret_cast<const char *>(words_.memory()));
	};
	Message message(wire::MessageId::init);
	message.put(wire::init::hint_count, address(words().hint_count));
	message.put(wire::init::request_word, address(words().requests));
	message.put(wire::init::reply_word, address(words().replies));
	message.put(wire::init::event_word, address(words().events));
	{
		kern::Guard guard(lock_);
		message.put(wire::init::reply_pool, replies_.pool.address());
	}
	message.put(wire::init::event_pool, events_.pool.address());
	started_.store_release(true);
	return post(message, wire::init::event_pool + sizeof(u64));
}

void Channel::stop()
{
	if (!started_.load_acquire())
		return;
	/*
	 * The card does not reply to TERM. It has accepted it when the index of the request queue
	 * is 0 again (4.3). If the request is in the last slot, the index is 0 in any case. So send
	 * another request first, which the card rejects, to occupy the last slot.
	 */
	const auto is_last = [&] {
		kern::Guard guard(post_lock_);
		return producer_ + 1 == parts_.layout.requests.entries;
	};
	if (is_last()) {
		Message nothing(wire::MessageId::rnic_close);
		kern::ignore(call(nothing, wire::rnic_handle + sizeof(u32)));
	}
	Message message(wire::MessageId::term);
	if (post(message, wire::header::size) && !accepted_term())
		fail("does not accept TERM");
	/*
	 * The card does not access memory any more: it has accepted TERM, or it has failed and lost
	 * bus mastering.
	 */
	started_.store_release(false);
}

bool Channel::accepted_term()
{
	const auto deadline = kern::Deadline::in_ms(parts_.reply_timeout_ms);
	const u64 index = parts_.layout.requests.shared + wire::shared::index;
	while (parts_.window->read16(index) != 0) {
		if (failed() || deadline.passed())
			return false;
		kern::sleep_us(20, 100);
	}
	return true;
}

void Channel::fail(const char *why)
{
	/*
	 * Disable bus mastering first, because a task that sees the failure may free memory that
	 * the card uses.
	 */
	if (!failed_.load_acquire())
		parts_.function->disable_bus_mastering();
	if (failed_.exchange(true))
		return;
	kern_dev_error_limited(parts_.dev, "the RNIC %s; it is not used any more\n", why);
	space_.wake_all();
	{
		kern::Guard guard(lock_);
		for (Call &call : calls_)
			if (call.message)
				call.answered.complete();
	}
	parts_.function->failed();
}

bool Channel::has_space() const
{
	const u32 entries = parts_.layout.requests.entries;
	const u16 consumed = word(words().requests.value);
	return producer_ != (consumed + entries - 1) % entries;
}

kern::Result<> Channel::submit(const Message &message, size_t bytes)
{
	const FixedQueue &queue = parts_.layout.requests;
	kern::Guard guard(post_lock_);
	const bool space = space_.wait_for(parts_.reply_timeout_ms, [&] {
		post_lock_.assert_held();
		return failed() || has_space();
	});
	if (!space)
		fail("accepts no requests");
	if (failed())
		return kern::Error{-EIO};
	const kern::Mmio &window = *parts_.window;
	window.copy64(queue.pool + u64{producer_} * queue.slot_bytes, message.bytes(),
		      (bytes + 7) / 8);
	producer_ = (producer_ + 1) % queue.entries;
	kern::wmb();
	write_be16(window, queue.shared + wire::shared::index, static_cast<u16>(producer_));
	return {};
}

kern::Result<> Channel::post(Message &message, size_t bytes)
{
	message.put_opaque(wire::header::context, u64{0});
	return submit(message, bytes);
}

u32 Channel::allocate_call(Message &message)
{
	u32 taken = max_calls;
	space_.wait([&] {
		kern::Guard guard(lock_);
		for (u32 i = 0; i < max_calls && taken == max_calls; i++)
			if (!calls_[i].message)
				taken = i;
		if (taken == max_calls)
			return false;
		calls_[taken].message = &message;
		calls_[taken].generation++;
		calls_[taken].answered.reinit();
		return true;
	});
	return taken;
}

void Channel::free_call(u32 number)
{
	{
		kern::Guard guard(lock_);
		calls_[number].message = nullptr;
	}
	space_.wake();
}

/*
 * The generation in the context distinguishes the reply from a late reply to an earlier request in
 * the same entry.
 */
kern::Result<> Channel::call(Message &message, size_t bytes)
{
	const u32 number = allocate_call(message);
	Call &call = calls_[number];
	message.put_opaque(wire::header::context, u64{call.generation} << 32 | (number + 1));
	const auto submitted = submit(message, bytes);
	if (submitted && !call.answered.wait_for(parts_.reply_timeout_ms))
		fail("does not respond");
	free_call(number);
	if (failed())
		return kern::Error{-EIO};
	return kern::check(errno_of(message.status()));
}

Channel::Found Channel::read_message(Incoming &queue, const FixedQueue &place, const u16 &at,
				     Message &into)
{
	const u16 produced = word(at);
	if (produced == queue.consumer)
		return Found::none;
	if (produced >= place.entries)
		return Found::invalid;
	const size_t bytes =
		place.slot_bytes < wire::message_size ? place.slot_bytes : wire::message_size;
	__builtin_memcpy(into.bytes(),
			 queue.pool.as<u8>() + size_t{queue.consumer} * place.slot_bytes, bytes);
	queue.consumer = (queue.consumer + 1) % place.entries;
	/* The slot belongs to the card again when it reads the index. */
	kern::mb();
	write_be16(*parts_.window, place.shared + wire::shared::index,
		   static_cast<u16>(queue.consumer));
	return Found::message;
}

Channel::Found Channel::read_reply()
{
	Message reply;
	kern::Guard guard(lock_);
	const Found found =
		read_message(replies_, parts_.layout.replies, words().replies.value, reply);
	if (found != Found::message)
		return found;
	const auto context = reply.get_opaque<u64>(wire::header::context);
	const u32 number = static_cast<u32>(context) - 1;
	if (number < max_calls && calls_[number].message &&
	    calls_[number].generation == context >> 32) {
		*calls_[number].message = reply;
		calls_[number].answered.complete();
	}
	return found;
}

void Channel::drain_replies()
{
	if (!started_.load_acquire())
		return;
	space_.wake();
	for (u32 taken = 0; taken < parts_.layout.replies.entries && !failed(); taken++) {
		const Found found = read_reply();
		if (found == Found::invalid)
			fail("reports a reply at an invalid index");
		if (found != Found::message)
			return;
	}
}

bool Channel::next_event(Message &event)
{
	if (!started_.load_acquire() || failed())
		return false;
	const Found found =
		read_message(events_, parts_.layout.events, words().events.value, event);
	if (found == Found::invalid)
		fail("reports an event at an invalid index");
	return found == Found::message;
}

Channel::CardMemory Channel::card_memory()
{
	kern::Guard guard(lock_);
	return {.replies = replies_.pool.as<u8>(),
		.events = events_.pool.as<u8>(),
		.reply_bytes = parts_.layout.replies.slot_bytes,
		.event_bytes = parts_.layout.events.slot_bytes,
		.hint_word = &words().hint_count.value,
		.request_word = &words().requests.value,
		.reply_word = &words().replies.value,
		.event_word = &words().events.value};
}

} // namespace amso1100
