// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Interface between a device model and its user: the server of a protocol (server.hpp), or a test.
// A model depends neither on the protocol nor on configuration space: it describes itself, handles
// accesses to its BARs, and reaches its guest through a PciHost.
//
// All calls in both directions happen on the loop of the device (PciHost::loop()).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft
{

class GuestMemory;
class Loop;

constexpr unsigned kPciBars = 6;
constexpr std::uint64_t kPciMinimumBar = 4096; // a page: clients map and trap no less

// PciBar - one base address register; a 64-bit one also takes the next index, which stays empty.
struct PciBar {
	std::uint64_t size = 0; // bytes, a power of two, kPciMinimumBar at least; 0: not there
	bool is_64bit = false;
	bool prefetchable = false;
};

// PciMsix - where the MSI-X table and pending bits lie. The host side owns both, so accesses to
// them do not reach the model.
struct PciMsix {
	std::uint16_t vectors = 0; // 1 to 2048; 0: no MSI-X capability
	std::uint8_t table_bar = 0;
	std::uint32_t table_offset = 0; // bytes, a multiple of 8
	std::uint8_t pba_bar = 0;
	std::uint32_t pba_offset = 0; // bytes, a multiple of 8
};

// PciDescription - all that configuration space contains about a device. It does not change while
// the device exists.
struct PciDescription {
	std::uint16_t vendor = 0;
	std::uint16_t device = 0;
	std::uint16_t subsystem_vendor = 0;
	std::uint16_t subsystem = 0;
	std::uint32_t class_code = 0; // 24 bits: class, subclass, programming interface
	std::uint8_t revision = 0;
	bool intx = false;           // has interrupt pin INTA
	std::uint8_t link_speed = 2; // PCIe generation: 1 is 2.5 GT/s, 2 is 5 GT/s, 3 is 8 GT/s
	std::uint8_t link_width = 8; // PCIe lanes
	std::uint64_t serial = 0;    // Device Serial Number capability; 0: none
	std::array<PciBar, kPciBars> bars;
	PciMsix msix;
};

enum class PciReset {
	bus,            // power-on, reset of the guest
	function_level, // the driver wrote Initiate Function Level Reset
	host_gone,      // the guest has disconnected; no memory is mapped any more
};

// PciHost - the guest as seen by a device that is plugged into it.
class PciHost
{
public:
	virtual ~PciHost() = default;

	virtual Loop &loop() = 0;
	// Guest memory. Accesses miss where nothing is mapped. A device that is not bus master must
	// not touch it: see bus_master().
	virtual GuestMemory &dma() = 0;
	// Command register, Bus Master Enable: whether the device may access memory and send MSI-X.
	virtual bool bus_master() const = 0;
	// Address to which the guest has set BAR @bar, for a device that names its registers by
	// their addresses; 0 before it has.
	virtual std::uint64_t bar_address(unsigned bar) const = 0;
	// MSI-X control, MSI-X Enable. Without it, interrupts go by INTx.
	virtual bool msix_enabled() const = 0;
	// Sends the message of @vector. Dropped if the vector does not exist or the driver has not
	// set it up.
	virtual void raise_msix(unsigned vector) = 0;
	// Drives the INTA line: level-triggered, so it stays until set to false.
	virtual void set_intx(bool asserted) = 0;
};

// PciDevice - a device model.
class PciDevice
{
public:
	virtual ~PciDevice() = default;

	virtual const PciDescription &description() const = 0;
	// Called once, before all other functions. The host stays valid until detach() returns.
	virtual void attach(PciHost &host) = 0;
	virtual void detach() = 0;

	// An access inside BAR @bar: @offset + size is at most the BAR's size (checked by the
	// host). Little-endian, as on the bus. The size is what the driver used: 1, 2, 4 or 8
	// usually, but any size but 0 is possible, as is any alignment. A read fills all of @data.
	virtual void region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data) = 0;
	virtual void region_write(unsigned bar, std::uint64_t offset,
				  std::span<const std::byte> data) = 0;

	// Puts the device into its state after power-on. Called any number of times in a row.
	virtual void reset(PciReset kind) = 0;

	// A section of guest memory was added or removed. When this returns, no thread may access
	// removed memory any more, because the guest is then informed that the section is unused.
	virtual void memory_changed() {}
	// The driver turned Bus Master Enable on or off.
	virtual void bus_master_changed(bool) {}
};

} // namespace weft
