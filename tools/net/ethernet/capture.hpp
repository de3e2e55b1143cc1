// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A recording of frames in a pcapng file, each link an interface of its name, as Wireshark shows
// them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/environment.hpp"
#include "net/ethernet/frame.hpp"

namespace weft::ethernet
{

// One file; several links may record into it. Thread-safe.
class Capture
{
public:
	static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

	// Throws std::runtime_error if the file cannot be written. What would make it longer than
	// @most_bytes is left out, and so is all that follows. @environment outlives it.
	Capture(const std::string &path, Environment &environment,
		std::uint64_t most_bytes = kUnlimited);
	Capture(const Capture &) = delete;
	Capture &operator=(const Capture &) = delete;

	// The number of an interface that frames are recorded for. @name: 1 to 128 bytes.
	unsigned add_interface(const std::string &name);
	// A frame at the present time.
	void record(unsigned interface, const Frame &frame);
	// Writes out what is buffered.
	void flush();
	// From now on each frame is written out as it is recorded, for a reader that follows the
	// file.
	void write_at_once();
	// Whether something was left out, or could not be written.
	bool full() const { return full_.load(std::memory_order_relaxed); }
	std::uint64_t frames() const { return frames_.load(std::memory_order_relaxed); }

private:
	bool write_locked(std::uint32_t type, const std::vector<std::uint8_t> &body)
		WEFT_REQUIRES(mutex_);

	Environment &environment_;
	const std::uint64_t most_bytes_;
	Mutex mutex_;
	bool at_once_ WEFT_GUARDED_BY(mutex_) = false;
	std::ofstream file_ WEFT_GUARDED_BY(mutex_);
	std::uint64_t bytes_ WEFT_GUARDED_BY(mutex_) = 0;
	unsigned interfaces_ WEFT_GUARDED_BY(mutex_) = 0;
	std::atomic<bool> full_{false};
	std::atomic<std::uint64_t> frames_{0};
};

} // namespace weft::ethernet
