// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface between a device model and its user: the server of a protocol (server.hpp),
// or a test. A model depends neither on the protocol nor on configuration space: it describes
// itself, handles accesses to its BARs, and reaches its guest through a PciHost.
//
// All calls in both directions happen on the loop of the device (PciHost::loop()).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft
{

class GuestMemory;
class Loop;

constexpr unsigned kPciBars = 6;
constexpr std::uint64_t kPciMinimumBar = 4096; // one page, because clients map and trap whole pages

// PciBar - a base address register. A 64-bit BAR also occupies the next index, whose entry stays
// empty.
struct PciBar {
	std::uint64_t size = 0; // bytes, a power of two, at least kPciMinimumBar; 0: no BAR
	bool is_64bit = false;
	bool prefetchable = false;
};

// PciMsix - location of the MSI-X table and the pending bits. The host side owns both, so accesses
// to them do not reach the model.
struct PciMsix {
	std::uint16_t vectors = 0; // 1 to 2048; 0: no MSI-X capability
	std::uint8_t table_bar = 0;
	std::uint32_t table_offset = 0; // bytes, a multiple of 8
	std::uint8_t pba_bar = 0;
	std::uint32_t pba_offset = 0; // bytes, a multiple of 8
};

// PciProduct - what the Vital Product Data capability reports. Texts have 255 bytes at most.
struct PciProduct {
	std::string name; // empty: no such capability
	std::string part_number;
	std::string serial_number;
};

// PciDescription - everything that configuration space contains about a device. It does not change
// while the device exists.
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
	PciProduct product;
	// Size in bytes of the vendor-specific capability, a multiple of 4 from 8 to 64; 0: none.
	// The device implements all of it except the first dword.
	std::uint8_t vendor_capability = 0;
	std::array<PciBar, kPciBars> bars;
	PciMsix msix;
};

// PciMapping - a part of a BAR that the guest may map from a file. Its accesses to this part are
// then memory accesses, and do not reach the device.
struct PciMapping {
	int fd = -1; // stays the device's; negative: no such part
	// Offset in the BAR and in the file, and size; multiples of kPciMinimumBar.
	std::uint64_t offset = 0;
	std::uint64_t size = 0;
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
	// The guest's memory. Accesses to unmapped addresses fail. A device must not access it
	// without bus mastering: see bus_master().
	virtual GuestMemory &dma() = 0;
	// Bus Master Enable in the command register: whether the device may access memory and send
	// MSI-X.
	virtual bool bus_master() const = 0;
	// Address to which the guest has set BAR @bar, for a device that reports registers by bus
	// address; 0 if it is not set.
	virtual std::uint64_t bar_address(unsigned bar) const = 0;
	// MSI-X Enable in MSI-X control. If it is off, interrupts use INTx.
	virtual bool msix_enabled() const = 0;
	// Sends the message of @vector. It is dropped if the vector does not exist or the driver
	// has not set it up.
	virtual void raise_msix(unsigned vector) = 0;
	// Sets the level-triggered INTA line, which keeps its state until the next call.
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
	// host). Data is little-endian, as on the bus. The size is the one that the driver has
	// used, usually 1, 2, 4 or 8, but any size except 0 and any alignment are possible. A read
	// must fill all of @data.
	virtual void region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data) = 0;
	virtual void region_write(unsigned bar, std::uint64_t offset,
				  std::span<const std::byte> data) = 0;

	// Called when the guest asks for the part of BAR @bar that it may map. A guest may access
	// this part as other parts, too, because not every guest maps it.
	virtual PciMapping mapping(unsigned /*bar*/) { return {}; }

	// Accesses to the dword at @offset, at least 4, of the vendor-specific capability. A write
	// of a part of a dword reads it first. The host drops the parts of dwords of a write that
	// crosses a dword's boundary.
	virtual std::uint32_t capability_read(unsigned /*offset*/) { return 0; }
	virtual void capability_write(unsigned /*offset*/, std::uint32_t /*value*/) {}

	// Puts the device into the state after power-on. May be called repeatedly.
	virtual void reset(PciReset kind) = 0;

	// A mapping of guest memory was added or removed. When this returns, no thread may access
	// removed memory any more, because the guest is then informed that the mapping is unused.
	virtual void memory_changed() {}
	// The driver has changed Bus Master Enable.
	virtual void bus_master_changed(bool) {}
};

} // namespace weft
