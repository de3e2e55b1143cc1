// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "manager.hpp"

namespace iw_cm
{
namespace
{

constinit kern::Static<Manager> manager;

} // namespace

Manager &Manager::get()
{
	return *manager;
}

kern::Result<> Manager::start()
{
	Manager &made = manager.construct();
	auto queue = kern::WorkQueue::create("weft_iw_cm", kern::WorkQueue::Kind::unbound);
	if (!queue) {
		manager.destruct();
		return kern::Error{queue.error()};
	}
	made.queue_ = queue.take();
	return {};
}

void Manager::stop()
{
	manager->queue_.flush();
	manager.destruct();
}

kern::Result<> Manager::add(ib_device *device, const iw_cm_ops *ops)
{
	auto provider = KERN_TRY(kern::make<Provider>(kern::Gfp::kernel));
	provider->device = device;
	provider->ops = ops;
	kern::Guard guard(lock_);
	providers_.push_back(*provider.release());
	return {};
}

void Manager::remove(ib_device *device)
{
	/* Destroy the IDs that handlers have released. */
	queue_.flush();
	kern::Guard guard(lock_);
	for (Provider &provider : providers_) {
		if (provider.device == device) {
			provider.node.unlink();
			kern::destroy(&provider);
		}
	}
}

const iw_cm_ops *Manager::find(const ib_device *device)
{
	kern::Guard guard(lock_);
	for (Provider &provider : providers_)
		if (provider.device == device)
			return provider.ops;
	return nullptr;
}

} // namespace iw_cm

extern "C" int weft_iw_cm_init()
{
	return iw_cm::Manager::start().error();
}

extern "C" void weft_iw_cm_exit()
{
	iw_cm::Manager::stop();
}
