/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* libstdc++ includes this header for the version of glibc. There is no glibc here. */
#pragma once
#define __GLIBC_PREREQ(major, minor) 0
