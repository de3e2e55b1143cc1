// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Answers requests about the resources of a device and their owners.
#include "operations.hpp"

namespace nldev
{

namespace
{

constexpr const char *kind_names[] = {"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"};
static_assert(sizeof(kind_names) / sizeof(kind_names[0]) == IB_RESOURCE_KINDS);

/*
 * The netlink constants of a kind of object: the operation that queries it, the attribute of the
 * table, of an entry in the table, and of the number that selects an entry.
 */
struct Kind {
	u16 operation;
	u16 table;
	u16 entry;
	u16 number;
	/* The objects belong to ports. */
	bool of_port;
};
constexpr Kind kinds[] = {
	{abi::RES_PD_GET, abi::RES_PD, abi::RES_PD_ENTRY, abi::RES_PDN, false},
	{abi::RES_CQ_GET, abi::RES_CQ, abi::RES_CQ_ENTRY, abi::RES_CQN, false},
	{abi::RES_QP_GET, abi::RES_QP, abi::RES_QP_ENTRY, abi::RES_LQPN, true},
	{abi::RES_CM_ID_GET, abi::RES_CM_ID, abi::RES_CM_ID_ENTRY, abi::RES_CM_IDN, true},
	{abi::RES_MR_GET, abi::RES_MR, abi::RES_MR_ENTRY, abi::RES_MRN, false},
	{abi::RES_CTX_GET, abi::RES_CTX, abi::RES_CTX_ENTRY, abi::RES_CTXN, false},
	{abi::RES_SRQ_GET, abi::RES_SRQ, abi::RES_SRQ_ENTRY, abi::RES_SRQN, false},
};
static_assert(sizeof(kinds) / sizeof(kinds[0]) == IB_RESOURCE_KINDS);

constexpr u32 every_port = 0;

/* The device and the message of a response, and whether the requester may see everything. */
struct View {
	ib_device &device;
	Message &message;
	bool administrator;
};

void put_owner(Message &message, const ib_resource_info &info)
{
	if (info.process)
		message.put(abi::RES_PID, info.process);
	else
		message.put(abi::RES_KERN_NAME, info.owner);
}

void put_number(Message &message, u16 attribute, u32 number)
{
	if (number != IB_NO_RESOURCE)
		message.put(attribute, number);
}
/*
 * Writes the PD of a program's object. An object of the kernel has no context, so its PD is
 * omitted.
 */
void put_pd(Message &message, const ib_resource_info &info)
{
	if (info.context != IB_NO_RESOURCE)
		put_number(message, abi::RES_PDN, info.pd);
}

bool is_connected(ib_qp_type type)
{
	return type == IB_QPT_RC || type == IB_QPT_UC;
}

void put_qp(const View &view, const ib_resource_info &info)
{
	Message &message = view.message;

	if (info.qp.port)
		message.put(abi::PORT_INDEX, info.qp.port);
	message.put(abi::RES_LQPN, info.qp.number);
	put_pd(message, info);
	if (is_connected(info.qp.type)) {
		message.put(abi::RES_RQPN, info.qp.dest_number);
		message.put(abi::RES_RQ_PSN, info.qp.rq_psn);
	}
	message.put(abi::RES_SQ_PSN, info.qp.sq_psn);
	if (is_connected(info.qp.type) || info.qp.type == IB_QPT_XRC_INI ||
	    info.qp.type == IB_QPT_XRC_TGT)
		message.put(abi::RES_PATH_MIG_STATE, static_cast<u8>(info.qp.path_mig_state));
	message.put(abi::RES_TYPE, static_cast<u8>(info.qp.type));
	message.put(abi::RES_STATE, static_cast<u8>(info.qp.state));
}

/* Omits an address without a family. Programs ignore an ID without addresses. */
void put_address(Message &message, u16 attribute, const u8 (&address)[128])
{
	if (address[0] | address[1])
		message.put(attribute, address, sizeof(address));
}

void put_cm_id(const View &view, const ib_resource_info &info)
{
	Message &message = view.message;

	if (info.cm_id.port)
		message.put(abi::PORT_INDEX, info.cm_id.port);
	if (info.cm_id.has_qp) {
		message.put(abi::RES_LQPN, info.cm_id.qp_number);
		message.put(abi::RES_TYPE, static_cast<u8>(info.cm_id.qp_type));
	}
	message.put(abi::RES_PS, info.cm_id.port_space);
	message.put(abi::RES_STATE, info.cm_id.state);
	put_address(message, abi::RES_SRC_ADDR, info.cm_id.source);
	put_address(message, abi::RES_DST_ADDR, info.cm_id.destination);
	message.put(abi::RES_CM_IDN, info.number);
}

u8 poll_context_of(ib_poll_context context)
{
	switch (context) {
	case IB_POLL_SOFTIRQ:
		return abi::POLL_SOFTIRQ;
	case IB_POLL_WORKQUEUE:
		return abi::POLL_WORKQUEUE;
	case IB_POLL_UNBOUND_WORKQUEUE:
		return abi::POLL_UNBOUND_WORKQUEUE;
	case IB_POLL_DIRECT:
		break;
	}
	return abi::POLL_DIRECT;
}

void put_cq(const View &view, const ib_resource_info &info)
{
	Message &message = view.message;

	message.put(abi::RES_CQE, info.cq.cqe);
	message.put(abi::RES_USECNT, info.users);
	if (info.context == IB_NO_RESOURCE)
		message.put(abi::RES_POLL_CTX, poll_context_of(info.cq.poll_ctx));
	message.put(abi::DEV_DIM, u8{0});
	message.put(abi::RES_CQN, info.number);
	put_number(message, abi::RES_CTXN, info.context);
}

void put_mr(const View &view, const ib_resource_info &info)
{
	Message &message = view.message;

	if (view.administrator) {
		message.put(abi::RES_RKEY, info.mr.rkey);
		message.put(abi::RES_LKEY, info.mr.lkey);
	}
	message.put(abi::RES_MRLEN, info.mr.length);
	message.put(abi::RES_MRN, info.number);
	put_pd(message, info);
}

void put_pd_itself(const View &view, const ib_resource_info &info)
{
	Message &message = view.message;

	if (view.administrator) {
		message.put(abi::RES_LOCAL_DMA_LKEY, info.pd_keys.local_dma_lkey);
		if (info.pd_keys.unsafe_global_rkey)
			message.put(abi::RES_UNSAFE_GLOBAL_RKEY, info.pd_keys.unsafe_global_rkey);
	}
	message.put(abi::RES_USECNT, info.users);
	message.put(abi::RES_PDN, info.number);
	put_number(message, abi::RES_CTXN, info.context);
}

void put_range(Message &message, u32 first, u32 last)
{
	Nest entry(message, abi::RES_QP_ENTRY, true);

	if (first == last) {
		message.put(abi::RES_LQPN, first);
		return;
	}
	message.put(abi::MIN_RANGE, first);
	message.put(abi::MAX_RANGE, last);
}

void put_srq(const View &view, const ib_resource_info &info)
{
	Message &message = view.message;

	message.put(abi::RES_SRQN, info.number);
	message.put(abi::RES_TYPE, static_cast<u8>(info.srq.type));
	put_number(message, abi::RES_PDN, info.pd);
	put_number(message, abi::RES_CQN, info.srq.cq);
	Nest qps(message, abi::RES_QP, true);
	for (u32 i = 0; i < info.srq.ranges; i++)
		put_range(message, info.srq.qps[i].first, info.srq.qps[i].last);
}

void put_object(const View &view, ib_resource_kind kind, const ib_resource_info &info)
{
	put_owner(view.message, info);
	switch (kind) {
	case IB_RESOURCE_PD:
		return put_pd_itself(view, info);
	case IB_RESOURCE_CQ:
		return put_cq(view, info);
	case IB_RESOURCE_QP:
		return put_qp(view, info);
	case IB_RESOURCE_CM_ID:
		return put_cm_id(view, info);
	case IB_RESOURCE_MR:
		return put_mr(view, info);
	case IB_RESOURCE_CTX:
		return view.message.put(abi::RES_CTXN, info.number);
	case IB_RESOURCE_SRQ:
		return put_srq(view, info);
	default:
		return;
	}
}

u32 port_of(ib_resource_kind kind, const ib_resource_info &info)
{
	return kind == IB_RESOURCE_QP ? info.qp.port : info.cm_id.port;
}

/*
 * Finds an object by the number that users see: a QP by its QP number, other objects by their
 * object IDs. Errors: ENOENT.
 */
kern::Result<> find(ib_device &device, ib_resource_kind kind, u32 number, u32 port,
		    ib_resource_info &info)
{
	if (kind != IB_RESOURCE_QP) {
		KERN_TRY_ERRNO(ib_next_resource(&device, kind, number, &info));
		return kern::check(info.number == number ? 0 : -ENOENT);
	}
	u32 own;
	KERN_TRY_ERRNO(ib_find_qp_resource(&device, number, port, &own));
	KERN_TRY_ERRNO(ib_next_resource(&device, kind, own, &info));
	return kern::check(info.number == own ? 0 : -ENOENT);
}

/* Writes the resources of one port, or of all ports, until the message is full. */
kern::Result<Rest> put_table(const View &view, ib_resource_kind kind, u32 port,
			     unsigned long &number)
{
	Nest table(view.message, kinds[kind].table);
	ib_resource_info info;

	return fill(view.message, number, [&](u32 from, u32 &found) {
		do {
			if (ib_next_resource(&view.device, kind, from, &info))
				return false;
			from = info.number + 1;
		} while (port != every_port && port_of(kind, info) != port);
		found = info.number;
		Nest entry(view.message, kinds[kind].entry);
		put_object(view, kind, info);
		return true;
	});
}

void put_summary(const Device &device, Message &message)
{
	message.begin(abi::type_of(abi::RES_GET));
	device.name(message);
	{
		Nest summary(message, abi::RES_SUMMARY);
		for (unsigned int kind = 0; kind < IB_RESOURCE_KINDS; kind++) {
			Nest entry(message, abi::RES_SUMMARY_ENTRY);
			message.put(abi::RES_SUMMARY_ENTRY_NAME, kind_names[kind]);
			message.put(abi::RES_SUMMARY_ENTRY_CURR,
				    u64{ib_count_resources(&*device,
							   static_cast<ib_resource_kind>(kind))});
		}
	}
	message.end();
}

} // namespace

kern::Result<> get_summary(const Request &request, Message &message)
{
	put_summary(KERN_TRY(Device::of(request)), message);
	return {};
}

kern::Result<Rest> dump_summaries(const Request &request, Message &message, Place &place)
{
	return fill(message, place.device, [&](u32 from, u32 &found) {
		const Device device = Device::from(from, request);
		if (!device)
			return false;
		found = ib_device_index(&*device);
		put_summary(device, message);
		return true;
	});
}

template<ib_resource_kind kind>
kern::Result<> get_resource(const Request &request, Message &message)
{
	constexpr const Kind &form = kinds[kind];
	const Device device = KERN_TRY(Device::of(request));
	ib_resource_info info;
	u32 number, port = 0;

	if (form.of_port)
		port = KERN_TRY(device.port(request));
	else if (request.has(abi::PORT_INDEX))
		return kern::Error{-EINVAL};
	if (!request.get(form.number, number))
		return kern::Error{-EINVAL};
	KERN_TRY(find(*device, kind, number, port, info));
	message.begin(abi::type_of(form.operation));
	device.name(message);
	put_object({*device, message, request.may_administer()}, kind, info);
	message.end();
	return {};
}

template<ib_resource_kind kind>
kern::Result<Rest> dump_resources(const Request &request, Message &message, Place &place)
{
	constexpr const Kind &form = kinds[kind];
	const Device device = KERN_TRY(Device::of(request));
	const u32 port = form.of_port && request.has(abi::PORT_INDEX)
				 ? KERN_TRY(device.port(request))
				 : every_port;
	const unsigned long before = place.number;
	const void *start = message.mark();

	message.begin(abi::type_of(form.operation));
	device.name(message);
	const kern::Result<Rest> rest =
		put_table({*device, message, request.may_administer()}, kind, port, place.number);
	message.end();
	if (place.number == before)
		message.rewind(start);
	return rest;
}

template kern::Result<> get_resource<IB_RESOURCE_PD>(const Request &, Message &);
template kern::Result<> get_resource<IB_RESOURCE_CQ>(const Request &, Message &);
template kern::Result<> get_resource<IB_RESOURCE_QP>(const Request &, Message &);
template kern::Result<> get_resource<IB_RESOURCE_CM_ID>(const Request &, Message &);
template kern::Result<> get_resource<IB_RESOURCE_MR>(const Request &, Message &);
template kern::Result<> get_resource<IB_RESOURCE_CTX>(const Request &, Message &);
template kern::Result<> get_resource<IB_RESOURCE_SRQ>(const Request &, Message &);
template kern::Result<Rest> dump_resources<IB_RESOURCE_PD>(const Request &, Message &, Place &);
template kern::Result<Rest> dump_resources<IB_RESOURCE_CQ>(const Request &, Message &, Place &);
template kern::Result<Rest> dump_resources<IB_RESOURCE_QP>(const Request &, Message &, Place &);
template kern::Result<Rest> dump_resources<IB_RESOURCE_CM_ID>(const Request &, Message &, Place &);
template kern::Result<Rest> dump_resources<IB_RESOURCE_MR>(const Request &, Message &, Place &);
template kern::Result<Rest> dump_resources<IB_RESOURCE_CTX>(const Request &, Message &, Place &);
template kern::Result<Rest> dump_resources<IB_RESOURCE_SRQ>(const Request &, Message &, Place &);

} // namespace nldev
