// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "srq.hpp"
#include <hw/infinihost/contexts.hpp>
#include <kern/bits.hpp>
#include "qp_geometry.hpp"

namespace infinihost {

namespace {

constexpr u32 least_log_stride = 6, most_log_stride = 11;

} // namespace

Srq::Srq(Hca &hca, ib_srq &verbs) : lock_(KERN_LOCK_CLASS("infinihost.srq")), verbs_(verbs), hca_(hca) {}

Srq::~Srq()
{
	stop();
}

kern::Result<> Srq::start(ib_srq_init_attr &attr)
{
	using Context = wire::SrqContext;
	const Capabilities &cap = hca_.capabilities();

	if (attr.srq_type != IB_SRQT_BASIC || !cap.has(wire::dev_lim_flag::srq))
		return kern::Error{-EOPNOTSUPP};
	// One entry is always free: it is what the list of posted ones ends in.
	if (attr.attr.max_wr >= 1u << cap.log_max_srq_size || attr.attr.max_sge > cap.max_rq_sge)
		return kern::Error{-EINVAL};
	size_ = static_cast<u32>(kern::round_up_power_of_two(attr.attr.max_wr + 1));
	const u32 bytes = sizeof(wire::WqeNext) + attr.attr.max_sge * sizeof(wire::WqeData);
	log_stride_ = bytes <= 1u << least_log_stride ? least_log_stride : kern::log2_ceil(bytes);
	if (log_stride_ > most_log_stride || u64{size_} << log_stride_ > max_queue_bytes)
		return kern::Error{-EINVAL};
	max_sge_ = ((1u << log_stride_) - sizeof(wire::WqeNext)) / sizeof(wire::WqeData);
	if (max_sge_ > cap.max_rq_sge)
		max_sge_ = cap.max_rq_sge;
	entries_ = TRY(kern::make_array<Entry>(kern::Gfp::kernel, size_));
	buffer_ = TRY(kern::DmaBuffer::create(hca_.dma_device(), kern::round_up_power_of_two(size_t{size_} << log_stride_), kern::Gfp::kernel));
	descriptors_ = buffer_.as<u8>();
	base_ = static_cast<u32>(buffer_.address());
	for (u32 i = 0; i < size_; i++)
		link(i, (i + 1) & (size_ - 1));
	tail_ = size_ - 1;

	// Its limit, once for each time that it is set, and its end.
	events_room_ = TRY(hca_.async_eq().room().take(2));
	number_ = TRY(Number::create(hca_.srqns()));
	context_ = TRY(IcmHold::create(hca_.table(IcmRegion::srqc), number()));
	record_held_ = TRY(hca_.records().get(wire::record_type::shared_receive_queue, number()));
	record_ = record_held_.words();

	auto mailbox = TRY(hca_.commands().mailbox());
	u8 *context = mailbox.bytes();
	Context::log_size.set(context, kern::log2_ceil(size_));
	Context::srqn.set(context, number());
	Context::lkey.set(context, verbs_.pd->local_dma_lkey);
	Context::record.set(context, record_held_.index());
	Context::log_stride.set(context, log_stride_ - 4);
	Context::uar_page.set(context, hca_.uar_page());
	Context::start.set(context, buffer_.address());
	Context::pd.set(context, pd_number(verbs_.pd));
	hca_.set_srq(number(), this);
	const auto given = hca_.commands().execute_in({.opcode = wire::Opcode::sw2hw_srq, .in_modifier = number()}, mailbox);
	if (!given) {
		hca_.set_srq(number(), nullptr);
		return given;
	}
	live_ = true;
	attr.attr.max_wr = size_ - 1;
	attr.attr.max_sge = max_sge_;
	return attr.attr.srq_limit ? modify(attr.attr, IB_SRQ_LIMIT) : kern::Result<>();
}

void Srq::stop()
{
	if (!live_)
		return;
	live_ = false;
	kern::ignore(
		hca_.commands().execute_closing({.opcode = wire::Opcode::hw2sw_srq, .in_modifier = number(), .op_modifier = 1}));
	hca_.set_srq(number(), nullptr);
	hca_.synchronize_events();
}

kern::Result<> Srq::modify(const ib_srq_attr &attr, int mask)
{
	// The card's queues keep their size.
	if (mask & IB_SRQ_MAX_WR)
		return kern::Error{-EINVAL};
	if (!(mask & IB_SRQ_LIMIT))
		return {};
	if (attr.srq_limit >= size_)
		return kern::Error{-EINVAL};
	TRY(hca_.commands().execute({.opcode = wire::Opcode::arm_srq, .in_modifier = number(), .in_param = attr.srq_limit}));
	return {};
}

kern::Result<> Srq::query(ib_srq_attr &attr)
{
	auto mailbox = TRY(hca_.commands().mailbox());
	TRY(hca_.commands().execute_out({.opcode = wire::Opcode::query_srq, .in_modifier = number()}, mailbox));
	attr.srq_limit = wire::SrqContext::limit.get(mailbox.bytes());
	attr.max_wr = size_ - 1;
	attr.max_sge = max_sge_;
	return {};
}

int Srq::post(const ib_recv_wr *wr, const ib_recv_wr **bad)
{
	kern::Guard guard(lock_);
	u32 posted = 0;
	int error = 0;
	for (; wr; wr = wr->next) {
		if (static_cast<u32>(wr->num_sge) > max_sge_) [[unlikely]] {
			error = -EINVAL;
			break;
		}
		if (head_ == tail_) [[unlikely]] {
			error = -ENOMEM;
			break;
		}
		Entry &entry = entries_[head_];
		auto *segment = reinterpret_cast<wire::WqeData *>(descriptor(head_) + sizeof(wire::WqeNext));
		u32 length = 0;
		for (int i = 0; i < wr->num_sge; i++, segment++) {
			const ib_sge &sge = wr->sg_list[i];
			segment->byte_count = sge.length;
			segment->lkey = sge.lkey;
			segment->address = sge.addr;
			length += sge.length;
		}
		if (static_cast<u32>(wr->num_sge) < max_sge_) {
			segment->byte_count = 0;
			segment->lkey = wire::terminator_lkey;
			segment->address = 0;
		}
		entry.posted = {wr->wr_id, length};
		head_ = entry.next;
		entry.next = in_use;
		posted++;
	}
	if (posted) {
		counter_ += posted;
		__atomic_store_n(record_, __builtin_bswap32(counter_ & 0xffff), __ATOMIC_RELEASE);
	}
	if (error) [[unlikely]]
		*bad = wr;
	return error;
}

s64 Srq::complete(u32 address, u64 &id)
{
	kern::Guard guard(lock_);
	const u32 index = (address - base_) >> log_stride_;
	if (index >= size_ || entries_[index].next != in_use) [[unlikely]]
		return not_posted;
	const PostedReceive posted = entries_[index].posted;
	id = posted.wr_id;
	// To the end of the list of free ones.
	link(tail_, index);
	tail_ = index;
	// What follows the last one is written when there is something.
	entries_[index].next = 0;
	return posted.length;
}

} // namespace infinihost
