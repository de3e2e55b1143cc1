// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the table of commands, and executes the command that a program has written.
#include <array>
#include <kern/nospec.hpp>
#include "commands.hpp"

namespace uverbs
{

namespace
{

struct None {
};
template<class T>
constexpr u16 size_of = sizeof(T);
template<>
constexpr u16 size_of<None> = 0;

/*
 * Determines the type, and so the size, of a command's request from the parameter of its function.
 */
template<class T>
struct RequestOf;
template<class T>
struct RequestOf<Result<> (*)(Call &, const T &)> {
	using Type = T;
};
template<auto Run>
using Request = typename RequestOf<decltype(Run)>::Type;

template<auto Run>
Result<> run(Call &call)
{
	return Run(call, call.request<Request<Run>>());
}

#define METHOD(member) __builtin_offsetof(ib_device_ops, member)

template<auto Run, class Response = None>
constexpr Command plain(abi::Number number, u16 method = always, Needs needs = Needs::context)
{
	return {.number = number,
		.extended = false,
		.needs = needs,
		.request = sizeof(Request<Run>),
		.least_request = sizeof(Request<Run>),
		.response = size_of<Response>,
		.method = method,
		.run = run<Run>};
}
template<auto Run, class Response = None>
constexpr Command ending(abi::Number number, u16 method)
{
	return plain<Run, Response>(number, method, Needs::nothing);
}
template<auto Run>
constexpr Command extended(abi::Number number, u16 response, u16 method = always,
			   u16 least_request = sizeof(Request<Run>))
{
	return {.number = number,
		.extended = true,
		.needs = Needs::context,
		.request = sizeof(Request<Run>),
		.least_request = least_request,
		.response = response,
		.method = method,
		.run = run<Run>};
}

constexpr Command commands[] = {
	plain<get_context, abi::ContextResponse>(abi::get_context, always, Needs::device),
	plain<query_device, abi::DeviceAttributes>(abi::query_device),
	plain<query_port, abi::PortAttributes>(abi::query_port),
	plain<alloc_pd, abi::HandleOnly>(abi::alloc_pd),
	ending<dealloc_pd>(abi::dealloc_pd, always),
	plain<create_ah, abi::HandleOnly>(abi::create_ah, METHOD(create_ah)),
	ending<destroy_ah>(abi::destroy_ah, METHOD(destroy_ah)),
	plain<reg_mr, abi::RegMrResponse>(abi::reg_mr, METHOD(reg_user_mr)),
	plain<rereg_mr, abi::ReregMrResponse>(abi::rereg_mr, METHOD(rereg_user_mr)),
	ending<dereg_mr>(abi::dereg_mr, METHOD(dereg_mr)),
	plain<alloc_mw, abi::AllocMwResponse>(abi::alloc_mw, METHOD(alloc_mw)),
	ending<dealloc_mw>(abi::dealloc_mw, METHOD(dealloc_mw)),
	plain<create_comp_channel, abi::CreateCompChannelResponse>(abi::create_comp_channel),
	plain<create_cq, abi::CreateCqResponse>(abi::create_cq),
	plain<resize_cq, abi::ResizeCqResponse>(abi::resize_cq, METHOD(resize_cq)),
	ending<destroy_cq, abi::DestroyCqResponse>(abi::destroy_cq, always),
	plain<create_srq, abi::CreateSrqResponse>(abi::create_srq, METHOD(create_srq)),
	plain<modify_srq>(abi::modify_srq, METHOD(modify_srq)),
	plain<query_srq, abi::QuerySrqResponse>(abi::query_srq, METHOD(query_srq)),
	ending<destroy_srq, abi::DestroyResponse>(abi::destroy_srq, METHOD(destroy_srq)),
	plain<open_xrcd, abi::HandleOnly>(abi::open_xrcd, METHOD(alloc_xrcd)),
	ending<close_xrcd>(abi::close_xrcd, METHOD(dealloc_xrcd)),
	plain<create_xsrq, abi::CreateSrqResponse>(abi::create_xsrq, METHOD(create_srq)),
	plain<open_qp, abi::CreateQpResponse>(abi::open_qp, METHOD(alloc_xrcd)),
	plain<create_qp, abi::CreateQpResponse>(abi::create_qp),
	plain<query_qp, abi::QpAttributes>(abi::query_qp, METHOD(query_qp)),
	plain<modify_qp>(abi::modify_qp),
	ending<destroy_qp, abi::DestroyResponse>(abi::destroy_qp, always),
	plain<attach_mcast>(abi::attach_mcast, METHOD(attach_mcast)),
	ending<detach_mcast>(abi::detach_mcast, METHOD(detach_mcast)),

	/*
	 * The minimum response of this command is its original one; members have been added since.
	 */
	extended<query_device_extended>(
		abi::query_device, __builtin_offsetof(abi::DeviceAttributesExtended, odp_general)),
	extended<create_cq_extended>(abi::create_cq, sizeof(abi::CreateCqExtendedResponse)),
	extended<modify_cq>(abi::modify_cq, 0, METHOD(modify_cq)),
	extended<create_qp_extended>(abi::create_qp, sizeof(abi::CreateQpExtendedResponse), always,
				     abi::create_qp_extended_least),
	extended<modify_qp_extended>(abi::modify_qp, sizeof(abi::ModifyQpExtendedResponse), always,
				     sizeof(abi::ModifyQp)),
};
#undef METHOD

/*
 * Indexed by command number, with the plain commands first. An entry is the index in the list plus
 * one, or 0 if there is no such command.
 */
using Index = std::array<u8, 2 * abi::number_count>;
constexpr Index make_index()
{
	Index index{};
	u8 place = 0;
	for (const Command &command : commands)
		index[command.number + (command.extended ? abi::number_count : 0)] = ++place;
	return index;
}
constexpr Index index = make_index();

} // namespace

const Command *find_command(u32 number, bool is_extended)
{
	if (number >= abi::number_count)
		return nullptr;
	const size_t at = kern::index_nospec(number, abi::number_count);
	const u8 place = index[at + (is_extended ? abi::number_count : 0)];
	return place ? &commands[place - 1] : nullptr;
}

} // namespace uverbs
