// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the uverbs commands for shared receive queues.
#include "commands.hpp"
#include "methods.hpp"
#include "queues.hpp"

namespace uverbs
{

namespace
{

void handle_event(ib_event *event, void *context)
{
	static_cast<Srq *>(context)->events.push(event->event);
}

struct SrqParameters {
	u64 user_handle;
	ib_srq_attr attr;
	ib_srq_type type;
	/* The file for the SRQ's events, if the program has specified one. */
	s32 event_file = no_descriptor;
};

template<class Respond>
Result<> create(Call &call, const SrqParameters &wanted, Srq::Parents parents, Respond respond)
{
	File &file = call.file;
	ib_pd *const pd = parents.pd->ib();
	ib_srq_init_attr attr = {
		.event_handler = handle_event,
		.srq_context = nullptr,
		.attr = wanted.attr,
		.srq_type = wanted.type,
		.ext = {},
	};
	if (wanted.type == IB_SRQT_XRC) {
		attr.ext.cq = parents.cq->ib();
		attr.ext.xrc.xrcd = &parents.xrcd->domain().ib();
	}
	auto events = KERN_TRY(find_events(file, wanted.event_file));
	auto srq = KERN_TRY(Allocation<Srq>::create(file.objects(), std::move(parents),
						    std::move(events), wanted.user_handle));

	attr.srq_context = &*srq;
	KERN_TRY(srq->take(ib_create_srq_user(pd, &attr, &call.udata)));
	KERN_TRY(respond(abi::CreateSrqResponse{
		.handle = srq->handle(),
		.max_wr = attr.attr.max_wr,
		.max_sge = attr.attr.max_sge,
		.srqn = wanted.type == IB_SRQT_XRC ? srq->ib()->ext.xrc.srq_num : 0,
	}));
	srq.finish();
	return {};
}

/* Implements both commands, whose requests and responses have the same members for the size. */
template<class Request>
Result<> create(Call &call, const Request &request, ib_srq_type type, Srq::Parents parents)
{
	return create(
		call,
		{.user_handle = request.user_handle,
		 /*
		  * The limit is set only by MODIFY_SRQ. At creation it is ignored, because
		  * libibverbs passes a value that the program may not have initialised.
		  */
		 .attr = {.max_wr = request.max_wr, .max_sge = request.max_sge, .srq_limit = 0},
		 .type = type},
		std::move(parents),
		[&](const abi::CreateSrqResponse &made) { return call.respond(made); });
}

Result<abi::DestroyResponse> destroy_numbered(Call &call, u32 handle)
{
	abi::DestroyResponse response{};

	KERN_TRY(destroy<Srq>(call, handle,
			      [&](Srq &srq) { response.events_reported = srq.events.forget(); }));
	return response;
}

} // namespace

Result<> create_srq(Call &call, const abi::CreateSrq &request)
{
	return create(call, request, IB_SRQT_BASIC,
		      {.pd = KERN_TRY(call.file.objects().find<Pd>(request.pd_handle)),
		       .xrcd = {},
		       .cq = {}});
}

Result<> create_xsrq(Call &call, const abi::CreateXsrq &request)
{
	ObjectTable &objects = call.file.objects();

	/* Tag matching is not supported. */
	if (request.srq_type != IB_SRQT_BASIC && request.srq_type != IB_SRQT_XRC)
		return kern::Error{-EINVAL};
	Srq::Parents parents;
	parents.pd = KERN_TRY(objects.find<Pd>(request.pd_handle));
	if (request.srq_type == IB_SRQT_XRC) {
		parents.xrcd = KERN_TRY(objects.find<Xrcd>(request.xrcd_handle));
		parents.cq = KERN_TRY(objects.find<Cq>(request.cq_handle));
	}
	return create(call, request, static_cast<ib_srq_type>(request.srq_type),
		      std::move(parents));
}

Result<> modify_srq(Call &call, const abi::ModifySrq &request)
{
	auto srq = KERN_TRY(call.file.objects().find<Srq>(request.handle));
	ib_srq_attr attr = {.max_wr = request.max_wr, .max_sge = 0, .srq_limit = request.srq_limit};

	return kern::check(ib_modify_srq_user(
		srq->ib(), &attr, static_cast<ib_srq_attr_mask>(request.attr_mask), &call.udata));
}

Result<> query_srq(Call &call, const abi::Destroy &request)
{
	auto srq = KERN_TRY(call.file.objects().find<Srq>(request.handle));
	ib_srq_attr attr = {};

	KERN_TRY_ERRNO(ib_query_srq(srq->ib(), &attr));
	return call.respond(abi::QuerySrqResponse{
		.max_wr = attr.max_wr, .max_sge = attr.max_sge, .srq_limit = attr.srq_limit});
}

Result<> destroy_srq(Call &call, const abi::Destroy &request)
{
	return call.respond(KERN_TRY(destroy_numbered(call, request.handle)));
}

Result<> methods::create_srq(Call &call, const Attributes &attributes)
{
	using namespace abi::create_srq_method;
	ObjectTable &objects = call.file.objects();
	const auto srq_type = static_cast<ib_srq_type>(attributes.number(type));
	Srq::Parents parents;

	if (srq_type != IB_SRQT_BASIC && srq_type != IB_SRQT_XRC)
		return kern::Error{-EINVAL};
	parents.pd = KERN_TRY(objects.find<Pd>(attributes.handle(pd)));
	if (srq_type == IB_SRQT_XRC) {
		if (!attributes.has(xrcd) || !attributes.has(cq))
			return kern::Error{-EINVAL};
		parents.xrcd = KERN_TRY(objects.find<Xrcd>(attributes.handle(xrcd)));
		parents.cq = KERN_TRY(objects.find<Cq>(attributes.handle(cq)));
	}
	return create(call,
		      {.user_handle = attributes.number(user_handle),
		       .attr = {.max_wr = static_cast<u32>(attributes.number(max_wr)),
				.max_sge = static_cast<u32>(attributes.number(max_sge)),
				.srq_limit = 0},
		       .type = srq_type,
		       .event_file = attributes.descriptor(event_fd)},
		      std::move(parents), [&](const abi::CreateSrqResponse &made) -> Result<> {
			      KERN_TRY(attributes.write_output(response_max_wr, made.max_wr));
			      KERN_TRY(attributes.write_output(response_max_sge, made.max_sge));
			      KERN_TRY(attributes.write_output(response_srq_num, made.srqn));
			      return attributes.write_handle(handle, made.handle);
		      });
}

Result<> methods::destroy_srq(Call &call, const Attributes &attributes)
{
	using namespace abi::destroy_method;

	return attributes.write_output(response,
				       KERN_TRY(destroy_numbered(call, attributes.handle(handle))));
}

} // namespace uverbs
