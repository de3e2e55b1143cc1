// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements kern_request_module(), which requests the kernel to load a module.
#include <linux/export.h>
#include <linux/kmod.h>
#include <kern/abi/module.h>
#include <kern/module.h>

KERN_MODULE_INFO("The kernel, as the C++ modules of weft see it");

int kern_request_module(const char *name)
{
	return request_module("%s", name);
}
EXPORT_SYMBOL_GPL(kern_request_module);
