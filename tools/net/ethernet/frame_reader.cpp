// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/ethernet/frame_reader.hpp"

#include <algorithm>
#include <utility>

namespace weft::ethernet
{

bool FrameReader::feed(std::span<const std::uint8_t> bytes, const std::function<void(Frame)> &taken)
{
	while (!bytes.empty() && !lost_) {
		if (have_ < kLengthBytes) {
			length_[have_++] = bytes.front();
			bytes = bytes.subspan(1);
			if (have_ < kLengthBytes)
				continue;
			if (!take_length())
				break;
			if (left_ == 0)
				end_frame(taken);
			continue;
		}
		const auto part = bytes.first(std::min(left_, bytes.size()));
		if (!skipping_)
			frame_.insert(frame_.end(), part.begin(), part.end());
		bytes = bytes.subspan(part.size());
		left_ -= part.size();
		if (left_ == 0)
			end_frame(taken);
	}
	return !lost_;
}

// Reserves at most the size of the largest accepted frame, because the peer may send any length.
bool FrameReader::take_length()
{
	left_ = 0;
	for (const std::uint8_t byte : length_)
		left_ = left_ << 8 | byte;
	lost_ = left_ > kMostLength;
	skipping_ = left_ < kLeastFrame || left_ > kMostFrame;
	if (!skipping_)
		frame_.reserve(left_);
	else if (!lost_)
		++(left_ < kLeastFrame ? undersize_ : oversize_);
	return !lost_;
}

void FrameReader::end_frame(const std::function<void(Frame)> &taken)
{
	have_ = 0;
	if (!skipping_)
		taken(std::exchange(frame_, {}));
}

std::array<std::uint8_t, FrameReader::kLengthBytes> length_prefix(std::size_t bytes)
{
	return {static_cast<std::uint8_t>(bytes >> 24), static_cast<std::uint8_t>(bytes >> 16),
		static_cast<std::uint8_t>(bytes >> 8), static_cast<std::uint8_t>(bytes)};
}

} // namespace weft::ethernet
