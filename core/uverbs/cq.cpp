// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the uverbs commands for completion queues and completion channels.
#include "commands.hpp"
#include "methods.hpp"
#include "queues.hpp"

namespace uverbs
{

namespace
{

void completed(ib_cq *, void *context)
{
	static_cast<Cq *>(context)->completions.push();
}

void handle_event(ib_event *event, void *context)
{
	static_cast<Cq *>(context)->events.push(event->event);
}

Result<kern::Ref<EventFile>> find_event_file(File &file, s32 descriptor, EventFile::Kind kind)
{
	const kern::FileHold<EventFile> found(event_file_kind(), descriptor);

	if (!found || !found->is(kind, file))
		return kern::Error{-EBADF};
	return kern::Ref<EventFile>::share(*found.get());
}

/*
 * Returns the completion channel of a descriptor, which must belong to this file. Returns an empty
 * reference for a negative descriptor.
 */
Result<kern::Ref<EventFile>> find_channel(File &file, s32 descriptor)
{
	return descriptor < 0 ? kern::Ref<EventFile>()
			      : find_event_file(file, descriptor, EventFile::Kind::completion);
}

struct CqParameters {
	u64 user_handle;
	u32 cqe;
	u32 comp_vector;
	s32 comp_channel;
	u64 flags = 0;
	/* The file for asynchronous events, if the program has specified one. */
	s32 event_file = no_descriptor;
};

/*
 * No driver of weft supports any flag. Known and unknown flags are refused with different errors,
 * which rdma-core's tests expect.
 */
Result<> check_flags(u64 flags)
{
	if (flags & ~abi::cq_flags)
		return kern::Error{-EINVAL};
	if (flags)
		return kern::Error{-EOPNOTSUPP};
	return {};
}

template<class Respond>
Result<> create(Call &call, const CqParameters &wanted, Respond respond)
{
	File &file = call.file;
	ib_device &device = file.device();
	const ib_cq_init_attr attr = {
		.cqe = wanted.cqe, .comp_vector = wanted.comp_vector, .flags = 0};

	KERN_TRY(check_flags(wanted.flags));
	/* Check the vector first, because programs often pass a wrong one. */
	if (attr.comp_vector >= static_cast<u32>(device.num_comp_vectors))
		return kern::Error{-EINVAL};
	auto channel = KERN_TRY(find_channel(file, wanted.comp_channel));
	auto events = KERN_TRY(find_events(file, wanted.event_file));
	auto cq = KERN_TRY(Allocation<Cq>::create(file.objects(), std::move(channel),
						  std::move(events), wanted.user_handle));
	KERN_TRY(cq->take(
		ib_create_cq_user(&device, completed, handle_event, &*cq, &attr, &call.udata)));
	KERN_TRY(respond(abi::CreateCqResponse{.handle = cq->handle(),
					       .cqe = static_cast<u32>(cq->ib()->cqe)}));
	cq.finish();
	return {};
}

Result<abi::DestroyCqResponse> destroy_numbered(Call &call, u32 handle)
{
	abi::DestroyCqResponse response{};

	KERN_TRY(destroy<Cq>(call, handle, [&](Cq &cq) {
		response = {.comp_events_reported = cq.completions.forget(),
			    .async_events_reported = cq.events.forget()};
	}));
	return response;
}

} // namespace

Result<kern::Ref<EventFile>> find_events(File &file, s32 descriptor)
{
	return descriptor == no_descriptor
		       ? file.events()
		       : find_event_file(file, descriptor, EventFile::Kind::asynchronous);
}

Result<> create_comp_channel(Call &call, const abi::ResponseOnly &)
{
	auto created = KERN_TRY(EventFile::create_channel(call.file));

	KERN_TRY(call.respond(
		abi::CreateCompChannelResponse{.fd = static_cast<u32>(created.file.descriptor())}));
	created.file.install();
	return {};
}

Result<> create_cq(Call &call, const abi::CreateCq &request)
{
	return create(
		call, {request.user_handle, request.cqe, request.comp_vector, request.comp_channel},
		[&](const abi::CreateCqResponse &response) { return call.respond(response); });
}

Result<> create_cq_extended(Call &call, const abi::CreateCqExtended &request)
{
	if (request.comp_mask || request.reserved)
		return kern::Error{-EINVAL};
	return create(call,
		      {request.user_handle, request.cqe, request.comp_vector, request.comp_channel,
		       request.flags},
		      [&](const abi::CreateCqResponse &response) {
			      return call.respond(abi::CreateCqExtendedResponse{
				      .base = response,
				      .response_length =
					      call.response_length<abi::CreateCqExtendedResponse>(),
			      });
		      });
}

Result<> modify_cq(Call &call, const abi::ModifyCq &request)
{
	if (request.attr_mask & ~abi::modify_cq_moderation || request.reserved)
		return kern::Error{-EOPNOTSUPP};
	if (!request.attr_mask)
		return kern::Error{-EINVAL};
	auto cq = KERN_TRY(call.file.objects().find<Cq>(request.handle));

	return kern::check(rdma_set_cq_moderation(cq->ib(), request.count, request.period));
}

Result<> resize_cq(Call &call, const abi::ResizeCq &request)
{
	auto cq = KERN_TRY(call.file.objects().find<Cq>(request.handle));

	KERN_TRY_ERRNO(ib_resize_cq_user(cq->ib(), static_cast<int>(request.cqe), &call.udata));
	return call.respond(abi::ResizeCqResponse{.cqe = static_cast<u32>(cq->ib()->cqe)});
}

Result<> destroy_cq(Call &call, const abi::Destroy &request)
{
	return call.respond(KERN_TRY(destroy_numbered(call, request.handle)));
}

Result<> methods::create_cq(Call &call, const Attributes &attributes)
{
	using namespace abi::create_cq_method;

	return create(call,
		      {.user_handle = attributes.number(user_handle),
		       .cqe = static_cast<u32>(attributes.number(cqe)),
		       .comp_vector = static_cast<u32>(attributes.number(comp_vector)),
		       .comp_channel = attributes.descriptor(comp_channel),
		       .flags = attributes.number(flags),
		       .event_file = attributes.descriptor(event_fd)},
		      [&](const abi::CreateCqResponse &made) -> Result<> {
			      KERN_TRY(attributes.write_output(response_cqe, made.cqe));
			      return attributes.write_handle(handle, made.handle);
		      });
}

Result<> methods::destroy_cq(Call &call, const Attributes &attributes)
{
	using namespace abi::destroy_method;

	return attributes.write_output(response,
				       KERN_TRY(destroy_numbered(call, attributes.handle(handle))));
}

} // namespace uverbs
