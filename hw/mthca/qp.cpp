// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp.hpp"
#include <kern/bits.hpp>
#include "cq.hpp"
#include "qp_context.hpp"
#include "srq.hpp"
#include "user_abi.hpp"

namespace mthca
{

namespace
{

using Context = wire::QpContext;

/* A datagram is one packet of at most 2048 bytes. */
constexpr u32 log_max_datagram = 11;

} // namespace

Qp::Qp(Hca &hca, ib_qp &verbs)
    : sq(KERN_LOCK_CLASS("mthca.sq")), rq(KERN_LOCK_CLASS("mthca.rq")), verbs_(verbs),
      uar_(hca.kernel_uar()), hca_(hca), state_lock_(KERN_LOCK_CLASS("mthca.qp_state"))
{
}

Qp::~Qp()
{
	stop();
}

kern::Result<> Qp::create_kernel_queues(ib_qp_init_attr &attr)
{
	geometry_ = KERN_TRY(plan_queues(hca_.capabilities(), attr));
	// Align the buffer to its size, because the context has only one field for the upper half
	// of both queues' addresses.
	buffer_ = KERN_TRY(kern::DmaBuffer::create(hca_.dma_device(),
						   kern::round_up_power_of_two(geometry_.bytes),
						   kern::Gfp::kernel));
	const u32 signal_all = attr.sq_sig_type == IB_SIGNAL_ALL_WR
				       ? __builtin_bswap32(wire::WqeNext::completion)
				       : 0;
	KERN_TRY(use_ring(sq, geometry_, buffer_.as<u8>() + geometry_.sq_offset, signal_all,
			  attr.cap));
	sq_base_ = static_cast<u32>(buffer_.address() + geometry_.sq_offset);
	{
		kern::Guard guard(sq.lock);
		last_sent_ = reinterpret_cast<wire::WqeNext *>(send_slot(sq.mask));
	}
	if (geometry_.has_rq)
		KERN_TRY(use_ring(rq, geometry_, buffer_.as<u8>(), attr.cap));
	cap_ = attr.cap;
	return {};
}

kern::Result<> Qp::use_user_queues(ib_qp_init_attr &attr, ib_udata &udata)
{
	user_abi::CreateQp command;
	KERN_TRY_ERRNO(ib_copy_from_udata(&command, &udata, sizeof(command)));
	KERN_TRY_ERRNO(ib_check_udata_tail(&udata, sizeof(command)));
	geometry_ = KERN_TRY(plan_user_queues(hca_.capabilities(), attr));
	UserContext &of = UserContext::of(udata.context);
	user_region_ = KERN_TRY(UserRegion::create(of, command.lkey, pd_number(verbs_.pd)));
	user_sq_ = KERN_TRY(UserRecord::create(of, command.sq_page, command.sq_record));
	user_rq_ = KERN_TRY(UserRecord::create(of, command.rq_page, command.rq_record));
	user_place_ = {.uar_page = of.uar_page(), .lkey = command.lkey, .start = 0};
	sq_base_ = geometry_.sq_offset;
	// Return the sizes of the library's rings; 0 if there is no ring.
	attr.cap.max_send_wr = attr.cap.max_send_wr ? 1u << geometry_.log_sq_size : 0;
	attr.cap.max_recv_wr = attr.cap.max_recv_wr ? 1u << geometry_.log_rq_size : 0;
	cap_ = attr.cap;
	return {};
}

kern::Result<> Qp::make_records()
{
	sq_held_ = KERN_TRY(hca_.records().get(wire::record_type::send_queue, number_));
	sq_record_ = sq_held_.words();
	sq.doorbell_value = __builtin_bswap32(wire::uar::send_qpn.in(number_));
	if (geometry_.has_rq) {
		rq_held_ = KERN_TRY(hca_.records().get(wire::record_type::receive_queue, number_));
		rq.record = rq_held_.words();
	}
	return {};
}

QueuePlace Qp::place() const
{
	if (verbs_.res.user)
		return user_place_;
	return {.uar_page = hca_.uar_page(),
		.lkey = verbs_.pd->local_dma_lkey,
		.start = buffer_.address()};
}

kern::Result<> Qp::start(ib_qp_init_attr &attr, ib_udata *udata)
{
	const Capabilities &cap = hca_.capabilities();
	kind_ = kind_of(attr.qp_type);
	switch (attr.qp_type) {
	case IB_QPT_UC:
		if (!cap.has(wire::dev_lim_flag::uc))
			return kern::Error{-EOPNOTSUPP};
		break;
	case IB_QPT_RC:
	case IB_QPT_UD:
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		break;
	default:
		return kern::Error{-EOPNOTSUPP};
	}
	// The card does not support any creation flags.
	if (attr.create_flags)
		return kern::Error{-EINVAL};
	if (kind_ == QpKind::special && (attr.port_num < 1 || attr.port_num > cap.num_ports))
		return kern::Error{-EINVAL};
	KERN_TRY(udata ? use_user_queues(attr, *udata) : create_kernel_queues(attr));

	KERN_TRY(take_number(attr));
	context_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::qpc), number_));
	extended_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::eqpc), number_));
	reads_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::rdb), number_));
	if (!udata)
		KERN_TRY(make_records());
	srq = verbs_.srq ? &Srq::of(verbs_.srq) : nullptr;

	enter_tables();
	return {};
}

void Qp::start_without_card(u32 number, QpKind kind, u32 sq_base, u32 *sq_record)
{
	number_ = number;
	kind_ = kind;
	sq_base_ = sq_base;
	sq_record_ = sq_record;
	reset_queues();
}

void Qp::reset_queues()
{
	{
		kern::Guard guard(sq.lock);
		sq.head = sq.tail = 0;
		if (sq.entries)
			last_sent_ = reinterpret_cast<wire::WqeNext *>(send_slot(sq.head - 1));
	}
	{
		kern::Guard guard(rq.lock);
		rq.head = rq.tail = 0;
	}
	// A program's library resets its own queues.
	if (!sq.entries)
		return;
	if (rq.record)
		__atomic_store_n(rq.record, 0, __ATOMIC_RELAXED);
	__atomic_store_n(sq_record_, 0, __ATOMIC_RELAXED);
	// The slots of a ring are always linked in order.
	for (u32 i = 0; i <= sq.mask; i++) {
		auto *next = reinterpret_cast<wire::WqeNext *>(send_slot(i));
		next->next_word = (sq_base_ + (((i + 1) & sq.mask) << sq.log_stride)) &
				  wire::WqeNext::address_mask;
		next->size_word = 0;
	}
	for (u32 i = 0; geometry_.has_rq && i <= rq.mask; i++) {
		auto *next = reinterpret_cast<wire::WqeNext *>(rq.entries + (i << rq.log_stride));
		next->next_word = (static_cast<u32>(buffer_.address()) +
				   (((i + 1) & rq.mask) << rq.log_stride)) &
				  wire::WqeNext::address_mask;
		next->size_word = static_cast<u32>(sizeof(wire::WqeNext) +
						   rq.max_sge * sizeof(wire::WqeData)) /
				  wire::wqe_unit;
	}
}

void Qp::fill_static_context(u8 *context)
{
	const QueuePlace location = place();
	const bool for_program = verbs_.res.user;
	Context::uar_page.set(context, location.uar_page);
	Context::pd.set(context, pd_number(verbs_.pd));
	Context::wqe_base_high.set(context, static_cast<u32>(location.start >> 32));
	Context::wqe_lkey.set(context, location.lkey);
	Context::log_sq_size.set(context, geometry_.log_sq_size);
	Context::log_sq_stride.set(context, geometry_.log_sq_stride - 4);
	wire::store_be32(context, Context::send_base.offset, sq_base_);
	Context::send_record.set(context, for_program ? user_sq_.index() : sq_held_.index());
	if (geometry_.has_rq) {
		Context::log_rq_size.set(context, geometry_.log_rq_size);
		Context::log_rq_stride.set(context, geometry_.log_rq_stride - 4);
		wire::store_be32(context, Context::receive_base.offset,
				 static_cast<u32>(location.start));
		Context::receive_record.set(context,
					    for_program ? user_rq_.index() : rq_held_.index());
	}
	Context::send_cqn.set(context, Cq::of(verbs_.send_cq).number());
	Context::receive_cqn.set(context, Cq::of(verbs_.recv_cq).number());
	// A program's library does not set the flag in each request, so the card must signal all.
	Context::signal_all.set(context, verbs_.sq_sig_type == IB_SIGNAL_ALL_WR);
	if (srq) {
		Context::srq_enable.set(context, 1);
		Context::srqn.set(context, srq->number());
		Context::invalid_credits.set(context, 1);
	}
	const IcmExtent &reads = hca_.layout()[IcmRegion::rdb];
	wire::store_be32(context, Context::rdb_address.offset,
			 static_cast<u32>(reads.base + u64{number_} * reads.entry_bytes));
}

kern::Result<u32> Qp::put_transition(u8 *context, ib_qp_state to, const ib_qp_attr &attr, int mask)
{
	const Capabilities &cap = hca_.capabilities();
	Context::service_type.set(context, static_cast<u32>(service_of(verbs_.qp_type)));
	Context::migration_state.set(context, static_cast<u32>(wire::MigrationState::migrated));
	Context::descriptor_events.set(context, 1);
	Context::ack_request_frequency.set(context, 8);
	Context::flight_limit.set(context, 9);
	Context::requester_write.set(context, 1);
	Context::signal_all_receives.set(context, 1);
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic) {
		Context::requester_read.set(context, 1);
		Context::requester_atomic.set(context, 1);
	}
	const u32 optional =
		KERN_TRY(put_attributes(context, cap, attr, mask, port_of(attr, mask)));

	if (to == IB_QPS_RTR && kind_ != QpKind::connected) {
		Context::mtu.set(context, cap.port.max_mtu);
		Context::log_max_message.set(context, log_max_datagram);
	}
	return optional;
}

void Qp::get_attributes(const u8 *context, ib_qp_attr &attr) const
{
	mthca::get_attributes(context, hca_.num_ports(), kind_ == QpKind::connected, attr);
}

} // namespace mthca
