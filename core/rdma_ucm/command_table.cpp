// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the table of commands, and executes the command that a program has written.
#include <array>
#include <kern/nospec.hpp>
#include "commands.hpp"

namespace rdma_ucm
{

namespace
{

struct None {
};
template<class T>
constexpr u16 size_of = sizeof(T);
template<>
constexpr u16 size_of<None> = 0;

/* Determines the types of a command's request and response from the parameters of its function. */
template<class T>
struct Shape;
template<class T>
struct Shape<Result<> (*)(Call &, const T &)> {
	using Request = T;
};
template<class T>
struct Shape<Result<> (*)(Id &, rdma_cm_id &, const T &)> {
	using Request = T;
	using Answer = None;
};
template<class T, class A>
struct Shape<Result<> (*)(Id &, rdma_cm_id &, const T &, A &)> {
	using Request = T;
	using Answer = A;
	static_assert(sizeof(A) <= max_answer);
};
template<auto Run>
using Request = typename Shape<decltype(Run)>::Request;
template<auto Run>
using Answer = typename Shape<decltype(Run)>::Answer;

/* What a command requires: an ID, or an ID that is bound to a device. */
enum class Needs : u8 { id, device };

template<auto Run>
Result<> run(Call &call)
{
	return Run(call, call.request<Request<Run>>());
}

template<auto Run, Needs needs>
Result<> run_of_id(Call &call)
{
	const auto &request = call.request<Request<Run>>();
	const kern::Ref<Id> id = KERN_TRY(table().find(request.id, call.file));
	[[maybe_unused]] Answer<Run> answer{};

	KERN_TRY(id->with_cm([&](rdma_cm_id &cm) -> Result<> {
		if constexpr (needs == Needs::device)
			KERN_TRY(check_device(cm));
		if constexpr (size_of<Answer<Run>> == 0)
			return Run(*id, cm, request);
		else
			return Run(*id, cm, request, answer);
	}));
	if constexpr (size_of<Answer<Run>> != 0)
		KERN_TRY(call.respond(request.response, answer));
	return {};
}

template<auto Run>
constexpr Command plain(u16 least_answer = 0)
{
	return {.request = sizeof(Request<Run>),
		.least_request = sizeof(Request<Run>),
		.least_answer = least_answer,
		.run = run<Run>};
}
template<auto Run, Needs needs>
constexpr Command of_id(u16 least_request = sizeof(Request<Run>))
{
	return {.request = sizeof(Request<Run>),
		.least_request = least_request,
		.least_answer = size_of<Answer<Run>>,
		.run = run_of_id<Run, needs>};
}

using Commands = std::array<Command, abi::number_count>;
constexpr Commands make_commands()
{
	Commands commands{};
	commands[abi::create_id] = plain<create_id>(sizeof(abi::Made));
	commands[abi::destroy_id] = plain<destroy_id>(sizeof(abi::Ended));
	commands[abi::bind_ip] = of_id<bind_ip, Needs::id>();
	commands[abi::resolve_ip] = of_id<resolve_ip, Needs::id>();
	commands[abi::resolve_route] = of_id<resolve_route, Needs::device>();
	commands[abi::query_route] = of_id<query_route, Needs::id>();
	commands[abi::connect] = of_id<connect, Needs::device>(abi::connect_least);
	commands[abi::listen] = of_id<listen, Needs::id>();
	commands[abi::accept] = of_id<accept, Needs::device>(abi::accept_least);
	commands[abi::reject] = of_id<reject, Needs::device>();
	commands[abi::disconnect] = of_id<disconnect, Needs::device>();
	commands[abi::init_qp_attr] = of_id<init_qp_attr, Needs::device>();
	commands[abi::get_event] = plain<get_event>(abi::event_least);
	commands[abi::set_option] = plain<set_option>();
	commands[abi::notify] = of_id<notify, Needs::device>();
	commands[abi::join_ip_mcast] = plain<join_ip_mcast>(sizeof(abi::Made));
	commands[abi::leave_mcast] = plain<leave_mcast>(sizeof(abi::Ended));
	commands[abi::migrate_id] = plain<migrate_id>(sizeof(abi::Ended));
	commands[abi::query] = plain<query>(abi::paths_least);
	commands[abi::bind] = of_id<bind, Needs::id>();
	commands[abi::resolve_addr] = of_id<resolve_addr, Needs::id>();
	commands[abi::join_mcast] = plain<join_mcast>(sizeof(abi::Made));
	return commands;
}
constexpr Commands commands = make_commands();

} // namespace

const Command *find_command(u32 number)
{
	return number < commands.size() ? &commands[kern::index_nospec(number, commands.size())]
					: nullptr;
}

} // namespace rdma_ucm
