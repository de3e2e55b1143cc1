// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cq.hpp"
#include <hw/mthca/contexts.hpp>
#include <kern/bits.hpp>
#include <kern/log.hpp>
#include "srq.hpp"
#include "user_abi.hpp"

namespace mthca
{

namespace
{

using Context = wire::CqContext;

/* A ring is one block of memory, so its size is limited. */
constexpr size_t max_ring_bytes = 4 << 20;

} // namespace

Cq::Cq(Hca &hca, ib_cq &verbs)
    : lock_(KERN_LOCK_CLASS("mthca.cq")), qps_(hca.qp_table()), qp_mask_(hca.qp_mask()),
      uar_(hca.kernel_uar()), verbs_(verbs), hca_(hca),
      resize_lock_(KERN_LOCK_CLASS("mthca.cq_resize")), members_(hca, verbs)
{
}

Cq::~Cq()
{
	stop();
}

kern::Result<Cq::Ring> Cq::make_ring(u32 log_entries, struct device *dma_device)
{
	Ring ring;
	const size_t bytes = sizeof(wire::Cqe) << log_entries;
	if (bytes > max_ring_bytes)
		return kern::Error{-EINVAL};
	ring.memory = KERN_TRY(kern::DmaBuffer::create(dma_device, bytes, kern::Gfp::kernel));
	ring.entries = ring.memory.as<wire::Cqe>();
	ring.log_entries = log_entries;
	ring.mask = (1u << log_entries) - 1;
	for (u32 i = 0; i < 1u << log_entries; i++)
		ring.at(i).owner = wire::Cqe::owner_bit;
	return ring;
}

kern::Result<> Cq::create_ring(u32 log_entries, struct device *dma_device)
{
	ring_ = KERN_TRY(make_ring(log_entries, dma_device));
	stale_ = KERN_TRY(StaleCompletions::create(log_entries));
	return {};
}

void Cq::use_records(u32 *consumer_record, u32 *arm_record)
{
	using Record = wire::DoorbellRecord;
	consumer_record_ = consumer_record;
	arm_record_ = arm_record;
	arm_word_ = __builtin_bswap32(Record::number.in(number()) |
				      Record::type.in(wire::record_type::cq_arm));
	arm_doorbell_ = __builtin_bswap32(wire::uar::cq_cqn.in(number()));
}

kern::Result<> Cq::create_kernel_ring(u32 log_entries, u8 *context)
{
	KERN_TRY(create_ring(log_entries, hca_.dma_device()));
	consumer_held_ =
		KERN_TRY(hca_.records().get(wire::record_type::cq_consumer_index, number()));
	arm_held_ = KERN_TRY(hca_.records().get(wire::record_type::cq_arm, number()));
	use_records(consumer_held_.words(), arm_held_.words());
	Context::start.set(context, ring_.memory.address());
	Context::uar_page.set(context, hca_.uar_page());
	Context::pd.set(context, hca_.own_memory().pd);
	Context::lkey.set(context, hca_.own_memory().lkey);
	Context::ci_record.set(context, consumer_held_.index());
	Context::arm_record.set(context, arm_held_.index());
	return {};
}

kern::Result<> Cq::use_user_ring(u32 log_entries, u8 *context, ib_udata &udata)
{
	user_abi::CreateCq command;
	KERN_TRY_ERRNO(ib_copy_from_udata(&command, &udata, sizeof(command)));
	KERN_TRY_ERRNO(ib_check_udata_tail(&udata, sizeof(command)));
	UserContext &of = UserContext::of(udata.context);
	// The card would write with the key and the domain of the command, so they must be valid.
	user_region_ = KERN_TRY(UserRegion::create(of, command.lkey, command.pdn));
	user_pdn_ = command.pdn;
	user_consumer_ = KERN_TRY(UserRecord::create(of, command.index_page, command.index_record));
	user_arm_ = KERN_TRY(UserRecord::create(of, command.arm_page, command.arm_record));
	ring_.log_entries = log_entries;
	Context::uar_page.set(context, of.uar_page());
	Context::pd.set(context, command.pdn);
	Context::lkey.set(context, command.lkey);
	Context::ci_record.set(context, user_consumer_.index());
	Context::arm_record.set(context, user_arm_.index());
	return {};
}

kern::Result<> Cq::start_without_card(u32 log_entries, struct device *dma_device,
				      u32 *consumer_record, u32 *arm_record)
{
	KERN_TRY(create_ring(log_entries, dma_device));
	number_ = KERN_TRY(Number::create(hca_.cqns()));
	use_records(consumer_record, arm_record);
	// Suppress log messages about invalid entries, for which there is no device.
	reported_ = true;
	return {};
}

kern::Result<> Cq::start(const ib_cq_init_attr &attr, ib_udata *udata)
{
	const u32 log_entries = KERN_TRY(plan_ring(attr));
	number_ = KERN_TRY(Number::create(hca_.cqns()));
	u8 context[Context::size] = {};
	KERN_TRY(udata ? use_user_ring(log_entries, context, *udata)
		       : create_kernel_ring(log_entries, context));
	context_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::cqc), number()));

	Context::log_size.set(context, log_entries);
	Context::eqn.set(context, hca_.completion_eq(attr.comp_vector).number());
	Context::cqn.set(context, number());
	auto mailbox = KERN_TRY(hca_.commands().mailbox(Context::size));
	__builtin_memcpy(mailbox.bytes(), context, sizeof(context));
	KERN_TRY(enter_card(mailbox, attr, log_entries, udata));
	if (udata) {
		const user_abi::Number response{.value = number(), .reserved = 0};
		KERN_TRY_ERRNO(ib_copy_to_udata(udata, &response, sizeof(response)));
	}
	return {};
}

kern::Result<> Cq::command_resize(u32 log_entries, u64 start, u32 lkey)
{
	auto mailbox = KERN_TRY(hca_.commands().mailbox(wire::ResizeCq::size));
	wire::ResizeCq::start.set(mailbox.bytes(), start);
	wire::ResizeCq::log_size.set(mailbox.bytes(), log_entries);
	wire::ResizeCq::lkey.set(mailbox.bytes(), lkey);
	return hca_.commands().execute_in(
		{.opcode = wire::opcode::resize_cq, .in_modifier = number(), .op_modifier = 1},
		mailbox);
}

/* Resizes a program's ring. The library copies the entries that it has not polled. */
kern::Result<> Cq::resize_user(u32 log_entries, ib_udata &udata)
{
	user_abi::ResizeCq command;
	KERN_TRY_ERRNO(ib_copy_from_udata(&command, &udata, sizeof(command)));
	KERN_TRY_ERRNO(ib_check_udata_tail(&udata, sizeof(command)));
	kern::Guard resizing(resize_lock_);
	UserRegion region = KERN_TRY(
		UserRegion::create(UserContext::of(udata.context), command.lkey, user_pdn_));
	KERN_TRY(command_resize(log_entries, 0, command.lkey));
	// The card does not write into the old ring any more.
	user_region_ = std::move(region);
	ring_.log_entries = log_entries;
	verbs_.cqe = static_cast<int>(1u << log_entries) - 1;
	return {};
}

/*
 * From the command on, the card writes into the new ring, at its current index. Entries before that
 * index are polled from the old ring. poll() switches to the new ring when it reaches that index;
 * otherwise this function switches when the command has completed.
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
	Ring unused;
	StaleCompletions unused_stale;
	if (log_entries == ring_.log_entries)
		return {};
	if (hca_.failed())
		return kern::Error{-EIO};
	Ring fresh = KERN_TRY(make_ring(log_entries, hca_.dma_device()));
	StaleCompletions fresh_stale = KERN_TRY(StaleCompletions::create(log_entries));
	const u64 start = fresh.memory.address();
	{
		kern::Guard guard(lock_);
		if (end_locked() - consumer_ > entries)
			return kern::Error{-EINVAL};
		next_ring_ = std::move(fresh);
		next_stale_ = std::move(fresh_stale);
		resizing_ = true;
	}
	const auto resized = command_resize(log_entries, start, hca_.own_memory().lkey);
	{
		kern::Guard guard(lock_);
		if (resizing_ && resized) {
			// No entry of the new ring has been polled yet, so copy the unpolled
			// entries of the old ring.
			for (u32 at = consumer_, end = end_locked(); at != end; at++) {
				next_ring_.at(at) = ring_.at(at);
				if (ring_.at(at).opcode == wire::Cqe::stale)
					stale_.move(at, next_stale_, at);
			}
			std::swap(ring_, next_ring_);
			std::swap(stale_, next_stale_);
		}
		if (resized)
			verbs_.cqe = static_cast<int>(1u << log_entries) - 1;
		resizing_ = false;
		// The old ring, or the new one if the command has failed, is freed when the lock is
		// not held any more.
		unused = std::move(next_ring_);
		unused_stale = std::move(next_stale_);
	}
	return resized;
}

bool Cq::switch_ring(u32 index)
{
	if (!next_ring_.owned(index))
		return false;
	std::swap(ring_, next_ring_);
	std::swap(stale_, next_stale_);
	resizing_ = false;
	return true;
}

bool Cq::is_entry_of(const wire::Cqe &cqe, const Qp &qp)
{
	return cqe.qpn == qp.number() && cqe.opcode != wire::Cqe::stale;
}

u32 Cq::end_locked() const
{
	u32 end = consumer_;
	while (ring_.memory && end - consumer_ < 1u << ring_.log_entries && ring_.owned(end))
		end++;
	kern::dma_rmb();
	return end;
}

void Cq::purge_locked(const Qp &qp)
{
	const u32 end = stale_.clip(consumer_, end_locked());
	last_key_ = no_key;
	// From the newest to the oldest entry, so that the remaining entries can be moved into
	// slots that become free.
	u32 gone = 0;
	for (u32 at = end; at-- != consumer_;) {
		const wire::Cqe &cqe = ring_.at(at);
		if (is_entry_of(cqe, qp)) {
			u64 id;
			const bool sent = cqe.is_error() ? cqe.opcode == wire::Cqe::send_error
							 : cqe.is_send != 0;
			if (!sent && qp.srq)
				(void)qp.srq->complete(cqe.wqe_address, id);
			gone++;
		} else if (gone) {
			if (cqe.opcode == wire::Cqe::stale)
				stale_.move(at, stale_, at + gone);
			ring_.at(at + gone) = cqe;
		}
	}
	for (u32 i = 0; i < gone; i++)
		kern::write_once(ring_.at(consumer_++).owner, wire::Cqe::owner_bit);
	if (gone)
		report_consumer();
}

void Cq::dump(kern::debugfs::Output &out)
{
	kern::Guard guard(lock_);
	out.print("CQ %u: %u entries, consumer %u, %lu events, %lu impossible entries\n", number(),
		  1u << ring_.log_entries, consumer_, events_, bogus_entries_);
	members_.dump(out);
}

} // namespace mthca
