// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Declares the command handlers, overloaded by request type. A failed command leaves no state
 * behind. Commands on an ID get the program's ID and rdma_cm's ID, and fill in a response. Only one
 * command runs on an ID at a time.
 */
#pragma once
#include "command.hpp"
#include "table.hpp"

namespace rdma_ucm
{

using kern::Result;

/* ids.cpp */
Result<> create_id(Call &call, const abi::CreateId &request);
Result<> destroy_id(Call &call, const abi::DestroyId &request);
Result<> migrate_id(Call &call, const abi::MigrateId &request);
Result<> get_event(Call &call, const abi::GetEvent &request);

/* addresses.cpp */
Result<> bind_ip(Id &id, rdma_cm_id &cm, const abi::BindIp &request);
Result<> bind(Id &id, rdma_cm_id &cm, const abi::Bind &request);
Result<> resolve_ip(Id &id, rdma_cm_id &cm, const abi::ResolveIp &request);
Result<> resolve_addr(Id &id, rdma_cm_id &cm, const abi::ResolveAddr &request);
Result<> resolve_route(Id &id, rdma_cm_id &cm, const abi::ResolveRoute &request);
Result<> query_route(Id &id, rdma_cm_id &cm, const abi::Ask &request, abi::Route &answer);
Result<> query(Call &call, const abi::Ask &request);
Result<> set_option(Call &call, const abi::SetOption &request);

/* connections.cpp */
Result<> listen(Id &id, rdma_cm_id &cm, const abi::Listen &request);
Result<> connect(Id &id, rdma_cm_id &cm, const abi::Connect &request);
Result<> accept(Id &id, rdma_cm_id &cm, const abi::Accept &request);
Result<> reject(Id &id, rdma_cm_id &cm, const abi::Reject &request);
Result<> disconnect(Id &id, rdma_cm_id &cm, const abi::Disconnect &request);
Result<> init_qp_attr(Id &id, rdma_cm_id &cm, const abi::Ask &request, abi::QpAttr &answer);
Result<> notify(Id &id, rdma_cm_id &cm, const abi::Notify &request);

/* groups.cpp */
Result<> join_ip_mcast(Call &call, const abi::JoinIpMcast &request);
Result<> join_mcast(Call &call, const abi::JoinMcast &request);
Result<> leave_mcast(Call &call, const abi::DestroyId &request);

/* Prevents the handler of an ID from running. */
class [[nodiscard]] HandlerGuard
{
public:
	explicit HandlerGuard(rdma_cm_id &cm) : cm_(cm) { rdma_lock_handler(&cm_); }
	~HandlerGuard() { rdma_unlock_handler(&cm_); }
	HandlerGuard(const HandlerGuard &) = delete;
	HandlerGuard &operator=(const HandlerGuard &) = delete;

private:
	rdma_cm_id &cm_;
};

/* Errors: EINVAL if the ID has not been bound to a device yet. */
inline Result<> check_device(const rdma_cm_id &cm)
{
	if (!kern::read_once(cm.device))
		return kern::Error{-EINVAL};
	return {};
}

} // namespace rdma_ucm
