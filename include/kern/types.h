/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines integer types with the kernel's names, for C and C++. */
#pragma once

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using std::size_t;

/* Marks a pointer into a process for sparse, which can only read C. */
#define __user
#else
#include <linux/types.h>
#endif
