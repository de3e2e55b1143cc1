// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates the register page (UAR) through which a program rings the doorbells of its queues.
#pragma once
#include <kern/pci.hpp>
#include <rdma/driver.hpp>
#include "number_allocator.hpp"

namespace mellanox_icm
{

/* A program's own user access region. */
class DoorbellPage
{
public:
	DoorbellPage() = default;
	/*
	 * Allocates a region. numbers: the regions that the kernel does not use. Errors: ENOMEM if
	 * all are in use. Context: process.
	 */
	static kern::Result<DoorbellPage> create(NumberAllocator &numbers)
	{
		auto number = Number::create(numbers);
		if (!number)
			return kern::Error{-ENOMEM};
		DoorbellPage page;
		page.number_ = number.take();
		return page;
	}

	/* The number of the page, for the contexts of queues. */
	u32 number() const { return number_.value(); }
	/*
	 * Method ib_device_ops.mmap: offset 0 is this page, and there is no other. Errors: EINVAL
	 * for any other offset or length.
	 */
	kern::Result<> map(kern::pci::Device pci, u64 page_offset, size_t length,
			   ib_user_mapping &mapping) const
	{
		// Mappings consist of pages of the CPU. With larger pages, a mapping would include
		// other programs' regions.
		static_assert(kern::page_size == 4096);
		if (page_offset != 0 || length != kern::page_size)
			return kern::Error{-EINVAL};
		mapping.pfn = (pci.bar_address(2) >> kern::page_shift) + number();
		mapping.length = length;
		mapping.caching = IB_USER_UNCACHED;
		mapping.writable = true;
		return {};
	}

private:
	Number number_;
};

} // namespace mellanox_icm
