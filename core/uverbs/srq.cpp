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

} // namespace

Result<> create_srq(Call &call, const abi::CreateSrq &request)
{
	File &file = call.file;
	auto pd = TRY(file.objects().find<Pd>(request.pd_handle));
	ib_pd *const ib = pd->ib();
	auto srq = TRY(Draft<Srq>::create(file.objects(), std::move(pd), file.events(), request.user_handle));
	ib_srq_init_attr attr = {
		.event_handler = hear,
		.srq_context = &*srq,
		.attr = {.max_wr = request.max_wr, .max_sge = request.max_sge, .srq_limit = request.srq_limit},
		.srq_type = IB_SRQT_BASIC,
		.ext = {},
	};

	TRY(srq->take(ib_create_srq_user(ib, &attr, &call.udata)));
	TRY(call.respond(abi::CreateSrqResponse{
		.handle = srq->handle(),
		.max_wr = attr.attr.max_wr,
		.max_sge = attr.attr.max_sge,
		.srqn = 0,
	}));
	srq.finish();
	return {};
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
