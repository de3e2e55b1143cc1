// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "mailbox.hpp"

namespace mellanox_icm
{

Mailbox::~Mailbox()
{
	if (page_)
		pool_->put(page_);
}

u8 *Mailbox::bytes() const
{
	return page_->buffer.as<u8>();
}

u64 Mailbox::bus_address() const
{
	return page_->buffer.address();
}

void Mailbox::abandon()
{
	kern::Guard guard(pool_->lock_);
	pool_->abandoned_.push_back(*std::exchange(page_, nullptr));
}

MailboxPool::~MailboxPool()
{
	clear(free_);
	clear(abandoned_);
}

void MailboxPool::clear(Pages &pages)
{
	while (Mailbox::Page *page = pages.pop_front())
		kern::destroy(page);
}

kern::Result<Mailbox> MailboxPool::get(size_t used)
{
	Mailbox::Page *page;
	{
		kern::Guard guard(lock_);
		page = free_.pop_front();
	}
	if (page) {
		__builtin_memset(page->buffer.memory(), 0, used);
		return Mailbox(*this, page);
	}
	auto fresh = KERN_TRY(kern::make<Mailbox::Page>(kern::Gfp::kernel));
	fresh->buffer = KERN_TRY(kern::DmaBuffer::create(dma_device_, hw::mellanox_icm::mailbox_max,
							 kern::Gfp::kernel));
	return Mailbox(*this, fresh.release());
}

void MailboxPool::put(Mailbox::Page *page)
{
	kern::Guard guard(lock_);
	free_.push_front(*page);
}

} // namespace mellanox_icm
