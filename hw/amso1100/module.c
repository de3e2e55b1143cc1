// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("Ammasso 1100 RDMA Ethernet adapters", weft_amso1100_init, weft_amso1100_exit);
KERN_PCI_IDS(weft_amso1100_pci_ids, KERN_PCI_ID(0x18b8, 0xb001, 0));
