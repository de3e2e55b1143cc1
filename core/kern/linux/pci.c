// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's PCI API for C++ code: drivers, configuration space, BARs and interrupts
// (include/kern/abi/pci.h).
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <kern/abi/pci.h>
#include "native.h"

KERN_NATIVE(pci_driver, struct pci_driver)

static struct kern_pci_driver_item *driver_of(struct pci_dev *pci)
{
	return container_of((void *)to_pci_driver(pci->dev.driver), struct kern_pci_driver_item,
			    native);
}

static int probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct kern_pci_driver_item *driver = driver_of(pci);

	return driver->probe(driver, pci, id->driver_data);
}

static void remove(struct pci_dev *pci)
{
	struct kern_pci_driver_item *driver = driver_of(pci);

	driver->remove(driver, pci);
}

static void shutdown(struct pci_dev *pci)
{
	struct kern_pci_driver_item *driver = driver_of(pci);

	driver->shutdown(driver, pci);
}

static void reset_prepare(struct pci_dev *pci)
{
	struct kern_pci_driver_item *driver = driver_of(pci);

	driver->reset_prepare(driver, pci);
}

static void reset_done(struct pci_dev *pci)
{
	struct kern_pci_driver_item *driver = driver_of(pci);

	driver->reset_done(driver, pci);
}

/*
 * Recovery from a PCI error (AER and similar). The driver releases the device as before a reset. If
 * the link works, the device has only lost its state, and the driver resets it in resume().
 */
static pci_ers_result_t error_detected(struct pci_dev *pci, pci_channel_state_t state)
{
	reset_prepare(pci);
	if (state == pci_channel_io_perm_failure)
		return PCI_ERS_RESULT_DISCONNECT;
	return state == pci_channel_io_normal ? PCI_ERS_RESULT_CAN_RECOVER
					      : PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t mmio_enabled(struct pci_dev *pci)
{
	return PCI_ERS_RESULT_RECOVERED;
}

/* The link was reset, so the configuration space has its power-on values. */
static pci_ers_result_t slot_reset(struct pci_dev *pci)
{
	pci_restore_state(pci);
	pci_save_state(pci);
	return pci_device_is_present(pci) ? PCI_ERS_RESULT_RECOVERED : PCI_ERS_RESULT_DISCONNECT;
}

static const struct pci_error_handlers reset_handlers = {
	.error_detected = error_detected,
	.mmio_enabled = mmio_enabled,
	.slot_reset = slot_reset,
	.resume = reset_done,
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
};

int kern_pci_driver_register(struct kern_pci_driver_item *driver, const char *name,
			     const struct pci_device_id *ids, struct module *owner)
{
	struct pci_driver *native = native_pci_driver(&driver->native);

	*native = (struct pci_driver){
		.name = name,
		.id_table = ids,
		.probe = probe,
		.remove = remove,
		.shutdown = shutdown,
		.err_handler = driver->reset_prepare ? &reset_handlers : NULL,
	};
	return __pci_register_driver(native, owner, name);
}
EXPORT_SYMBOL_GPL(kern_pci_driver_register);

void kern_pci_driver_unregister(struct kern_pci_driver_item *driver)
{
	pci_unregister_driver(native_pci_driver(&driver->native));
}
EXPORT_SYMBOL_GPL(kern_pci_driver_unregister);

struct device *kern_pci_device(struct pci_dev *pci)
{
	return &pci->dev;
}
EXPORT_SYMBOL_GPL(kern_pci_device);

const char *kern_pci_name(struct pci_dev *pci)
{
	return pci_name(pci);
}
EXPORT_SYMBOL_GPL(kern_pci_name);

void *kern_pci_get_data(struct pci_dev *pci)
{
	return pci_get_drvdata(pci);
}
EXPORT_SYMBOL_GPL(kern_pci_get_data);

void kern_pci_set_data(struct pci_dev *pci, void *data)
{
	pci_set_drvdata(pci, data);
}
EXPORT_SYMBOL_GPL(kern_pci_set_data);

u16 kern_pci_vendor_id(struct pci_dev *pci)
{
	return pci->vendor;
}
EXPORT_SYMBOL_GPL(kern_pci_vendor_id);

u16 kern_pci_device_id(struct pci_dev *pci)
{
	return pci->device;
}
EXPORT_SYMBOL_GPL(kern_pci_device_id);

u8 kern_pci_revision(struct pci_dev *pci)
{
	return pci->revision;
}
EXPORT_SYMBOL_GPL(kern_pci_revision);

int kern_pci_node(struct pci_dev *pci)
{
	return dev_to_node(&pci->dev);
}
EXPORT_SYMBOL_GPL(kern_pci_node);

bool kern_pci_present(struct pci_dev *pci)
{
	return pci_device_is_present(pci);
}
EXPORT_SYMBOL_GPL(kern_pci_present);

int kern_pci_enable(struct pci_dev *pci, const char *name, unsigned int dma_bits)
{
	int status = pci_enable_device_mem(pci);

	if (status)
		return status;
	status = pci_request_regions(pci, name);
	if (status)
		goto disable;
	status = dma_set_mask_and_coherent(&pci->dev, DMA_BIT_MASK(dma_bits));
	if (status)
		goto release;
	/*
	 * The cards accept segments of any size, but the kernel's default limit is 64 KiB. A
	 * segment of this size is processed without rescheduling, so it must not be too large.
	 */
	dma_set_max_seg_size(&pci->dev, SZ_64M);
	pci_set_master(pci);
	/* slot_reset() restores this state. */
	pci_save_state(pci);
	return 0;

release:
	pci_release_regions(pci);
disable:
	pci_disable_device(pci);
	return status;
}
EXPORT_SYMBOL_GPL(kern_pci_enable);

void kern_pci_disable(struct pci_dev *pci)
{
	pci_clear_master(pci);
	pci_release_regions(pci);
	pci_disable_device(pci);
}
EXPORT_SYMBOL_GPL(kern_pci_disable);

int kern_pci_read_config8(struct pci_dev *pci, int where, u8 *value)
{
	return pcibios_err_to_errno(pci_read_config_byte(pci, where, value));
}
EXPORT_SYMBOL_GPL(kern_pci_read_config8);

int kern_pci_read_config16(struct pci_dev *pci, int where, u16 *value)
{
	return pcibios_err_to_errno(pci_read_config_word(pci, where, value));
}
EXPORT_SYMBOL_GPL(kern_pci_read_config16);

int kern_pci_read_config32(struct pci_dev *pci, int where, u32 *value)
{
	return pcibios_err_to_errno(pci_read_config_dword(pci, where, value));
}
EXPORT_SYMBOL_GPL(kern_pci_read_config32);

int kern_pci_write_config8(struct pci_dev *pci, int where, u8 value)
{
	return pcibios_err_to_errno(pci_write_config_byte(pci, where, value));
}
EXPORT_SYMBOL_GPL(kern_pci_write_config8);

int kern_pci_write_config16(struct pci_dev *pci, int where, u16 value)
{
	return pcibios_err_to_errno(pci_write_config_word(pci, where, value));
}
EXPORT_SYMBOL_GPL(kern_pci_write_config16);

int kern_pci_write_config32(struct pci_dev *pci, int where, u32 value)
{
	return pcibios_err_to_errno(pci_write_config_dword(pci, where, value));
}
EXPORT_SYMBOL_GPL(kern_pci_write_config32);

u8 kern_pci_find_capability(struct pci_dev *pci, int capability)
{
	return pci_find_capability(pci, capability);
}
EXPORT_SYMBOL_GPL(kern_pci_find_capability);

int kern_pci_save_state(struct pci_dev *pci)
{
	return pci_save_state(pci);
}
EXPORT_SYMBOL_GPL(kern_pci_save_state);

void kern_pci_restore_state(struct pci_dev *pci)
{
	pci_restore_state(pci);
	/* Restoring the state discards it, so save it again for slot_reset(). */
	pci_save_state(pci);
}
EXPORT_SYMBOL_GPL(kern_pci_restore_state);

u64 kern_pci_bar_size(struct pci_dev *pci, unsigned int bar)
{
	if (bar >= PCI_STD_NUM_BARS || !(pci_resource_flags(pci, bar) & IORESOURCE_MEM))
		return 0;
	return pci_resource_len(pci, bar);
}
EXPORT_SYMBOL_GPL(kern_pci_bar_size);

u64 kern_pci_bar_address(struct pci_dev *pci, unsigned int bar)
{
	return kern_pci_bar_size(pci, bar) ? pci_resource_start(pci, bar) : 0;
}
EXPORT_SYMBOL_GPL(kern_pci_bar_address);

void *kern_pci_map_bar(struct pci_dev *pci, unsigned int bar, u64 offset, u64 size,
		       bool write_combining)
{
	u64 whole = kern_pci_bar_size(pci, bar);
	resource_size_t address;

	if (size == 0 || offset > whole || size > whole - offset)
		return NULL;
	address = pci_resource_start(pci, bar) + offset;
	return (__force void *)(write_combining ? ioremap_wc(address, size)
						: ioremap(address, size));
}
EXPORT_SYMBOL_GPL(kern_pci_map_bar);

void kern_iounmap(void *address)
{
	iounmap((__force void __iomem *)address);
}
EXPORT_SYMBOL_GPL(kern_iounmap);

#ifdef CONFIG_INDIRECT_IOMEM
/*
 * User-Mode Linux 6.1 has one buffer and one virtqueue, without a lock, for its requests to a
 * device. If an interrupt handler accessed a register during another access, the latter would
 * return a wrong value or all ones, so interrupts are disabled.
 */
u64 kern_mmio_read(const volatile void *address, unsigned int size)
{
	const volatile void __iomem *from = (const volatile void __force __iomem *)address;
	unsigned long flags;
	u64 value;

	local_irq_save(flags);
	switch (size) {
	case 1:
		value = readb(from);
		break;
	case 2:
		value = readw(from);
		break;
	case 4:
		value = readl(from);
		break;
	default:
		value = readq(from);
		break;
	}
	local_irq_restore(flags);
	return value;
}
EXPORT_SYMBOL_GPL(kern_mmio_read);

void kern_mmio_write(volatile void *address, u64 value, unsigned int size)
{
	volatile void __iomem *to = (volatile void __force __iomem *)address;
	unsigned long flags;

	local_irq_save(flags);
	switch (size) {
	case 1:
		writeb(value, to);
		break;
	case 2:
		writew(value, to);
		break;
	case 4:
		writel(value, to);
		break;
	default:
		writeq(value, to);
		break;
	}
	local_irq_restore(flags);
}
EXPORT_SYMBOL_GPL(kern_mmio_write);
#endif

int kern_pci_alloc_msix(struct pci_dev *pci, unsigned int min, unsigned int max)
{
	return pci_alloc_irq_vectors(pci, min, max, PCI_IRQ_MSIX);
}
EXPORT_SYMBOL_GPL(kern_pci_alloc_msix);

int kern_pci_alloc_line(struct pci_dev *pci)
{
#ifdef PCI_IRQ_INTX
	return pci_alloc_irq_vectors(pci, 1, 1, PCI_IRQ_INTX);
#else
	return pci_alloc_irq_vectors(pci, 1, 1, PCI_IRQ_LEGACY);
#endif
}
EXPORT_SYMBOL_GPL(kern_pci_alloc_line);

void kern_pci_free_vectors(struct pci_dev *pci)
{
	pci_free_irq_vectors(pci);
}
EXPORT_SYMBOL_GPL(kern_pci_free_vectors);

int kern_pci_vector_irq(struct pci_dev *pci, unsigned int vector)
{
	return pci_irq_vector(pci, vector);
}
EXPORT_SYMBOL_GPL(kern_pci_vector_irq);

static irqreturn_t handle_irq(int irq, void *context)
{
	struct kern_irq_item *item = context;

	return IRQ_RETVAL(item->handler(item));
}

int kern_irq_request(struct kern_irq_item *item, unsigned int irq, const char *name, bool shared)
{
	item->irq = irq;
	return request_irq(irq, handle_irq, shared ? IRQF_SHARED : 0, name, item);
}
EXPORT_SYMBOL_GPL(kern_irq_request);

void kern_irq_free(struct kern_irq_item *item)
{
	irq_update_affinity_hint(item->irq, NULL);
	free_irq(item->irq, item);
}
EXPORT_SYMBOL_GPL(kern_irq_free);

void kern_irq_synchronize(struct kern_irq_item *item)
{
	synchronize_irq(item->irq);
}
EXPORT_SYMBOL_GPL(kern_irq_synchronize);

void kern_irq_set_affinity_hint(struct kern_irq_item *item, unsigned int cpu)
{
	irq_set_affinity_and_hint(item->irq, cpumask_of(cpu));
}
EXPORT_SYMBOL_GPL(kern_irq_set_affinity_hint);
