// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages the example device from probe to remove: its register, its queue and its interrupt. It is
// a starting point for new drivers.
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
	 * Starts the device and sends a few messages through it. May sleep. Errors: those of the
	 * kernel's functions; EIO if a message was corrupted.
	 */
	static kern::Result<kern::Owned<Device>> probe(kern::pci::Device pci, unsigned long data);
	~Device() { shutdown(); }
	/* Ends the device's DMA and interrupts. May be called repeatedly. May sleep. */
	void shutdown();

	/*
	 * Lets the device copy `length` bytes of its memory from one offset to another. May sleep.
	 * Errors: EINVAL for an invalid length or offset; ETIMEDOUT if no interrupt arrives; EIO if
	 * the device fails; ENODEV after shutdown().
	 */
	kern::Result<> send(u32 from, u32 to, u32 length);

	explicit Device(kern::pci::Device pci) : pci_(pci) {}

private:
	kern::Result<> start();
	kern::Result<> self_test();
	kern::Result<> send_locked(u32 from, u32 to, u32 length) KERN_REQUIRES(lock_);
	bool interrupt();

	static constexpr u32 memory_bytes = 2 * wire::most_bytes;
	static constexpr unsigned int timeout_ms = 5000;

	/*
	 * The destructors run from the last member to the first: they free the interrupt, then end
	 * the device's access to memory, then free the memory.
	 */
	kern::pci::Device pci_;
	kern::Mutex lock_{KERN_LOCK_CLASS("weft_example")}; /* held while a message is sent */
	kern::DmaBuffer queue_;
	kern::DmaBuffer memory_;
	kern::pci::Enabled enabled_;
	kern::Mmio registers_;
	kern::pci::InterruptVectors vectors_;
	kern::Completion interrupted_;
	u32 posted_ KERN_GUARDED_BY(lock_) = 0;
	enum class Phase : u8 {
		starting,
		running,
		ended
	} phase_ KERN_GUARDED_BY(lock_) = Phase::starting;
	kern::Irq irq_{kern::method<&Device::interrupt>, this};
};

} // namespace example
