// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the functions of rdma/ib_sa.h: queries, multicast memberships, subscriptions to traps,
 * and address handles for paths.
 */
#include "../device.hpp"

#include "query.hpp"

#include <rdma/ib_cache.h>

using mad::sa::Member;
using mad::sa::RetryPolicy;
using mad::sa::Request;

namespace
{

mad::sa::Port *find_port(ib_device *device, u32 port_num)
{
	mad::Device *management = mad::Device::of(device);
	return management ? management->sa(port_num) : nullptr;
}

/* Sends the query, and returns an ID with which the consumer can cancel it. */
template<class Query, class Wire>
kern::Result<int> ask(ib_sa_client *client, ib_device *device, u32 port_num, const Request &request,
		      const Wire &wire, kern::Result<kern::Ref<Query>> made, ib_sa_query **handle)
{
	mad::sa::Port *port = find_port(device, port_num);
	if (!port)
		return kern::Error{-ENODEV};
	auto query = KERN_TRY(std::move(made));
	/*
	 * *handle must be set before the response can arrive. The consumer reads it only together
	 * with the ID that is returned on success.
	 */
	if (handle)
		*handle = query.get();
	return query->start(*port, client, request, &wire, sizeof(wire));
}

/* Converts the result of a call that returns an ID to the C API's return value. */
int id_or_errno(kern::Result<int> result)
{
	return result.ok() ? result.take() : result.error();
}

constexpr bool needs_grh(u8 hop_limit)
{
	return hop_limit > 1;
}

int fill_grh(ib_device *device, u32 port_num, const ib_gid &sgid, const ib_gid &dgid,
	     u32 flow_label, u8 hop_limit, u8 traffic_class, rdma_ah_attr *ah_attr)
{
	u16 index;
	if (int status = ib_find_cached_gid_by_port(device, &sgid, port_num, &index))
		return status;
	rdma_ah_set_grh(ah_attr, &dgid, flow_label, static_cast<u8>(index), hop_limit,
			traffic_class);
	return 0;
}

} // namespace

extern "C" {

void ib_sa_register_client(ib_sa_client *client)
{
	KERN_MIGHT_SLEEP();
	client->state = new (kern::Gfp::kernel) ib_sa_client_state;
}

void ib_sa_unregister_client(ib_sa_client *client)
{
	KERN_MIGHT_SLEEP();
	ib_sa_client_state *state = client->state;
	if (!state)
		return;
	state->put();
	state->unused.wait();
	kern::destroy(state);
	client->state = nullptr;
}

void ib_sa_cancel_query(int id, ib_sa_query *query)
{
	mad::sa::Query::cancel(id, query);
}

int ib_sa_path_rec_get(ib_sa_client *client, ib_device *device, u32 port_num, sa_path_rec *rec,
		       ib_sa_comp_mask comp_mask, unsigned long timeout_ms, int retries,
		       unsigned int gfp, void (*callback)(int, sa_path_rec *, void *),
		       void *context, ib_sa_query **query)
{
	using Query = mad::sa::RecordQuery<sa_path_rec, ib::PathRecord, decltype(callback)>;
	if (!callback)
		return -EINVAL;
	const Request request{
		.method = static_cast<u8>(ib::MadMethod::get),
		.attribute = ib::attr_path_record,
		.component_mask = comp_mask.value(),
		.retry_policy = {timeout_ms, retries},
		.gfp = static_cast<kern::Gfp>(gfp),
	};
	ib::PathRecord wire;
	mad::sa::pack(*rec, wire);
	return id_or_errno(ask(client, device, port_num, request, wire,
			       kern::make_ref<Query>(request.gfp, callback, context), query));
}

int ib_sa_service_rec_query(ib_sa_client *client, ib_device *device, u32 port_num, u8 method,
			    ib_sa_service_rec *rec, ib_sa_comp_mask comp_mask,
			    unsigned long timeout_ms, int retries, unsigned int gfp,
			    void (*callback)(int, ib_sa_service_rec *, void *), void *context,
			    ib_sa_query **query)
{
	using Query =
		mad::sa::RecordQuery<ib_sa_service_rec, ib::ServiceRecord, decltype(callback)>;
	if (!callback || (method != IB_MGMT_METHOD_GET && method != IB_MGMT_METHOD_SET &&
			  method != IB_SA_METHOD_DELETE))
		return -EINVAL;
	const Request request{
		.method = method,
		.attribute = ib::attr_service_record,
		.component_mask = comp_mask.value(),
		.retry_policy = {timeout_ms, retries},
		.gfp = static_cast<kern::Gfp>(gfp),
	};
	ib::ServiceRecord wire;
	mad::sa::pack(*rec, wire);
	return id_or_errno(ask(client, device, port_num, request, wire,
			       kern::make_ref<Query>(request.gfp, callback, context), query));
}

int ib_sa_class_port_info_query(ib_sa_client *client, ib_device *device, u32 port_num,
				unsigned long timeout_ms, int retries, unsigned int gfp,
				void (*callback)(int, ib_class_port_info *, void *), void *context,
				ib_sa_query **query)
{
	using Query =
		mad::sa::RecordQuery<ib_class_port_info, ib::ClassPortInfo, decltype(callback)>;
	if (!callback)
		return -EINVAL;
	const Request request{
		.method = static_cast<u8>(ib::MadMethod::get),
		.attribute = ib::attr_class_port_info,
		.component_mask = 0,
		.retry_policy = {timeout_ms, retries},
		.gfp = static_cast<kern::Gfp>(gfp),
	};
	return id_or_errno(ask(client, device, port_num, request, ib::ClassPortInfo{},
			       kern::make_ref<Query>(request.gfp, callback, context), query));
}

ib_inform_info *ib_sa_register_inform_info(ib_sa_client *client, ib_device *device, u32 port_num,
					   u16 trap_number,
					   int (*callback)(int, ib_inform_info *, ib_sa_notice *),
					   void *context)
{
	KERN_MIGHT_SLEEP();
	if (!callback)
		return rdma::err_ptr<ib_inform_info>(-EINVAL);
	mad::sa::Port *port = find_port(device, port_num);
	if (!port)
		return rdma::err_ptr<ib_inform_info>(-ENODEV);
	auto listener =
		port->informs().listen(trap_number, RetryPolicy::of(client), callback, context);
	return listener.ok() ? listener.take() : rdma::err_ptr<ib_inform_info>(listener.error());
}

void ib_sa_unregister_inform_info(ib_inform_info *info)
{
	KERN_MIGHT_SLEEP();
	auto &listener = *static_cast<mad::sa::Listener *>(info);
	listener.owner->leave(listener);
}

ib_sa_multicast *ib_sa_join_multicast(ib_sa_client *client, ib_device *device, u32 port_num,
				      ib_sa_mcmember_rec *rec, ib_sa_comp_mask comp_mask,
				      unsigned int, int (*callback)(int, ib_sa_multicast *),
				      void *context)
{
	KERN_MIGHT_SLEEP();
	mad::sa::Port *port = find_port(device, port_num);
	if (!port || !callback)
		return rdma::err_ptr<ib_sa_multicast>(-EINVAL);
	auto member = port->groups().join(*rec, comp_mask.value(), RetryPolicy::of(client),
					  callback, context);
	return member.ok() ? member.take() : rdma::err_ptr<ib_sa_multicast>(member.error());
}

void ib_sa_free_multicast(ib_sa_multicast *multicast)
{
	KERN_MIGHT_SLEEP();
	auto &member = *static_cast<Member *>(multicast);
	member.owner->leave(member);
}

int ib_sa_get_mcmember_rec(ib_device *device, u32 port_num, const ib_gid *mgid,
			   ib_sa_mcmember_rec *rec)
{
	mad::sa::Port *port = find_port(device, port_num);
	if (!port)
		return -EADDRNOTAVAIL;
	auto found = port->groups().find(*mgid);
	if (found.ok())
		*rec = found.value();
	return found.error();
}

int ib_init_ah_from_mcmember(ib_device *device, u32 port_num, ib_sa_mcmember_rec *rec,
			     rdma_ah_attr *ah_attr)
{
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	*ah_attr = {};
	ah_attr->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(ah_attr, rec->mlid.value());
	rdma_ah_set_sl(ah_attr, rec->sl);
	rdma_ah_set_port_num(ah_attr, port_num);
	rdma_ah_set_static_rate(ah_attr, rec->rate);
	/* A multicast packet always has a GRH (IBA 9.6.1.5). */
	return fill_grh(device, port_num, rec->port_gid, rec->mgid, rec->flow_label.value(),
			rec->hop_limit, rec->traffic_class, ah_attr);
}

int ib_init_ah_attr_from_path(ib_device *device, u32 port_num, sa_path_rec *rec,
			      rdma_ah_attr *ah_attr)
{
	u8 lmc;

	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	if (int status = ib_get_cached_lmc(device, port_num, &lmc))
		return status;
	*ah_attr = {};
	ah_attr->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(ah_attr, rec->ib.dlid.value());
	rdma_ah_set_sl(ah_attr, rec->sl);
	rdma_ah_set_path_bits(ah_attr, static_cast<u8>(rec->ib.slid.value() & ((1u << lmc) - 1)));
	rdma_ah_set_port_num(ah_attr, port_num);
	rdma_ah_set_static_rate(ah_attr, rec->rate);
	if (!needs_grh(rec->hop_limit) && !rdma_is_grh_required(device, port_num))
		return 0;
	return fill_grh(device, port_num, rec->sgid, rec->dgid, rec->flow_label.value(),
			rec->hop_limit, rec->traffic_class, ah_attr);
}

void ib_sa_pack_path(const sa_path_rec *rec, void *attribute)
{
	mad::sa::pack(*rec, *static_cast<ib::PathRecord *>(attribute));
}

void ib_sa_unpack_path(const void *attribute, sa_path_rec *rec)
{
	mad::sa::unpack(*static_cast<const ib::PathRecord *>(attribute), *rec);
}

} // extern "C"
