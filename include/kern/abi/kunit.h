/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares KUnit suites, expectations, and helpers for tests. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct kunit;

/* A value as it is printed in the message of a failed expectation. */
enum kern_kunit_kind { KERN_KUNIT_SIGNED, KERN_KUNIT_UNSIGNED, KERN_KUNIT_POINTER };
struct kern_kunit_value {
	const char *expression;
	enum kern_kunit_kind kind;
	u64 bits;
};

/* Marks the test as failed. The test continues. */
void kern_kunit_fail(struct kunit *test, const char *file, int line, const char *text);
void kern_kunit_fail_compare(struct kunit *test, const char *file, int line, const char *relation,
			     const struct kern_kunit_value *left,
			     const struct kern_kunit_value *right);
void kern_kunit_skip(struct kunit *test, const char *why);
void kern_kunit_note(struct kunit *test, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool kern_kunit_failed(struct kunit *test);
/*
 * Returns the module parameter weft_kern.kunit_seed or, if it is not set, a new number each time.
 */
u64 kern_kunit_seed(void);

/* Creates a device without a bus that supports 64-bit DMA. Returns NULL if there is no memory. */
struct device *kern_kunit_device_create(const char *name);
void kern_kunit_device_destroy(struct device *device);
/* Returns the CPU address of memory that is mapped for such a device. Context: any. */
void *kern_kunit_dma_memory(struct device *device, u64 address);

/* Reads a debugfs file into a buffer, with a terminating NUL; returns the length. */
struct kern_debugfs_file;
size_t kern_kunit_show(struct kern_debugfs_file *file, char *to, size_t size);

/* Changes settings of an interface, with the rtnl lock held. Returns 0 or a negative errno. */
struct net_device;
int kern_kunit_netdev_up(struct net_device *dev, bool up);
/*
 * Makes the network stack join or leave a multicast address, as for a program. Returns 0 or a
 * negative errno. Context: process.
 */
int kern_kunit_netdev_listen(struct net_device *dev, const void *address, bool listen);
/*
 * Makes the network stack send `length` bytes of a pattern to a hardware address. Returns the
 * stack's result: 0, NET_XMIT_*, or a negative errno.
 */
int kern_kunit_netdev_send(struct net_device *dev, const void *address, u16 protocol,
			   unsigned int length);
/*
 * Like kern_kunit_netdev_send(), with a checksum that the device must complete. @start is the
 * offset of the first covered byte, and @offset the offset of the checksum from there.
 */
int kern_kunit_netdev_send_unsummed(struct net_device *dev, const void *address, u16 protocol,
				    unsigned int length, unsigned int start, unsigned int offset);
/*
 * Passes a packet of at most `length` bytes, with its address and header, directly to the device's
 * driver, so that the network stack does not check its length. The bytes after the end are
 * unchanged. Returns 0, -EBUSY if the driver did not accept it, or -ENOMEM.
 */
int kern_kunit_netdev_send_cut(struct net_device *dev, const void *address, u16 protocol,
			       unsigned int length);
/* Reads the statistics like /proc/net/dev, without a lock. */
struct kern_net_stats;
void kern_kunit_netdev_stats(struct net_device *dev, struct kern_net_stats *stats);

KERN_C_END
