// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands by which a program connects, accepts, rejects and disconnects.
#include <rdma/ib_resources.h>
#include "commands.hpp"
#include "convert.hpp"

namespace rdma_ucm
{

namespace
{

/*
 * A program can set the Q_Key only between AF_IB addresses. For other addresses it is determined by
 * the port space, so the program's value is ignored.
 */
rdma_conn_param param_for(const rdma_cm_id &cm, const abi::ConnParam &given)
{
	rdma_conn_param param = param_of(given);

	if (cm.route.addr.src_addr.family != RDMA_AF_IB)
		param.qkey = 0;
	return param;
}

/*
 * A peer that finds a QP in a new connection closes the old connection of that QP (IBA 12.9.8.3.1),
 * so a program may pass only its own QPs. Unused numbers are refused, too, because requests are
 * retransmitted and the number may belong to another process by then. Datagrams have no connection.
 */
Result<> permit_qp(const rdma_cm_id &cm, const rdma_conn_param &param)
{
	const bool refused =
		cm.device && cm.qp_type != IB_QPT_UD && !ib_process_has_qp(cm.device, param.qp_num);
	return kern::check(refused ? -EPERM : 0);
}

} // namespace

Result<> listen(Id &id, rdma_cm_id &cm, const abi::Listen &request)
{
	const bool bounded =
		request.backlog > 0 && request.backlog <= static_cast<s32>(Id::backlog_max);

	/*
	 * The limit must be set before the first request arrives. If rdma_listen() fails, it is
	 * restored.
	 */
	const u32 before = table().set_backlog(id, bounded ? static_cast<u32>(request.backlog)
							   : Id::backlog_max);
	/*
	 * The table limits the number of requests that the program has not read yet. The backlog of
	 * the CM limits the requests that have not reached the table, because a thousand may arrive
	 * at once.
	 */
	const auto listening = kern::check(rdma_listen(&cm, static_cast<int>(Id::backlog_max)));
	if (!listening)
		table().set_backlog(id, before);
	return listening;
}

Result<> connect(Id &, rdma_cm_id &cm, const abi::Connect &request)
{
	if (!request.conn_param.valid)
		return kern::Error{-EINVAL};
	const rdma_conn_param param = param_for(cm, request.conn_param);
	KERN_TRY(permit_qp(cm, param));
	return kern::check(rdma_connect(&cm, &param));
}

Result<> accept(Id &id, rdma_cm_id &cm, const abi::Accept &request)
{
	const HandlerGuard guard(cm);

	if (!request.conn_param.valid)
		return kern::check(rdma_accept(&cm, nullptr));
	const rdma_conn_param param = param_for(cm, request.conn_param);
	KERN_TRY(permit_qp(cm, param));
	KERN_TRY_ERRNO(rdma_accept(&cm, &param));
	/*
	 * Events of the connection cannot arrive before the guard is released, so the first one
	 * already has this uid.
	 */
	table().set_uid(id, request.uid);
	return {};
}

Result<> reject(Id &, rdma_cm_id &cm, const abi::Reject &request)
{
	const u8 reason = request.reason ? request.reason : u8{IB_CM_REJ_CONSUMER_DEFINED};

	if (reason != IB_CM_REJ_CONSUMER_DEFINED && reason != IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED)
		return kern::Error{-EINVAL};
	return kern::check(
		rdma_reject(&cm, request.private_data, request.private_data_len, reason));
}

Result<> disconnect(Id &, rdma_cm_id &cm, const abi::Disconnect &)
{
	return kern::check(rdma_disconnect(&cm));
}

Result<> init_qp_attr(Id &, rdma_cm_id &cm, const abi::Ask &request, abi::QpAttr &answer)
{
	if (request.what > IB_QPS_ERR)
		return kern::Error{-EINVAL};
	ib_qp_attr attr{};
	int mask = 0;
	attr.qp_state = static_cast<ib_qp_state>(request.what);
	KERN_TRY_ERRNO(rdma_init_qp_attr(&cm, &attr, &mask));
	show(attr, mask, answer);
	return {};
}

Result<> notify(Id &, rdma_cm_id &cm, const abi::Notify &request)
{
	if (request.event > IB_EVENT_WQ_FATAL)
		return kern::Error{-EINVAL};
	return kern::check(rdma_notify(&cm, static_cast<ib_event_type>(request.event)));
}

} // namespace rdma_ucm
