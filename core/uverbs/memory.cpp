// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "memory.hpp"
#include "commands.hpp"
#include "methods.hpp"

namespace uverbs
{

namespace
{

/* Optional access flags, which are dropped, because no driver knows them. */
constexpr u32 optional_access = 0x3ff00000;

} // namespace

Result<> alloc_pd(Call &call, const abi::ResponseOnly &)
{
	auto pd = KERN_TRY(Allocation<Pd>::create(call.file.objects()));

	KERN_TRY(pd->take(ib_alloc_pd_user(&call.file.device(), &call.udata)));
	KERN_TRY(call.respond(abi::HandleOnly{pd->handle()}));
	pd.finish();
	return {};
}

Result<> dealloc_pd(Call &call, const abi::HandleOnly &request)
{
	return destroy<Pd>(call, request.handle);
}

Result<> reg_mr(Call &call, const abi::RegMr &request)
{
	auto pd = KERN_TRY(call.file.objects().find<Pd>(request.pd_handle));
	ib_pd *const ib = pd->ib();
	auto mr = KERN_TRY(Allocation<Mr>::create(call.file.objects(), std::move(pd)));

	KERN_TRY(mr->take(ib_reg_user_mr_user(
		ib, request.start, request.length, request.hca_va,
		static_cast<int>(request.access_flags & ~optional_access), &call.udata)));
	KERN_TRY(call.respond(abi::RegMrResponse{
		.handle = mr->handle(), .lkey = mr->ib()->lkey, .rkey = mr->ib()->rkey}));
	mr.finish();
	return {};
}

Result<> rereg_mr(Call &call, const abi::ReregMr &request)
{
	ObjectTable &objects = call.file.objects();
	Hold<Pd> pd;

	if (request.flags & IB_MR_REREG_PD)
		pd = KERN_TRY(objects.find<Pd>(request.pd_handle));
	Mr *const mr = KERN_TRY(objects.claim<Mr>(request.handle));
	Result<> done = kern::check(ib_rereg_user_mr(
		mr->ib(), static_cast<int>(request.flags), request.start, request.length,
		request.hca_va, static_cast<int>(request.access_flags & ~optional_access),
		pd ? pd->ib() : nullptr, &call.udata));
	if (done) {
		if (pd) {
			mr->move_to(std::move(pd));
			objects.move_to_end(*mr);
		}
		done = call.respond(
			abi::ReregMrResponse{.lkey = mr->ib()->lkey, .rkey = mr->ib()->rkey});
	}
	objects.leave(*mr);
	return done;
}

Result<> dereg_mr(Call &call, const abi::HandleOnly &request)
{
	return destroy<Mr>(call, request.handle);
}

Result<> alloc_mw(Call &call, const abi::AllocMw &request)
{
	auto pd = KERN_TRY(call.file.objects().find<Pd>(request.pd_handle));
	ib_pd *const ib = pd->ib();
	auto mw = KERN_TRY(Allocation<Mw>::create(call.file.objects(), std::move(pd)));

	KERN_TRY(
		mw->take(ib_alloc_mw_user(ib, static_cast<ib_mw_type>(request.type), &call.udata)));
	KERN_TRY(
		call.respond(abi::AllocMwResponse{.handle = mw->handle(), .rkey = mw->ib()->rkey}));
	mw.finish();
	return {};
}

Result<> dealloc_mw(Call &call, const abi::HandleOnly &request)
{
	return destroy<Mw>(call, request.handle);
}

Result<> methods::dealloc_pd(Call &call, const Attributes &attributes)
{
	return destroy<Pd>(call, attributes.handle(abi::destroy_method::handle));
}

Result<> methods::dereg_mr(Call &call, const Attributes &attributes)
{
	return destroy<Mr>(call, attributes.handle(abi::destroy_method::handle));
}

Result<> methods::dealloc_mw(Call &call, const Attributes &attributes)
{
	return destroy<Mw>(call, attributes.handle(abi::destroy_method::handle));
}

} // namespace uverbs
