// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net_namespace.hpp"

#include <kern/memory.hpp>

namespace rdma_cm
{

NetNamespace::NetNamespace(NetNamespaces &list, kern_net *native)
    : number(list.resolver_.number_of(*native)), list_(list), native_(native)
{
}

NetNamespace::~NetNamespace()
{
	{
		kern::Guard guard(list_.lock_);
		node_.unlink();
	}
	list_.resolver_.leave(*native_);
}

kern::Result<kern::Ref<NetNamespace>> NetNamespaces::enter(bool of_caller)
{
	/*
	 * If the namespace is in the list already, this one is dropped after the lock has been
	 * released.
	 */
	kern_net *const native = resolver_.enter(of_caller);
	auto *const made = new (kern::Gfp::kernel) NetNamespace(*this, native);
	if (!made) {
		resolver_.leave(*native);
		return kern::Error{-ENOMEM};
	}
	auto own = kern::Ref<NetNamespace>::adopt(made);
	kern::Guard guard(lock_);
	for (NetNamespace &one : list_) {
		if (one.number != own->number)
			continue;
		/*
		 * try_share() fails if the last ID has just been destroyed: that entry is about to
		 * leave the list.
		 */
		if (auto shared = kern::Ref<NetNamespace>::try_share(one))
			return shared;
	}
	list_.push_back(*own);
	return own;
}

bool NetNamespaces::request_retry(u64 number)
{
	kern::Guard guard(lock_);
	bool found = false;
	for (NetNamespace &one : list_)
		if (one.number == number)
			found = one.retry = true;
	return found;
}

} // namespace rdma_cm
