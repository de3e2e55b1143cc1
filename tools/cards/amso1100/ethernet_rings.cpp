// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/ethernet_rings.hpp"

#include <algorithm>
#include <bit>
#include <memory>

#include "cards/amso1100/bytes.hpp"
#include "cards/amso1100/interrupts.hpp"
#include "base/guest_memory.hpp"
#include "bus/pci/device.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;

namespace
{

// Number of frames per slice of the loop. A greater number would delay register accesses of the
// guest.
constexpr unsigned kPacketsPerSlice = 32;
// Minimum frame size without the FCS (IEEE 802.3 clause 3.2.8). The driver does not pad frames.
constexpr std::size_t kLeastOnWire = 60;

constexpr std::uint64_t kTransmit = wire::transmit_ring - wire::receive_ring;
constexpr std::uint64_t kIndex = wire::receive_index - wire::receive_ring;

// Converts to little-endian, the byte order of this value. All other integers that the card writes
// are big-endian.
std::uint16_t little(std::uint16_t value)
{
	return std::endian::native == std::endian::little ? value : __builtin_bswap16(value);
}

template<typename Flags>
void set_flags(std::span<std::byte> entry, Flags flags)
{
	store_be<std::uint16_t>(entry, 0, static_cast<std::uint16_t>(flags));
}
template<typename Flags>
bool has_flags(std::span<const std::byte> entry, Flags flags)
{
	return load_be<std::uint16_t>(entry) == static_cast<std::uint16_t>(flags);
}

} // namespace

std::span<std::byte> EthernetRings::transmit_entry(unsigned index)
{
	return std::span(memory_).subspan(kTransmit + index * wire::transmit::size,
					  wire::transmit::size);
}

std::span<std::byte> EthernetRings::receive_entry(unsigned index)
{
	return std::span(memory_).subspan(index * wire::receive::size, wire::receive::size);
}

void EthernetRings::reset()
{
	memory_.fill({});
	for (unsigned i = 0; i < wire::transmit_entries; ++i)
		set_flags(transmit_entry(i), wire::TransmitFlags::unused);
	transmit_index_ = receive_index_ = 0;
}

void EthernetRings::read(std::uint64_t offset, std::span<std::byte> data) const
{
	std::ranges::copy(std::span(memory_).subspan(offset, data.size()), data.begin());
}

bool EthernetRings::write(std::uint64_t offset, std::span<const std::byte> data)
{
	std::ranges::copy(data, memory_.begin() + static_cast<std::ptrdiff_t>(offset));
	const std::uint64_t end = offset + data.size();
	if (end > kIndex && load_be<std::uint32_t>(memory_, kIndex) & wire::receive_quiesce)
		quiesce();
	if (end <= kTransmit || offset >= kIndex)
		return false;
	const std::uint64_t first = std::max(offset, kTransmit) - kTransmit;
	const std::uint64_t last = std::min(end, kIndex) - 1 - kTransmit;
	for (auto i = first / wire::transmit::size; i <= last / wire::transmit::size; ++i)
		if (has_flags(transmit_entry(static_cast<unsigned>(i)), wire::TransmitFlags::ready))
			return true;
	return false;
}

// Drops all receive buffers, because the driver is about to free them or to post them again.
void EthernetRings::quiesce()
{
	for (unsigned i = 0; i < wire::receive_entries; ++i)
		set_flags(receive_entry(i), wire::ReceiveFlags::unused);
	store_be<std::uint32_t>(memory_, kIndex, receive_index_);
	interrupts_.clear_network();
}

// Searches for the next ready descriptor from the last position on. Skips entries that are not
// ready, because a driver that was loaded again starts at the beginning of the ring.
std::optional<unsigned> EthernetRings::next_ready()
{
	for (unsigned i = 0; i < wire::transmit_entries; ++i) {
		const unsigned index = (transmit_index_ + i) % wire::transmit_entries;
		if (has_flags(transmit_entry(index), wire::TransmitFlags::ready))
			return index;
	}
	return std::nullopt;
}

bool EthernetRings::transmit(PciHost &host)
{
	unsigned sent = 0;
	for (; sent < kPacketsPerSlice && host.bus_master(); ++sent) {
		const auto index = next_ready();
		if (!index || !has_room_())
			break;
		const auto entry = transmit_entry(*index);
		auto &count = carry_out(host, entry) ? counts.transmitted : counts.bad_transmits;
		count.fetch_add(1, std::memory_order_relaxed);
		set_flags(entry, wire::TransmitFlags::done);
		transmit_index_ = (*index + 1) % wire::transmit_entries;
	}
	if (sent)
		interrupts_.raise_network(wire::nisr_transmit);
	return sent == kPacketsPerSlice;
}

bool EthernetRings::carry_out(PciHost &host, std::span<std::byte> entry)
{
	const std::size_t length = load_be<std::uint16_t>(entry, wire::transmit::length);
	if (length < ethernet::kLeastFrame || length > ethernet::kMostFrame)
		return false;
	auto frame = std::make_shared<ethernet::Frame>(std::max(length, kLeastOnWire));
	const auto bytes = std::as_writable_bytes(std::span(*frame)).first(length);
	if (!host.dma().read(load_be<std::uint64_t>(entry, wire::transmit::address), bytes))
		return false;
	send_(std::move(frame));
	return true;
}

void EthernetRings::receive(PciHost &host, const ethernet::Frame &frame)
{
	const auto entry = receive_entry(receive_index_);
	if (!host.bus_master() || !has_flags(entry, wire::ReceiveFlags::ready)) {
		counts.missed.fetch_add(1, std::memory_order_relaxed);
		return;
	}
	const std::uint64_t address = load_be<std::uint64_t>(entry, wire::receive::address);
	const std::size_t room = load_be<std::uint16_t>(entry, wire::receive::length);
	const bool fits = frame.size() <= room;
	const auto bytes = std::as_bytes(std::span(frame)).first(fits ? frame.size() : 0);
	const auto status = fits ? wire::ReceiveStatus::good : wire::ReceiveStatus::overflow;
	wire::ReceiveHeader header{};
	header.status = little(static_cast<std::uint16_t>(status));
	header.length = little(static_cast<std::uint16_t>(fits ? frame.size() : room));
	const bool written =
		host.dma().write(address + sizeof(header), bytes) &&
		host.dma().write_as(address, header) &&
		host.dma().store(address,
				 little(static_cast<std::uint16_t>(wire::ReceiveFlags::done)));
	auto &count = !written ? counts.missed : fits ? counts.received : counts.overlong;
	count.fetch_add(1, std::memory_order_relaxed);
	store_be<std::uint16_t>(entry, wire::receive::status, static_cast<std::uint16_t>(status));
	set_flags(entry, wire::ReceiveFlags::done);
	receive_index_ = (receive_index_ + 1) % wire::receive_entries;
	interrupts_.raise_network(wire::nisr_receive);
}

} // namespace weft::amso1100
