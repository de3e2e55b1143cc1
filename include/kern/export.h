/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Exports functions to other modules, in an exports.c of each directory: in C, with the public
 * headers included, so that the symbols' versions are those of the prototypes.
 */
#pragma once
#include <linux/export.h>

#define KERN_EXPORT(function) EXPORT_SYMBOL_GPL(function)
