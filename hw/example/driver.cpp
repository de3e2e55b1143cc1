// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers the PCI driver when the module is loaded, and unregisters it at module unload.
#include <kern/pci.hpp>
#include "device.hpp"

extern "C" const struct pci_device_id weft_example_pci_ids[];

namespace
{

constinit kern::Static<kern::pci::Driver<example::Device>> driver;

} // namespace

extern "C" int weft_example_init()
{
	driver.construct();
	const auto added = driver->add("weft_example", weft_example_pci_ids);
	if (!added)
		driver.destruct();
	return added.error();
}

extern "C" void weft_example_exit()
{
	driver.destruct();
}
