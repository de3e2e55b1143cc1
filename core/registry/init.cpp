// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates the registry of devices and clients when weft_core.ko is loaded, and destroys it when the
// module is unloaded.
#include "../verbs/verbs.hpp"
#include "registry.hpp"

extern "C" int weft_core_init();
extern "C" void weft_core_exit();

namespace
{

constexpr kern_net_watcher net_watcher = {
	.begun = [] { registry::instance->net_begun(); },
	.ended = [](u64 net) { registry::instance->net_ended(net); },
};

void destroy()
{
	registry::instance.destruct();
	verbs::exit();
	registry::destroy_event_work_queue();
}

} // namespace

int weft_core_init()
{
	if (auto created = registry::create_event_work_queue(); !created.ok())
		return created.error();
	if (auto created = verbs::init(); !created.ok()) {
		registry::destroy_event_work_queue();
		return created.error();
	}
	registry::instance.construct();
	if (const int status = kern_net_watch(&net_watcher)) {
		destroy();
		return status;
	}
	return 0;
}

/*
 * No device or client is registered any more, because drivers and clients hold this module through
 * its symbols.
 */
void weft_core_exit()
{
	kern_net_unwatch();
	destroy();
}
