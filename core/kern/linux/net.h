/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares kern_native_net_number(), which returns the number of a network namespace, for the C
 * files of this directory.
 */
#pragma once
#include <net/net_namespace.h>
#include <kern/abi/net.h>

u64 kern_native_net_number(const struct net *net);
