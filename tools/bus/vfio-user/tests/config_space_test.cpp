// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the configuration space of a function: its header, its capabilities, and the effects of
// writes.
#include "bus/pci/config_space.hpp"

#include <stdexcept>

#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

class Config : public GreetedTest
{
protected:
	template<typename T>
	T get(std::uint64_t at)
	{
		return client().read_as<T>(kRegionConfig, at);
	}
	template<typename T>
	void set(std::uint64_t at, T value)
	{
		client().write_as<T>(kRegionConfig, at, value);
	}
};

// The header identifies the device and cannot be written.
TEST_F(Config, ConfigSpaceHeaderIdentifiesTheDeviceAndIsReadOnly)
{
	EXPECT_EQ(get<std::uint32_t>(0x00), 0x10f71af4u);
	EXPECT_EQ(get<std::uint32_t>(0x08), 0x0c060001u);
	EXPECT_EQ(get<std::uint8_t>(0x0e), 0);
	EXPECT_EQ(get<std::uint32_t>(0x2c), 0x11001af4u);
	EXPECT_EQ(get<std::uint8_t>(0x3d), 1);
	for (std::uint64_t at : {0x00, 0x08, 0x2c, 0x34}) {
		const auto before = get<std::uint32_t>(at);
		set<std::uint32_t>(at, ~before);
		EXPECT_EQ(get<std::uint32_t>(at), before);
	}
	set<std::uint8_t>(0x3c, 11);
	EXPECT_EQ(get<std::uint8_t>(0x3c), 11);
}

// BARs report their size when all ones are written. The upper half of a 64-bit BAR contains only
// address bits.
TEST_F(Config, BarsReportTheirSizeAfterAllOnesAreWritten)
{
	set<std::uint32_t>(0x10, ~0u);
	set<std::uint32_t>(0x14, ~0u);
	EXPECT_EQ(get<std::uint64_t>(0x10), ~(FakeDevice::kBar0Size - 1) | 4);
	set<std::uint64_t>(0x18, ~0ull);
	EXPECT_EQ(get<std::uint64_t>(0x18), ~(FakeDevice::kBar2Size - 1) | 12);
	set<std::uint64_t>(0x18, 0xfe00000000);
	EXPECT_EQ(get<std::uint64_t>(0x18), 0xfe00000000u | 12);
}

// The capability list contains power management, PCI Express and MSI-X. It does not use the two
// double words that ConnectX drivers do not restore.
TEST_F(Config, CapabilityListHasPmPcieAndMsix)
{
	EXPECT_TRUE(get<std::uint16_t>(6) & 0x10);
	EXPECT_NE(find_capability(0x01), 0);
	EXPECT_NE(find_capability(0x10), 0);
	const auto msix = find_capability(0x11);
	ASSERT_NE(msix, 0);
	EXPECT_EQ(get<std::uint16_t>(msix + 2u) & 0x7ff, FakeDevice::kVectors - 1);
	EXPECT_EQ(get<std::uint32_t>(msix + 4u), FakeDevice::kTableOffset | 4);
	EXPECT_EQ(get<std::uint32_t>(msix + 8u), FakeDevice::kPbaOffset | 4);
	EXPECT_EQ(find_capability(0x05), 0);
	EXPECT_EQ(get<std::uint64_t>(0x58), 0u);
	EXPECT_EQ(get<std::uint32_t>(0x100), 0x00010003u);
	EXPECT_EQ(get<std::uint64_t>(0x104), 0x0123456789abcdefu);
}

// Reads the vital product data as software does: an address, the flag, the data.
TEST(ConfigSpace, VitalProductDataIsReadThroughItsCapability)
{
	PciDescription description;
	description.product = {"a card", "PART-1", "0123456789abcdef"};
	pci::ConfigSpace config(description);
	constexpr unsigned at = pci::ConfigSpace::kVitalProductData;
	const auto get = [&](unsigned place, unsigned size) {
		std::uint32_t value = 0;
		config.read(place, std::as_writable_bytes(std::span(&value, 1)).first(size));
		return value;
	};
	const auto set = [&](unsigned place, std::uint32_t value, unsigned size) {
		config.write(place, std::as_bytes(std::span(&value, 1)).first(size));
	};
	EXPECT_EQ(get(pci::ConfigSpace::kPciExpress + 1, 1), at);
	EXPECT_EQ(get(at, 2), 0x03u) << "the last capability";
	std::string data;
	for (std::uint32_t address = 0; address < 64; address += 4) {
		set(at + 2, address, 2);
		ASSERT_EQ(get(at + 2, 2), 0x8000 | address);
		const std::uint32_t word = get(at + 4, 4);
		data.append(reinterpret_cast<const char *>(&word), 4);
	}
	using namespace std::string_literals;
	EXPECT_EQ(data.substr(0, 9), "\x82\x06\0a card"s);
	EXPECT_EQ(data.substr(9, 31), "\x90\x20\0PN\x06PART-1SN\x10"
				      "0123456789abcdef"s.substr(0, 31));
	EXPECT_EQ(data.substr(40, 3), "RV\x01"s);
	unsigned sum = 0;
	for (unsigned i = 0; i < 44; ++i)
		sum += static_cast<unsigned char>(data[i]);
	EXPECT_EQ(sum & 0xff, 0u) << "the checksum is the byte after RV";
	EXPECT_EQ(data.substr(44, 8), "\x91\x04\0RW\x01\0\x78"s);
	// The data cannot be changed.
	set(at + 4, 0xffffffff, 4);
	set(at + 2, 0x8000, 2);
	EXPECT_EQ(get(at + 2, 2), 0u) << "done";
	set(at + 2, 0, 2);
	EXPECT_EQ(get(at + 4, 4), 0x61000682u);
	set(at + 2, 0x7ffc, 2);
	EXPECT_EQ(get(at + 4, 4), 0u) << "behind the end";
	// The end is the last byte of a dword, whatever the lengths of the texts.
	for (const std::string name : {"a", "ab", "abc", "abcd"}) {
		description.product = {name, "PART-1", "0123456789abcdef"};
		pci::ConfigSpace other(description);
		std::uint32_t address = 0, word = 0;
		do {
			const std::uint32_t asked = address;
			other.write(at + 2, std::as_bytes(std::span(&asked, 1)).first(2));
			other.read(at + 4, std::as_writable_bytes(std::span(&word, 1)));
			address += 4;
		} while (word >> 24 != 0x78 && address < 256);
		EXPECT_EQ(word >> 24, 0x78u) << name;
	}
}

// The device implements the capability, except for its header. Linux writes whole dwords; iPXE
// writes two bytes of a dword, whose other bytes stay.
TEST_F(Config, AccessesToTheVendorSpecificCapabilityReachTheDevice)
{
	const auto at = find_capability(0x09);
	ASSERT_NE(at, 0);
	EXPECT_EQ(get<std::uint32_t>(at) >> 16, FakeDevice::kVendorCapability);
	set<std::uint32_t>(at + 8u, 0x12345678);
	set<std::uint32_t>(at, ~0u);
	set<std::uint32_t>(at + 6u, ~0u);
	EXPECT_EQ(device_.capability[2], 0x12345678u) << "a write across two dwords";
	set<std::uint16_t>(at + 8u, 0xabcd);
	EXPECT_EQ(device_.capability[2], 0x1234abcdu);
	set<std::uint8_t>(at + 11u, 0x99);
	EXPECT_EQ(device_.capability[2], 0x9934abcdu);
	set<std::uint32_t>(at + 8u, 0x12345678);
	EXPECT_EQ(get<std::uint32_t>(at + 8u), 0x12345678u);
	EXPECT_EQ(get<std::uint16_t>(at + 10u), 0x1234);
	EXPECT_EQ(get<std::uint32_t>(at + 4u), 0u);
	EXPECT_EQ(device_.capability[0], 0u) << "the header is not the device's";
	set<std::uint64_t>(at + 12u, 0x1111111122222222);
	EXPECT_EQ(device_.capability[3], 0x22222222u);
	EXPECT_EQ(device_.capability[4], 0u) << "beyond the capability";
}

// Bus Master Enable is reported to the device only when it changes.
TEST_F(Config, BusMasterChangesAreReportedToTheDevice)
{
	set<std::uint16_t>(kPciCommand, 0x0002);
	EXPECT_TRUE(device_.bus_master.empty());
	set<std::uint16_t>(kPciCommand, 0x0006);
	set<std::uint8_t>(kPciCommand, 0x06);
	set<std::uint16_t>(kPciCommand, 0x0002);
	EXPECT_THAT(device_.bus_master, ::testing::ElementsAre(true, false));
}

// Error bits are cleared by writing one, and are never set by a write.
TEST_F(Config, StatusRegisterIsWriteOneToClear)
{
	set<std::uint16_t>(6, 0xffff);
	EXPECT_EQ(get<std::uint16_t>(6), 0x10);
}

// A device without interrupts, BARs and serial number has none of these capabilities.
TEST(ConfigSpace, MinimalDeviceHasNoInterruptPinOrCapabilities)
{
	const pci::ConfigSpace config(PciDescription{});
	std::byte pin, next;
	config.read(0x3d, {&pin, 1});
	config.read(pci::ConfigSpace::kPciExpress + 1, {&next, 1});
	EXPECT_EQ(pin, std::byte{0});
	EXPECT_EQ(next, std::byte{0});
	EXPECT_FALSE(config.msix_enabled());
}

// Contradictory descriptions are programming errors, and are reported at once.
TEST(ConfigSpace, RejectsInvalidDeviceDescriptions)
{
	const auto refused = [](auto &&spoil) {
		PciDescription description;
		description.bars[0] = {8192, true, false};
		description.msix = {16, 0, 0, 0, 4096};
		pci::ConfigSpace fine(description);
		spoil(description);
		try {
			pci::ConfigSpace config(description);
			return false;
		} catch (const std::invalid_argument &) {
			return true;
		}
	};
	EXPECT_TRUE(refused([](auto &d) { d.bars[0].size = 8191; }));
	EXPECT_TRUE(refused([](auto &d) { d.vendor_capability = 6; }));
	EXPECT_TRUE(refused([](auto &d) { d.vendor_capability = 68; }));
	EXPECT_TRUE(refused([](auto &d) { d.product.name = std::string(256, 'x'); }));
	EXPECT_TRUE(refused([](auto &d) { d.bars[2] = {16, false, false}; }));
	EXPECT_TRUE(refused([](auto &d) { d.bars[2] = {1ull << 32, false, false}; }));
	EXPECT_TRUE(refused([](auto &d) { d.bars[1] = {4096, false, false}; }));
	EXPECT_TRUE(refused([](auto &d) { d.bars[5] = {4096, true, false}; }));
	EXPECT_TRUE(refused([](auto &d) { d.msix.vectors = 2049; }));
	EXPECT_TRUE(refused([](auto &d) { d.msix.table_offset = 8192 - 16; }));
	EXPECT_TRUE(refused([](auto &d) { d.msix.table_offset = 4; }));
	EXPECT_TRUE(refused([](auto &d) { d.msix.pba_bar = 3; }));
	EXPECT_TRUE(refused([](auto &d) { d.link_width = 3; }));
	EXPECT_TRUE(refused([](auto &d) { d.link_speed = 9; }));
}

} // namespace
} // namespace weft::vfio_user
