// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "device.hpp"

namespace cm
{

kern::Result<kern::Ref<Device>> Device::create(ib_device &ib)
{
	auto device = KERN_TRY(kern::adopt_ref(new (kern::Gfp::kernel) Device(ib)));
	if (const auto opened = device->open(); !opened) {
		device->leave();
		return kern::Error{opened.error()};
	}
	return device;
}

kern::Result<> Device::open()
{
	const u32 first = rdma_start_port(&ib_), last = rdma_end_port(&ib_);
	bool serves = false;
	auto pd = KERN_TRY(rdma::Pd::create(&ib_));
	auto ports =
		KERN_TRY(kern::make_array<kern::Owned<Port>>(kern::Gfp::kernel, last - first + 1));
	{
		kern::Guard guard(lock_);
		pd_ = std::move(pd);
		ports_ = std::move(ports);
	}
	for (u32 number = first; number <= last; number++) {
		if (!rdma_cap_ib_cm(&ib_, number))
			continue;
		/*
		 * Messages may arrive as soon as the port's agent is registered. They wait for the
		 * lock, and find the port after that.
		 */
		kern::Guard guard(lock_);
		ports_[number - first] = KERN_TRY(Port::create(*this, number));
		serves = true;
	}
	return kern::check(serves ? 0 : -EOPNOTSUPP);
}

Device::~Device() = default;

bool Device::gone()
{
	lock_.assert_held();
	return gone_;
}

kern::Ref<rdma::Pd> Device::pd()
{
	lock_.assert_held();
	return pd_;
}

Port *Device::port(u32 number)
{
	lock_.assert_held();
	const u32 first = rdma_start_port(&ib_);
	return number >= first && number - first < ports_.size() ? ports_[number - first].get()
								 : nullptr;
}

void Device::leave()
{
	kern::OwnedArray<kern::Owned<Port>> ports;
	kern::Ref<rdma::Pd> pd;
	{
		kern::Guard guard(lock_);
		gone_ = true;
		ids_.for_each([](unsigned long, Id &id) {
			if (id.lose_device())
				reap(kern::Owned<Id>::adopt(&id));
		});
		ports = std::move(ports_);
		pd = std::move(pd_);
	}
	/*
	 * Destroying the ports drops messages that waited for the lock, and cancels pending sends,
	 * which then release their addresses.
	 */
	ports = {};
	/*
	 * Handlers that began before may still access the device, so wait for them. Later ones find
	 * that it has been removed.
	 */
	work_queue().flush();
}

kern::Result<> Device::add(Id &id)
{
	lock_.assert_held();
	id.local_id = KERN_TRY(ids_.alloc_cyclic(&id, 1, ~u32{0}, next_id_));
	return {};
}

void Device::remove(u32 local_id)
{
	lock_.assert_held();
	if (local_id != 0)
		ids_.erase(local_id);
}

Id *Device::find(u32 local_id)
{
	return ids_.load(local_id);
}

} // namespace cm
