// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "srq.hpp"
#include <hw/mthca/contexts.hpp>
#include <kern/bits.hpp>
#include "qp_geometry.hpp"
#include "user_abi.hpp"

namespace mthca
{

namespace
{

using Context = wire::SrqContext;

constexpr u32 min_log_stride = 6, max_log_stride = 11;

} // namespace

Srq::Srq(Hca &hca, ib_srq &verbs) : SharedReceives(hca, verbs, KERN_LOCK_CLASS("mthca.srq")) {}

Srq::~Srq()
{
	stop();
}

kern::Result<> Srq::create_kernel_ring(u8 *context)
{
	if (u64{size_} << log_stride_ > max_queue_bytes)
		return kern::Error{-EINVAL};
	entries_ = KERN_TRY(kern::make_array<Entry>(kern::Gfp::kernel, size_));
	buffer_ = KERN_TRY(kern::DmaBuffer::create(
		hca_.dma_device(), kern::round_up_power_of_two(size_t{size_} << log_stride_),
		kern::Gfp::kernel));
	descriptors_ = buffer_.as<u8>();
	base_ = static_cast<u32>(buffer_.address());
	link_all();
	record_held_ =
		KERN_TRY(hca_.records().get(wire::record_type::shared_receive_queue, number()));
	record_ = record_held_.words();
	Context::uar_page.set(context, hca_.uar_page());
	Context::lkey.set(context, verbs_.pd->local_dma_lkey);
	Context::start.set(context, buffer_.address());
	Context::record.set(context, record_held_.index());
	return {};
}

kern::Result<> Srq::use_user_ring(u8 *context, ib_udata &udata)
{
	user_abi::CreateSrq command;
	KERN_TRY_ERRNO(ib_copy_from_udata(&command, &udata, sizeof(command)));
	KERN_TRY_ERRNO(ib_check_udata_tail(&udata, sizeof(command)));
	UserContext &of = UserContext::of(udata.context);
	user_region_ = KERN_TRY(UserRegion::create(of, command.lkey, pd_number(verbs_.pd)));
	user_record_ = KERN_TRY(UserRecord::create(of, command.page, command.record));
	Context::uar_page.set(context, of.uar_page());
	Context::lkey.set(context, command.lkey);
	Context::record.set(context, user_record_.index());
	return {};
}

kern::Result<> Srq::start(ib_srq_init_attr &attr, ib_udata *udata)
{
	const Capabilities &cap = hca_.capabilities();

	if (attr.srq_type != IB_SRQT_BASIC || !cap.has(wire::dev_lim_flag::srq))
		return kern::Error{-EOPNOTSUPP};
	// One entry is always free, because it marks the end of the list of posted entries.
	if (attr.attr.max_wr >= 1u << cap.log_max_srq_size || attr.attr.max_sge > cap.max_rq_sge)
		return kern::Error{-EINVAL};
	size_ = static_cast<u32>(kern::round_up_power_of_two(attr.attr.max_wr + 1));
	const u32 bytes = sizeof(wire::WqeNext) + attr.attr.max_sge * sizeof(wire::WqeData);
	log_stride_ = bytes <= 1u << min_log_stride ? min_log_stride : kern::log2_ceil(bytes);
	if (log_stride_ > max_log_stride)
		return kern::Error{-EINVAL};
	max_sge_ = ((1u << log_stride_) - sizeof(wire::WqeNext)) / sizeof(wire::WqeData);
	if (max_sge_ > cap.max_rq_sge)
		max_sge_ = cap.max_rq_sge;
	event_capacity_ = KERN_TRY(
		hca_.events().reserve_async_entries(mellanox_icm::srq_events, verbs_.res.user));
	number_ = KERN_TRY(Number::create(hca_.srqns()));
	context_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::srqc), number()));

	u8 context[Context::size] = {};
	KERN_TRY(udata ? use_user_ring(context, *udata) : create_kernel_ring(context));
	Context::log_size.set(context, kern::log2_ceil(size_));
	Context::srqn.set(context, number());
	Context::log_stride.set(context, log_stride_ - 4);
	Context::pd.set(context, pd_number(verbs_.pd));
	auto mailbox = KERN_TRY(hca_.commands().mailbox(Context::size));
	__builtin_memcpy(mailbox.bytes(), context, sizeof(context));
	hca_.set_srq(number(), this);
	const auto given = hca_.commands().execute_in(
		{.opcode = wire::Opcode::sw2hw_srq, .in_modifier = number()}, mailbox);
	if (!given) {
		hca_.set_srq(number(), nullptr);
		return given;
	}
	live_ = true;
	attr.attr.max_wr = size_ - 1;
	// The library relies on the number that it has requested, so return that.
	if (!udata)
		attr.attr.max_sge = max_sge_;
	if (attr.attr.srq_limit)
		KERN_TRY(modify(attr.attr, IB_SRQ_LIMIT));
	if (udata) {
		const user_abi::Number response{.value = number(), .reserved = 0};
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
	hca_.set_srq(number(), nullptr);
	hca_.synchronize_events();
}

} // namespace mthca
