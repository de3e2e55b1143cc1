// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("The example device of weft", weft_example_init, weft_example_exit);
KERN_PCI_IDS(weft_example_pci_ids, KERN_PCI_ID(0x5745, 0x0001, 0));
