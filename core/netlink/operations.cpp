// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "operations.hpp"
#include <kern/nospec.hpp>

namespace nldev
{

namespace
{

enum class Permission : u8 { unsupported, everyone, administrator };

struct Operation {
	Permission permission;
	Answer answer;
	Dump dump;
	Check check;
};

constexpr Operation of_resources(Answer answer, Dump dump)
{
	return {Permission::everyone, answer, dump, check_device};
}

template<ib_resource_kind kind>
constexpr Operation of_kind = of_resources(get_resource<kind>, dump_resources<kind>);

struct Table {
	Operation entries[abi::OPERATIONS] = {};

	constexpr Table()
	{
		entries[abi::GET] = {Permission::everyone, get_device, dump_devices, nullptr};
		entries[abi::SET] = {Permission::administrator, set_device, nullptr, nullptr};
		entries[abi::PORT_GET] = {Permission::everyone, get_port, dump_ports, check_device};
		entries[abi::SYS_GET] = {Permission::everyone, get_system, nullptr, nullptr};
		entries[abi::SYS_SET] = {Permission::administrator, set_system, nullptr, nullptr};
		entries[abi::RES_GET] = {Permission::everyone, get_summary, dump_summaries,
					 nullptr};
		entries[abi::RES_QP_GET] = of_kind<IB_RESOURCE_QP>;
		entries[abi::RES_CM_ID_GET] = of_kind<IB_RESOURCE_CM_ID>;
		entries[abi::RES_CQ_GET] = of_kind<IB_RESOURCE_CQ>;
		entries[abi::RES_MR_GET] = of_kind<IB_RESOURCE_MR>;
		entries[abi::RES_PD_GET] = of_kind<IB_RESOURCE_PD>;
		entries[abi::RES_CTX_GET] = of_kind<IB_RESOURCE_CTX>;
		entries[abi::RES_SRQ_GET] = of_kind<IB_RESOURCE_SRQ>;
		entries[abi::GET_CHARDEV] = {Permission::everyone, get_node, nullptr, nullptr};
		entries[abi::STAT_GET] = {Permission::everyone, get_statistics, nullptr, nullptr};
		entries[abi::STAT_GET_STATUS] = {Permission::everyone, get_statistics_status,
						 nullptr, nullptr};
	}
};
constexpr Table table;

/*
 * Returns the operation of a request. Errors: EINVAL if it does not exist or is not supported;
 * EPERM if the sender may not use it.
 */
kern::Result<const Operation *> find(const Request &request)
{
	const u16 number = abi::operation_of(request.type());

	if (abi::client_of(request.type()) != abi::client || number >= abi::OPERATIONS)
		return kern::Error{-EINVAL};
	const Operation &found = table.entries[kern::index_nospec(number, abi::OPERATIONS)];
	if (found.permission == Permission::unsupported)
		return kern::Error{-EINVAL};
	if (found.permission == Permission::administrator && !request.may_administer())
		return kern::Error{-EPERM};
	return &found;
}

kern::Result<> check(const Request &request)
{
	const Operation *asked = KERN_TRY(find(request));

	if (!asked->dump)
		return kern::Error{-EINVAL};
	if (asked->check)
		return asked->check(request);
	return {};
}

int dumps(const kern_netlink_request *native)
{
	const kern::Result<> checked = check(Request(native));

	return checked ? 1 : checked.error();
}

kern::Result<> answer_one(const Request &request, Message &message)
{
	const Operation *asked = KERN_TRY(find(request));

	KERN_TRY(asked->answer(request, message));
	if (message.full())
		return kern::Error{-EMSGSIZE};
	return {};
}

int answer(const kern_netlink_request *native, kern_netlink_message *to)
{
	Message message(to);

	return answer_one(Request(native), message).error();
}

int dump(const kern_netlink_request *native, kern_netlink_message *to, unsigned long place[4])
{
	Message message(to);
	Place at{place[0], place[1]};
	const Request request(native);
	/* The type was checked when the request arrived. */
	const kern::Result<Rest> rest =
		table.entries[abi::operation_of(request.type())].dump(request, message, at);

	place[0] = at.device;
	place[1] = at.number;
	return rest ? rest.value() == Rest::more : rest.error();
}

} // namespace

constinit const kern_netlink_ops operations = {.dumps = dumps, .answer = answer, .dump = dump};

} // namespace nldev
