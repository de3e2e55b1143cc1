// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements expectations and helpers for KUnit tests in C++ (include/kern/abi/kunit.h).
#include <kunit/test.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/version.h>
#include <kern/abi/debugfs.h>
#include <kern/abi/kunit.h>
#include <kern/abi/netdev.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define __kunit_do_failed_assertion kunit_do_failed_assertion
#endif

static unsigned long seed;
module_param_named(kunit_seed, seed, ulong, 0644);
MODULE_PARM_DESC(kunit_seed, "Seed of the tests that use random numbers (0: a new one each time)");

void kern_kunit_fail(struct kunit *test, const char *file, int line, const char *text)
{
	const struct kunit_loc location = {.file = file, .line = line};
	const struct kunit_fail_assert assert = {};

	__kunit_do_failed_assertion(test, &location, KUNIT_EXPECTATION, &assert.assert,
				    kunit_fail_assert_format, "%s", text);
}
EXPORT_SYMBOL_GPL(kern_kunit_fail);

static void print_value(char *to, size_t size, const struct kern_kunit_value *value)
{
	switch (value->kind) {
	case KERN_KUNIT_SIGNED:
		snprintf(to, size, "%lld", (long long)value->bits);
		break;
	case KERN_KUNIT_UNSIGNED:
		snprintf(to, size, "%llu (%#llx)", value->bits, value->bits);
		break;
	case KERN_KUNIT_POINTER:
		snprintf(to, size, "%px", (void *)(unsigned long)value->bits);
		break;
	}
}

void kern_kunit_fail_compare(struct kunit *test, const char *file, int line, const char *relation,
			     const struct kern_kunit_value *left,
			     const struct kern_kunit_value *right)
{
	const struct kunit_loc location = {.file = file, .line = line};
	const struct kunit_fail_assert assert = {};
	char left_text[48], right_text[48];

	print_value(left_text, sizeof(left_text), left);
	print_value(right_text, sizeof(right_text), right);
	__kunit_do_failed_assertion(
		test, &location, KUNIT_EXPECTATION, &assert.assert, kunit_fail_assert_format,
		"expected %s %s %s, but\n\t\t%s is %s\n\t\t%s is %s", left->expression, relation,
		right->expression, left->expression, left_text, right->expression, right_text);
}
EXPORT_SYMBOL_GPL(kern_kunit_fail_compare);

void kern_kunit_skip(struct kunit *test, const char *why)
{
	kunit_mark_skipped(test, "%s", why);
}
EXPORT_SYMBOL_GPL(kern_kunit_skip);

void kern_kunit_note(struct kunit *test, const char *format, ...)
{
	va_list args;
	struct va_format text = {.fmt = format, .va = &args};

	va_start(args, format);
	kunit_info(test, "%pV", &text);
	va_end(args);
}
EXPORT_SYMBOL_GPL(kern_kunit_note);

bool kern_kunit_failed(struct kunit *test)
{
	return READ_ONCE(test->status) == KUNIT_FAILURE;
}
EXPORT_SYMBOL_GPL(kern_kunit_failed);

u64 kern_kunit_seed(void)
{
	return seed ? seed : get_random_u64();
}
EXPORT_SYMBOL_GPL(kern_kunit_seed);

struct device *kern_kunit_device_create(const char *name)
{
	const struct platform_device_info info = {
		.name = name,
		.id = PLATFORM_DEVID_AUTO,
		.dma_mask = DMA_BIT_MASK(64),
	};
	struct platform_device *platform = platform_device_register_full(&info);

	return IS_ERR(platform) ? NULL : &platform->dev;
}
EXPORT_SYMBOL_GPL(kern_kunit_device_create);

void kern_kunit_device_destroy(struct device *device)
{
	platform_device_unregister(to_platform_device(device));
}
EXPORT_SYMBOL_GPL(kern_kunit_device_destroy);

void *kern_kunit_dma_memory(struct device *device, u64 address)
{
	return __va(dma_to_phys(device, address));
}
EXPORT_SYMBOL_GPL(kern_kunit_dma_memory);

size_t kern_kunit_show(struct kern_debugfs_file *file, char *to, size_t size)
{
	struct seq_file out = {.buf = to, .size = size - 1};

	file->show(file, &out);
	to[out.count] = '\0';
	return out.count;
}
EXPORT_SYMBOL_GPL(kern_kunit_show);

int kern_kunit_netdev_up(struct net_device *dev, bool up)
{
	if (up)
		return dev_open(dev, NULL);
	dev_close(dev);
	return 0;
}
EXPORT_SYMBOL_GPL(kern_kunit_netdev_up);

int kern_kunit_netdev_listen(struct net_device *dev, const void *address, bool listen)
{
	return listen ? dev_mc_add(dev, address) : dev_mc_del(dev, address);
}
EXPORT_SYMBOL_GPL(kern_kunit_netdev_listen);

/*
 * Returns a packet with a link-layer header from the device and `length` bytes of a pattern; NULL
 * on failure.
 */
static struct sk_buff *netdev_packet(struct net_device *dev, const void *address, u16 protocol,
				     unsigned int length)
{
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(dev) + length, GFP_KERNEL);

	if (!skb)
		return NULL;
	skb_reserve(skb, LL_RESERVED_SPACE(dev));
	memset(skb_put(skb, length), 0x5a, length);
	skb->dev = dev;
	skb->protocol = htons(protocol);
	skb_reset_network_header(skb);
	if (dev_hard_header(skb, dev, protocol, address, NULL, length) < 0) {
		kfree_skb(skb);
		return NULL;
	}
	return skb;
}

int kern_kunit_netdev_send(struct net_device *dev, const void *address, u16 protocol,
			   unsigned int length)
{
	struct sk_buff *skb = netdev_packet(dev, address, protocol, length);

	return skb ? dev_queue_xmit(skb) : -ENOMEM;
}
EXPORT_SYMBOL_GPL(kern_kunit_netdev_send);

int kern_kunit_netdev_send_unsummed(struct net_device *dev, const void *address, u16 protocol,
				    unsigned int length, unsigned int start, unsigned int offset)
{
	struct sk_buff *skb = netdev_packet(dev, address, protocol, length);
	unsigned char *ip;

	if (!skb)
		return -ENOMEM;
	/* Write IPv4 and TCP headers, because code that is tested parses them. */
	ip = skb_network_header(skb);
	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[9] = IPPROTO_TCP;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_network_offset(skb) + skb_headroom(skb) + start;
	skb->csum_offset = offset;
	/*
	 * With this feature, the network stack leaves the checksum to the device, even if the
	 * device has not announced it.
	 */
	dev->features |= NETIF_F_HW_CSUM;
	return dev_queue_xmit(skb);
}
EXPORT_SYMBOL_GPL(kern_kunit_netdev_send_unsummed);

int kern_kunit_netdev_send_cut(struct net_device *dev, const void *address, u16 protocol,
			       unsigned int length)
{
	struct sk_buff *skb = netdev_packet(dev, address, protocol, 0);

	if (!skb)
		return -ENOMEM;
	skb_trim(skb, length);
	return dev_direct_xmit(skb, 0) == NET_XMIT_SUCCESS ? 0 : -EBUSY;
}
EXPORT_SYMBOL_GPL(kern_kunit_netdev_send_cut);

void kern_kunit_netdev_stats(struct net_device *dev, struct kern_net_stats *stats)
{
	struct rtnl_link_stats64 storage;

	dev_get_stats(dev, &storage);
	*stats = (struct kern_net_stats){
		.rx_packets = storage.rx_packets,
		.rx_bytes = storage.rx_bytes,
		.rx_errors = storage.rx_errors,
		.rx_dropped = storage.rx_dropped,
		.tx_packets = storage.tx_packets,
		.tx_bytes = storage.tx_bytes,
		.tx_errors = storage.tx_errors,
		.tx_dropped = storage.tx_dropped,
	};
}
EXPORT_SYMBOL_GPL(kern_kunit_netdev_stats);
