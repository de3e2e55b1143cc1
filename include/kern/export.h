/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What other modules may call, in an exports.c of each room: in C, with the public headers in
 * sight, so that the symbols' versions are those of the prototypes.
 */
#pragma once
#include <linux/export.h>

#define KERN_EXPORT(function) EXPORT_SYMBOL_GPL(function)
