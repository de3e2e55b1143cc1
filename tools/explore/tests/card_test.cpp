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

TEST(ExplorerCard, ReportsDevicesNotDisabledOnRemoval)
{
	expect_reported("device_not_disabled_on_removal_is_reported",
			"a driver goes and leaves its device enabled");
}
TEST(ExplorerCard, ReportsLeakedInterruptVectors)
{
	expect_reported("leaked_vectors_are_reported",
			"a driver goes and leaves its interrupts allocated");
}
TEST(ExplorerCard, ReportsLeakedDmaMappings)
{
	expect_reported("dma_mapping_left_on_driver_removal_is_reported",
			"a driver goes and leaves memory mapped");
}
TEST(ExplorerCard, ReportsLeakedMmioMappings)
{
	expect_reported("leaked_mmio_mapping_is_reported",
			"a driver goes and leaves registers mapped");
}
TEST(ExplorerCard, ReportsMmioAccessAfterUnmap)
{
	expect_reported("mmio_access_after_unmap_is_reported",
			"a register is used that is not mapped");
}
TEST(ExplorerCard, ReportsVectorsFreedWhileHandlersAreInstalled)
{
	expect_reported("vectors_freed_with_a_handler_are_reported",
			"an interrupt goes that has a handler");
}
TEST(ExplorerCard, ReportsDmaSyncOfUnmappedMemory)
{
	expect_reported("sync_of_unmapped_memory_is_reported", "what is not mapped changes hands");
}
TEST(ExplorerCard, ReportsDmaSyncBeyondTheMapping)
{
	expect_reported("sync_beyond_the_mapping_is_reported", "more changes hands than is mapped");
}
TEST(ExplorerCard, ReportsDoubleDmaUnmap)
{
	expect_reported("double_dma_unmap_is_reported", "what is not mapped is unmapped");
}
TEST(ExplorerCard, ReportsDoubleFreeOfCoherentMemory)
{
	expect_reported("double_free_of_coherent_memory_is_reported",
			"coherent memory is freed that was not allocated");
}
TEST(ExplorerCard, ReportsDmaPoolsDestroyedInUse)
{
	expect_reported("destruction_of_a_pool_in_use_is_reported",
			"a pool goes, and pieces of it are in use");
}
