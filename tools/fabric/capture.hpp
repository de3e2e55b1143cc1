// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A recording of packets in a pcap file that Wireshark reads: whole packets, LRH to VCRC, in ERF
 * records of type InfiniBand.
 */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

struct pcap;
struct pcap_dumper;

namespace weft::fabric
{

/* One file; several links may record into it. Thread-safe. */
class Capture
{
public:
	/* Throws std::runtime_error with the reason if the file cannot be written. */
	explicit Capture(const std::string &path);
	Capture(const Capture &) = delete;
	Capture &operator=(const Capture &) = delete;
	~Capture();

	/* A whole packet, LRH to VCRC, at the present time. */
	void record(std::span<const std::byte> wire);
	/* Write out what is buffered. */
	void flush();
	std::uint64_t packets() const { return packets_.load(std::memory_order_relaxed); }

private:
	std::mutex mutex_;
	std::unique_ptr<pcap, void (*)(pcap *)> handle_;
	std::unique_ptr<pcap_dumper, void (*)(pcap_dumper *)> dumper_;
	std::atomic<std::uint64_t> packets_{0};
};

} // namespace weft::fabric
