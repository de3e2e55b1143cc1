// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Writes packets to a pcapng file with one interface for each link, so that Wireshark shows where
// each packet was captured.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/mutex.hpp"

namespace weft
{

// Several links may record to one file. Thread-safe.
class CaptureFile
{
public:
	static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

	// Values of the registry of link types at tcpdump.org.
	enum class LinkType : std::uint16_t { ethernet = 1, erf = 197 };

	// Throws std::runtime_error if the file cannot be written. A packet that would make the
	// file longer than @most_bytes is not written, and neither is any later packet.
	// @environment supplies the packets' time stamps, and must outlive the file.
	CaptureFile(const std::string &path, const Environment &environment,
		    std::uint64_t most_bytes);
	CaptureFile(const CaptureFile &) = delete;
	CaptureFile &operator=(const CaptureFile &) = delete;

	// Writes all buffered data.
	void flush();
	// Writes each packet to the file at once from now on, for a reader that follows the file.
	void write_at_once();
	// Returns true if a packet was omitted, or could not be written.
	bool full() const { return full_.load(std::memory_order_relaxed); }
	std::uint64_t packets() const { return packets_.load(std::memory_order_relaxed); }

protected:
	~CaptureFile() = default;

	// Adds an interface and returns its number. @name: at most 65,535 bytes. @most_packet: the
	// maximum length of a packet, in bytes.
	unsigned add_interface(LinkType type, const std::string &name, std::uint32_t most_packet);
	// Writes one packet, which consists of @header and @data.
	void write_packet(unsigned interface, std::chrono::nanoseconds date,
			  std::span<const std::byte> header, std::span<const std::byte> data);
	// Returns the current time since 1970.
	std::chrono::nanoseconds date() const;

private:
	bool write_locked(std::uint32_t type, const std::vector<std::byte> &body)
		WEFT_REQUIRES(mutex_);

	const Environment &environment_;
	const std::uint64_t most_bytes_;
	Mutex mutex_;
	bool at_once_ WEFT_GUARDED_BY(mutex_) = false;
	std::ofstream file_ WEFT_GUARDED_BY(mutex_);
	std::uint64_t bytes_ WEFT_GUARDED_BY(mutex_) = 0;
	unsigned interfaces_ WEFT_GUARDED_BY(mutex_) = 0;
	std::atomic<bool> full_{false};
	std::atomic<std::uint64_t> packets_{0};
};

} // namespace weft
