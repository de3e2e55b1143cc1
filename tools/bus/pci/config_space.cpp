// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/pci/config_space.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace weft::pci
{

namespace
{

constexpr unsigned kBar0 = 0x10;
constexpr unsigned kDeviceControl = ConfigSpace::kPciExpress + 0x08;
constexpr std::uint16_t kInitiateFunctionLevelReset = 1 << 15;

bool overlaps(std::uint64_t offset, std::size_t size, unsigned field, unsigned field_size)
{
	return offset < field + field_size && field < offset + size;
}

// Vital Product Data (PCI 3.0, appendix I): resources with a tag and a length, which may consist of
// fields with a keyword and a length.
class ProductData
{
public:
	std::vector<std::byte> take() { return std::move(data_); }
	void add(unsigned char tag, std::string_view content)
	{
		constexpr unsigned char large = 0x80;
		put(static_cast<unsigned char>(tag | large));
		put(static_cast<unsigned char>(content.size()));
		put(static_cast<unsigned char>(content.size() >> 8));
		for (const char each : content)
			put(static_cast<unsigned char>(each));
	}
	std::size_t size() const { return data_.size(); }
	void put(unsigned char value) { data_.push_back(std::byte{value}); }
	// The byte with which the sum of all bytes up to it is 0.
	char checksum() const
	{
		unsigned sum = 0;
		for (const std::byte each : data_)
			sum += std::to_integer<unsigned>(each);
		return static_cast<char>(-sum);
	}
	static std::string field(const char *keyword, std::string_view value)
	{
		return keyword + std::string(1, static_cast<char>(value.size())) +
		       std::string(value);
	}

private:
	std::vector<std::byte> data_;
};

std::vector<std::byte> encoded(const PciProduct &product)
{
	for (const std::string *const text :
	     {&product.name, &product.part_number, &product.serial_number})
		if (text->size() > 255)
			throw std::invalid_argument("text in the vital product data");
	constexpr unsigned char identifier = 0x02, read_only = 0x10, writable = 0x11, end = 0x78;
	const std::string fields = ProductData::field("PN", product.part_number) +
				   ProductData::field("SN", product.serial_number);
	const auto encode = [&](char checksum) {
		ProductData data;
		data.add(identifier, product.name);
		data.add(read_only, fields + ProductData::field("RV", {&checksum, 1}));
		return data;
	};
	ProductData data = encode(encode(0).checksum());
	// Space that software could write, although this device stores nothing there. Linux reports
	// no bytes behind the end, and mstvpd only reads whole dwords, so the end must be the last
	// byte of a dword.
	constexpr std::size_t least = 3 + 3 + 1 + 1; // two heads, one byte, and the end
	const std::string space(1 + (4 - (data.size() + least) % 4) % 4, '\0');
	data.add(writable, ProductData::field("RW", space));
	data.put(end);
	return data.take();
}

void check_window(const PciDescription &description, unsigned bar, std::uint32_t offset,
		  std::uint64_t size)
{
	if (bar >= kPciBars || offset % 8 || description.bars[bar].size < offset + size)
		throw std::invalid_argument("MSI-X table or pending bits outside of their BAR");
}

} // namespace

ConfigSpace::ConfigSpace(const PciDescription &description)
{
	define_header(description);
	define_bars(description);
	define_power_management();
	define_pci_express(description);
	if (description.msix.vectors)
		define_msix(description);
	if (!description.product.name.empty())
		define_vital_product_data(description.product);
	if (description.vendor_capability)
		define_vendor_specific(description.vendor_capability);
	if (description.serial)
		define_serial_number(description.serial);
	reset();
}

void ConfigSpace::put(Bytes &bytes, unsigned offset, std::uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; ++i)
		bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

void ConfigSpace::define(unsigned offset, unsigned size, std::uint64_t value,
			 std::uint64_t writable, std::uint64_t clearable)
{
	put(initial_, offset, value, size);
	put(writable_, offset, writable, size);
	put(clearable_, offset, clearable, size);
}

void ConfigSpace::define_header(const PciDescription &description)
{
	constexpr std::uint16_t capability_list = 1 << 4;
	constexpr std::uint16_t status_errors = 0xf900;

	define(0x00, 2, description.vendor);
	define(0x02, 2, description.device);
	define(kCommand, 2, 0,
	       kCommandMemory | kCommandBusMaster | kCommandParity | kCommandSerr |
		       kCommandIntxDisable);
	define(kStatus, 2, capability_list, 0, status_errors);
	define(0x08, 1, description.revision);
	define(0x09, 3, description.class_code);
	define(0x0c, 1, 0, 0xff); // cache line size: set by software, without effect in PCI Express
	define(0x2c, 2, description.subsystem_vendor);
	define(0x2e, 2, description.subsystem);
	define(0x34, 1, kPowerManagement);
	define(0x3c, 1, 0xff, 0xff); // interrupt line: set by software, without effect
	define(0x3d, 1, description.intx ? 1 : 0);
}

// PCI 3.0, 6.2.5.1: software detects the size by the low address bits that are read-only.
std::uint64_t ConfigSpace::bar_address(unsigned bar) const
{
	constexpr std::uint32_t type_bits = 0xf;
	constexpr std::uint32_t is_64bit = 4;
	const auto dword = [this](unsigned index) {
		const unsigned offset = kBar0 + 4 * index;
		return std::uint32_t{get16(offset)} | std::uint32_t{get16(offset + 2)} << 16;
	};
	const std::uint32_t low = dword(bar);
	const bool wide = (low & is_64bit) && bar + 1 < kPciBars;
	return (low & ~type_bits) | (wide ? std::uint64_t{dword(bar + 1)} << 32 : 0);
}

void ConfigSpace::define_bars(const PciDescription &description)
{
	for (unsigned i = 0; i < kPciBars; ++i) {
		const PciBar &bar = description.bars[i];
		if (!bar.size)
			continue;
		if (!std::has_single_bit(bar.size) || bar.size < kPciMinimumBar)
			throw std::invalid_argument("size of a BAR");
		const std::uint64_t type = (bar.is_64bit ? 4 : 0) | (bar.prefetchable ? 8 : 0);
		if (!bar.is_64bit) {
			if (bar.size > 1ull << 31)
				throw std::invalid_argument("32-bit BAR too large");
			define(kBar0 + 4 * i, 4, type, ~(bar.size - 1));
			continue;
		}
		if (i + 1 == kPciBars || description.bars[i + 1].size)
			throw std::invalid_argument("64-bit BAR without room for its upper half");
		define(kBar0 + 4 * i, 8, type, ~(bar.size - 1));
	}
}

void ConfigSpace::define_power_management()
{
	define(kPowerManagement, 1, 0x01);
	define(kPowerManagement + 1, 1, kPciExpress);
	define(kPowerManagement + 2, 2, 0x0003); // version 1.2 of the interface, D0 and D3 only
	// No Soft Reset: D3hot keeps the device's state.
	define(kPowerManagement + 4, 2, 1 << 3, 0x0003);
}

// PCI Express 2.0, 7.8: an endpoint with function-level reset.
void ConfigSpace::define_pci_express(const PciDescription &description)
{
	constexpr unsigned at = kPciExpress;
	constexpr std::uint32_t role_based_errors = 1 << 15;
	constexpr std::uint32_t flr_capable = 1u << 28;
	if (description.link_speed < 1 || description.link_speed > 3)
		throw std::invalid_argument("PCI Express link speed");
	if (!std::has_single_bit(description.link_width) || description.link_width > 32)
		throw std::invalid_argument("PCI Express link width");
	const std::uint32_t speed = description.link_speed;
	const std::uint32_t link = speed | std::uint32_t{description.link_width} << 4;

	define(at, 1, 0x10);
	define(at + 0x01, 1, description.msix.vectors ? kMsix : 0);
	define(at + 0x02, 2, 0x0002);                          // version 2, endpoint
	define(at + 0x04, 4, role_based_errors | flr_capable); // 128-byte payloads
	// Bit 15 resets the function and reads as zero. Initial value: relaxed ordering, no snoop,
	// 512-byte reads.
	define(kDeviceControl, 2, 0x2810, 0x7fff);
	define(at + 0x0a, 2, 0, 0, 0x000f);
	define(at + 0x0c, 4, link);
	define(at + 0x10, 2, 0, 0x00f8 | 0x0003);
	define(at + 0x12, 2, link);
	define(at + 0x24, 4, 0x00000010 | 0x0000000f); // completion time-out ranges, disable
	define(at + 0x28, 2, 0, 0x001f);
	define(at + 0x2c, 4, ((1u << speed) - 1) << 1); // supported link speeds vector
	define(at + 0x30, 2, speed, 0x000f);
}

void ConfigSpace::define_msix(const PciDescription &description)
{
	const PciMsix &msix = description.msix;
	if (msix.vectors > 2048)
		throw std::invalid_argument("MSI-X has 2048 vectors at most");
	check_window(description, msix.table_bar, msix.table_offset, 16ull * msix.vectors);
	check_window(description, msix.pba_bar, msix.pba_offset, (msix.vectors + 63ull) / 64 * 8);
	has_msix_ = true;
	last_capability_ = kMsix;
	define(kMsix, 1, 0x11);
	define(kMsix + 2, 2, msix.vectors - 1u, kMsixEnable | kMsixMaskAll);
	define(kMsix + 4, 4, msix.table_offset | msix.table_bar);
	define(kMsix + 8, 4, msix.pba_offset | msix.pba_bar);
}

void ConfigSpace::append_capability(unsigned offset, std::uint8_t id)
{
	put(initial_, last_capability_ + 1, offset, 1);
	define(offset, 1, id);
	last_capability_ = offset;
}

// PCI 3.0, 6.7: software finds the length in the third byte.
void ConfigSpace::define_vendor_specific(std::uint8_t size)
{
	if (size % 4 || size < 8 || kVendorSpecific + size > 0x100)
		throw std::invalid_argument("size of the vendor-specific capability");
	append_capability(kVendorSpecific, 0x09);
	define(kVendorSpecific + 2, 1, size);
}

void ConfigSpace::define_vital_product_data(const PciProduct &product)
{
	product_data_ = encoded(product);
	append_capability(kVitalProductData, 0x03);
	define(kVitalProductData + 2, 2, 0, 0xffff);
	define(kVitalProductData + 4, 4, 0, 0xffffffff);
}

// Software writes an address with the flag 0, and the device sets the flag when it has loaded the
// data register. To store, software writes the flag 1, and the device clears it; the data is
// read-only, and such a request has no other effect. (PCI 3.0, appendix I)
void ConfigSpace::load_vital_product_data()
{
	constexpr unsigned flag = 0x8000;
	const unsigned address = get16(kVitalProductData + 2);
	put(bytes_, kVitalProductData + 2, address ^ flag, 2);
	if (address & flag)
		return;
	for (unsigned i = 0; i < 4; ++i)
		bytes_[kVitalProductData + 4 + i] = (address & ~3u) + i < product_data_.size()
							    ? product_data_[(address & ~3u) + i]
							    : std::byte{0};
}

void ConfigSpace::define_serial_number(std::uint64_t serial)
{
	define(kSerialNumber, 4, 0x00010003); // extended capability 3, version 1, last
	define(kSerialNumber + 4, 8, serial);
}

std::uint16_t ConfigSpace::get16(unsigned offset) const
{
	return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes_[offset]) |
					  std::to_integer<unsigned>(bytes_[offset + 1]) << 8);
}

void ConfigSpace::read(std::uint64_t offset, std::span<std::byte> data) const
{
	if (!data.empty())
		std::memcpy(data.data(), bytes_.data() + offset, data.size());
}

ConfigSpace::Effects ConfigSpace::write(std::uint64_t offset, std::span<const std::byte> data)
{
	Effects effects;
	for (std::size_t i = 0; i < data.size(); ++i) {
		const auto at = offset + i;
		bytes_[at] = (bytes_[at] & ~writable_[at]) | (data[i] & writable_[at]);
		bytes_[at] &= ~(data[i] & clearable_[at]);
		if (at == kDeviceControl + 1)
			effects.function_level_reset = std::to_integer<unsigned>(data[i]) &
						       kInitiateFunctionLevelReset >> 8;
	}
	if (!product_data_.empty() && overlaps(offset, data.size(), kVitalProductData + 2, 2))
		load_vital_product_data();
	effects.command_changed = overlaps(offset, data.size(), kCommand, 2);
	effects.msix_changed = has_msix_ && overlaps(offset, data.size(), kMsix + 2, 2);
	return effects;
}

void ConfigSpace::set_interrupt_status(bool asserted)
{
	constexpr std::byte interrupt_status{1 << 3};
	if (asserted)
		bytes_[kStatus] |= interrupt_status;
	else
		bytes_[kStatus] &= ~interrupt_status;
}

} // namespace weft::pci
