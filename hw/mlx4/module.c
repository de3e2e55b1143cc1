// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("ConnectX InfiniBand host channel adapters", weft_mlx4_init, weft_mlx4_exit);
KERN_PARAMETER_UINT(
	completion_vectors, weft_mlx4_completion_vectors,
	"Most completion vectors of a card (default: one a CPU; 0: no MSI-X, but the interrupt pin)");
KERN_PCI_IDS(weft_mlx4_pci_ids, KERN_PCI_ID(0x15b3, 0x673c, 0));
