// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp.hpp"
#include "cq.hpp"
#include "family.hpp"
#include "qp_transition.hpp"
#include "srq.hpp"
#include "user_abi.hpp"
#include "xrc_domain.hpp"

namespace mlx4
{

namespace
{

using Context = wire::QpContext;

} // namespace

Qp::Qp(Hca &hca, ib_qp &verbs)
    : sq(KERN_LOCK_CLASS("mlx4.sq")), rq(KERN_LOCK_CLASS("mlx4.rq")), verbs_(verbs),
      uar_(hca.kernel_uar()), hca_(hca), state_lock_(KERN_LOCK_CLASS("mlx4.qp_state"))
{
}

Qp::~Qp()
{
	stop();
}

kern::Result<> Qp::create_kernel_queues(ib_qp_init_attr &attr)
{
	geometry_ = KERN_TRY(plan_queues(hca_.capabilities(), attr));
	if (geometry_.bytes)
		buffer_ = KERN_TRY(
			QueueBuffer::create(hca_.dma_device(), hca_.mtts(), geometry_.bytes));
	const u32 signal_all = attr.sq_sig_type == IB_SIGNAL_ALL_WR
				       ? __builtin_bswap32(wire::WqeControl::completion)
				       : 0;
	if (geometry_.has_sq)
		KERN_TRY(use_ring(sq, geometry_, buffer_.address() + geometry_.sq_offset,
				  signal_all, attr.cap));
	if (geometry_.has_rq) {
		KERN_TRY(
			use_ring(rq, geometry_, buffer_.address() + geometry_.rq_offset, attr.cap));
		doorbell_ = KERN_TRY(hca_.doorbells().get());
		rq.record = doorbell_.address();
	}
	cap_ = attr.cap;
	return {};
}

kern::Result<> Qp::use_user_queues(ib_qp_init_attr &attr, ib_udata &udata)
{
	user_abi::CreateQp command;
	KERN_TRY_ERRNO(ib_copy_from_udata(&command, &udata, sizeof(command)));
	KERN_TRY_ERRNO(ib_check_udata_tail(&udata, sizeof(command)));
	geometry_ = KERN_TRY(plan_user_queues(hca_.capabilities(), attr, command));
	user_ = KERN_TRY(UserQueue::create(
		hca_, UserContext::of(udata.context), command.buffer, geometry_.bytes,
		command.doorbell, geometry_.has_rq ? wire::doorbell_record::receive_size : 0,
		false));
	sq_no_prefetch_ = command.sq_no_prefetch != 0;
	if (geometry_.has_rq) {
		attr.cap.max_recv_wr = 1u << geometry_.log_rq_size;
		attr.cap.max_recv_sge = geometry_.max_recv_sge;
	}
	cap_ = attr.cap;
	return {};
}

kern::Result<> Qp::start(ib_qp_init_attr &attr, ib_udata *udata)
{
	const Capabilities &cap = hca_.capabilities();
	kind_ = kind_of(attr.qp_type);
	specifies_srqs_ = attr.qp_type == IB_QPT_XRC_INI;
	create_flags_ = attr.create_flags;
	if (attr.qp_type == IB_QPT_UC && !cap.has(wire::dev_cap_flag::uc))
		return kern::Error{-EOPNOTSUPP};
	if (service_of(attr.qp_type) == wire::ServiceType::xrc && !cap.has(wire::dev_cap_flag::xrc))
		return kern::Error{-EOPNOTSUPP};
	if ((create_flags_ & IB_QP_CREATE_IPOIB_UD_LSO) && !cap.log_max_lso)
		return kern::Error{-EINVAL};
	if (kind_ == QpKind::special && (attr.port_num < 1 || attr.port_num > cap.num_ports))
		return kern::Error{-EINVAL};
	// An XRC target has no queues, and may outlive the program that has created it.
	KERN_TRY(udata && attr.qp_type != IB_QPT_XRC_TGT ? use_user_queues(attr, *udata)
							 : create_kernel_queues(attr));

	KERN_TRY(take_number(attr, attr.qp_type == IB_QPT_XRC_TGT ? wire::xrc_target_qpn : 0));
	const u32 index = number_ & hca_.qp_mask();
	protection_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::cmpt_qp), index));
	context_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::qpc), index));
	auxiliary_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::auxc), index));
	alternate_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::altc), index));
	reads_ = KERN_TRY(IcmHold::create(hca_.table(IcmRegion::rdmarc), index));

	sq.doorbell_value = __builtin_bswap32(number_ << wire::send_doorbell_qpn_shift);
	srq = verbs_.srq ? &Srq::of(verbs_.srq) : nullptr;

	enter_tables();
	if (verbs_.qp_type == IB_QPT_XRC_TGT)
		kern::write_once(hca_.qp_entry(number_).recv_cqn,
				 QpEntry::xrc_target | xrcd_number(verbs_.xrcd));
	return {};
}

u32 Qp::stop()
{
	u32 left = 0;
	leave_card();
	if (in_tables_ && verbs_.qp_type == IB_QPT_XRC_TGT) {
		kern::write_once(hca_.qp_entry(number_).recv_cqn, 0);
		left = XrcDomain::of(verbs_.xrcd).detach_target(*this);
	}
	return left + QpControl::stop();
}

void Qp::reset_queues()
{
	{
		kern::Guard guard(sq.lock);
		sq.head = sq.tail = 0;
	}
	{
		kern::Guard guard(rq.lock);
		rq.head = rq.tail = 0;
	}
	if (rq.record)
		__atomic_store_n(rq.record, 0, __ATOMIC_RELAXED);
	// In the first pass through the ring, a descriptor with a clear owner bit belongs to the
	// card.
	if (sq.entries)
		for (u32 i = 0; i <= sq.mask; i++)
			reinterpret_cast<wire::WqeControl *>(sq.entries + (i << sq.log_stride))
				->opcode_word = wire::WqeControl::owner_bit;
}

/* Writes the fields that only RESET -> INIT sets. */
void Qp::fill_static_context(u8 *context)
{
	const ib_qp_type type = verbs_.qp_type;
	Context::service_type.set(context, static_cast<u32>(service_of(type)));
	Context::migration_state.set(context, static_cast<u32>(wire::MigrationState::migrated));
	const XrcDomain *const target_of = verbs_.xrcd ? &XrcDomain::of(verbs_.xrcd) : nullptr;
	Context::pd.set(context, target_of ? target_of->pd_number() : pd_number(verbs_.pd));
	const bool for_program = verbs_.res.user && !target_of;
	const QueuePlace location = for_program ? user_.place() : place();
	Context::uar_page.set(context, location.uar_page);
	Context::local_qpn.set(context, number_);
	if (geometry_.has_rq) {
		Context::log_rq_size.set(context, geometry_.log_rq_size);
		Context::log_rq_stride.set(context, geometry_.log_rq_stride - 4);
		Context::doorbell_record.set(context, location.doorbell_record);
	}
	if (geometry_.has_sq) {
		Context::log_sq_size.set(context, geometry_.log_sq_size);
		Context::log_sq_stride.set(context, geometry_.log_sq_stride - 4);
	} else {
		Context::log_sq_size.set(context, Context::no_send_queue);
	}
	Context::sq_no_prefetch.set(context, sq_no_prefetch_);
	// These two would give a program access to all memory, because they accept any address.
	Context::reserved_lkey.set(context, !verbs_.res.user);
	Context::fast_register.set(context, !verbs_.res.user);
	Context::ack_request_frequency.set(context, 8);
	// The card requires both CQs, even if the QP has only one direction.
	const u32 send_cqn = target_of ? target_of->cqn() : Cq::of(verbs_.send_cq).number();
	Context::send_cqn.set(context, send_cqn);
	Context::receive_cqn.set(context,
				 verbs_.recv_cq ? Cq::of(verbs_.recv_cq).number() : send_cqn);
	if (srq) {
		Context::srq_enable.set(context, 1);
		Context::srqn.set(context, srq->number());
		Context::responder_invalid_credits.set(context, 1);
	}
	Context::xrc_domain.set(context, target_of ? target_of->number() : 0);
	if (geometry_.bytes) {
		Context::log_page_size.set(context, location.log_page_size);
		Context::mtt_offset.set(context, location.mtt_offset);
	}
}

kern::Result<u32> Qp::put_transition(u8 *context, ib_qp_state to, const ib_qp_attr &attr, int mask)
{
	const Capabilities &cap = hca_.capabilities();
	const u32 optional = KERN_TRY(put_attributes(context, cap, attr, mask,
						     to == IB_QPS_INIT ? 0 : port_of(attr, mask),
						     verbs_.qp_type));

	if (to == IB_QPS_RTR && kind_ != QpKind::connected) {
		// A datagram is one packet of at most the port's MTU. With large sends, the limit
		// is that of large sends.
		const bool lso = create_flags_ & IB_QP_CREATE_IPOIB_UD_LSO;
		Context::mtu.set(context, IB_MTU_4096);
		Context::log_max_message.set(context, kind_ == QpKind::special ? 11
						      : lso                    ? cap.log_max_lso
									       : 13);
	}
	return optional;
}

void Qp::get_attributes(const u8 *context, ib_qp_attr &attr)
{
	using Path = wire::AddressPathLayout;
	const u8 *const primary = context + Context::primary_path;
	const u8 *const alternate = context + Context::alternate_path;
	get_plain_attributes<Context, Path>(context, attr);
	const auto migration =
		static_cast<wire::MigrationState>(Context::migration_state.get(context));
	attr.path_mig_state = migration == wire::MigrationState::armed   ? IB_MIG_ARMED
			      : migration == wire::MigrationState::rearm ? IB_MIG_REARM
									 : IB_MIG_MIGRATED;
	if (kind_ == QpKind::connected) {
		attr.ah_attr = get_path(primary, hca_.num_ports());
		attr.alt_ah_attr = get_path(alternate, hca_.num_ports());
		attr.alt_pkey_index = static_cast<u16>(Path::pkey_index.get(alternate));
		attr.alt_port_num = attr.alt_ah_attr.port_num;
	}
	attr.port_num =
		attr.qp_state == IB_QPS_INIT ? saved_.port : Path::sched_port.get(primary) + 1;
	attr.alt_timeout = static_cast<u8>(Path::ack_timeout.get(alternate));
	attr.rnr_retry = static_cast<u8>(Context::rnr_retry.get(context));
}

kern::Result<> Qp::query(ib_qp_attr &attr, ib_qp_init_attr &init)
{
	KERN_TRY(QpControl::query(attr, init));
	init.create_flags = create_flags_;
	return {};
}

} // namespace mlx4
