// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Proves that each check of the simulated bus and of DMA memory reports its injected defect
// (core/kern/sim/tests/defects_card.cpp).
#include "explored.hpp"

using namespace explore;

namespace
{

void expect_reported(const std::string &name, const std::string &title)
{
	expect_at_once("card_defects." + name, title);
}

} // namespace

TEST(ExplorerCard, ReportsDevicesLeftEnabled)
{
	expect_reported("device_left_enabled", "a driver goes and leaves its device enabled");
}
TEST(ExplorerCard, ReportsLeakedInterrupts)
{
	expect_reported("interrupts_left_allocated",
			"a driver goes and leaves its interrupts allocated");
}
TEST(ExplorerCard, ReportsLeakedMappings)
{
	expect_reported("memory_left_mapped", "a driver goes and leaves memory mapped");
}
TEST(ExplorerCard, ReportsLeakedMmio)
{
	expect_reported("mmio_left_mapped", "a driver goes and leaves registers mapped");
}
TEST(ExplorerCard, ReportsUnmappedMmio)
{
	expect_reported("mmio_after_unmap", "a register is used that is not mapped");
}
TEST(ExplorerCard, ReportsInterruptsFreedWithHandlers)
{
	expect_reported("interrupts_freed_with_a_handler", "an interrupt goes that has a handler");
}
TEST(ExplorerCard, ReportsSyncOfUnmappedMemory)
{
	expect_reported("sync_of_unmapped_memory", "what is not mapped changes hands");
}
TEST(ExplorerCard, ReportsSyncBeyondTheMapping)
{
	expect_reported("sync_beyond_the_mapping", "more changes hands than is mapped");
}
TEST(ExplorerCard, ReportsDoubleUnmap)
{
	expect_reported("unmapped_twice", "what is not mapped is unmapped");
}
TEST(ExplorerCard, ReportsDoubleFreeOfCoherentMemory)
{
	expect_reported("coherent_memory_freed_twice",
			"coherent memory is freed that was not allocated");
}
TEST(ExplorerCard, ReportsPoolsDestroyedInUse)
{
	expect_reported("pool_destroyed_with_allocations",
			"a pool goes, and pieces of it are in use");
}
