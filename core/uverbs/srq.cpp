// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Shared receive queues.
#include "commands.hpp"
#include "queues.hpp"

namespace uverbs
{

namespace
{

void hear(ib_event *event, void *context)
{
	static_cast<Srq *>(context)->events.push(event->event);
}

/* Both requests say the size alike. */
template <class Request>
Result<> create(Call &call, const Request &request, ib_srq_type type, Srq::Parents parents)
{
	File &file = call.file;
	ib_pd *const pd = parents.pd->ib();
	ib_srq_init_attr attr = {
		.event_handler = hear,
		.srq_context = nullptr,
		.attr = {.max_wr = request.max_wr, .max_sge = request.max_sge, .srq_limit = request.srq_limit},
		.srq_type = type,
		.ext = {},
	};
	if (type == IB_SRQT_XRC) {
		attr.ext.cq = parents.cq->ib();
		attr.ext.xrc.xrcd = &parents.xrcd->domain().ib();
	}
	auto srq = TRY(Draft<Srq>::create(file.objects(), std::move(parents), file.events(), request.user_handle));

	attr.srq_context = &*srq;
	TRY(srq->take(ib_create_srq_user(pd, &attr, &call.udata)));
	TRY(call.respond(abi::CreateSrqResponse{
		.handle = srq->handle(),
		.max_wr = attr.attr.max_wr,
		.max_sge = attr.attr.max_sge,
		.srqn = type == IB_SRQT_XRC ? srq->ib()->ext.xrc.srq_num : 0,
	}));
	srq.finish();
	return {};
}

} // namespace

Result<> create_srq(Call &call, const abi::CreateSrq &request)
{
	return create(call, request, IB_SRQT_BASIC, {.pd = TRY(call.file.objects().find<Pd>(request.pd_handle)), .xrcd = {}, .cq = {}});
}

Result<> create_xsrq(Call &call, const abi::CreateXsrq &request)
{
	ObjectTable &objects = call.file.objects();

	/* Tag matching is none of ours. */
	if (request.srq_type != IB_SRQT_BASIC && request.srq_type != IB_SRQT_XRC)
		return kern::Error{-EINVAL};
	Srq::Parents parents;
	parents.pd = TRY(objects.find<Pd>(request.pd_handle));
	if (request.srq_type == IB_SRQT_XRC) {
		parents.xrcd = TRY(objects.find<Xrcd>(request.xrcd_handle));
		parents.cq = TRY(objects.find<Cq>(request.cq_handle));
	}
	return create(call, request, static_cast<ib_srq_type>(request.srq_type), std::move(parents));
}

Result<> modify_srq(Call &call, const abi::ModifySrq &request)
{
	auto srq = TRY(call.file.objects().find<Srq>(request.handle));
	ib_srq_attr attr = {.max_wr = request.max_wr, .max_sge = 0, .srq_limit = request.srq_limit};

	return kern::check(ib_modify_srq_user(srq->ib(), &attr, static_cast<ib_srq_attr_mask>(request.attr_mask), &call.udata));
}

Result<> query_srq(Call &call, const abi::Destroy &request)
{
	auto srq = TRY(call.file.objects().find<Srq>(request.handle));
	ib_srq_attr attr = {};

	TRY_ERRNO(ib_query_srq(srq->ib(), &attr));
	return call.respond(abi::QuerySrqResponse{.max_wr = attr.max_wr, .max_sge = attr.max_sge, .srq_limit = attr.srq_limit});
}

Result<> destroy_srq(Call &call, const abi::Destroy &request)
{
	abi::DestroyResponse response{};

	TRY(destroy<Srq>(call, request.handle, [&](Srq &srq) { response.events_reported = srq.events.forget(); }));
	return call.respond(response);
}

} // namespace uverbs
