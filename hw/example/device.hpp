// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The example device, from probe to remove: its register, its queue, its interrupt.
#pragma once
#include <hw/example/registers.hpp>
#include <kern/completion.hpp>
#include <kern/dma.hpp>
#include <kern/irq.hpp>
#include <kern/lock.hpp>
#include <kern/pci.hpp>

namespace example
{

namespace wire = hw::example;

class Device
{
public:
	/*
	 * Brings the device up and sends a few messages through it. May sleep. Errors: the
	 * kernel's; EIO if a message was changed.
	 */
	static kern::Result<kern::Owned<Device>> probe(kern::pci::Device pci, unsigned long data);
	~Device() { shutdown(); }
	/* Ends the device's DMA and interrupts; any number of times. May sleep. */
	void shutdown();

	/*
	 * Copies `length` bytes of the device's memory from one offset to another, by the device.
	 * May sleep.
	 * Errors: EINVAL for a length or a place that is none; ETIMEDOUT without an interrupt; EIO
	 * of a device that fails; ENODEV after shutdown().
	 */
	kern::Result<> send(u32 from, u32 to, u32 length);

	explicit Device(kern::pci::Device pci) : pci_(pci) {}

private:
	kern::Result<> start();
	kern::Result<> try_out();
	kern::Result<> send_locked(u32 from, u32 to, u32 length) KERN_REQUIRES(lock_);
	bool interrupt();

	static constexpr u32 memory_bytes = 2 * wire::most_bytes;
	static constexpr unsigned int patience_ms = 5000;

	/* Freed from below: the interrupt first, the device's access to memory, then the memory. */
	kern::pci::Device pci_;
	kern::Mutex lock_{KERN_LOCK_CLASS("weft_example")}; /* one message at a time */
	kern::DmaBuffer queue_;
	kern::DmaBuffer memory_;
	kern::pci::Enabled enabled_;
	kern::Mmio registers_;
	kern::pci::InterruptVectors vectors_;
	kern::Completion interrupted_;
	u32 posted_ KERN_GUARDED_BY(lock_) = 0;
	enum class Life : u8 {
		starting,
		running,
		ended
	} life_ KERN_GUARDED_BY(lock_) = Life::starting;
	kern::Irq irq_{kern::method<&Device::interrupt>, this};
};

} // namespace example
