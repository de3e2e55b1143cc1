// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Pages that carry the input and the output of commands.
#pragma once
#include <kern/dma.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <hw/mellanox_icm/commands.hpp>

namespace mellanox_icm
{

class MailboxPool;

/* One page from the pool, zeroed as far as its user requests. The destructor returns it. */
class Mailbox
{
public:
	Mailbox(Mailbox &&other) noexcept
	    : pool_(other.pool_), page_(std::exchange(other.page_, nullptr))
	{
	}
	Mailbox &operator=(Mailbox &&) = delete;
	~Mailbox();

	/* False once it was abandoned. */
	explicit operator bool() const { return page_ != nullptr; }
	u8 *bytes() const;
	u64 bus_address() const;
	/*
	 * The card may still write to it, because a command that uses it timed out: it is kept
	 * from reuse until the pool ends, which is after the card's reset.
	 */
	void abandon();

private:
	friend class MailboxPool;
	struct Page {
		kern::ListNode node;
		kern::DmaBuffer buffer;
	};
	Mailbox(MailboxPool &pool, Page *page) : pool_(&pool), page_(page) {}

	MailboxPool *pool_;
	Page *page_;
};

/*
 * Grows when commands need more, and keeps its pages. The device's DMA must be off when it is
 * destroyed.
 */
class MailboxPool
{
public:
	explicit MailboxPool(struct device *dma_device)
	    : dma_device_(dma_device), lock_(KERN_LOCK_CLASS("mellanox.mailboxes"))
	{
	}
	~MailboxPool();

	/*
	 * used: the number of bytes that the card will read; the bytes behind them are left over
	 * from earlier commands. Errors: ENOMEM. May sleep.
	 */
	kern::Result<Mailbox> get(size_t used);

private:
	friend class Mailbox;
	using Pages = kern::List<Mailbox::Page, &Mailbox::Page::node>;

	void put(Mailbox::Page *page);
	static void clear(Pages &pages);

	struct device *dma_device_;
	kern::SpinLock lock_;
	Pages free_ KERN_GUARDED_BY(lock_);
	Pages abandoned_ KERN_GUARDED_BY(lock_);
};

} // namespace mellanox_icm
