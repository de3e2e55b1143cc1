// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Contains test cases with one defect of a PCI driver each, which core/kern/sim must report.
// tools/explore/tests/card_test.cpp lists the expected reports.
#include <kern/abi/dma.h>
#include <kern/abi/explore.h>
#include <kern/abi/pci.h>
#include <kern/kunit.hpp>
#include <kern/memory.hpp>

using kern::kunit::Test;

/* IDs of the card that is plugged in; hw/mlx4 has the table. */
extern "C" const pci_device_id weft_mlx4_pci_ids[];

namespace
{

constexpr u64 size = 64;

/* Leaks what its Step leaks. It also plugs in a card, which is removed with it. */
class Driver
{
public:
	using Step = void (*)(pci_dev *pci);

	explicit Driver(Step at_probe)
	{
		step = at_probe;
		item_.probe = [](kern_pci_driver_item *, pci_dev *pci, unsigned long) {
			step(pci);
			return 0;
		};
		item_.remove = [](kern_pci_driver_item *, pci_dev *) {};
		(void)kern_pci_driver_register(&item_, "injected", weft_mlx4_pci_ids, nullptr);
		kern_explore_plug_card(KERN_EXPLORE_MLX4);
	}
	~Driver()
	{
		kern_explore_pull_card();
		kern_pci_driver_unregister(&item_);
	}
	Driver(const Driver &) = delete;
	Driver &operator=(const Driver &) = delete;

private:
	static constinit Step step;
	kern_pci_driver_item item_{};
};
constinit Driver::Step Driver::step = nullptr;

/* Memory that is mapped for the function. */
struct Mapped {
	explicit Mapped(pci_dev *pci) : owner(kern_pci_device(pci))
	{
		memory = kern_alloc(size, KERN_GFP_KERNEL);
		(void)kern_dma_map_single(owner, memory, size, KERN_DMA_BIDIRECTIONAL, &address);
	}
	device *const owner;
	void *memory;
	u64 address = 0;
};

void pci_device_not_disabled_on_driver_removal_is_reported(Test &)
{
	Driver driver([](pci_dev *pci) { (void)kern_pci_enable(pci, "injected", 64); });
}

void leaked_msix_vectors_are_reported(Test &)
{
	Driver driver([](pci_dev *pci) { (void)kern_pci_alloc_msix(pci, 1, 1); });
}

void dma_mapping_left_on_driver_removal_is_reported(Test &)
{
	Driver driver([](pci_dev *pci) { (void)Mapped(pci); });
}

void leaked_mmio_mapping_is_reported(Test &)
{
	Driver driver([](pci_dev *pci) {
		(void)kern_pci_map_bar(pci, 0, 0, kern_pci_bar_size(pci, 0), false);
	});
}

void mmio_access_after_unmap_is_reported(Test &)
{
	Driver driver([](pci_dev *pci) {
		void *window = kern_pci_map_bar(pci, 0, 0, kern_pci_bar_size(pci, 0), false);
		kern_iounmap(window);
		(void)kern_mmio_read(window, 4);
	});
}

void msix_vectors_freed_with_an_installed_handler_are_reported(Test &)
{
	Driver driver([](pci_dev *pci) {
		static constinit kern_irq_item item{};
		item.handler = [](kern_irq_item *) { return true; };
		(void)kern_pci_alloc_msix(pci, 1, 1);
		(void)kern_irq_request(&item, static_cast<unsigned>(kern_pci_vector_irq(pci, 0)),
				       "injected", false);
		kern_pci_free_vectors(pci);
	});
}

void dma_sync_of_unmapped_memory_is_reported(Test &)
{
	Driver driver([](pci_dev *pci) {
		Mapped mapped(pci);
		kern_dma_unmap_single(mapped.owner, mapped.address, size, KERN_DMA_BIDIRECTIONAL);
		kern_dma_sync_for_cpu(mapped.owner, mapped.address, size, KERN_DMA_BIDIRECTIONAL);
	});
}

void dma_sync_beyond_the_mapping_is_reported(Test &)
{
	Driver driver([](pci_dev *pci) {
		Mapped mapped(pci);
		kern_dma_sync_for_cpu(mapped.owner, mapped.address, size + 1,
				      KERN_DMA_BIDIRECTIONAL);
	});
}

void double_dma_unmap_is_reported(Test &)
{
	Driver driver([](pci_dev *pci) {
		Mapped mapped(pci);
		for (int i = 0; i < 2; i++)
			kern_dma_unmap_single(mapped.owner, mapped.address, size,
					      KERN_DMA_BIDIRECTIONAL);
	});
}

void double_free_of_coherent_memory_is_reported(Test &)
{
	Driver driver([](pci_dev *pci) {
		u64 address;
		void *memory = kern_dma_alloc_coherent(kern_pci_device(pci), size, &address,
						       KERN_GFP_KERNEL);
		for (int i = 0; i < 2; i++)
			kern_dma_free_coherent(kern_pci_device(pci), size, memory, address);
	});
}

void destruction_of_a_dma_pool_in_use_is_reported(Test &)
{
	Driver driver([](pci_dev *pci) {
		u64 address;
		dma_pool *pool = kern_dma_pool_create("injected", kern_pci_device(pci), size, 8);
		(void)kern_dma_pool_alloc(pool, KERN_GFP_KERNEL, &address);
		kern_dma_pool_destroy(pool);
	});
}

} // namespace

KUNIT_SUITE(card_defects, KUNIT_CASE(pci_device_not_disabled_on_driver_removal_is_reported),
	    KUNIT_CASE(leaked_msix_vectors_are_reported),
	    KUNIT_CASE(dma_mapping_left_on_driver_removal_is_reported),
	    KUNIT_CASE(leaked_mmio_mapping_is_reported),
	    KUNIT_CASE(mmio_access_after_unmap_is_reported),
	    KUNIT_CASE(msix_vectors_freed_with_an_installed_handler_are_reported),
	    KUNIT_CASE(dma_sync_of_unmapped_memory_is_reported),
	    KUNIT_CASE(dma_sync_beyond_the_mapping_is_reported),
	    KUNIT_CASE(double_dma_unmap_is_reported),
	    KUNIT_CASE(double_free_of_coherent_memory_is_reported),
	    KUNIT_CASE(destruction_of_a_dma_pool_in_use_is_reported));
