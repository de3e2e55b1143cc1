// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "srq.hpp"
#include "cq.hpp"
#include "family.hpp"
#include "user_abi.hpp"
#include "xrc_domain.hpp"

namespace mlx4
{

Srq::Srq(Hca &hca, ib_srq &verbs) : SharedReceives(hca, verbs, KERN_LOCK_CLASS("mlx4.srq")) {}

Srq::~Srq()
{
	stop();
}

kern::Result<> Srq::create_kernel_ring()
{
	entries_ = KERN_TRY(kern::make_array<Entry>(kern::Gfp::kernel, size_));
	buffer_ = KERN_TRY(
		QueueBuffer::create(hca_.dma_device(), hca_.mtts(), size_t{size_} << log_stride_));
	doorbell_ = KERN_TRY(hca_.doorbells().get());
	descriptors_ = buffer_.address();
	record_ = doorbell_.address();
	link_all();
	return {};
}

kern::Result<> Srq::use_user_ring(ib_udata &udata)
{
	user_abi::CreateQueue command;
	KERN_TRY_ERRNO(ib_copy_from_udata(&command, &udata, sizeof(command)));
	KERN_TRY_ERRNO(ib_check_udata_tail(&udata, sizeof(command)));
	user_ = KERN_TRY(UserQueue::create(hca_, UserContext::of(udata.context), command.buffer,
					   u64{size_} << log_stride_, command.doorbell,
					   wire::doorbell_record::receive_size, false));
	return {};
}

kern::Result<> Srq::start(ib_srq_init_attr &attr, ib_udata *udata)
{
	using Context = wire::SrqContext;
	const Capabilities &cap = hca_.capabilities();
	const bool xrc = attr.srq_type == IB_SRQT_XRC;

	if (attr.srq_type != IB_SRQT_BASIC && !(xrc && cap.has(wire::dev_cap_flag::xrc)))
		return kern::Error{-EOPNOTSUPP};
	// One entry is always free, because it marks the end of the list of posted entries.
	if (attr.attr.max_wr >= 1u << cap.log_max_srq_size || attr.attr.max_sge >= cap.max_rq_sge)
		return kern::Error{-EINVAL};
	size_ = static_cast<u32>(kern::round_up_power_of_two(attr.attr.max_wr + 1));
	const u32 bytes = sizeof(wire::SrqNext) + attr.attr.max_sge * sizeof(wire::WqeData);
	log_stride_ = bytes <= 32 ? 5 : kern::log2_ceil(bytes);
	max_sge_ = ((1u << log_stride_) - sizeof(wire::SrqNext)) / sizeof(wire::WqeData);
	if (max_sge_ > cap.max_rq_sge - 1)
		max_sge_ = cap.max_rq_sge - 1;
	KERN_TRY(udata ? use_user_ring(*udata) : create_kernel_ring());

	event_capacity_ = KERN_TRY(
		hca_.events().reserve_async_entries(mellanox_icm::srq_events, verbs_.res.user));
	number_ = KERN_TRY(Number::create(hca_.srqns()));
	protection_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::cmpt_srq), number()));
	context_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::srqc), number()));

	auto mailbox = KERN_TRY(hca_.commands().mailbox());
	u8 *context = mailbox.bytes();
	Context::log_size.set(context, kern::log2_ceil(size_));
	Context::srqn.set(context, number());
	Context::log_stride.set(context, log_stride_ - 4);
	if (xrc) {
		Context::xrc_domain.set(context, xrcd_number(attr.ext.xrc.xrcd));
		Context::cqn.set(context, Cq::of(attr.ext.cq).number());
	}
	const QueuePlace location = udata ? user_.place() : place();
	Context::log_page_size.set(context, location.log_page_size);
	Context::mtt_offset.set(context, location.mtt_offset);
	Context::pd.set(context, pd_number(verbs_.pd));
	Context::doorbell_record.set(context, location.doorbell_record);
	SrqEntry &entry = *hca_.srq_entry(number());
	kern::write_once(entry.srq, this);
	const auto given = hca_.commands().execute_in(
		{.opcode = wire::Opcode::sw2hw_srq, .in_modifier = number()}, mailbox);
	if (!given) {
		kern::write_once(entry.srq, nullptr);
		return given;
	}
	live_ = true;
	if (xrc) {
		verbs_.ext.xrc.srq_num = number();
		XrcDomain::of(attr.ext.xrc.xrcd).add(*this);
	}
	attr.attr.max_wr = size_ - 1;
	attr.attr.max_sge = max_sge_;
	if (attr.attr.srq_limit)
		KERN_TRY(modify(attr.attr, IB_SRQ_LIMIT));
	if (udata) {
		const u32 response = number();
		KERN_TRY_ERRNO(ib_copy_to_udata(udata, &response, sizeof(response)));
	}
	return {};
}

void Srq::stop()
{
	if (!live_)
		return;
	live_ = false;
	kern::ignore(hca_.commands().execute_closing(
		{.opcode = wire::Opcode::hw2sw_srq, .in_modifier = number(), .op_modifier = 1}));
	if (verbs_.srq_type == IB_SRQT_XRC)
		XrcDomain::of(verbs_.ext.xrc.xrcd).remove(*this);
	kern::write_once(hca_.srq_entry(number())->srq, nullptr);
	hca_.synchronize_events();
}

} // namespace mlx4
