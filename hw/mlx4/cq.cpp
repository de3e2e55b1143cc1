// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cq.hpp"
#include <kern/log.hpp>
#include <kern/time.hpp>
#include "srq.hpp"
#include "user_abi.hpp"

namespace mlx4
{

namespace
{

using Context = wire::CqContext;

} // namespace

Cq::Cq(Hca &hca, ib_cq &verbs)
    : lock_(KERN_LOCK_CLASS("mlx4.cq")), qps_(hca.qp_table()), qp_mask_(hca.qp_mask()),
      uar_(hca.kernel_uar()),
      checksums_(hca.capabilities().has(wire::dev_cap_flag::ipoib_checksum)), verbs_(verbs),
      hca_(hca), resize_lock_(KERN_LOCK_CLASS("mlx4.cq_resize")), members_(hca, verbs)
{
}

Cq::~Cq()
{
	stop();
}

kern::Result<QueueBuffer> Cq::make_ring(u32 log_entries)
{
	auto ring = KERN_TRY(QueueBuffer::create(hca_.dma_device(), hca_.mtts(),
						 sizeof(wire::Cqe) << log_entries));
	// In the first pass through the ring, a clear owner bit means that software owns the entry.
	// So set all bits: software must not own an entry that the card has not written.
	for (u32 i = 0; i < 1u << log_entries; i++)
		reinterpret_cast<wire::Cqe *>(ring.address())[i].owner_opcode =
			wire::Cqe::owner_bit;
	return ring;
}

kern::Result<> Cq::create_kernel_ring(u32 log_entries)
{
	buffer_ = KERN_TRY(make_ring(log_entries));
	stale_ = KERN_TRY(StaleCompletions::create(log_entries));
	use_ring(reinterpret_cast<wire::Cqe *>(buffer_.address()), log_entries);
	doorbell_ = KERN_TRY(hca_.doorbells().get());
	record_ = doorbell_.address();
	return {};
}

kern::Result<> Cq::use_user_ring(u32 log_entries, ib_udata &udata)
{
	user_abi::CreateQueue command;
	KERN_TRY_ERRNO(ib_copy_from_udata(&command, &udata, sizeof(command)));
	KERN_TRY_ERRNO(ib_check_udata_tail(&udata, sizeof(command)));
	user_ = KERN_TRY(UserQueue::create(hca_, UserContext::of(udata.context), command.buffer,
					   sizeof(wire::Cqe) << log_entries, command.doorbell,
					   wire::doorbell_record::cq_size, true));
	log_entries_ = log_entries;
	return {};
}

void Cq::start_without_card(u32 number, u32 consumer, u32 *record)
{
	prepare_arming(number);
	consumer_ = consumer;
	record_ = record;
	report_consumer(consumer);
}

kern::Result<> Cq::start(const ib_cq_init_attr &attr, ib_udata *udata)
{
	const u32 log_entries = KERN_TRY(plan_ring(attr));
	KERN_TRY(udata ? use_user_ring(log_entries, *udata) : create_kernel_ring(log_entries));
	number_ = KERN_TRY(Number::create(hca_.cqns()));
	prepare_arming(number());
	protection_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::cmpt_cq), number()));
	context_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::cqc), number()));

	auto mailbox = KERN_TRY(hca_.commands().mailbox(Context::size));
	u8 *context = mailbox.bytes();
	Context::log_size.set(context, log_entries);
	const QueuePlace location = udata ? user_.place() : place();
	Context::uar_page.set(context, location.uar_page);
	Context::eqn.set(context, hca_.completion_eq(attr.comp_vector).number());
	Context::log_page_size.set(context, location.log_page_size);
	Context::mtt_offset.set(context, location.mtt_offset);
	Context::doorbell_record.set(context, location.doorbell_record);
	KERN_TRY(enter_card(mailbox, attr, log_entries, udata));
	if (udata) {
		const u32 response = number();
		KERN_TRY_ERRNO(ib_copy_to_udata(udata, &response, sizeof(response)));
	}
	return {};
}

kern::Result<> Cq::moderate(u16 count, u16 period_us)
{
	auto mailbox = KERN_TRY(hca_.commands().mailbox());
	Context::moderation_count.set(mailbox.bytes(), count);
	Context::moderation_period.set(mailbox.bytes(), period_us);
	return hca_.commands().execute_in({.opcode = wire::Opcode::modify_cq,
					   .in_modifier = number(),
					   .op_modifier = wire::modify_cq_moderation},
					  mailbox);
}

kern::Result<> Cq::command_resize(u32 log_entries, u32 log_page_size, u64 mtt_offset)
{
	auto mailbox = KERN_TRY(hca_.commands().mailbox());
	Context::log_size.set(mailbox.bytes(), log_entries);
	Context::log_page_size.set(mailbox.bytes(), log_page_size);
	Context::mtt_offset.set(mailbox.bytes(), mtt_offset);
	return hca_.commands().execute_in({.opcode = wire::Opcode::modify_cq,
					   .in_modifier = number(),
					   .op_modifier = wire::modify_cq_resize},
					  mailbox);
}

kern::Result<> Cq::resize_user(u32 log_entries, ib_udata &udata)
{
	user_abi::ResizeCq command;
	if (log_entries == kern::read_once(log_entries_))
		return {};
	// Reading the program's memory may take long or never end, so the lock is not held: other
	// programs that share an XRC domain with this one need it.
	KERN_TRY_ERRNO(ib_copy_from_udata(&command, &udata, sizeof(command)));
	KERN_TRY_ERRNO(ib_check_udata_tail(&udata, sizeof(command)));
	UserPages fresh = KERN_TRY(UserQueue::make_pages(hca_, command.buffer,
							 sizeof(wire::Cqe) << log_entries, true));
	// Freed after the lock is released.
	UserPages old;
	kern::Guard resizing(resize_lock_);
	if (log_entries == log_entries_)
		return {};
	KERN_TRY(command_resize(log_entries, fresh.page_shift() - 12, fresh.mtt_offset()));
	// The card does not write into the old ring any more, so it can be freed.
	old = user_.exchange(std::move(fresh));
	kern::write_once(log_entries_, log_entries);
	verbs_.cqe = static_cast<int>(1u << log_entries) - 1;
	return {};
}

/*
 * The card writes a marker entry at an index p of the old ring, and continues at p + 1 of the new
 * one. Entries before p are copied to the new ring, one index higher.
 */
kern::Result<> Cq::resize(unsigned int entries, ib_udata *udata)
{
	if (entries == 0 || entries >= 1u << hca_.capabilities().log_max_cq_size)
		return kern::Error{-EINVAL};
	const u32 log_entries = kern::log2_ceil(entries + 1);
	if (verbs_.res.user)
		return udata ? resize_user(log_entries, *udata)
			     : kern::Result<>(kern::Error{-EINVAL});
	kern::Guard resizing(resize_lock_);
	if (log_entries == log_entries_)
		return {};
	if (hca_.failed())
		return kern::Error{-EIO};
	QueueBuffer fresh = KERN_TRY(make_ring(log_entries));
	StaleCompletions fresh_stale = KERN_TRY(StaleCompletions::create(log_entries));
	const u32 log_page_size = fresh.log_page_size();
	const u64 mtt_offset = fresh.mtt_offset();
	{
		kern::Guard guard(lock_);
		u32 waiting = 0;
		while (owned(entry(consumer_ + waiting), consumer_ + waiting) &&
		       waiting >> log_entries_ == 0)
			waiting++;
		if (waiting > entries)
			return kern::Error{-EINVAL};
		next_buffer_ = std::move(fresh);
		next_stale_ = std::move(fresh_stale);
		next_log_entries_ = log_entries;
		resizing_ = true;
	}
	const auto resized = command_resize(log_entries, log_page_size, mtt_offset);
	QueueBuffer unused;
	StaleCompletions unused_stale;
	kern::Guard guard(lock_);
	if (resizing_ && resized) {
		// The marker entry has not been polled yet.
		u32 at = consumer_;
		auto *const ring = reinterpret_cast<wire::Cqe *>(next_buffer_.address());
		const u32 mask = (1u << log_entries) - 1;
		while (at - consumer_ < 1u << log_entries_ && owned(entry(at), at) &&
		       entry(at)->opcode() != wire::cqe_opcode_resize) {
			if (entry(at)->opcode() == stale_opcode)
				stale_.move(at, next_stale_, at + 1);
			wire::Cqe copy = *entry(at++);
			copy.owner_opcode =
				static_cast<u8>((copy.owner_opcode & ~wire::Cqe::owner_bit) |
						(at >> log_entries & 1) << 7);
			ring[at & mask] = copy;
		}
		consumer_++;
		switch_ring();
		report_consumer(consumer_);
	}
	if (resized)
		verbs_.cqe = static_cast<int>(1u << log_entries) - 1;
	resizing_ = false;
	// The old ring, or the new one if the command has failed, is freed after the lock is
	// released.
	unused = std::move(next_buffer_);
	unused_stale = std::move(next_stale_);
	return resized;
}

void Cq::use_ring(wire::Cqe *entries, u32 log_entries)
{
	entries_ = reinterpret_cast<u8 *>(entries);
	log_entries_ = log_entries;
	mask_ = (1u << log_entries) - 1;
}

bool Cq::switch_ring()
{
	if (!resizing_)
		return false;
	std::swap(buffer_, next_buffer_);
	std::swap(stale_, next_stale_);
	use_ring(reinterpret_cast<wire::Cqe *>(buffer_.address()), next_log_entries_);
	resizing_ = false;
	return true;
}

u32 Cq::detach_target(Qp &qp)
{
	kern::Guard resizing(resize_lock_);
	kern::Guard guard(lock_);
	return save_completions(qp);
}

void Cq::attach(Srq &srq, u32 domain)
{
	kern::Guard guard(lock_);
	SrqEntry &entry = *hca_.srq_entry(srq.number());
	kern::write_once(entry.domain, QpEntry::xrc_target | domain);
	kern::write_once(entry.cqn, number());
}

void Cq::detach(Srq &srq)
{
	kern::Guard resizing(resize_lock_);
	kern::Guard guard(lock_);
	purge_locked([&](const wire::Cqe &cqe) {
		if (cqe.is_send() || cqe.opcode() == stale_opcode ||
		    cqe.remote_qpn() != srq.number() ||
		    !(kern::read_once(qps_[cqe.qpn() & qp_mask_].recv_cqn) & QpEntry::xrc_target))
			return false;
		release_wqe(cqe, &srq);
		return true;
	});
	SrqEntry &entry = *hca_.srq_entry(srq.number());
	kern::write_once(entry.cqn, 0);
	kern::write_once(entry.domain, 0);
}

void Cq::purge_locked(const Qp &qp)
{
	purge_locked([&](const wire::Cqe &cqe) {
		if (!is_entry_of(cqe, qp))
			return false;
		if (!cqe.is_send())
			release_wqe(cqe, shared_queue(cqe, qp));
		return true;
	});
}

void Cq::release_wqe(const wire::Cqe &cqe, Srq *srq)
{
	u64 id;
	if (srq)
		(void)srq->complete(cqe.wqe_index, id);
}

u32 Cq::end_locked() const
{
	u32 end = consumer_;
	// The kernel does not read a program's ring.
	while (entries_ && end - consumer_ < 1u << log_entries_ && owned(entry(end), end))
		end++;
	kern::dma_rmb();
	return end;
}

template<class Predicate>
void Cq::purge_locked(Predicate unwanted)
{
	const u32 end = stale_.clip(consumer_, end_locked());
	// Drop the cached QP, because it, or the SRQ through which an XRC target was found, may be
	// destroyed next.
	last_key_ = no_key;
	// From the newest to the oldest entry, so that the remaining entries can be moved into
	// slots that become free.
	u32 gone = 0;
	for (u32 at = end; at-- != consumer_;) {
		const wire::Cqe &cqe = *entry(at);
		if (unwanted(cqe)) {
			gone++;
		} else if (gone) {
			if (cqe.opcode() == stale_opcode)
				stale_.move(at, stale_, at + gone);
			auto &to = const_cast<wire::Cqe &>(*entry(at + gone));
			const u8 owner = to.owner_opcode & wire::Cqe::owner_bit;
			to = cqe;
			to.owner_opcode =
				static_cast<u8>((to.owner_opcode & ~wire::Cqe::owner_bit) | owner);
		}
	}
	if (gone) {
		consumer_ += gone;
		kern::wmb();
		report_consumer(consumer_);
	}
}

void Cq::dump(kern::debugfs::Output &out)
{
	kern::Guard guard(lock_);
	out.print("CQ %u: %u entries, consumer %u, %u events, %lu impossible entries\n", number(),
		  1u << log_entries_, consumer_, events_, bogus_entries_);
	members_.dump(out);
}

} // namespace mlx4
