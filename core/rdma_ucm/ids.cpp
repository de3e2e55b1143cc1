// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands that create and destroy a program's IDs, and that read their events.
#include "commands.hpp"

namespace rdma_ucm
{

namespace
{

/*
 * Returns the type of the ID's QP, if the port space does not determine it. Errors: EINVAL for a
 * type that programs may not use.
 */
Result<ib_qp_type> type_of(const abi::CreateId &request)
{
	switch (request.ps) {
	case RDMA_PS_TCP:
		return IB_QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IB_QPT_UD;
	case RDMA_PS_IB:
		return static_cast<ib_qp_type>(request.qp_type);
	default:
		return kern::Error{-EINVAL};
	}
}

} // namespace

Result<> create_id(Call &call, const abi::CreateId &request)
{
	const ib_qp_type type = KERN_TRY(type_of(request));
	const auto id = KERN_TRY(Id::create(call.file, request.uid,
					    static_cast<rdma_ucm_port_space>(request.ps), type));
	const Result<> responded = call.respond(request.response, abi::Made{.id = id->number()});

	if (!responded) {
		/*
		 * claim() fails if the program has guessed the number and destroyed the ID itself.
		 */
		if (kern::Ref<Id> claimed = table().claim(*id))
			Id::end(std::move(claimed));
	}
	return responded;
}

Result<> destroy_id(Call &call, const abi::DestroyId &request)
{
	const u32 read = Id::end(KERN_TRY(table().claim(request.id, call.file)));
	return call.respond(request.response, abi::Ended{.events_reported = read});
}

Result<> migrate_id(Call &call, const abi::MigrateId &request)
{
	const kern::FileHold<File> from(file_kind(), request.fd);

	if (!from)
		return kern::Error{-EINVAL};
	const u32 read = KERN_TRY(table().move(request.id, *from.get(), call.file));
	return call.respond(request.response, abi::Ended{.events_reported = read});
}

Result<> get_event(Call &call, const abi::GetEvent &request)
{
	kern::Owned<Event> event = KERN_TRY(call.file.next_event());
	const Result<> responded = call.respond(request.response, event->record);

	if (!responded) {
		table().put_back(event);
		Id::discard(std::move(event));
	}
	return responded;
}

} // namespace rdma_ucm
