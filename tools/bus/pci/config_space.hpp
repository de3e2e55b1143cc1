// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the configuration space of a type 0 PCI Express function: the header, the capabilities
// for power management, PCI Express, MSI-X, Vital Product Data and vendor-specific registers, and
// the device serial number. Every bit is read-only, writable, write-one-to-clear, or has a side
// effect, which write() reports.
//
// QEMU determines the sizes of BARs and decodes accesses to them itself; the BAR registers here
// still behave as the PCI specification requires.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bus/pci/device.hpp"

namespace weft::pci
{

class ConfigSpace
{
public:
	static constexpr std::size_t kSize = 4096;

	// No capability uses 0x58 and 0x5c, because ConnectX drivers do not restore these registers
	// with the rest of configuration space (Documentation/connectx.rst, "Configuration space").
	static constexpr unsigned kPowerManagement = 0x40;
	static constexpr unsigned kPciExpress = 0x60;
	static constexpr unsigned kMsix = 0x9c;
	static constexpr unsigned kVitalProductData = 0xa8;
	static constexpr unsigned kVendorSpecific = 0xc0;
	static constexpr unsigned kSerialNumber = 0x100;

	// Effects of a write in addition to the changed bits.
	struct Effects {
		bool function_level_reset = false;
		bool command_changed = false;
		bool msix_changed = false;
	};

	// Throws std::invalid_argument if @description is inconsistent or violates the PCI
	// specification.
	explicit ConfigSpace(const PciDescription &description);

	// The range must lie inside configuration space; see contains().
	void read(std::uint64_t offset, std::span<std::byte> data) const;
	Effects write(std::uint64_t offset, std::span<const std::byte> data);
	static bool contains(std::uint64_t offset, std::uint64_t size)
	{
		return offset <= kSize && size <= kSize - offset;
	}

	// Resets all registers to their values after power-on.
	void reset() { bytes_ = initial_; }

	bool bus_master() const { return get16(kCommand) & kCommandBusMaster; }
	// Returns the address that was written to the BAR, without its type bits.
	std::uint64_t bar_address(unsigned bar) const;
	bool intx_disabled() const { return get16(kCommand) & kCommandIntxDisable; }
	bool msix_enabled() const { return has_msix_ && (get16(kMsix + 2) & kMsixEnable); }
	bool msix_masked() const { return has_msix_ && (get16(kMsix + 2) & kMsixMaskAll); }
	// Sets Interrupt Status of the status register, which is the state of the INTA line.
	void set_interrupt_status(bool asserted);

private:
	static constexpr unsigned kCommand = 0x04;
	static constexpr unsigned kStatus = 0x06;
	static constexpr std::uint16_t kCommandMemory = 1 << 1;
	static constexpr std::uint16_t kCommandBusMaster = 1 << 2;
	static constexpr std::uint16_t kCommandParity = 1 << 6;
	static constexpr std::uint16_t kCommandSerr = 1 << 8;
	static constexpr std::uint16_t kCommandIntxDisable = 1 << 10;
	static constexpr std::uint16_t kMsixEnable = 1 << 15;
	static constexpr std::uint16_t kMsixMaskAll = 1 << 14;

	using Bytes = std::array<std::byte, kSize>;

	std::uint16_t get16(unsigned offset) const;
	static void put(Bytes &bytes, unsigned offset, std::uint64_t value, unsigned size);
	void define(unsigned offset, unsigned size, std::uint64_t value, std::uint64_t writable = 0,
		    std::uint64_t clearable = 0);
	void define_header(const PciDescription &description);
	void define_bars(const PciDescription &description);
	void define_power_management();
	void define_pci_express(const PciDescription &description);
	void define_msix(const PciDescription &description);
	void append_capability(unsigned offset, std::uint8_t id);
	void define_vital_product_data(const PciProduct &product);
	void define_vendor_specific(std::uint8_t size);
	void define_serial_number(std::uint64_t serial);
	void load_vital_product_data();

	Bytes bytes_{};
	Bytes initial_{};
	Bytes writable_{};
	Bytes clearable_{}; // write one to clear
	bool has_msix_ = false;
	unsigned last_capability_ = kPciExpress;
	std::vector<std::byte> product_data_; // empty: no such capability
};

} // namespace weft::pci
