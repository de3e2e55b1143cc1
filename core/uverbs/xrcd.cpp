// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the uverbs commands that open and close XRC domains.
#include "commands.hpp"
#include "device.hpp"
#include "methods.hpp"

namespace uverbs
{

Result<> open_xrcd(Call &call, const abi::OpenXrcd &request)
{
	File &file = call.file;
	kern::Inode inode;
	auto mode = XrcDomains::Mode::existing;

	if (request.fd != abi::no_file) {
		inode = kern::Inode(request.fd);
		if (!inode)
			return kern::Error{-EBADF};
	}
	if (request.oflags & abi::open_creates)
		mode = request.oflags & abi::open_exclusive ? XrcDomains::Mode::only_new
							    : XrcDomains::Mode::existing_or_new;
	auto xrcd = KERN_TRY(Allocation<Xrcd>::create(file.objects(), file.owner().xrc_domains()));
	xrcd->take(*KERN_TRY(file.owner().xrc_domains().open(file.device(), std::move(inode), mode,
							     call.udata)));
	KERN_TRY(call.respond(abi::HandleOnly{xrcd->handle()}));
	xrcd.finish();
	return {};
}

Result<> close_xrcd(Call &call, const abi::HandleOnly &request)
{
	return destroy<Xrcd>(call, request.handle);
}

Result<> methods::close_xrcd(Call &call, const Attributes &attributes)
{
	return destroy<Xrcd>(call, attributes.handle(abi::destroy_method::handle));
}

} // namespace uverbs
