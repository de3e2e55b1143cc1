// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/pci.hpp>
#include "device.hpp"

extern "C" const struct pci_device_id weft_ammasso_pci_ids[];

namespace
{

constinit kern::Static<kern::pci::Driver<ammasso::Device>> driver;

} // namespace

extern "C" int weft_ammasso_init()
{
	driver.construct();
	const auto added = driver->add("weft_ammasso", weft_ammasso_pci_ids);
	if (!added)
		driver.destruct();
	return added.error();
}

extern "C" void weft_ammasso_exit()
{
	driver.destruct();
}
