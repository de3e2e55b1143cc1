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
#include <span>
#include <string>

#include "base/mutex.hpp"
#include "base/environment.hpp"

struct pcap;
struct pcap_dumper;

namespace weft::fabric
{

/* One file; several links may record into it. Thread-safe. */
class Capture
{
public:
	static constexpr std::uint64_t unlimited = ~std::uint64_t{0};

	/* Throws std::runtime_error with the reason if the file cannot be written. A packet that would make it longer
	 * than @most_bytes is left out, and so are all that follow. @environment: whose dates packets have. */
	explicit Capture(const std::string &path, std::uint64_t most_bytes = unlimited,
			 const Environment &environment = Environment::host());
	Capture(const Capture &) = delete;
	Capture &operator=(const Capture &) = delete;
	~Capture();

	/* A whole packet, LRH to VCRC, at the present time. */
	void record(std::span<const std::byte> wire);
	/* Write out what is buffered. */
	void flush();
	/*
	 * From now on each packet is written out as it is recorded, for a reader that follows the
	 * file.
	 */
	void write_at_once();
	/* Whether something was left out. */
	bool full() const { return full_.load(std::memory_order_relaxed); }
	std::uint64_t packets() const { return packets_.load(std::memory_order_relaxed); }

private:
	const Environment &environment_;
	const std::uint64_t most_bytes_;
	Mutex mutex_;
	bool at_once_ WEFT_GUARDED_BY(mutex_) = false;
	std::uint64_t bytes_ WEFT_GUARDED_BY(mutex_); /* of the file */
	std::atomic<bool> full_{false};
	std::unique_ptr<pcap, void (*)(pcap *)> handle_;
	std::unique_ptr<pcap_dumper, void (*)(pcap_dumper *)> dumper_ WEFT_PT_GUARDED_BY(mutex_);
	std::atomic<std::uint64_t> packets_{0};
};

} // namespace weft::fabric
