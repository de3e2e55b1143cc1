/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* libstdc++ asks which glibc it stands on. It stands on none. */
#pragma once
#define __GLIBC_PREREQ(major, minor) 0
