/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Exports functions to other modules. Each directory has an exports.c, written in C, that includes
 * the public headers so that genksyms computes symbol versions from the prototypes.
 */
#pragma once
#include <linux/export.h>

#define KERN_EXPORT(function) EXPORT_SYMBOL_GPL(function)
