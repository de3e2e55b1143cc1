// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers the PCI driver when the module is loaded, and unregisters it at module unload.
#include <kern/pci.hpp>
#include "card.hpp"

extern "C" const struct pci_device_id weft_mthca_pci_ids[];

namespace
{

using mthca::Card;

constinit kern::Static<kern::pci::Driver<mellanox_icm::Adapter<Card>>> driver;

} // namespace

extern "C" int weft_mthca_init()
{
	mellanox_icm::DebugRoot<Card>::create();
	driver.construct();
	const auto added = driver->add(Card::name, weft_mthca_pci_ids);
	if (!added) {
		driver.destruct();
		mellanox_icm::DebugRoot<Card>::remove();
	}
	return added.error();
}

extern "C" void weft_mthca_exit()
{
	driver.destruct();
	mellanox_icm::DebugRoot<Card>::remove();
}
