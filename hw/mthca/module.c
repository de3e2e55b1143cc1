// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("InfiniHost III InfiniBand host channel adapters", weft_mthca_init, weft_mthca_exit);
KERN_PARAMETER_UINT(
	completion_vectors, weft_mthca_completion_vectors,
	"Maximum number of completion vectors (default: one per CPU; 0: interrupt pin, no MSI-X)");
KERN_PCI_IDS(weft_mthca_pci_ids, KERN_PCI_ID(0x15b3, 0x6282, 0));
