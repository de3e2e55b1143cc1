// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("Ammasso 1100 RDMA Ethernet adapters", weft_ammasso_init, weft_ammasso_exit);
KERN_PCI_IDS(weft_ammasso_pci_ids, KERN_PCI_ID(0x18b8, 0xb001, 0));
