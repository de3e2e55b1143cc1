// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "card.hpp"

#include <kern/time.hpp>
#include "../qp.hpp"

namespace amso1100
{

Card::Card(unsigned int reply_timeout_ms) : reply_timeout_ms_(reply_timeout_ms) {}

bool Card::start(bool registered)
{
	auto own = kern::make_array<u64>(kern::Gfp::kernel, window_bytes / sizeof(u64));
	auto regs = kern::make_array<u64>(kern::Gfp::kernel, wire::bar0_size / sizeof(u64));
	if (!own || !regs || !device.native())
		return false;
	memory = own.take();
	register_memory = regs.take();
	window = kern::Mmio::over_memory(memory.data(), window_bytes);
	registers = kern::Mmio::over_memory(register_memory.data(), wire::bar0_size);
	registers.write32(wire::reg::host_hint, wire::hint_none);
	for (unsigned int i = 0; i < 6; i++)
		page.rdma_address[i] = static_cast<u8>(2 * i + 2);
	const auto queue = [](u32 number) {
		return FixedQueue{entries, wire::message_size, pool_at,
				  shared_at + number * u32{wire::shared::size}};
	};
	auto made = kern::make<Rnic>(kern::Gfp::kernel, Rnic::Parts{device.native(),
								    &registers,
								    &window,
								    &page,
								    {queue(0), queue(1), queue(2)},
								    reply_timeout_ms_,
								    this});
	if (!made)
		return false;
	rnic = made.take();
	auto thread = kern::Thread::create("weft-card", kern::method<&Card::serve>, this);
	if (!thread)
		return false;
	thread_ = thread.take();
	if (!rnic->start())
		return false;
	if (registered) {
		auto created = IbDevice::create(*rnic);
		if (!created)
			return false;
		ib = created.value();
	}
	started_ = true;
	return true;
}

Card::~Card()
{
	if (ib)
		IbDevice::destroy(ib);
	if (rnic)
		rnic->stop();
	(void)thread_.stop();
	rnic.reset();
}

int Card::serve()
{
	while (!kern::Thread::should_stop()) {
		if (shared_index(shared_at) == consumer_ || holding.load_acquire()) {
			kern::sleep_us(20, 50);
			continue;
		}
		Message message;
		for (u32 i = 0; i < wire::message_size / 8; i++) {
			const u64 word =
				window.read64(pool_at + consumer_ * wire::message_size + i * 8);
			__builtin_memcpy(message.bytes() + i * 8, &word, sizeof(word));
		}
		consumer_ = (consumer_ + 1) % entries;
		carry_out(message);
		if (message.bytes()[wire::header::id] == static_cast<u8>(wire::MessageId::term)) {
			if (accepts_term)
				leave();
			continue;
		}
		__atomic_store_n(rnic->channel().card_memory().request_word,
				 swap_be(static_cast<u16>(consumer_)), __ATOMIC_RELEASE);
		interrupt();
	}
	return 0;
}

/* Simulates a reset: the card stops writing to memory, and starts again from its initial state. */
void Card::leave()
{
	consumer_ = 0;
	for (u32 queue = 0; queue < 3; queue++)
		window.write16(shared_at + queue * u32{wire::shared::size} + wire::shared::index,
			       0);
}

void Card::carry_out(Message &message)
{
	const u8 id = message.bytes()[wire::header::id];
	if (id >= 64)
		return;
	last_[id] = message;
	asked_[id].fetch_add(1);
	auto status = static_cast<wire::Status>(answers_[id]);
	if (message.get_opaque<u64>(wire::header::context) == 0 || status == wire::Status::pending)
		return;
	if (status == wire::Status::ok) {
		switch (static_cast<wire::MessageId>(id)) {
		case wire::MessageId::rnic_open:
			message.put_opaque(wire::rnic_open::reply_handle, u32{7});
			break;
		case wire::MessageId::rnic_query: {
			namespace at = wire::rnic_query;
			message = [&] {
				Message reply(wire::MessageId::rnic_query);
				reply.put_opaque(wire::header::context,
						 message.get_opaque<u64>(wire::header::context));
				return reply;
			}();
			for (const size_t limit : {at::max_qps, at::max_cqs, at::max_mrs,
						   at::max_pds, at::max_send_sges})
				message.put(limit, u32{most_qps - 1});
			for (const size_t depth : {at::max_qp_depth, at::max_cq_depth})
				message.put(depth, u32{4096});
			message.put(at::max_qp_ird, u32{128});
			message.put(at::max_qp_ord, u32{128});
			break;
		}
		case wire::MessageId::cq_create: {
			namespace at = wire::cq_create;
			message.put(at::reply_index, next_queue_index++);
			message.put(at::reply_shared, next_place_);
			message.put_opaque(at::reply_handle, first_handle + cqs_given_++);
			next_place_ += wire::shared::size;
			break;
		}
		case wire::MessageId::qp_create:
			create_qp(message);
			break;
		case wire::MessageId::qp_modify:
			if (message.get<u32>(wire::qp_modify::next_state) ==
			    static_cast<u32>(wire::QpState::error))
				flush(qps_[message.get_opaque<u32>(wire::qp_modify::qp_handle)]);
			break;
		case wire::MessageId::mr_register:
			message.put(wire::mr_register::reply_stag, u32{0x01798a00});
			break;
		default:
			break;
		}
	}
	message.bytes()[wire::header::result] = static_cast<u8>(status);
	reply(message);
}

void Card::create_qp(Message &message)
{
	namespace at = wire::qp_create;
	CardQp &qp = qps_[++qps_given_ % most_qps];
	qp = {};
	qp.context = message.get_opaque<u64>(at::user_context);
	qp.send_cq = cqs_[message.get_opaque<u32>(at::sq_cq) - first_handle];
	qp.recv_cq = cqs_[message.get_opaque<u32>(at::rq_cq) - first_handle];
	qp.sq.depth = message.get<u32>(at::sq_depth);
	qp.rq.depth = message.get<u32>(at::rq_depth);
	for (Ring *ring : {&qp.sq, &qp.rq}) {
		ring->slot_bytes = 128;
		ring->start = next_place_;
		next_place_ += wire::shared::size + ring->depth * ring->slot_bytes;
	}
	message.put(at::reply_sq_depth, qp.sq.depth + reply_depth_offset);
	message.put(at::reply_rq_depth, qp.rq.depth + reply_depth_offset);
	message.put(at::reply_sq_slot_size, qp.sq.slot_bytes);
	message.put(at::reply_rq_slot_size, qp.rq.slot_bytes);
	message.put(at::reply_sq_index, next_queue_index++);
	message.put(at::reply_rq_index, next_queue_index++);
	message.put(at::reply_sq_start, qp.sq.start);
	message.put(at::reply_rq_start, qp.rq.start);
	message.put_opaque(at::reply_handle, qps_given_ % most_qps);
}

void Card::flush(CardQp &qp)
{
	while (complete(qp, false, 0, wire::Status::flushed, 0, false))
		;
	while (complete(qp, true, 0, wire::Status::flushed, 0, false))
		;
}

void Card::reply(const Message &message)
{
	const auto memory = rnic->channel().card_memory();
	__builtin_memcpy(memory.replies + size_t{replied_} * memory.reply_bytes, message.bytes(),
			 wire::message_size);
	replied_ = (replied_ + 1) % entries;
	__atomic_store_n(memory.reply_word, swap_be(static_cast<u16>(replied_)), __ATOMIC_RELEASE);
}

void Card::say(const Message &event)
{
	const auto memory = rnic->channel().card_memory();
	__builtin_memcpy(memory.events + size_t{reported_} * memory.event_bytes, event.bytes(),
			 wire::message_size);
	reported_ = (reported_ + 1) % entries;
	__atomic_store_n(memory.event_word, swap_be(static_cast<u16>(reported_)), __ATOMIC_RELEASE);
}

bool Card::complete(CardQp &qp, bool receive, u32 bytes, wire::Status status, u32 silent,
		    bool solicited)
{
	Ring &ring = receive ? qp.rq : qp.sq;
	for (u32 i = 0; i <= silent; i++) {
		if (ring.consumer == shared_index(ring.start))
			return false;
		if (i < silent)
			ring.consumer = (ring.consumer + 1) % ring.depth;
	}
	u8 entry[wire::completion::size] = {};
	const u64 slot = ring.start + wire::shared::size + u64{ring.consumer} * ring.slot_bytes;
	const u64 head = window.read64(slot), context = window.read64(slot + 8);
	__builtin_memcpy(entry, &head, sizeof(head));
	__builtin_memcpy(entry + wire::header::context, &context, sizeof(context));
	put_be(entry + wire::work::silent_count, silent);
	entry[wire::header::result] = static_cast<u8>(status);
	__builtin_memcpy(entry + wire::completion::qp_context, &qp.context, sizeof(qp.context));
	put_be(entry + wire::completion::bytes, bytes);
	ring.consumer = (ring.consumer + 1) % ring.depth;
	add_entry(*(receive ? qp.recv_cq : qp.send_cq), entry,
		  solicited || status != wire::Status::ok);
	return true;
}

bool Card::complete_send(u32 number, wire::Status status, u32 silent, bool solicited)
{
	return complete(qps_[number], false, 0, status, silent, solicited);
}

bool Card::complete_receive(u32 number, u32 bytes, wire::Status status, bool solicited)
{
	return complete(qps_[number], true, bytes, status, 0, solicited);
}

/*
 * Section 5.6 of the reference: a CQ raises one event for the first entry after it was armed, and
 * no other.
 */
void Card::add_entry(Cq &cq, const u8 (&entry)[wire::completion::size], bool solicited)
{
	const auto memory = cq.card_memory();
	const u32 at = swap_be(__atomic_load_n(memory.producer_word, __ATOMIC_RELAXED));
	__builtin_memcpy(memory.entries + size_t{at} * wire::completion_slot_size, entry,
			 sizeof(entry));
	__atomic_store_n(memory.producer_word, swap_be(static_cast<u16>((at + 1) % memory.depth)),
			 __ATOMIC_RELEASE);
	const kern::Mmio &shared = memory.shared;
	if (!(shared.read8(wire::shared::armed) & wire::armed_yes))
		return;
	if (shared.read8(wire::shared::notification) != static_cast<u8>(wire::Notification::next) &&
	    !solicited)
		return;
	shared.write8(wire::shared::armed, 0);
	rnic->hint(memory.queue_index);
}

} // namespace amso1100
