// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands that resolve addresses and routes, return the results, and set options of
// an ID.
#include <kern/user.hpp>
#include "commands.hpp"
#include "convert.hpp"

namespace rdma_ucm
{

namespace
{

/* Maximum number of paths that a program may pass in one call. */
constexpr u32 paths_max = 8;

Result<> resolve(Id &id, rdma_cm_id &cm, const rdma_sockaddr *from, const rdma_sockaddr &to,
		 u32 timeout_ms)
{
	KERN_TRY(table().may_request(id));
	return kern::check(rdma_resolve_addr(&cm, from, &to, timeout_ms));
}

/* Fills in the attributes of the ID's device, if it has one. */
template<class Answer>
void show_device(const rdma_cm_id &cm, Answer &answer)
{
	if (!cm.device)
		return;
	answer.node_guid = cm.device->node_guid;
	answer.port_num = static_cast<u8>(cm.port_num);
}

void show_addresses(rdma_cm_id &cm, abi::Addresses &answer)
{
	show_device(cm, answer);
	answer.pkey = cm.route.addr.pkey;
	answer.src_size = show(cm.route.addr.src_addr, answer.src_addr);
	answer.dst_size = show(cm.route.addr.dst_addr, answer.dst_addr);
}

/* Returns an address of family AF_IB for an address of the ID. */
rdma_sockaddr gid_of(rdma_cm_id &cm, const rdma_sockaddr &end, const ib_gid &gid)
{
	if (end.family == RDMA_AF_IB)
		return end;
	rdma_sockaddr shown{};
	shown.ib.family = RDMA_AF_IB;
	shown.ib.pkey = cm.route.addr.pkey;
	shown.ib.addr = gid;
	shown.ib.sid = rdma_get_service_id(&cm, &end);
	return shown;
}

void show_gids(rdma_cm_id &cm, abi::Addresses &answer)
{
	const rdma_addr &ends = cm.route.addr;

	show_device(cm, answer);
	answer.pkey = ends.pkey;
	answer.src_size = show(gid_of(cm, ends.src_addr, ends.sgid), answer.src_addr);
	answer.dst_size = show(gid_of(cm, ends.dst_addr, ends.dgid), answer.dst_addr);
}

void show_path(const rdma_cm_id &cm, abi::Paths &answer)
{
	if (!cm.route.num_paths)
		return;
	answer.num_paths = 1;
	answer.path.flags = abi::path_all;
	ib_sa_pack_path(&cm.route.path_rec, answer.path.record);
}

/* Returns the first of the program's paths that has all flags of path_all. */
Result<sa_path_rec> choose_path(const abi::SetOption &request)
{
	if (!request.optlen || request.optlen % sizeof(abi::PathData) ||
	    request.optlen / sizeof(abi::PathData) > paths_max)
		return kern::Error{-EINVAL};
	for (u32 at = 0; at < request.optlen; at += sizeof(abi::PathData)) {
		abi::PathData offered;
		KERN_TRY(kern::copy_in(&offered, request.optval + at, sizeof(offered)));
		if (offered.flags != abi::path_all)
			continue;
		sa_path_rec path{};
		ib_sa_unpack_path(offered.record, &path);
		return path;
	}
	return kern::Error{-EINVAL};
}

Result<> set_path(Id &id, rdma_cm_id &cm, const sa_path_rec &path)
{
	KERN_TRY(check_device(cm));
	KERN_TRY(table().may_request(id));
	KERN_TRY_ERRNO(rdma_set_ib_path(&cm, &path));
	rdma_cm_event resolved{};
	resolved.event = RDMA_CM_EVENT_ROUTE_RESOLVED;
	id.deliver(resolved);
	return {};
}

Result<> set_id_option(rdma_cm_id &cm, u32 name, int value)
{
	switch (name) {
	case abi::option_tos:
		rdma_set_service_type(&cm, value);
		return {};
	case abi::option_reuseaddr:
		return kern::check(rdma_set_reuseaddr(&cm, value ? 1 : 0));
	case abi::option_afonly:
		return kern::check(rdma_set_afonly(&cm, value ? 1 : 0));
	default:
		return kern::check(rdma_set_ack_timeout(&cm, static_cast<u8>(value)));
	}
}

/*
 * Reads the value of an option as an int; two of the options have one byte. Errors: EINVAL for a
 * wrong length, ENOSYS for an unknown option.
 */
Result<int> read_id_option(const abi::SetOption &request)
{
	u8 byte;
	int value;

	switch (request.optname) {
	case abi::option_tos:
	case abi::option_ack_timeout:
		if (request.optlen != sizeof(byte))
			return kern::Error{-EINVAL};
		KERN_TRY(kern::copy_in(&byte, request.optval, sizeof(byte)));
		return byte;
	case abi::option_reuseaddr:
	case abi::option_afonly:
		if (request.optlen != sizeof(value))
			return kern::Error{-EINVAL};
		KERN_TRY(kern::copy_in(&value, request.optval, sizeof(value)));
		return value;
	default:
		return kern::Error{-ENOSYS};
	}
}

} // namespace

Result<> bind_ip(Id &, rdma_cm_id &cm, const abi::BindIp &request)
{
	const rdma_sockaddr address = KERN_TRY(address_of(request.addr));
	return kern::check(rdma_bind_addr(&cm, &address));
}

Result<> bind(Id &, rdma_cm_id &cm, const abi::Bind &request)
{
	if (request.reserved)
		return kern::Error{-EINVAL};
	const rdma_sockaddr address = KERN_TRY(address_of(request.addr, request.addr_size));
	return kern::check(rdma_bind_addr(&cm, &address));
}

Result<> resolve_ip(Id &id, rdma_cm_id &cm, const abi::ResolveIp &request)
{
	const rdma_sockaddr to = KERN_TRY(address_of(request.dst_addr));

	/* Family 0 means that there is no source address. */
	if (!request.src_addr[0] && !request.src_addr[1])
		return resolve(id, cm, nullptr, to, request.timeout_ms);
	const rdma_sockaddr from = KERN_TRY(address_of(request.src_addr));
	return resolve(id, cm, &from, to, request.timeout_ms);
}

Result<> resolve_addr(Id &id, rdma_cm_id &cm, const abi::ResolveAddr &request)
{
	if (request.reserved)
		return kern::Error{-EINVAL};
	const rdma_sockaddr to = KERN_TRY(address_of(request.dst_addr, request.dst_size));
	if (!request.src_size)
		return resolve(id, cm, nullptr, to, request.timeout_ms);
	const rdma_sockaddr from = KERN_TRY(address_of(request.src_addr, request.src_size));
	return resolve(id, cm, &from, to, request.timeout_ms);
}

Result<> resolve_route(Id &id, rdma_cm_id &cm, const abi::ResolveRoute &request)
{
	KERN_TRY(table().may_request(id));
	return kern::check(rdma_resolve_route(&cm, request.timeout_ms));
}

Result<> query_route(Id &, rdma_cm_id &cm, const abi::Ask &, abi::Route &answer)
{
	const HandlerGuard guard(cm);
	const rdma_addr &ends = cm.route.addr;

	show(ends.src_addr, answer.src_addr);
	show(ends.dst_addr, answer.dst_addr);
	if (!cm.device)
		return {};
	show_device(cm, answer);
	answer.num_paths = static_cast<u32>(cm.route.num_paths);
	if (cm.route.num_paths) {
		show(cm.route.path_rec, answer.path[0]);
		return {};
	}
	/* These are the only fields of the path that are known. */
	__builtin_memcpy(answer.path[0].dgid, ends.dgid.raw, sizeof(answer.path[0].dgid));
	__builtin_memcpy(answer.path[0].sgid, ends.sgid.raw, sizeof(answer.path[0].sgid));
	answer.path[0].pkey = ends.pkey;
	return {};
}

Result<> query(Call &call, const abi::Ask &request)
{
	const kern::Ref<Id> id = KERN_TRY(table().find(request.id, call.file));
	union {
		abi::Addresses addresses;
		abi::Paths paths;
	} answer{};

	switch (request.what) {
	case abi::query_path:
		KERN_TRY(id->with_cm([&](rdma_cm_id &cm) -> Result<> {
			const HandlerGuard guard(cm);
			show_path(cm, answer.paths);
			return {};
		}));
		/* Only complete paths are returned. */
		return call.response_space() < sizeof(answer.paths)
			       ? call.respond(request.response, u64{answer.paths.num_paths})
			       : call.respond(request.response, answer.paths);
	case abi::query_address:
	case abi::query_gid:
		if (call.response_space() < sizeof(answer.addresses))
			return kern::Error{-ENOSPC};
		KERN_TRY(id->with_cm([&](rdma_cm_id &cm) -> Result<> {
			const HandlerGuard guard(cm);
			(request.what == abi::query_gid ? show_gids
							: show_addresses)(cm, answer.addresses);
			return {};
		}));
		return call.respond(request.response, answer.addresses);
	default:
		return kern::Error{-ENOSYS};
	}
}

Result<> set_option(Call &call, const abi::SetOption &request)
{
	const kern::Ref<Id> id = KERN_TRY(table().find(request.id, call.file));

	if (request.level == abi::option_id) {
		const int value = KERN_TRY(read_id_option(request));
		return id->with_cm(
			[&](rdma_cm_id &cm) { return set_id_option(cm, request.optname, value); });
	}
	if (request.level != abi::option_ib || request.optname != abi::option_path)
		return kern::Error{-ENOSYS};
	const sa_path_rec path = KERN_TRY(choose_path(request));
	return id->with_cm([&](rdma_cm_id &cm) { return set_path(*id, cm, path); });
}

} // namespace rdma_ucm
