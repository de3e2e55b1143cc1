// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates the pages that carry the input and the output of commands.
#pragma once
#include <kern/dma.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <hw/mellanox_icm/commands.hpp>

namespace mellanox_icm
{

class MailboxPool;

/*
 * A page from the pool, zeroed as far as the caller requests. The destructor returns it to the
 * pool.
 */
class Mailbox
{
public:
	Mailbox(Mailbox &&other) noexcept
	    : pool_(other.pool_), page_(std::exchange(other.page_, nullptr))
	{
	}
	Mailbox &operator=(Mailbox &&) = delete;
	~Mailbox();

	/* Returns false after abandon(). */
	explicit operator bool() const { return page_ != nullptr; }
	u8 *bytes() const;
	u64 bus_address() const;
	/*
	 * Keeps the page from being reused, because the card may still write to it: a command that
	 * uses it timed out. The pool's destructor, which runs after the card's reset, frees it.
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
 * Allocates pages when commands need more, and keeps them. The card must not be able to access
 * memory when the pool is destroyed.
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
	 * Returns a page. used: the number of bytes that the card will read, which are zeroed. The
	 * bytes behind them may be left over from earlier commands. Errors: ENOMEM. May sleep.
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
