// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fabric/capture.hpp"

#include <chrono>
#include <stdexcept>

#include <pcap/pcap.h>

namespace weft::fabric
{

namespace
{
/* LINKTYPE_INFINIBAND of the registry at tcpdump.org: from the LRH on. */
constexpr int linktype_infiniband = 247;
constexpr int snapshot_length = 65535;
} // namespace

Capture::Capture(const std::string &path)
    : handle_(pcap_open_dead_with_tstamp_precision(linktype_infiniband, snapshot_length,
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
	auto now = std::chrono::system_clock::now().time_since_epoch();
	auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
	auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds);
	pcap_pkthdr header{};
	header.ts.tv_sec = seconds.count();
	/* With nanosecond precision tv_usec holds nanoseconds. */
	header.ts.tv_usec = rest.count();
	header.caplen = static_cast<bpf_u_int32>(wire.size());
	header.len = header.caplen;
	std::lock_guard lock(mutex_);
	pcap_dump(reinterpret_cast<u_char *>(dumper_.get()), &header,
		  reinterpret_cast<const u_char *>(wire.data()));
	packets_.fetch_add(1, std::memory_order_relaxed);
}

void Capture::flush()
{
	std::lock_guard lock(mutex_);
	pcap_dump_flush(dumper_.get());
}

} // namespace weft::fabric
