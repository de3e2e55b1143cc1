/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares a function for the C files that use network namespaces. */
#pragma once
#include <net/net_namespace.h>
#include <kern/abi/net.h>

u64 kern_native_net_number(const struct net *net);
