/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares PCI drivers, devices, BARs and interrupt vectors. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct module;
struct pci_dev;
struct pci_device_id;

KERN_OPAQUE(pci_driver);

struct kern_pci_driver_item {
	struct kern_pci_driver native;
	/*
	 * Returns 0, or a negative errno after undoing everything. @data is from the matching entry
	 * of the table.
	 */
	int (*probe)(struct kern_pci_driver_item *driver, struct pci_dev *device,
		     unsigned long data);
	void (*remove)(struct kern_pci_driver_item *driver, struct pci_dev *device);
	/* Called before a reboot or kexec: the device must stop DMA and interrupts. */
	void (*shutdown)(struct kern_pci_driver_item *driver, struct pci_dev *device);
	/*
	 * Called before and after the function is reset by other code, for example by a write to
	 * its `reset` file in sysfs, or in the recovery from a PCI error. The configuration space
	 * is restored before reset_done. A driver must have both methods or neither; without them
	 * it takes no part in error recovery. reset_done is not called if the device is lost.
	 */
	void (*reset_prepare)(struct kern_pci_driver_item *driver, struct pci_dev *device);
	void (*reset_done)(struct kern_pci_driver_item *driver, struct pci_dev *device);
};

int kern_pci_driver_register(struct kern_pci_driver_item *driver, const char *name,
			     const struct pci_device_id *ids, struct module *owner);
void kern_pci_driver_unregister(struct kern_pci_driver_item *driver);

struct device *kern_pci_device(struct pci_dev *pci);
const char *kern_pci_name(struct pci_dev *pci);
void *kern_pci_get_data(struct pci_dev *pci);
void kern_pci_set_data(struct pci_dev *pci, void *data);
u16 kern_pci_vendor_id(struct pci_dev *pci);
u16 kern_pci_device_id(struct pci_dev *pci);
u8 kern_pci_revision(struct pci_dev *pci);
int kern_pci_node(struct pci_dev *pci);
/* Returns false if the device no longer responds. */
bool kern_pci_present(struct pci_dev *pci);

/* Enables memory decoding and bus mastering, and claims the BARs. */
int kern_pci_enable(struct pci_dev *pci, const char *name, unsigned int dma_bits);
void kern_pci_disable(struct pci_dev *pci);

int kern_pci_read_config8(struct pci_dev *pci, int where, u8 *value);
int kern_pci_read_config16(struct pci_dev *pci, int where, u16 *value);
int kern_pci_read_config32(struct pci_dev *pci, int where, u32 *value);
int kern_pci_write_config8(struct pci_dev *pci, int where, u8 value);
int kern_pci_write_config16(struct pci_dev *pci, int where, u16 value);
int kern_pci_write_config32(struct pci_dev *pci, int where, u32 value);
u8 kern_pci_find_capability(struct pci_dev *pci, int capability);
int kern_pci_save_state(struct pci_dev *pci);
void kern_pci_restore_state(struct pci_dev *pci);

u64 kern_pci_bar_size(struct pci_dev *pci, unsigned int bar);
u64 kern_pci_bar_address(struct pci_dev *pci, unsigned int bar);
void *kern_pci_map_bar(struct pci_dev *pci, unsigned int bar, u64 offset, u64 size,
		       bool write_combining);
void kern_iounmap(void *address);
/*
 * Accesses a register of 1, 2, 4 or 8 bytes through the kernel's functions, where this is necessary
 * (CONFIG_INDIRECT_IOMEM). Context: any.
 */
u64 kern_mmio_read(const volatile void *address, unsigned int size);
void kern_mmio_write(volatile void *address, u64 value, unsigned int size);

/* Returns the number of allocated vectors, which is at least @min, or a negative errno. */
int kern_pci_alloc_msix(struct pci_dev *pci, unsigned int min, unsigned int max);
/* Allocates the interrupt pin as vector 0. Returns 1 or a negative errno. */
int kern_pci_alloc_line(struct pci_dev *pci);
void kern_pci_free_vectors(struct pci_dev *pci);
int kern_pci_vector_irq(struct pci_dev *pci, unsigned int vector);

/* The handler returns true if the device has raised the interrupt. */
struct kern_irq_item {
	bool (*handler)(struct kern_irq_item *item);
	void *context;
	unsigned int irq;
};
int kern_irq_request(struct kern_irq_item *item, unsigned int irq, const char *name, bool shared);
void kern_irq_free(struct kern_irq_item *item);
void kern_irq_synchronize(struct kern_irq_item *item);
void kern_irq_set_affinity_hint(struct kern_irq_item *item, unsigned int cpu);

KERN_C_END
