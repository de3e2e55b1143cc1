// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "init.hpp"

#include "shown.hpp"

namespace cm
{
namespace
{

/*
 * Frees IDs whose handlers have returned an error. A separate work item does this: whoever frees an
 * ID waits for the ID's work item, in which the handler ran.
 */
class Reaper
{
public:
	~Reaper() { free_all(); }
	void add(kern::Owned<Id> id)
	{
		kern::Guard guard(lock_);
		ended_.push_back(*id.release());
		work_queue().queue(work_);
	}

private:
	void free_all()
	{
		for (;;) {
			Id *id;
			{
				kern::Guard guard(lock_);
				id = ended_.pop_front();
			}
			if (!id)
				return;
			/*
			 * If the ID is a listener, wait for handlers of its new IDs, because their
			 * events contain a pointer to it.
			 */
			id->wait_for_handlers();
			kern::destroy(id);
		}
	}

	kern::SpinLock lock_{KERN_LOCK_CLASS("cm.reaper")};
	kern::List<Id, &Id::new_node> ended_;
	kern::Work work_{kern::method<&Reaper::free_all>, this};
};

/* State that exists while the module is loaded. */
struct Service {
	kern::WorkQueue queue, timers;
	kern::Owned<Reaper> reaper;
	kern::Mutex lock{KERN_LOCK_CLASS("cm.service")};
	kern::List<Device, &Device::node> devices KERN_GUARDED_BY(lock);
	ib_sa_client sa{};
};
constinit kern::Static<Service> service;

void remove_device(ib_device *, void *data)
{
	const auto device = kern::Ref<Device>::adopt(static_cast<Device *>(data));
	{
		kern::Guard guard(service->lock);
		device->node.unlink();
	}
	device->leave();
}

int add_device(ib_device *ib);

constinit ib_client client = {
	.name = "cm", .add = add_device, .remove = remove_device, .registry = nullptr};

int add_device(ib_device *ib)
{
	auto device = Device::create(*ib);
	if (!device.ok())
		return device.error();
	Device *served = device.take().release();
	ib_set_client_data(ib, &client, served);
	kern::Guard guard(service->lock);
	service->devices.push_back(*served);
	return 0;
}

kern::Result<> start()
{
	service.construct();
	const auto begun = [&]() -> kern::Result<> {
		/* The work queue is per CPU, like that of the MAD layer, which queues the work. */
		service->queue = KERN_TRY(
			kern::WorkQueue::create("weft_cm", kern::WorkQueue::Kind::per_cpu));
		service->timers = KERN_TRY(
			kern::WorkQueue::create("weft_cm_time", kern::WorkQueue::Kind::unbound));
		service->reaper = KERN_TRY(kern::make<Reaper>(kern::Gfp::kernel));
		ib_sa_register_client(&service->sa);
		if (const int status = ib_register_client(&client)) {
			ib_sa_unregister_client(&service->sa);
			return kern::Error{status};
		}
		const auto shown = kern::check(ib_set_port_counters(&shown_counters));
		if (!shown.ok()) {
			ib_unregister_client(&client);
			ib_sa_unregister_client(&service->sa);
		}
		return shown;
	}();
	if (!begun.ok())
		service.destruct();
	return begun;
}

} // namespace

kern::WorkQueue &work_queue()
{
	return service->queue;
}

ib_sa_client &sa_client()
{
	return service->sa;
}

kern::WorkQueue &timer_queue()
{
	return service->timers;
}

void reap(kern::Owned<Id> id)
{
	service->reaper->add(std::move(id));
}

kern::Ref<Device> device_of(ib_device *ib)
{
	auto *device = static_cast<Device *>(ib_get_client_data(ib, &client));
	return device ? kern::Ref<Device>::share(*device) : kern::Ref<Device>();
}

kern::Ref<Device> find_device(ib_device &ib)
{
	kern::Guard guard(service->lock);
	for (Device &device : service->devices)
		if (&device.ib() == &ib)
			return kern::Ref<Device>::share(device);
	return {};
}

} // namespace cm

extern "C" int weft_cm_init()
{
	return cm::start().error();
}

extern "C" void weft_cm_exit()
{
	/* Unregistering cannot fail. */
	(void)ib_set_port_counters(nullptr);
	ib_unregister_client(&cm::client);
	ib_sa_unregister_client(&cm::service->sa);
	/* Run the work that handlers queued before the last device was removed. */
	cm::service->queue.flush();
	cm::service.destruct();
}
