// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defects of a PCI driver, one in each case, each of which core/kern/sim reports.
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

/* Leaves what it is told to leave, and plugs a card in for itself, which goes with it. */
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
	explicit Mapped(pci_dev *pci) : for_whom(kern_pci_device(pci))
	{
		memory = kern_alloc(size, KERN_GFP_KERNEL);
		(void)kern_dma_map_single(for_whom, memory, size, KERN_DMA_BIDIRECTIONAL, &address);
	}
	device *const for_whom;
	void *memory;
	u64 address = 0;
};

void device_left_enabled(Test &)
{
	Driver driver([](pci_dev *pci) { (void)kern_pci_enable(pci, "injected", 64); });
}

void interrupts_left_allocated(Test &)
{
	Driver driver([](pci_dev *pci) { (void)kern_pci_alloc_msix(pci, 1, 1); });
}

void memory_left_mapped(Test &)
{
	Driver driver([](pci_dev *pci) { (void)Mapped(pci); });
}

void mmio_left_mapped(Test &)
{
	Driver driver([](pci_dev *pci) {
		(void)kern_pci_map_bar(pci, 0, 0, kern_pci_bar_size(pci, 0), false);
	});
}

void mmio_after_unmap(Test &)
{
	Driver driver([](pci_dev *pci) {
		void *window = kern_pci_map_bar(pci, 0, 0, kern_pci_bar_size(pci, 0), false);
		kern_iounmap(window);
		(void)kern_mmio_read(window, 4);
	});
}

void interrupts_freed_with_a_handler(Test &)
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

void sync_of_unmapped_memory(Test &)
{
	Driver driver([](pci_dev *pci) {
		Mapped mapped(pci);
		kern_dma_unmap_single(mapped.for_whom, mapped.address, size,
				      KERN_DMA_BIDIRECTIONAL);
		kern_dma_sync_for_cpu(mapped.for_whom, mapped.address, size,
				      KERN_DMA_BIDIRECTIONAL);
	});
}

void sync_beyond_the_mapping(Test &)
{
	Driver driver([](pci_dev *pci) {
		Mapped mapped(pci);
		kern_dma_sync_for_cpu(mapped.for_whom, mapped.address, size + 1,
				      KERN_DMA_BIDIRECTIONAL);
	});
}

void unmapped_twice(Test &)
{
	Driver driver([](pci_dev *pci) {
		Mapped mapped(pci);
		for (int i = 0; i < 2; i++)
			kern_dma_unmap_single(mapped.for_whom, mapped.address, size,
					      KERN_DMA_BIDIRECTIONAL);
	});
}

void coherent_memory_freed_twice(Test &)
{
	Driver driver([](pci_dev *pci) {
		u64 address;
		void *memory = kern_dma_alloc_coherent(kern_pci_device(pci), size, &address,
						       KERN_GFP_KERNEL);
		for (int i = 0; i < 2; i++)
			kern_dma_free_coherent(kern_pci_device(pci), size, memory, address);
	});
}

void pool_destroyed_with_allocations(Test &)
{
	Driver driver([](pci_dev *pci) {
		u64 address;
		dma_pool *pool = kern_dma_pool_create("injected", kern_pci_device(pci), size, 8);
		(void)kern_dma_pool_alloc(pool, KERN_GFP_KERNEL, &address);
		kern_dma_pool_destroy(pool);
	});
}

} // namespace

KUNIT_SUITE(card_defects, KUNIT_CASE(device_left_enabled), KUNIT_CASE(interrupts_left_allocated),
	    KUNIT_CASE(memory_left_mapped), KUNIT_CASE(mmio_left_mapped),
	    KUNIT_CASE(mmio_after_unmap), KUNIT_CASE(interrupts_freed_with_a_handler),
	    KUNIT_CASE(sync_of_unmapped_memory), KUNIT_CASE(sync_beyond_the_mapping),
	    KUNIT_CASE(unmapped_twice), KUNIT_CASE(coherent_memory_freed_twice),
	    KUNIT_CASE(pool_destroyed_with_allocations));
