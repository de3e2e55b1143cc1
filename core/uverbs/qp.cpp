// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the uverbs commands for queue pairs and their multicast groups.
#include <kern/file.hpp>
#include "commands.hpp"
#include "device.hpp"
#include "methods.hpp"
#include "queues.hpp"

namespace uverbs
{

namespace
{

/* Q_Keys with this bit set are reserved for privileged programs (IBA 10.2.4). */
constexpr u32 controlled_qkey = 1u << 31;

void handle_event(ib_event *event, void *context)
{
	static_cast<Qp *>(context)->events.push(event->event);
}

constexpr bool is_for_programs(u8 type)
{
	return type == IB_QPT_RC || type == IB_QPT_UC || type == IB_QPT_UD ||
	       type == IB_QPT_XRC_INI || type == IB_QPT_XRC_TGT;
}

/* Finds the objects on which a QP of this type depends. */
Result<Qp::Parents> find_parents(ObjectTable &objects, const abi::QpParameters &wanted)
{
	Qp::Parents parents;

	if (wanted.qp_type == IB_QPT_XRC_TGT) {
		parents.xrcd = KERN_TRY(objects.find<Xrcd>(wanted.pd_handle));
		return parents;
	}
	parents.pd = KERN_TRY(objects.find<Pd>(wanted.pd_handle));
	parents.send_cq = KERN_TRY(objects.find<Cq>(wanted.send_cq_handle));
	if (wanted.qp_type == IB_QPT_XRC_INI)
		return parents;
	if (wanted.recv_cq_handle != wanted.send_cq_handle)
		parents.recv_cq = KERN_TRY(objects.find<Cq>(wanted.recv_cq_handle));
	if (wanted.is_srq)
		parents.srq = KERN_TRY(objects.find<Srq>(wanted.srq_handle));
	return parents;
}

ib_qp_init_attr make_attr(const Qp::Parents &parents, const abi::QpParameters &wanted,
			  u32 create_flags)
{
	ib_qp_init_attr attr = {
		.event_handler = handle_event,
		.sq_sig_type = wanted.sq_sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.qp_type = static_cast<ib_qp_type>(wanted.qp_type),
		.create_flags = create_flags,
	};

	if (parents.xrcd) {
		attr.xrcd = &parents.xrcd->domain().ib();
		return attr;
	}
	attr.send_cq = parents.send_cq->ib();
	attr.cap.max_send_wr = wanted.cap.max_send_wr;
	attr.cap.max_send_sge = wanted.cap.max_send_sge;
	attr.cap.max_inline_data = wanted.cap.max_inline_data;
	if (attr.qp_type == IB_QPT_XRC_INI)
		return attr;
	attr.recv_cq = parents.recv_cq ? parents.recv_cq->ib() : parents.send_cq->ib();
	attr.srq = parents.srq ? parents.srq->ib() : nullptr;
	attr.cap.max_recv_wr = wanted.cap.max_recv_wr;
	attr.cap.max_recv_sge = wanted.cap.max_recv_sge;
	return attr;
}

/* event_file: the file for the QP's events, if the program has specified one. */
template<class Respond>
Result<> create(Call &call, const abi::QpParameters &wanted, u32 create_flags, s32 event_file,
		Respond respond)
{
	File &file = call.file;
	ObjectTable &objects = file.objects();

	if (wanted.qp_type == IB_QPT_RAW_PACKET && !kern_has_raw_network())
		return kern::Error{-EPERM};
	if (!is_for_programs(wanted.qp_type))
		return kern::Error{-EINVAL};
	Qp::Parents parents = KERN_TRY(find_parents(objects, wanted));
	XrcDomain *const domain = parents.xrcd ? &parents.xrcd->domain() : nullptr;
	ib_pd *const pd = parents.pd ? parents.pd->ib() : nullptr;
	ib_qp_init_attr attr = make_attr(parents, wanted, create_flags);
	auto events = KERN_TRY(find_events(file, event_file));
	auto qp = KERN_TRY(Allocation<Qp>::create(objects, std::move(parents), std::move(events),
						  wanted.user_handle));
	attr.qp_context = &*qp;
	KERN_TRY(qp->take(domain ? KERN_TRY(domain->create_target(attr))
				 : ib_create_qp_user(pd, &attr, &call.udata)));
	KERN_TRY(respond(abi::CreateQpResponse{
		.handle = qp->handle(),
		.qpn = qp->ib()->qp_num,
		.cap = {.max_send_wr = attr.cap.max_send_wr,
			.max_recv_wr = attr.cap.max_recv_wr,
			.max_send_sge = attr.cap.max_send_sge,
			.max_recv_sge = attr.cap.max_recv_sge,
			.max_inline_data = attr.cap.max_inline_data},
	}));
	qp.finish();
	return {};
}

Result<abi::DestroyResponse> destroy_numbered(Call &call, u32 handle)
{
	abi::DestroyResponse response{};

	KERN_TRY(destroy<Qp>(call, handle,
			     [&](Qp &qp) { response.events_reported = qp.events.forget(); }));
	return response;
}

/*
 * Returns true for the transition to RTR. A new path can be set only by this transition and in
 * state SQD.
 */
bool is_on_its_way(const abi::ModifyQp &request)
{
	return (request.attr_mask & IB_QP_STATE) && request.qp_state == IB_QPS_RTR;
}

/*
 * Returns true if the new path also changes the QP's port. This is the case in state SQD, unless
 * the port is given as an attribute. A UC QP keeps its port (IBA 11.2.5.3).
 */
bool moves_with_its_path(const ib_qp &qp, const abi::ModifyQp &request)
{
	return (request.attr_mask & (IB_QP_AV | IB_QP_PORT)) == IB_QP_AV &&
	       !is_on_its_way(request) && qp.qp_type != IB_QPT_UC;
}

/* Checks a modification by the rules of this interface, which are stricter than the midlayer's. */
Result<> check(const ib_qp &qp, const abi::ModifyQp &request)
{
	const u32 mask = request.attr_mask;
	ib_device &device = *qp.device;
	const u32 port = qp.real_qp->port;

	if (((mask & IB_QP_STATE) && request.qp_state > IB_QPS_ERR) ||
	    ((mask & IB_QP_CUR_STATE) && request.cur_qp_state > IB_QPS_ERR))
		return kern::Error{-EINVAL};
	if ((mask & IB_QP_PORT) && !rdma_is_port_valid(&device, request.port_num))
		return kern::Error{-EINVAL};
	if (mask & IB_QP_AV) {
		if (!rdma_is_port_valid(&device, request.dest.port_num))
			return kern::Error{-EINVAL};
		/*
		 * The path must use the QP's own port; on the transition to RTR that is the port
		 * set in INIT.
		 */
		const u32 own =
			(mask & IB_QP_PORT) && !is_on_its_way(request) ? request.port_num : port;
		if (!moves_with_its_path(qp, request) && request.dest.port_num != own)
			return kern::Error{-EINVAL};
	}
	if ((mask & IB_QP_ALT_PATH) && (!rdma_is_port_valid(&device, request.alt_port_num) ||
					request.alt_dest.port_num != request.alt_port_num))
		return kern::Error{-EINVAL};
	if ((mask & IB_QP_QKEY) && request.qkey & controlled_qkey && !kern_has_raw_network())
		return kern::Error{-EPERM};
	return {};
}

/* Removes attributes of the half that an XRC QP does not have; they are ignored. */
u32 attributes_of(const ib_qp &qp, u32 mask)
{
	switch (qp.qp_type) {
	case IB_QPT_XRC_INI:
		return mask & ~static_cast<u32>(IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	case IB_QPT_XRC_TGT:
		return mask & ~static_cast<u32>(IB_QP_MAX_QP_RD_ATOMIC | IB_QP_RETRY_CNT |
						IB_QP_RNR_RETRY);
	default:
		return mask;
	}
}

Result<> modify(Call &call, const abi::ModifyQp &request)
{
	auto qp = KERN_TRY(call.file.objects().find<Qp>(request.handle));

	KERN_TRY(check(*qp->ib(), request));
	const bool moves = moves_with_its_path(*qp->ib(), request);
	const u32 mask =
		attributes_of(*qp->ib(), request.attr_mask | (moves ? u32{IB_QP_PORT} : 0));
	ib_qp_attr attr = {
		.qp_state = static_cast<ib_qp_state>(request.qp_state),
		.cur_qp_state = static_cast<ib_qp_state>(request.cur_qp_state),
		.path_mtu = static_cast<ib_mtu>(request.path_mtu),
		.path_mig_state = static_cast<ib_mig_state>(request.path_mig_state),
		.qkey = request.qkey,
		.rq_psn = request.rq_psn,
		.sq_psn = request.sq_psn,
		.dest_qp_num = request.dest_qp_num,
		.qp_access_flags = static_cast<int>(request.qp_access_flags),
		.ah_attr = rdma::address_of(request.dest),
		.alt_ah_attr = rdma::address_of(request.alt_dest),
		.pkey_index = request.pkey_index,
		.alt_pkey_index = request.alt_pkey_index,
		.en_sqd_async_notify = request.en_sqd_async_notify,
		.max_rd_atomic = request.max_rd_atomic,
		.max_dest_rd_atomic = request.max_dest_rd_atomic,
		.min_rnr_timer = request.min_rnr_timer,
		.port_num = moves ? request.dest.port_num : request.port_num,
		.timeout = request.timeout,
		.retry_cnt = request.retry_cnt,
		.rnr_retry = request.rnr_retry,
		.alt_port_num = request.alt_port_num,
		.alt_timeout = request.alt_timeout,
	};
	return kern::check(ib_modify_qp_user(qp->ib(), &attr, static_cast<int>(mask), &call.udata));
}

ib_gid gid_of(const abi::Multicast &request)
{
	ib_gid gid;

	__builtin_memcpy(gid.raw, request.gid, sizeof(gid.raw));
	return gid;
}

} // namespace

Qp::~Qp()
{
	/*
	 * If the QP could not be destroyed, it may still be attached to groups. It is then leaked
	 * and its destructor not called, so here the list must be empty.
	 */
	kern::Guard guard(groups_lock_);
	kern_assert(groups_.empty());
}

Qp::Group *Qp::find(const ib_gid &gid, u16 lid)
{
	for (Group &group : groups_)
		if (group.gid == gid && group.lid == lid)
			return &group;
	return nullptr;
}

Result<> Qp::attach(Share &share, GroupMembers &members, const ib_gid &gid, u16 lid)
{
	kern::Guard guard(groups_lock_);
	if (find(gid, lid))
		return {};
	auto group = KERN_TRY(kern::make<Group>(kern::Gfp::kernel_account));
	group->charge = KERN_TRY(share.attachments.take());
	KERN_TRY(members.join(group->member, share, gid,
			      static_cast<u32>(ib()->device->attrs.max_mcast_qp_attach)));
	KERN_TRY_ERRNO(ib_attach_mcast(ib(), &gid, lid));
	group->gid = gid;
	group->lid = lid;
	groups_.push_back(*group.release());
	return {};
}

Result<> Qp::detach(const ib_gid &gid, u16 lid)
{
	kern::Guard guard(groups_lock_);
	Group *group = find(gid, lid);
	if (!group)
		return kern::Error{-EINVAL};
	if (ib())
		KERN_TRY_ERRNO(ib_detach_mcast(ib(), &gid, lid));
	group->node.unlink();
	kern::destroy(group);
	return {};
}

Result<> Qp::end(Reason reason)
{
	if (reason == Reason::gone) {
		kern::Guard guard(groups_lock_);
		for (Group &group : groups_) {
			if (ib())
				KERN_TRY_ERRNO(ib_detach_mcast(ib(), &group.gid, group.lid));
			group.node.unlink();
			kern::destroy(&group);
		}
	}
	if (parents_.xrcd && ib()) {
		parents_.xrcd->domain().close_target(*give_up());
		return {};
	}
	return Owning::end(reason);
}

Result<> create_qp(Call &call, const abi::CreateQp &request)
{
	return create(
		call, request.qp, 0, no_descriptor,
		[&](const abi::CreateQpResponse &response) { return call.respond(response); });
}

Result<> open_qp(Call &call, const abi::OpenQp &request)
{
	File &file = call.file;

	if (request.qp_type != IB_QPT_XRC_TGT)
		return kern::Error{-EINVAL};
	Qp::Parents parents;
	parents.xrcd = KERN_TRY(file.objects().find<Xrcd>(request.xrcd_handle));
	XrcDomain &domain = parents.xrcd->domain();
	auto qp = KERN_TRY(Allocation<Qp>::create(file.objects(), std::move(parents), file.events(),
						  request.user_handle));
	ib_qp_open_attr attr = {.event_handler = handle_event,
				.qp_context = &*qp,
				.qp_num = request.qpn,
				.qp_type = IB_QPT_XRC_TGT};

	KERN_TRY(qp->take(KERN_TRY(domain.open_target(attr))));
	KERN_TRY(call.respond(
		abi::CreateQpResponse{.handle = qp->handle(), .qpn = qp->ib()->qp_num, .cap = {}}));
	qp.finish();
	return {};
}

Result<> create_qp_extended(Call &call, const abi::CreateQpExtended &request)
{
	if (request.comp_mask ||
	    request.create_flags & ~static_cast<u32>(IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK))
		return kern::Error{-EINVAL};
	return create(call, request.qp, request.create_flags, no_descriptor,
		      [&](const abi::CreateQpResponse &response) {
			      return call.respond(abi::CreateQpExtendedResponse{
				      .base = response,
				      .response_length =
					      call.response_length<abi::CreateQpExtendedResponse>(),
			      });
		      });
}

Result<> query_qp(Call &call, const abi::QueryQp &request)
{
	auto qp = KERN_TRY(call.file.objects().find<Qp>(request.handle));
	ib_qp_attr attr = {};
	ib_qp_init_attr init = {};

	KERN_TRY_ERRNO(ib_query_qp(qp->ib(), &attr, static_cast<int>(request.attr_mask), &init));
	abi::QpAttributes response = {
		.cap = {.max_send_wr = attr.cap.max_send_wr,
			.max_recv_wr = attr.cap.max_recv_wr,
			.max_send_sge = attr.cap.max_send_sge,
			.max_recv_sge = attr.cap.max_recv_sge,
			.max_inline_data = attr.cap.max_inline_data},
		.qkey = attr.qkey,
		.rq_psn = attr.rq_psn,
		.sq_psn = attr.sq_psn,
		.dest_qp_num = attr.dest_qp_num,
		.qp_access_flags = static_cast<u32>(attr.qp_access_flags),
		.pkey_index = attr.pkey_index,
		.alt_pkey_index = attr.alt_pkey_index,
		.qp_state = static_cast<u8>(attr.qp_state),
		.cur_qp_state = static_cast<u8>(attr.cur_qp_state),
		.path_mtu = static_cast<u8>(attr.path_mtu),
		.path_mig_state = static_cast<u8>(attr.path_mig_state),
		.sq_draining = attr.sq_draining,
		.max_rd_atomic = attr.max_rd_atomic,
		.max_dest_rd_atomic = attr.max_dest_rd_atomic,
		.min_rnr_timer = attr.min_rnr_timer,
		.port_num = static_cast<u8>(attr.port_num),
		.timeout = attr.timeout,
		.retry_cnt = attr.retry_cnt,
		.rnr_retry = attr.rnr_retry,
		.alt_port_num = static_cast<u8>(attr.alt_port_num),
		.alt_timeout = attr.alt_timeout,
		.sq_sig_all = static_cast<u8>(qp->ib()->real_qp->sq_sig_type == IB_SIGNAL_ALL_WR),
	};
	rdma::fill_address(attr.ah_attr, response.dest);
	rdma::fill_address(attr.alt_ah_attr, response.alt_dest);
	return call.respond(response);
}

Result<> modify_qp(Call &call, const abi::ModifyQp &request)
{
	if (request.attr_mask & ~static_cast<u32>(IB_QP_ATTR_STANDARD_BITS))
		return kern::Error{-EOPNOTSUPP};
	return modify(call, request);
}

Result<> modify_qp_extended(Call &call, const abi::ModifyQpExtended &request)
{
	/* The rate limit applies only to packet pacing, which is not supported. */
	if (request.base.attr_mask & ~static_cast<u32>(IB_QP_ATTR_STANDARD_BITS) ||
	    request.reserved)
		return kern::Error{-EOPNOTSUPP};
	KERN_TRY(modify(call, request.base));
	return call.respond(abi::ModifyQpExtendedResponse{
		.response_length = call.response_length<abi::ModifyQpExtendedResponse>()});
}

Result<> destroy_qp(Call &call, const abi::Destroy &request)
{
	return call.respond(KERN_TRY(destroy_numbered(call, request.handle)));
}

Result<> attach_mcast(Call &call, const abi::Multicast &request)
{
	auto qp = KERN_TRY(call.file.objects().find<Qp>(request.qp_handle));

	return qp->attach(call.file.share(), call.file.owner().shares().group_members(),
			  gid_of(request), request.mlid);
}

Result<> detach_mcast(Call &call, const abi::Multicast &request)
{
	auto qp = KERN_TRY(call.file.objects().find<Qp>(request.qp_handle));

	return qp->detach(gid_of(request), request.mlid);
}

Result<> methods::create_qp(Call &call, const Attributes &attributes)
{
	using namespace abi::create_qp_method;
	const auto qp_type = static_cast<u8>(attributes.number(type));
	const u32 wanted_flags = static_cast<u32>(attributes.number(flags));

	/* Indirection tables and source QP numbers are only for Ethernet. */
	if (attributes.has(ind_table) || attributes.has(source_qpn))
		return kern::Error{-EOPNOTSUPP};
	const bool target = qp_type == IB_QPT_XRC_TGT,
		   receives = !target && qp_type != IB_QPT_XRC_INI;
	if (target ? !attributes.has(xrcd)
		   : !attributes.has(pd) || !attributes.has(send_cq) ||
			     (receives && !attributes.has(recv_cq)))
		return kern::Error{-EINVAL};
	abi::QpParameters wanted = {
		.user_handle = attributes.number(user_handle),
		.pd_handle = attributes.handle(target ? xrcd : pd),
		.send_cq_handle = attributes.handle(send_cq),
		.recv_cq_handle = attributes.handle(recv_cq),
		.srq_handle = attributes.handle(srq),
		.cap = {},
		.sq_sig_all = wanted_flags & flag_sq_sig_all ? u8{1} : u8{0},
		.qp_type = qp_type,
		.is_srq = attributes.has(srq) ? u8{1} : u8{0},
		.reserved = 0,
	};
	KERN_TRY(attributes.read(cap, wanted.cap));
	return create(call, wanted, wanted_flags & ~flag_sq_sig_all,
		      attributes.descriptor(event_fd),
		      [&](const abi::CreateQpResponse &made) -> Result<> {
			      KERN_TRY(attributes.write_output(response_cap, made.cap));
			      KERN_TRY(attributes.write_output(response_qp_num, made.qpn));
			      return attributes.write_handle(handle, made.handle);
		      });
}

Result<> methods::destroy_qp(Call &call, const Attributes &attributes)
{
	using namespace abi::destroy_method;

	return attributes.write_output(response,
				       KERN_TRY(destroy_numbered(call, attributes.handle(handle))));
}

} // namespace uverbs
