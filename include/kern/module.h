/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines KERN_MODULE, the only C code that a module of weft needs, in its file module.c:
 *
 *	#include <kern/module.h>
 *	KERN_MODULE("InfiniBand midlayer", weft_core_init, weft_core_exit);
 *
 * The module defines these functions in C++:
 *
 *	extern "C" int weft_core_init();	// 0 or a negative errno, having undone everything
 *	extern "C" void weft_core_exit();
 */
#pragma once
#ifndef __cplusplus
#include <linux/module.h>
#include <linux/init.h>
#include <linux/pci.h>

#define KERN_MODULE_INFO(description)                                                              \
	MODULE_DESCRIPTION(description);                                                           \
	MODULE_AUTHOR("weft developers");                                                          \
	MODULE_VERSION(WEFT_VERSION);                                                              \
	MODULE_LICENSE("Dual BSD/GPL")

#define KERN_MODULE(description, init, exit)                                                       \
	KERN_MODULE_INFO(description);                                                             \
	int init(void);                                                                            \
	void exit(void);                                                                           \
	static int __init kern_module_init(void)                                                   \
	{                                                                                          \
		return init();                                                                     \
	}                                                                                          \
	module_init(kern_module_init);                                                             \
	static void __exit kern_module_exit(void)                                                  \
	{                                                                                          \
		exit();                                                                            \
	}                                                                                          \
	module_exit(kern_module_exit)

/*
 * Defines a function, `extern "C" void name()`. After it has been called, the module cannot be
 * unloaded. Used if a callback that cannot be cancelled may still run. Context: any.
 */
#define KERN_MODULE_STAYS(name)                                                                    \
	void name(void);                                                                           \
	void name(void)                                                                            \
	{                                                                                          \
		__module_get(THIS_MODULE);                                                         \
	}                                                                                          \
	void name(void)

/* Another name by which the module can be loaded. */
#define KERN_MODULE_ALIAS(name) MODULE_ALIAS(name)

/*
 * A parameter of the module, read-only in sysfs: an `extern "C" unsigned int` that C++ defines,
 * with the default as its initial value. @name: without the module's name.
 */
#define KERN_PARAMETER_UINT(name, variable, description)                                           \
	extern unsigned int variable;                                                              \
	module_param_named(name, variable, uint, 0444);                                            \
	MODULE_PARM_DESC(name, description)

/*
 * The devices of a PCI driver, each as KERN_PCI_ID(vendor, device, data). The module is loaded
 * automatically if there is such a device. C++ declares
 *
 *	extern "C" const struct pci_device_id name[];
 */
#define KERN_PCI_IDS(name, ...)                                                                    \
	extern const struct pci_device_id name[];                                                  \
	const struct pci_device_id name[] = {__VA_ARGS__, {}};                                     \
	MODULE_DEVICE_TABLE(pci, name)
#define KERN_PCI_ID(vendor_id, device_id, data)                                                    \
	{PCI_DEVICE(vendor_id, device_id), .driver_data = data}
#endif
