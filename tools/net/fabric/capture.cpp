// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/capture.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <ib/endian.hpp>
#include <pcap/pcap.h>

namespace weft::fabric
{

namespace
{
/*
 * LINKTYPE_ERF of the registry at tcpdump.org. There is a link type for InfiniBand itself (247),
 * but Wireshark does not read it from pcap files; it does read InfiniBand in ERF records.
 */
constexpr int linktype_erf = 197;
constexpr int snapshot_length = 65535;
/* In the file, before each packet: seconds, fraction, two lengths, of 32 bits each. */
constexpr std::uint64_t packet_header_bytes = 16;

/* The header in front of each packet, Endace's Extensible Record Format. */
struct ErfHeader {
	/* Seconds in the upper half, binary fractions in the lower; least significant byte first.
	 */
	std::uint8_t timestamp[8];
	std::uint8_t type;
	std::uint8_t flags;
	ib::be16 record_length;
	ib::be16 loss_counter;
	ib::be16 wire_length;

	static constexpr std::uint8_t type_infiniband = 21;
	static constexpr std::uint8_t flag_varying_length = 4;
};
static_assert(sizeof(ErfHeader) == 16);

} // namespace

Capture::Capture(const std::string &path, std::uint64_t most_bytes, const Environment &environment)
    : environment_(environment), most_bytes_(most_bytes), bytes_(sizeof(pcap_file_header)),
      handle_(pcap_open_dead_with_tstamp_precision(linktype_erf, snapshot_length,
						   PCAP_TSTAMP_PRECISION_NANO),
	      pcap_close),
      dumper_(nullptr, pcap_dump_close)
{
	if (!handle_)
		throw std::runtime_error("capture " + path + ": libpcap failed");
	dumper_.reset(pcap_dump_open(handle_.get(), path.c_str()));
	if (!dumper_)
		throw std::runtime_error("capture " + path + ": " + pcap_geterr(handle_.get()));
}

Capture::~Capture() = default;

void Capture::record(std::span<const std::byte> wire)
{
	auto now = environment_.date().time_since_epoch();
	auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
	auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds);
	auto fraction = (static_cast<std::uint64_t>(rest.count()) << 32) / 1'000'000'000;
	std::uint64_t stamp = static_cast<std::uint64_t>(seconds.count()) << 32 | fraction;
	ErfHeader erf{};
	for (unsigned i = 0; i < sizeof(erf.timestamp); i++)
		erf.timestamp[i] = static_cast<std::uint8_t>(stamp >> (8 * i));
	erf.type = ErfHeader::type_infiniband;
	erf.flags = ErfHeader::flag_varying_length;
	erf.record_length = static_cast<std::uint16_t>(sizeof(erf) + wire.size());
	erf.wire_length = static_cast<std::uint16_t>(wire.size());
	std::vector<std::byte> record(sizeof(erf) + wire.size());
	std::memcpy(record.data(), &erf, sizeof(erf));
	std::memcpy(record.data() + sizeof(erf), wire.data(), wire.size());

	pcap_pkthdr header{};
	header.ts.tv_sec = seconds.count();
	/* With nanosecond precision tv_usec holds nanoseconds. */
	header.ts.tv_usec = rest.count();
	header.caplen = static_cast<bpf_u_int32>(record.size());
	header.len = header.caplen;
	const std::uint64_t bytes = packet_header_bytes + record.size();
	const MutexLock lock(mutex_);
	if (full() || bytes > most_bytes_ - std::min(bytes_, most_bytes_)) {
		full_.store(true, std::memory_order_relaxed);
		return;
	}
	bytes_ += bytes;
	pcap_dump(reinterpret_cast<u_char *>(dumper_.get()), &header,
		  reinterpret_cast<const u_char *>(record.data()));
	if (at_once_)
		pcap_dump_flush(dumper_.get());
	packets_.fetch_add(1, std::memory_order_relaxed);
}

void Capture::flush()
{
	const MutexLock lock(mutex_);
	pcap_dump_flush(dumper_.get());
}

void Capture::write_at_once()
{
	const MutexLock lock(mutex_);
	at_once_ = true;
	pcap_dump_flush(dumper_.get());
}

} // namespace weft::fabric
