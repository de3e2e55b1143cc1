// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The register page (UAR) through which a program rings its queues' doorbells.
#pragma once
#include <kern/pci.hpp>
#include <rdma/driver.hpp>
#include "number_allocator.hpp"

namespace mellanox_icm
{

/* A user access region of the program's own. */
class DoorbellPage
{
public:
	DoorbellPage() = default;
	/*
	 * numbers: of the regions that are not the kernel's. Errors: ENOMEM where all are taken.
	 * Context: process.
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

	/* The page number in contexts of queues. */
	u32 number() const { return number_.value(); }
	/*
	 * ib_device_ops.mmap: there is this page, first in a program's view. Errors: EINVAL for
	 * another.
	 */
	kern::Result<> map(kern::pci::Device pci, u64 page_offset, size_t length,
			   ib_user_mapping &mapping) const
	{
		// A mapping is of pages of the CPU; it must not show another program's.
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
