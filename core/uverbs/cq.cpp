// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Completion queues and channels.
#include "commands.hpp"
#include "queues.hpp"

namespace uverbs
{

namespace
{

void completed(ib_cq *, void *context)
{
	static_cast<Cq *>(context)->completions.push();
}

void hear(ib_event *event, void *context)
{
	static_cast<Cq *>(context)->events.push(event->event);
}

/* The channel that a program names by its descriptor: of this very file, or none. */
Result<kern::Ref<EventFile>> find_channel(File &file, s32 descriptor)
{
	if (descriptor < 0)
		return kern::Ref<EventFile>();
	const kern::FileHold<EventFile> channel(event_file_kind(), descriptor);
	if (!channel || !channel->made_by(file))
		return kern::Error{-EBADF};
	return kern::Ref<EventFile>::share(*channel.get());
}

struct CqParameters {
	u64 user_handle;
	u32 cqe;
	u32 comp_vector;
	s32 comp_channel;
};

template <class Respond>
Result<> create(Call &call, const CqParameters &wanted, Respond respond)
{
	File &file = call.file;
	ib_device &device = file.device();
	const ib_cq_init_attr attr = {.cqe = wanted.cqe, .comp_vector = wanted.comp_vector, .flags = 0};

	/* First, for it is the mistake that programs make. */
	if (attr.comp_vector >= static_cast<u32>(device.num_comp_vectors))
		return kern::Error{-EINVAL};
	auto channel = TRY(find_channel(file, wanted.comp_channel));
	auto cq = TRY(Draft<Cq>::create(file.objects(), std::move(channel), file.events(), wanted.user_handle));
	TRY(cq->take(ib_create_cq_user(&device, completed, hear, &*cq, &attr, &call.udata)));
	TRY(respond(abi::CreateCqResponse{.handle = cq->handle(), .cqe = static_cast<u32>(cq->ib()->cqe)}));
	cq.finish();
	return {};
}

} // namespace

Result<> create_comp_channel(Call &call, const abi::ResponseOnly &)
{
	auto created = TRY(EventFile::create_channel(call.file));

	TRY(call.respond(abi::CreateCompChannelResponse{.fd = static_cast<u32>(created.file.descriptor())}));
	created.file.install();
	return {};
}

Result<> create_cq(Call &call, const abi::CreateCq &request)
{
	return create(call, {request.user_handle, request.cqe, request.comp_vector, request.comp_channel},
		      [&](const abi::CreateCqResponse &response) { return call.respond(response); });
}

Result<> create_cq_extended(Call &call, const abi::CreateCqExtended &request)
{
	/* Time stamps and the like, which no driver of ours has. */
	if (request.comp_mask || request.flags || request.reserved)
		return kern::Error{-EINVAL};
	return create(call, {request.user_handle, request.cqe, request.comp_vector, request.comp_channel},
		      [&](const abi::CreateCqResponse &response) {
			      return call.respond(abi::CreateCqExtendedResponse{
				      .base = response,
				      .response_length = call.response_length<abi::CreateCqExtendedResponse>(),
			      });
		      });
}

Result<> resize_cq(Call &call, const abi::ResizeCq &request)
{
	auto cq = TRY(call.file.objects().find<Cq>(request.handle));

	TRY_ERRNO(ib_resize_cq_user(cq->ib(), static_cast<int>(request.cqe), &call.udata));
	return call.respond(abi::ResizeCqResponse{.cqe = static_cast<u32>(cq->ib()->cqe)});
}

Result<> destroy_cq(Call &call, const abi::Destroy &request)
{
	abi::DestroyCqResponse response{};

	TRY(destroy<Cq>(call, request.handle, [&](Cq &cq) {
		response = {.comp_events_reported = cq.completions.forget(), .async_events_reported = cq.events.forget()};
	}));
	return call.respond(response);
}

} // namespace uverbs
