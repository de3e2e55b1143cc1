// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that each check of the simulated PCI bus and of DMA memory reports the defect that is
// injected for it (core/kern/sim/tests/defects_card.cpp).
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
	expect_reported("pci_device_not_disabled_on_driver_removal_is_reported",
			"a removed driver has not disabled its device");
}
TEST(ExplorerCard, ReportsLeakedInterruptVectors)
{
	expect_reported("leaked_msix_vectors_are_reported",
			"a removed driver has not freed its interrupt vectors");
}
TEST(ExplorerCard, ReportsLeakedDmaMappings)
{
	expect_reported("dma_mapping_left_on_driver_removal_is_reported",
			"a removed driver has not unmapped memory");
}
TEST(ExplorerCard, ReportsLeakedMmioMappings)
{
	expect_reported("leaked_mmio_mapping_is_reported",
			"a removed driver has not unmapped registers");
}
TEST(ExplorerCard, ReportsMmioAccessAfterUnmap)
{
	expect_reported("mmio_access_after_unmap_is_reported",
			"access to a register that is not mapped");
}
TEST(ExplorerCard, ReportsVectorsFreedWhileHandlersAreInstalled)
{
	expect_reported("msix_vectors_freed_with_an_installed_handler_are_reported",
			"an interrupt vector with a handler is freed");
}
TEST(ExplorerCard, ReportsDmaSyncOfUnmappedMemory)
{
	expect_reported("dma_sync_of_unmapped_memory_is_reported",
			"DMA sync of memory that is not mapped");
}
TEST(ExplorerCard, ReportsDmaSyncBeyondTheMapping)
{
	expect_reported("dma_sync_beyond_the_mapping_is_reported",
			"DMA sync beyond the mapped memory");
}
TEST(ExplorerCard, ReportsDoubleDmaUnmap)
{
	expect_reported("double_dma_unmap_is_reported", "DMA unmap of memory that is not mapped");
}
TEST(ExplorerCard, ReportsDoubleFreeOfCoherentMemory)
{
	expect_reported("double_free_of_coherent_memory_is_reported",
			"coherent memory is freed that is not allocated");
}
TEST(ExplorerCard, ReportsDmaPoolsDestroyedInUse)
{
	expect_reported("destruction_of_a_dma_pool_in_use_is_reported",
			"a DMA pool is destroyed while pieces of it are in use");
}
