// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/pci.hpp>
#include "adapter.hpp"

extern "C" const struct pci_device_id weft_connectx_pci_ids[];

namespace {

constinit kern::Static<kern::pci::Driver<connectx::Adapter>> driver;

} // namespace

extern "C" int weft_connectx_init()
{
	connectx::create_debug_directory();
	driver.construct();
	const auto added = driver->add("weft_connectx", weft_connectx_pci_ids);
	if (!added) {
		driver.destruct();
		connectx::remove_debug_directory();
	}
	return added.error();
}

extern "C" void weft_connectx_exit()
{
	driver.destruct();
	connectx::remove_debug_directory();
}
