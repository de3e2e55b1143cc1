// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the uverbs commands for address handles, for provider libraries that do not create
// their own.
#include "commands.hpp"
#include "memory.hpp"
#include "methods.hpp"

namespace uverbs
{

namespace
{

int destroy_ib(ib_ah *ah)
{
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	return 0;
}

class Ah : public Owning<ib_ah, Kind::ah, destroy_ib>
{
public:
	explicit Ah(Hold<Pd> pd) : pd_(std::move(pd)) {}

private:
	Hold<Pd> pd_;
};

} // namespace

Result<> create_ah(Call &call, const abi::CreateAh &request)
{
	auto pd = KERN_TRY(call.file.objects().find<Pd>(request.pd_handle));
	ib_pd *const ib = pd->ib();
	auto ah = KERN_TRY(Allocation<Ah>::create(call.file.objects(), std::move(pd)));
	rdma_ah_attr attr = rdma::address_of(request.attr);

	KERN_TRY(ah->take(ib_create_ah_user(ib, &attr, &call.udata)));
	KERN_TRY(call.respond(abi::HandleOnly{ah->handle()}));
	ah.finish();
	return {};
}

Result<> destroy_ah(Call &call, const abi::HandleOnly &request)
{
	return destroy<Ah>(call, request.handle);
}

Result<> methods::destroy_ah(Call &call, const Attributes &attributes)
{
	return destroy<Ah>(call, attributes.handle(abi::destroy_method::handle));
}

} // namespace uverbs
