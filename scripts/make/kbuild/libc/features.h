/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Replaces glibc's header, which libstdc++ includes to find the version of glibc. The kernel has no
 * glibc.
 */
#pragma once
#define __GLIBC_PREREQ(major, minor) 0
