// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a fake PCI host for tests of device models, with plain memory and counted interrupts. It
// has no thread: after a register write the test runs the event loop by loop().poll() or
// run_until().
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <sys/mman.h>

#include "base/guest_memory.hpp"
#include "base/loop.hpp"
#include "bus/pci/device.hpp"
#include "bus/pci/testing/machine.hpp"

namespace weft::testing
{

class FakeHost final : public PciHost, public Machine
{
public:
	// Creates a host with one mapping of @memory_size bytes at @memory_base.
	explicit FakeHost(std::uint64_t memory_size = 16 << 20, std::uint64_t memory_base = 0,
			  Environment &environment = Environment::host())
	    : loop_("fake host", Loop::Mode::manual, environment), base_(memory_base),
	      ram_(MemoryMapping::allocate(memory_size))
	{
		dma_.map(memory_base, memory_size, true, true, ram_);
	}
	// A host that shares @reactor with others and uses its time.
	explicit FakeHost(Reactor &reactor, std::uint64_t memory_size = 16 << 20)
	    : loop_("fake host", reactor), base_(0), ram_(MemoryMapping::allocate(memory_size))
	{
		dma_.map(base_, memory_size, true, true, ram_);
	}
	~FakeHost() override { unplug(); }

	// Plugs in a device as a VM does: attach, then the power-on reset.
	void plug(PciDevice &device)
	{
		device_ = &device;
		device.attach(*this);
		device.reset(PciReset::bus);
	}
	void unplug()
	{
		if (device_)
			device_->detach();
		device_ = nullptr;
	}

	Loop &loop() override { return loop_; }
	GuestMemory &dma() override { return dma_; }
	bool bus_master() const override { return bus_master_; }
	// BARs are above all memory, as on real hosts.
	std::uint64_t bar_address(unsigned bar) const override
	{
		return kBarBase + (std::uint64_t{bar} << 32);
	}
	static constexpr std::uint64_t kBarBase = std::uint64_t{1} << 40;
	bool msix_enabled() const override { return msix_enabled_; }
	void raise_msix(unsigned vector) override
	{
		if (msix_enabled_)
			++interrupts_[vector];
	}
	void set_intx(bool asserted) override { intx_ = asserted; }

	void set_bus_master(bool on)
	{
		bus_master_ = on;
		if (device_)
			device_->bus_master_changed(on);
	}
	void set_msix_enabled(bool on) { msix_enabled_ = on; }
	bool intx() const { return intx_; }
	// Returns how often @vector was raised since the last call.
	unsigned take_interrupts(unsigned vector)
	{
		const auto found = interrupts_.find(vector);
		return found == interrupts_.end() ? 0 : std::exchange(found->second, 0);
	}

	// Makes all memory accessible and zero.
	void clear_memory()
	{
		// This is much faster than writing zeros if little of the memory was used.
		if (::madvise(ram_->data(), ram_->size(), MADV_DONTNEED))
			throw std::system_error(errno, std::generic_category(), "madvise");
		dma_.clear();
		dma_.map(base_, ram_->size(), true, true, ram_);
		if (device_)
			device_->memory_changed();
	}

	void read_register(unsigned bar, std::uint64_t offset, std::span<std::byte> data) override
	{
		device_->region_read(bar, offset, data);
	}
	void write_register(unsigned bar, std::uint64_t offset,
			    std::span<const std::byte> data) override
	{
		device_->region_write(bar, offset, data);
	}
	std::span<std::byte> memory(std::uint64_t address, std::size_t size) override
	{
		const auto offset = address - base_;
		if (offset > ram_->size() || size > ram_->size() - offset)
			throw std::out_of_range("no such guest memory");
		return {ram_->data() + offset, size};
	}

private:
	Loop loop_;
	std::uint64_t base_;
	std::shared_ptr<const MemoryMapping> ram_;
	GuestMemory dma_;
	PciDevice *device_ = nullptr;
	bool bus_master_ = true;
	bool msix_enabled_ = true;
	bool intx_ = false;
	std::map<unsigned, unsigned> interrupts_;
};

} // namespace weft::testing
