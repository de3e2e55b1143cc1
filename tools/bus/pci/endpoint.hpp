// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the PCI function of a device model: configuration space, the guest's memory,
// interrupts, and the routing of accesses to regions. It depends neither on the model nor on the
// protocol, whose implementation of Interrupts delivers interrupts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/guest_memory.hpp"
#include "bus/pci/config_space.hpp"
#include "bus/pci/device.hpp"
#include "bus/pci/interrupts.hpp"

namespace spdlog
{
class logger;
}

namespace weft::pci
{

// Clients share their memory in whole pages.
constexpr std::uint64_t kPageSize = 4096;

// MemorySection - a part of the guest's memory, and its position in the file of its descriptor.
struct MemorySection {
	std::uint64_t address = 0; // address in the device's address space
	std::uint64_t size = 0;
	std::uint64_t offset = 0;
	bool readable = true;
	bool writable = true;
};

class Endpoint final : public PciHost
{
public:
	// Region numbers: those of the BARs, and this one for configuration space.
	static constexpr std::uint32_t kConfigRegion = 7;

	// Attaches @device, which outlives the endpoint like @interrupts, and resets it to the
	// state after power-on. Created, used and destroyed on @loop's thread. Throws
	// std::invalid_argument if the device's description is inconsistent. A guest may have
	// @most_mappings DMA mappings.
	Endpoint(Loop &loop, PciDevice &device, Interrupts &interrupts,
		 std::shared_ptr<spdlog::logger> log, std::size_t most_mappings);
	~Endpoint() override;

	Loop &loop() override { return loop_; }
	GuestMemory &dma() override { return memory_; }
	bool bus_master() const override { return config_.bus_master(); }
	std::uint64_t bar_address(unsigned bar) const override { return config_.bar_address(bar); }
	bool msix_enabled() const override { return config_.msix_enabled(); }
	void raise_msix(unsigned vector) override;
	void set_intx(bool asserted) override;

	// Size of region @index; 0 if the device does not have it.
	std::uint64_t region_size(std::uint32_t index) const;
	// The part of region @index that the guest may map.
	PciMapping mapping(std::uint32_t index);
	// These return false, without effect, if the access is not completely inside the region.
	bool region_read(std::uint32_t index, std::uint64_t offset, std::span<std::byte> data);
	bool region_write(std::uint32_t index, std::uint64_t offset,
			  std::span<const std::byte> data);
	bool region_contains(std::uint32_t index, std::uint64_t offset, std::uint64_t size) const;

	// Owner of the guest's memory; each guest has its own.
	const std::shared_ptr<MemoryLender> &lender() const { return lender_; }

	// These change the memory map and notify the device. A mapping without a descriptor is in
	// the map but cannot be accessed. map() throws std::system_error, with ENOSPC if the map is
	// full.
	GuestMemory::MapResult map(const MemorySection &section, int fd);
	bool unmap(std::uint64_t address, std::uint64_t size);
	void unmap_all();

	void reset(PciReset kind);
	// A guest connects; the number of its mappings starts at 0. Throws std::system_error if the
	// process has no free descriptor, which must not be discovered only when the guest
	// disconnects.
	void admit();
	// The guest has disconnected: its memory and descriptors are released, and the device is
	// reset. According to the specification, the next client would find the device in its last
	// state. But a card cannot work without its memory, and QEMU resets a device before it uses
	// it. A card that is reset at once also leaves the fabric at once, like one whose host has
	// lost power.
	void release();

private:
	bool is_msix_structure(std::uint32_t bar, std::uint64_t offset, std::size_t size) const;
	void read_msix_structure(std::uint32_t bar, std::uint64_t offset,
				 std::span<std::byte> data) const;
	void write_msix_structure(std::uint32_t bar, std::uint64_t offset,
				  std::span<const std::byte> data);
	void write_config(std::uint64_t offset, std::span<const std::byte> data);
	void read_vendor_registers(std::uint64_t offset, std::span<std::byte> data);
	void write_vendor_registers(std::uint64_t offset, std::span<const std::byte> data);

	Loop &loop_;
	PciDevice &device_;
	Interrupts &interrupts_;
	std::shared_ptr<spdlog::logger> log_;
	const PciDescription description_; // as the guest sees it
	ConfigSpace config_;
	GuestMemory memory_;
	std::shared_ptr<MemoryLender> lender_;
	bool intx_ = false;
};

} // namespace weft::pci
