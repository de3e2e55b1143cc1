// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands that join and leave multicast groups.
#include "commands.hpp"
#include "convert.hpp"

namespace rdma_ucm
{

namespace
{

/* Parameters of a join, from either of the two commands. */
struct Join {
	u64 response;
	u64 uid;
	u32 id;
	rdma_sockaddr address;
	ib_sa_mc_join_states state;
};

/*
 * Leaves a group after a failed join. The program may have left it already, if it has guessed the
 * number.
 */
void abandon(Membership &membership)
{
	if (kern::Ref<Membership> claimed = table().claim(membership))
		Id::leave(std::move(claimed));
	else
		table().forget(membership);
}

Result<> join(Call &call, const Join &wanted)
{
	const kern::Ref<Id> id = KERN_TRY(table().find(wanted.id, call.file));
	const auto membership = KERN_TRY(kern::make_ref<Membership>(
		kern::Gfp::kernel_account, wanted.uid, id, wanted.address));

	KERN_TRY(table().add(*membership));
	const Result<> done = id->with_cm([&](rdma_cm_id &cm) -> Result<> {
		KERN_TRY(check_device(cm));
		/* The membership must be visible before its first event arrives. */
		KERN_TRY(table().publish(*membership));
		return kern::check(
			rdma_join_multicast(&cm, &wanted.address, wanted.state, membership.get()));
	});
	const Result<> responded =
		done ? call.respond(wanted.response, abi::Made{.id = membership->number()})
		     : kern::Error{done.error()};
	if (!responded)
		abandon(*membership);
	return responded;
}

} // namespace

Result<> join_ip_mcast(Call &call, const abi::JoinIpMcast &request)
{
	return join(call, {.response = request.response,
			   .uid = request.uid,
			   .id = request.id,
			   .address = KERN_TRY(address_of(request.addr)),
			   .state = FULLMEMBER_JOIN});
}

Result<> join_mcast(Call &call, const abi::JoinMcast &request)
{
	if (request.join_flags > abi::join_send_only)
		return kern::Error{-EINVAL};
	return join(call,
		    {.response = request.response,
		     .uid = request.uid,
		     .id = request.id,
		     .address = KERN_TRY(address_of(request.addr, request.addr_size)),
		     .state = request.join_flags == abi::join_send_only ? SENDONLY_FULLMEMBER_JOIN
									: FULLMEMBER_JOIN});
}

Result<> leave_mcast(Call &call, const abi::DestroyId &request)
{
	const u32 read = Id::leave(KERN_TRY(table().claim_membership(request.id, call.file)));
	return call.respond(request.response, abi::Ended{.events_reported = read});
}

} // namespace rdma_ucm
