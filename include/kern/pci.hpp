// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers PCI drivers, and gives them access to their devices.
//
//	class Card {
//	public:
//		static kern::Result<kern::Owned<Card>> probe(kern::pci::Device pci, unsigned long data);
//		void shutdown();	// before a reboot: the device's DMA and interrupts end
//		~Card();		// remove
//	};
//	static constinit kern::Static<kern::pci::Driver<Card>> driver;
//
//	extern "C" int weft_card_init()		// module.c: KERN_MODULE(…); KERN_PCI_IDS(card_ids, {…}, …);
//	{
//		driver.construct();
//		return driver->add("weft_card", card_ids).error();	// on an error, destruct() first
//	}
#pragma once
#include <utility>
#include <kern/abi/pci.h>
#include <kern/memory.hpp>
#include <kern/mmio.hpp>
#include <kern/result.hpp>

/* This module, for functions that hold a reference to their caller's module. */
extern "C" struct module __this_module;

namespace kern::pci
{

/*
 * A handle of a device that was passed to this driver, which can be copied. It is valid from
 * probe() until remove has returned.
 */
class Device
{
public:
	explicit Device(pci_dev *native) : native_(native) {}

	pci_dev *native() const { return native_; }
	/* Returns the device for kern_dev_error() and DMA. */
	device *dev() const { return kern_pci_device(native_); }
	/* Returns the device's address, such as "0000:01:00.0". */
	const char *name() const { return kern_pci_name(native_); }
	u16 vendor_id() const { return kern_pci_vendor_id(native_); }
	u16 device_id() const { return kern_pci_device_id(native_); }
	u8 revision() const { return kern_pci_revision(native_); }
	int node() const { return kern_pci_node(native_); }
	/* Returns false if the device no longer responds. Reads its configuration space. */
	bool present() const { return kern_pci_present(native_); }

	/*
	 * Access the configuration space. Errors: EINVAL for an invalid offset, ENODEV if the
	 * device was removed.
	 */
	Result<u8> read_config8(int where) const
	{
		u8 value;
		KERN_TRY_ERRNO(kern_pci_read_config8(native_, where, &value));
		return value;
	}
	Result<u16> read_config16(int where) const
	{
		u16 value;
		KERN_TRY_ERRNO(kern_pci_read_config16(native_, where, &value));
		return value;
	}
	Result<u32> read_config32(int where) const
	{
		u32 value;
		KERN_TRY_ERRNO(kern_pci_read_config32(native_, where, &value));
		return value;
	}
	Result<> write_config8(int where, u8 value) const
	{
		return check(kern_pci_write_config8(native_, where, value));
	}
	Result<> write_config16(int where, u16 value) const
	{
		return check(kern_pci_write_config16(native_, where, value));
	}
	Result<> write_config32(int where, u32 value) const
	{
		return check(kern_pci_write_config32(native_, where, value));
	}
	/* Returns the offset of the capability; 0 if there is none. */
	u8 find_capability(int capability) const
	{
		return kern_pci_find_capability(native_, capability);
	}
	/* Must be called before and after a reset that the driver itself performs. */
	Result<> save_state() const { return check(kern_pci_save_state(native_)); }
	void restore_state() const { kern_pci_restore_state(native_); }

	/* Returns the size of the BAR; 0 if there is no such memory BAR. */
	u64 bar_size(unsigned int bar) const { return kern_pci_bar_size(native_, bar); }
	/*
	 * Returns the CPU's physical address of the BAR, for mapping doorbell pages to user space.
	 */
	u64 bar_address(unsigned int bar) const { return kern_pci_bar_address(native_, bar); }

	enum class Caching { none, write_combining };
	/*
	 * Maps part of a BAR. May sleep. Errors: ENXIO if the BAR has no such part, or there is no
	 * memory.
	 */
	Result<Mmio> map_bar(unsigned int bar, u64 offset, u64 size,
			     Caching caching = Caching::none) const
	{
		void *base = kern_pci_map_bar(native_, bar, offset, size,
					      caching == Caching::write_combining);
		if (!base)
			return Error{-ENXIO};
		return Mmio::adopt(base, size);
	}
	Result<Mmio> map_bar(unsigned int bar) const { return map_bar(bar, 0, bar_size(bar)); }

private:
	pci_dev *native_;
};

/* Keeps memory decoding, bus mastering and the BARs enabled as long as the object exists. */
class Enabled
{
public:
	Enabled() = default;
	/*
	 * dma_bits: the width of the device's DMA addresses. May sleep. Errors: those of the kernel
	 * (EBUSY, EIO, …).
	 */
	static Result<Enabled> create(Device pci, const char *name, unsigned int dma_bits = 64)
	{
		KERN_TRY_ERRNO(kern_pci_enable(pci.native(), name, dma_bits));
		return Enabled(pci.native());
	}
	Enabled(Enabled &&other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
	Enabled &operator=(Enabled &&other) noexcept
	{
		std::swap(native_, other.native_);
		return *this;
	}
	~Enabled()
	{
		if (native_)
			kern_pci_disable(native_);
	}

private:
	explicit Enabled(pci_dev *native) : native_(native) {}
	pci_dev *native_ = nullptr;
};

/*
 * MSI-X vectors, or the interrupt pin. All handlers (kern::Irq) must be destroyed before this
 * object.
 */
class InterruptVectors
{
public:
	InterruptVectors() = default;
	/*
	 * Allocates the pin as vector 0, for a shared Irq. May sleep. Errors: those of the kernel
	 * if the device has no pin.
	 */
	static Result<InterruptVectors> create_line(Device pci)
	{
		KERN_TRY_ERRNO(kern_pci_alloc_line(pci.native()));
		return InterruptVectors(pci.native(), 1);
	}
	/*
	 * Allocates as many vectors as possible, up to max. May sleep. Errors: ENOSPC and others if
	 * there are fewer than min.
	 */
	static Result<InterruptVectors> create(Device pci, unsigned int min, unsigned int max)
	{
		const int count = kern_pci_alloc_msix(pci.native(), min, max);
		if (count < 0)
			return Error{count};
		return InterruptVectors(pci.native(), static_cast<unsigned int>(count));
	}
	InterruptVectors(InterruptVectors &&other) noexcept
	    : native_(std::exchange(other.native_, nullptr)), count_(std::exchange(other.count_, 0))
	{
	}
	InterruptVectors &operator=(InterruptVectors &&other) noexcept
	{
		std::swap(native_, other.native_);
		std::swap(count_, other.count_);
		return *this;
	}
	~InterruptVectors()
	{
		if (native_)
			kern_pci_free_vectors(native_);
	}

	unsigned int count() const { return count_; }
	/* Returns the interrupt number of a vector, for Irq::request(). */
	unsigned int irq(unsigned int vector) const
	{
		kern_assert(vector < count_);
		return static_cast<unsigned int>(kern_pci_vector_irq(native_, vector));
	}

private:
	InterruptVectors(pci_dev *native, unsigned int count) : native_(native), count_(count) {}
	pci_dev *native_ = nullptr;
	unsigned int count_ = 0;
};

template<class T>
class Driver
{
public:
	Driver()
	{
		item_.probe = [](kern_pci_driver_item *, pci_dev *native,
				 unsigned long data) -> int {
			Result<Owned<T>> object = T::probe(Device(native), data);
			if (!object.ok())
				return object.error();
			kern_pci_set_data(native, object.take().release());
			return 0;
		};
		item_.remove = [](kern_pci_driver_item *, pci_dev *native) {
			auto *object = static_cast<T *>(kern_pci_get_data(native));
			destroy(object);
			kern_pci_set_data(native, nullptr);
		};
		item_.shutdown = [](kern_pci_driver_item *, pci_dev *native) {
			if (auto *object = static_cast<T *>(kern_pci_get_data(native)))
				object->shutdown();
		};
		if constexpr (requires(T &object) {
				      object.reset_prepare();
				      object.reset_done();
			      }) {
			item_.reset_prepare = [](kern_pci_driver_item *, pci_dev *native) {
				if (auto *object = static_cast<T *>(kern_pci_get_data(native)))
					object->reset_prepare();
			};
			item_.reset_done = [](kern_pci_driver_item *, pci_dev *native) {
				if (auto *object = static_cast<T *>(kern_pci_get_data(native)))
					object->reset_done();
			};
		}
	}
	/* Removes all devices from the driver. */
	~Driver()
	{
		if (registered_)
			kern_pci_driver_unregister(&item_);
	}
	Driver(const Driver &) = delete;
	Driver &operator=(const Driver &) = delete;

	/*
	 * Calls T::probe() for all present and future devices in the table. If it fails for a
	 * device, that does not affect the others. May sleep. @owner: the module that is held while
	 * the driver is used; nullptr for a KUnit suite, which runs before its module is live.
	 */
	Result<> add(const char *name, const pci_device_id *ids, module *owner = &__this_module)
	{
		KERN_TRY_ERRNO(kern_pci_driver_register(&item_, name, ids, owner));
		registered_ = true;
		return {};
	}

private:
	kern_pci_driver_item item_{};
	bool registered_ = false;
};

} // namespace kern::pci
