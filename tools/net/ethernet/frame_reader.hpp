// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads frames from a byte stream in the format of QEMU's `-netdev stream`: a big-endian length of
// four bytes, followed by the frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "net/ethernet/frame.hpp"

namespace weft::ethernet
{

class FrameReader
{
public:
	// Maximum length that QEMU accepts. A stream with a greater length does not consist of
	// frames.
	static constexpr std::size_t kMostLength = 4096 + 65536;
	static constexpr std::size_t kLengthBytes = 4;

	// Takes the next bytes of the stream, and calls @taken for each complete frame. Frames
	// below kLeastFrame or above kMostFrame are counted and dropped. Returns false once the
	// stream is invalid; all later calls return false, too.
	bool feed(std::span<const std::uint8_t> bytes, const std::function<void(Frame)> &taken);

	std::uint64_t undersize() const { return undersize_; }
	std::uint64_t oversize() const { return oversize_; }

private:
	bool take_length();
	void end_frame(const std::function<void(Frame)> &taken);

	std::array<std::uint8_t, kLengthBytes> length_{};
	std::size_t have_ = 0; // number of received bytes of the length prefix
	std::size_t left_ = 0; // missing bytes of the frame, once its length is known
	bool skipping_ = false;
	bool lost_ = false;
	Frame frame_;
	std::uint64_t undersize_ = 0;
	std::uint64_t oversize_ = 0;
};

// Returns the prefix of a frame of @bytes bytes.
std::array<std::uint8_t, FrameReader::kLengthBytes> length_prefix(std::size_t bytes);

} // namespace weft::ethernet
