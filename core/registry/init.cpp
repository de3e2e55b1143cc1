// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "../verbs/verbs.hpp"
#include "registry.hpp"

extern "C" int weft_core_init();
extern "C" void weft_core_exit();

int weft_core_init()
{
	if (auto created = registry::create_event_work_queue(); !created.ok())
		return created.error();
	if (auto created = verbs::init(); !created.ok()) {
		registry::destroy_event_work_queue();
		return created.error();
	}
	registry::instance.construct();
	return 0;
}

/* Nobody is registered: each driver and client holds this module by its symbols. */
void weft_core_exit()
{
	registry::instance.destruct();
	verbs::exit();
	registry::destroy_event_work_queue();
}
