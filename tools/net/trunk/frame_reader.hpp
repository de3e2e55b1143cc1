// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Splits the stream of bytes from the peer into frames. The frames of the handshake are not
// encrypted; later frames are in encrypted records (record.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "net/trunk/frame.hpp"
#include "net/trunk/record.hpp"

namespace weft::trunk
{

// Memory use is bounded by the largest frame that the peer may send.
class FrameReader
{
public:
	FrameReader();
	// All data after the last frame that next() has returned is in records.
	void decrypt(const SessionKey &key);

	// Returns the buffer for the next bytes of the stream, which has space for the rest of the
	// largest frame or record. Must not be called before next() has returned nothing.
	std::span<std::byte> room();
	void added(std::size_t bytes) { end_ += bytes; }

	// Returns the next frame. Returns nothing if more bytes are needed, or if the stream is
	// invalid; wrong() then gives the reason, and nothing more can be read.
	std::optional<Frame> next();
	Reason wrong() const { return wrong_; }
	// Returns true if the stream ends in the middle of a frame or record so far.
	bool partial() const { return begin_ != end_; }

private:
	// Opens the next record. Returns false if more bytes are needed, or if the stream is
	// invalid.
	bool open();
	bool fail(Reason reason);

	std::optional<RecordOpener> opener_;
	Buffer buffer_;
	std::size_t begin_ = 0, end_ = 0;
	// The rest of the open record.
	std::span<const std::byte> frames_;
	Reason wrong_ = Reason::none;
};

} // namespace weft::trunk
