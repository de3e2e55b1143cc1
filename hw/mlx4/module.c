// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("ConnectX InfiniBand host channel adapters", weft_mlx4_init, weft_mlx4_exit);
KERN_PARAMETER_UINT(
	completion_vectors, weft_mlx4_completion_vectors,
	"Maximum number of completion vectors (default: one per CPU; 0: interrupt pin, no MSI-X)");
KERN_PCI_IDS(weft_mlx4_pci_ids, KERN_PCI_ID(0x15b3, 0x673c, 0));
