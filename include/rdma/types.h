/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines types that the verbs headers use, for C and C++.
 *
 * The API has Linux's names, values and meanings. Where Linux uses a kernel type, this API uses one
 * of the types below, so that no public header needs a kernel header:
 *
 *   Linux                     here
 *   struct scatterlist        struct ib_dma_segment   (an address range that is already mapped for the device)
 *   struct list_head          struct ib_list_head     (two pointers, meaningful to the midlayer only)
 *   atomic_t                  int, changed by kern/use_count.hpp inside the midlayer only
 *   IS_ERR, PTR_ERR           the same in C; rdma::is_err, rdma::ptr_err, rdma::err_ptr in C++
 *   gfp_t                     unsigned int
 */
#pragma once

#include <kern/types.h>

#ifdef __cplusplus
#include <ib/endian.hpp>

/*
 * Big-endian integers. C++ converts them implicitly; C consumers convert them themselves. Size and
 * alignment are those of the integer.
 */
typedef ib::be16 __be16 __attribute__((aligned(2)));
typedef ib::be32 __be32 __attribute__((aligned(4)));
typedef ib::be64 __be64 __attribute__((aligned(8)));

#define RDMA_C_BEGIN extern "C" {
#define RDMA_C_END }

/* Defines the operators of a flag enumeration for C++; C uses those of integers. */
#define RDMA_FLAGS(name)                                                                           \
	constexpr name operator|(name a, name b)                                                   \
	{                                                                                          \
		return static_cast<name>(static_cast<unsigned>(a) | static_cast<unsigned>(b));     \
	}                                                                                          \
	constexpr name &operator|=(name &a, name b)                                                \
	{                                                                                          \
		return a = a | b;                                                                  \
	}                                                                                          \
	static_assert(true)
#else
#define RDMA_C_BEGIN
#define RDMA_C_END
#define RDMA_FLAGS(name) struct rdma_no_flags
#endif

/* Marks a function whose caller must check the result, which reports whether the call failed. */
#ifdef __cplusplus
#define RDMA_MUST_CHECK [[nodiscard]]
#else
#define RDMA_MUST_CHECK __attribute__((warn_unused_result))
#endif

/**
 * struct ib_list_head - links of a list, which only the midlayer uses
 * @next: the next element
 * @prev: the previous element
 */
struct ib_list_head {
	struct ib_list_head *next;
	struct ib_list_head *prev;
};

/**
 * struct ib_dma_segment - a piece of memory, mapped for the device
 * @addr: DMA address
 * @length: bytes
 *
 * Linux: differs by this structure instead of a scatterlist.
 */
struct ib_dma_segment {
	u64 addr;
	u64 length;
};

/* Name of the module, which is used in reports of leaked objects and misuse. */
#ifdef KBUILD_MODNAME
#define RDMA_CALLER KBUILD_MODNAME
#else
#define RDMA_CALLER "unknown"
#endif

#ifdef __cplusplus
namespace rdma
{

/* Pointers that may be an error: the last 4095 addresses represent negative error numbers. */
inline constexpr unsigned long max_errno = 4095;

/**
 * is_err - test for an error pointer
 * @pointer: the result of a function that returns a pointer
 *
 * Context: any. Return: true if @pointer represents an errno of 1 to 4095.
 */
inline bool is_err(const void *pointer)
{
	return reinterpret_cast<unsigned long>(pointer) >= -max_errno;
}

/**
 * ptr_err - get the errno of an error pointer
 * @pointer: a pointer for which is_err() returns true
 *
 * Context: any. Return: the negative errno.
 */
inline int ptr_err(const void *pointer)
{
	return static_cast<int>(reinterpret_cast<long>(pointer));
}

/**
 * err_ptr - make an error pointer
 * @error: negative errno, -4095 to -1
 *
 * Context: any. Return: the error pointer.
 */
template<class T>
T *err_ptr(int error)
{
	return reinterpret_cast<T *>(static_cast<long>(error));
}

} // namespace rdma
#endif
