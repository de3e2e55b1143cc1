// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/frame_reader.hpp"

#include <algorithm>
#include <cstring>

namespace weft::trunk
{

// Buffers have space for several frames or records, so that reads are large, and an incomplete one
// is rarely moved.
FrameReader::FrameReader() : buffer_(4 * (sizeof(FrameHeader) + kMostHandshakeBody)) {}

void FrameReader::decrypt(const SessionKey &key)
{
	opener_.emplace(key);
	buffer_.resize(4 * kMostRecordOnWire);
}

std::span<std::byte> FrameReader::room()
{
	if (begin_ == end_) {
		begin_ = end_ = 0;
	} else if (buffer_.size() - begin_ < buffer_.size() / 4) {
		std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
		end_ -= begin_;
		begin_ = 0;
	}
	return std::span(buffer_).subspan(end_);
}

bool FrameReader::fail(Reason reason)
{
	wrong_ = reason;
	return false;
}

bool FrameReader::open()
{
	RecordHeader header;
	const auto bytes = std::span(buffer_).subspan(begin_, end_ - begin_);
	if (bytes.size() < sizeof(header))
		return false;
	std::memcpy(&header, bytes.data(), sizeof(header));
	if (header.bytes <= kTagBytes || header.bytes > kMostRecord + kTagBytes)
		return fail(Reason::record);
	if (bytes.size() - sizeof(header) < header.bytes)
		return false;
	const auto frames = opener_->open(header, bytes.subspan(sizeof(header), header.bytes));
	if (!frames)
		return fail(Reason::record);
	begin_ += sizeof(header) + header.bytes;
	frames_ = *frames;
	return true;
}

std::optional<Frame> FrameReader::next()
{
	if (wrong_ != Reason::none || (opener_ && frames_.empty() && !open()))
		return std::nullopt;
	const std::span<const std::byte> bytes =
		opener_ ? frames_ : std::span(buffer_).subspan(begin_, end_ - begin_);
	FrameHeader header;
	const bool has_header = bytes.size() >= sizeof(header);
	if (has_header) {
		std::memcpy(&header, bytes.data(), sizeof(header));
		if (header.type < FrameType::hello || header.type > kLastFrameType ||
		    std::ranges::any_of(header.zero, [](auto byte) { return byte != 0; }) ||
		    header.body_bytes > (opener_ ? kMostBody : kMostHandshakeBody)) {
			fail(Reason::protocol);
			return std::nullopt;
		}
	}
	if (!has_header || bytes.size() - sizeof(header) < header.body_bytes) {
		// A record must consist of complete frames.
		if (opener_)
			fail(Reason::protocol);
		return std::nullopt;
	}
	const std::size_t taken = sizeof(header) + header.body_bytes;
	if (opener_)
		frames_ = frames_.subspan(taken);
	else
		begin_ += taken;
	return Frame{header.type, bytes.subspan(sizeof(header), header.body_bytes)};
}

} // namespace weft::trunk
