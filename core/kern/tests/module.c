// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE_INFO("Tests of weft_kern");

/* The host bridge of QEMU's q35 machine. */
KERN_PCI_IDS(kern_test_pci_ids, KERN_PCI_ID(0x8086, 0x29c0, 42));
/* The NIC of the guests of these tests, used for its interrupts. */
KERN_PCI_IDS(kern_test_nic_ids, KERN_PCI_ID(0x8086, 0x10d3, 0));
