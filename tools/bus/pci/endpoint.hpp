// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The PCI function of a device model: configuration space, the guest's memory, interrupts, and the
// routing of accesses to regions. It depends neither on the model nor on the protocol, whose
// implementation of Interrupts delivers interrupts.
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

// Whole pages: what clients share of their memory.
constexpr std::uint64_t kPageSize = 4096;

// MemorySection - a part of the guest's memory, and its position in the file of its descriptor.
struct MemorySection {
	std::uint64_t address = 0; // as the device sees it
	std::uint64_t size = 0;
	std::uint64_t offset = 0;
	bool readable = true;
	bool writable = true;
};

class Endpoint final : public PciHost
{
public:
	// Regions: the BARs by their numbers, and configuration space.
	static constexpr std::uint32_t kConfigRegion = 7;

	// Attaches @device, which outlives the endpoint, as @interrupts do, and puts it into its
	// state after power-on. Made, used and destroyed on @loop's thread. Throws
	// std::invalid_argument if the device's description contradicts itself. A machine may have
	// @most_mappings sections of memory.
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

	// Bytes in region @index; 0 if the device does not have it.
	std::uint64_t region_size(std::uint32_t index) const;
	// False if the access is not wholly inside the region: nothing has happened then.
	bool region_read(std::uint32_t index, std::uint64_t offset, std::span<std::byte> data);
	bool region_write(std::uint32_t index, std::uint64_t offset,
			  std::span<const std::byte> data);
	bool region_contains(std::uint32_t index, std::uint64_t offset, std::uint64_t size) const;

	// Owner of the guest's memory; each guest has its own.
	const std::shared_ptr<MemoryLender> &lender() const { return lender_; }

	// These change the memory map and notify the device. A section without a descriptor is in
	// the map but cannot be accessed. map() throws std::system_error, with ENOSPC if the map is
	// full.
	GuestMemory::MapResult map(const MemorySection &section, int fd);
	bool unmap(std::uint64_t address, std::uint64_t size);
	void unmap_all();

	void reset(PciReset kind);
	// A guest connects; the number of its sections starts at 0. Throws std::system_error if the
	// process has no free descriptor, which must not be discovered only when the guest
	// disconnects.
	void admit();
	// The guest has disconnected: its memory and descriptors are released, and the device is
	// reset. The specification would keep a device's state for the next client. But a card
	// cannot work without its memory, and QEMU resets a device before it uses it. A card that
	// is reset now leaves the fabric now, like one whose host has lost power.
	void release();

private:
	bool is_msix_structure(std::uint32_t bar, std::uint64_t offset, std::size_t size) const;
	void read_msix_structure(std::uint32_t bar, std::uint64_t offset,
				 std::span<std::byte> data) const;
	void write_msix_structure(std::uint32_t bar, std::uint64_t offset,
				  std::span<const std::byte> data);
	void write_config(std::uint64_t offset, std::span<const std::byte> data);

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
