/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares the function that requests the kernel to load a module. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/*
 * Runs modprobe for the module with this name or alias, and waits for it. Context: process; the
 * caller must not hold a lock that the module's init function takes. Returns 0, a negative errno,
 * or modprobe's exit status.
 */
int kern_request_module(const char *name);

KERN_C_END
