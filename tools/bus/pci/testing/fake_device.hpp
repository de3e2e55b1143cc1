// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a device model for tests of the servers: BAR 0 and BAR 2 are plain memory, and the model
// records all calls.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "bus/pci/device.hpp"

namespace weft::testing
{

class FakeDevice final : public PciDevice
{
public:
	static constexpr std::uint64_t kBar0Size = 1 << 20;
	static constexpr std::uint64_t kBar2Size = 8 << 20;
	static constexpr std::uint32_t kTableOffset = 0x1000;
	static constexpr std::uint32_t kPbaOffset = 0x1800;
	static constexpr unsigned kVectors = 32;
	static constexpr std::uint8_t kVendorCapability = 16;

	FakeDevice()
	{
		description_.vendor = 0x1af4;
		description_.device = 0x10f7;
		description_.subsystem_vendor = 0x1af4;
		description_.subsystem = 0x1100;
		description_.class_code = 0x0c0600;
		description_.revision = 1;
		description_.intx = true;
		description_.serial = 0x0123456789abcdef;
		description_.vendor_capability = kVendorCapability;
		description_.bars[0] = {kBar0Size, true, false};
		description_.bars[2] = {kBar2Size, true, true};
		description_.bars[4] = {8192, true, false};
		description_.msix = {kVectors, 4, kTableOffset, 4, kPbaOffset};
	}

	PciDescription &description() { return description_; }
	const PciDescription &description() const override { return description_; }
	void attach(PciHost &host) override { host_ = &host; }
	void detach() override { host_ = nullptr; }
	std::uint32_t capability_read(unsigned offset) override { return capability[offset / 4]; }
	void capability_write(unsigned offset, std::uint32_t value) override
	{
		capability[offset / 4] = value;
	}
	void region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data) override
	{
		std::memcpy(data.data(), memory(bar).data() + offset, data.size());
	}
	void region_write(unsigned bar, std::uint64_t offset,
			  std::span<const std::byte> data) override
	{
		if (fail_next_write) {
			fail_next_write = false;
			throw std::bad_alloc();
		}
		if (on_write)
			std::exchange(on_write, {})();
		writes.push_back({bar, offset, {data.begin(), data.end()}});
		std::memcpy(memory(bar).data() + offset, data.data(), data.size());
	}
	PciMapping mapping(unsigned bar) override { return bar == 2 ? mapped : PciMapping{}; }
	void reset(PciReset kind) override
	{
		if (failing_resets && failing_resets--)
			throw std::bad_alloc();
		resets.push_back(kind);
	}
	void memory_changed() override
	{
		if (std::exchange(fail_next_memory_change, false))
			throw std::bad_alloc();
		++memory_changes;
	}
	void bus_master_changed(bool on) override { bus_master.push_back(on); }

	PciHost &host() { return *host_; }
	bool attached() const { return host_ != nullptr; }
	std::vector<std::byte> &memory(unsigned bar)
	{
		auto &bytes = memory_.at(bar);
		bytes.resize(description_.bars.at(bar).size);
		return bytes;
	}

	struct Write {
		unsigned bar;
		std::uint64_t offset;
		std::vector<std::byte> data;
		bool operator==(const Write &) const = default;
	};
	PciMapping mapped; // of BAR 2
	std::vector<Write> writes;
	std::vector<PciReset> resets;
	std::vector<bool> bus_master;
	std::array<std::uint32_t, 8> capability{}; // dwords of the vendor-specific capability
	unsigned memory_changes = 0;
	// Makes the next write fail for lack of host memory.
	bool fail_next_write = false;
	// Makes the next change of guest memory fail in the same way.
	bool fail_next_memory_change = false;
	// Makes this number of resets fail in the same way.
	unsigned failing_resets = 0;
	// A function that the next write calls.
	std::function<void()> on_write;

private:
	PciDescription description_;
	PciHost *host_ = nullptr;
	std::array<std::vector<std::byte>, kPciBars> memory_;
};

} // namespace weft::testing
