// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the command handlers, overloaded by request type. Each writes its response, if it has
// one, by call.respond(); a failed command leaves no state behind.
#pragma once
#include "command.hpp"

namespace uverbs
{

using kern::Result;

/* context.cpp */
Result<> get_context(Call &call, const abi::ResponseOnly &request);
Result<> query_device(Call &call, const abi::ResponseOnly &request);
Result<> query_device_extended(Call &call, const abi::QueryDeviceExtended &request);
Result<> query_port(Call &call, const abi::QueryPort &request);

/* memory.cpp */
Result<> alloc_pd(Call &call, const abi::ResponseOnly &request);
Result<> dealloc_pd(Call &call, const abi::HandleOnly &request);
Result<> reg_mr(Call &call, const abi::RegMr &request);
Result<> rereg_mr(Call &call, const abi::ReregMr &request);
Result<> dereg_mr(Call &call, const abi::HandleOnly &request);
Result<> alloc_mw(Call &call, const abi::AllocMw &request);
Result<> dealloc_mw(Call &call, const abi::HandleOnly &request);

/* ah.cpp */
Result<> create_ah(Call &call, const abi::CreateAh &request);
Result<> destroy_ah(Call &call, const abi::HandleOnly &request);

/* cq.cpp */
Result<> create_comp_channel(Call &call, const abi::ResponseOnly &request);
Result<> create_cq(Call &call, const abi::CreateCq &request);
Result<> create_cq_extended(Call &call, const abi::CreateCqExtended &request);
Result<> modify_cq(Call &call, const abi::ModifyCq &request);
Result<> resize_cq(Call &call, const abi::ResizeCq &request);
Result<> destroy_cq(Call &call, const abi::Destroy &request);

/* srq.cpp */
Result<> create_srq(Call &call, const abi::CreateSrq &request);
Result<> create_xsrq(Call &call, const abi::CreateXsrq &request);
Result<> modify_srq(Call &call, const abi::ModifySrq &request);
Result<> query_srq(Call &call, const abi::Destroy &request);
Result<> destroy_srq(Call &call, const abi::Destroy &request);

/* xrcd.cpp */
Result<> open_xrcd(Call &call, const abi::OpenXrcd &request);
Result<> close_xrcd(Call &call, const abi::HandleOnly &request);

/* qp.cpp */
Result<> create_qp(Call &call, const abi::CreateQp &request);
Result<> open_qp(Call &call, const abi::OpenQp &request);
Result<> create_qp_extended(Call &call, const abi::CreateQpExtended &request);
Result<> query_qp(Call &call, const abi::QueryQp &request);
Result<> modify_qp(Call &call, const abi::ModifyQp &request);
Result<> modify_qp_extended(Call &call, const abi::ModifyQpExtended &request);
Result<> destroy_qp(Call &call, const abi::Destroy &request);
Result<> attach_mcast(Call &call, const abi::Multicast &request);
Result<> detach_mcast(Call &call, const abi::Multicast &request);

/*
 * Destroys an object, which must not be held, by its type and handle. `last` is called with the
 * object before it is freed. Errors: those of ObjectTable::claim(), and those of the device.
 */
template<class T, class Last>
Result<> destroy(Call &call, u32 handle, Last last)
{
	ObjectTable &objects = call.file.objects();
	T *object = KERN_TRY(objects.claim<T>(handle));

	if (const Result<> ended = object->end(Reason::command); !ended) {
		objects.leave(*object);
		return ended;
	}
	last(*object);
	objects.remove(*object);
	return {};
}
template<class T>
Result<> destroy(Call &call, u32 handle)
{
	return destroy<T>(call, handle, [](T &) {});
}

} // namespace uverbs
