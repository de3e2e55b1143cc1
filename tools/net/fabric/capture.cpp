// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/capture.hpp"

#include <chrono>

#include <ib/endian.hpp>

namespace weft::fabric
{

namespace
{

/* The header of each packet in Endace's Extensible Record Format. */
struct ErfHeader {
	/* Seconds in the upper half and binary fractions in the lower half, little-endian. */
	std::uint8_t timestamp[8];
	std::uint8_t type;
	std::uint8_t flags;
	ib::be16 record_length;
	ib::be16 loss_counter;
	ib::be16 wire_length;

	static constexpr std::uint8_t kTypeInfiniband = 21;
	static constexpr std::uint8_t kFlagVaryingLength = 4;
};
static_assert(sizeof(ErfHeader) == 16);

constexpr std::uint32_t kMostRecord = 65535;

} // namespace

unsigned Capture::add_interface(const std::string &link)
{
	/*
	 * The link type for InfiniBand itself (247) is unknown to older versions of Wireshark. All
	 * versions decode InfiniBand in ERF records.
	 */
	return CaptureFile::add_interface(LinkType::erf, link, kMostRecord);
}

void Capture::record(unsigned interface, std::span<const std::byte> wire)
{
	const auto now = date();
	const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
	const auto rest = now - seconds;
	const auto fraction = (static_cast<std::uint64_t>(rest.count()) << 32) / 1'000'000'000;
	const std::uint64_t stamp = static_cast<std::uint64_t>(seconds.count()) << 32 | fraction;
	ErfHeader erf{};
	for (unsigned i = 0; i < sizeof(erf.timestamp); i++)
		erf.timestamp[i] = static_cast<std::uint8_t>(stamp >> (8 * i));
	erf.type = ErfHeader::kTypeInfiniband;
	erf.flags = ErfHeader::kFlagVaryingLength;
	erf.record_length = static_cast<std::uint16_t>(sizeof(erf) + wire.size());
	erf.wire_length = static_cast<std::uint16_t>(wire.size());
	write_packet(interface, now, std::as_bytes(std::span(&erf, 1)), wire);
}

} // namespace weft::fabric
