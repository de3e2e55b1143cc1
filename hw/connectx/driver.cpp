// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/pci.hpp>
#include "card.hpp"

extern "C" const struct pci_device_id weft_connectx_pci_ids[];

namespace
{

using connectx::Card;

constinit kern::Static<kern::pci::Driver<mellanox::Adapter<Card>>> driver;

} // namespace

extern "C" int weft_connectx_init()
{
	mellanox::DebugRoot<Card>::create();
	driver.construct();
	const auto added = driver->add(Card::name, weft_connectx_pci_ids);
	if (!added) {
		driver.destruct();
		mellanox::DebugRoot<Card>::remove();
	}
	return added.error();
}

extern "C" void weft_connectx_exit()
{
	driver.destruct();
	mellanox::DebugRoot<Card>::remove();
}
