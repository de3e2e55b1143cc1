// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Each check of the hosted kernel's bus, and of the memory that a device reaches, is seen to report
// its planted defect (core/kern/hosted/tests/planted_card.cpp).
#include "explored.hpp"

using namespace explore;

namespace
{

void expect_reported(const std::string &name, const std::string &title)
{
	expect_at_once("planted_card." + name, title);
}

} // namespace

TEST(ExplorerCard, reports_a_device_that_is_left_enabled)
{
	expect_reported("device_left_enabled", "a driver goes and leaves its device enabled");
}
TEST(ExplorerCard, reports_interrupts_that_are_left)
{
	expect_reported("interrupts_left", "a driver goes and leaves its interrupts allocated");
}
TEST(ExplorerCard, reports_memory_that_is_left_mapped)
{
	expect_reported("memory_left_mapped", "a driver goes and leaves memory mapped");
}
TEST(ExplorerCard, reports_registers_that_are_left_mapped)
{
	expect_reported("registers_left_mapped", "a driver goes and leaves registers mapped");
}
TEST(ExplorerCard, reports_a_register_that_is_not_mapped)
{
	expect_reported("register_after_its_end", "a register is used that is not mapped");
}
TEST(ExplorerCard, reports_an_interrupt_that_goes_with_a_handler)
{
	expect_reported("interrupts_freed_with_a_handler", "an interrupt goes that has a handler");
}
TEST(ExplorerCard, reports_what_changes_hands_unmapped)
{
	expect_reported("changes_hands_unmapped", "what is not mapped changes hands");
}
TEST(ExplorerCard, reports_more_than_is_mapped)
{
	expect_reported("more_changes_hands", "more changes hands than is mapped");
}
TEST(ExplorerCard, reports_what_is_unmapped_twice)
{
	expect_reported("unmapped_twice", "what is not mapped is unmapped");
}
TEST(ExplorerCard, reports_coherent_memory_that_is_freed_twice)
{
	expect_reported("coherent_memory_freed_twice",
			"coherent memory is freed that was not allocated");
}
TEST(ExplorerCard, reports_a_pool_that_goes_with_its_pieces)
{
	expect_reported("pool_with_pieces", "a pool goes, and pieces of it are in use");
}
