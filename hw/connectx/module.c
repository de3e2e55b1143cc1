// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("ConnectX InfiniBand host channel adapters", weft_connectx_init, weft_connectx_exit);
KERN_PCI_IDS(weft_connectx_pci_ids, KERN_PCI_ID(0x15b3, 0x673c, 0));
