// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/iwarp/mpa.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "net/iwarp/crc32c.hpp"

namespace weft::iwarp
{

namespace
{

constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";
constexpr std::size_t kKeyBytes = 16;
constexpr std::size_t kStartBytes = 20;
constexpr std::size_t kEnhancedBytes = 4;
constexpr std::uint8_t kMarkers = 0x80, kCrc = 0x40, kReject = 0x20, kEnhancedFlag = 0x10;
constexpr std::uint8_t kNewestRevision = 2;

constexpr std::size_t kLengthBytes = 2;
constexpr std::size_t kCrcBytes = 4;
constexpr std::size_t kMarkerBytes = 4;

// Returns the padded length without the CRC.
std::size_t padded(std::size_t ulpdu)
{
	return (kLengthBytes + ulpdu + 3) / 4 * 4;
}

Enhanced parse_enhanced(View data)
{
	const auto first = static_cast<std::uint16_t>(number_at(data, 0, 2));
	const auto second = static_cast<std::uint16_t>(number_at(data, 2, 2));
	return {.ird = static_cast<std::uint16_t>(first & 0x3fff),
		.ord = static_cast<std::uint16_t>(second & 0x3fff),
		.peer_to_peer = (first & 0x8000) != 0,
		.by_send = (first & 0x4000) != 0,
		.by_write = (second & 0x8000) != 0,
		.by_read = (second & 0x4000) != 0};
}

} // namespace

Bytes encode(const StartFrame &frame)
{
	const std::string_view key = frame.reply ? kReplyKey : kRequestKey;
	Bytes bytes(key.begin(), key.end());
	bytes.push_back(static_cast<std::uint8_t>(
		(frame.markers ? kMarkers : 0) | (frame.crc ? kCrc : 0) |
		(frame.reject ? kReject : 0) | (frame.enhanced ? kEnhancedFlag : 0)));
	bytes.push_back(frame.revision);
	put_number(bytes, frame.private_data.size() + (frame.enhanced ? kEnhancedBytes : 0), 2);
	if (const auto &more = frame.enhanced) {
		put_number(bytes,
			   (more->peer_to_peer ? 0x8000u : 0) | (more->by_send ? 0x4000u : 0) |
				   more->ird,
			   2);
		put_number(bytes,
			   (more->by_write ? 0x8000u : 0) | (more->by_read ? 0x4000u : 0) |
				   more->ord,
			   2);
	}
	bytes.insert(bytes.end(), frame.private_data.begin(), frame.private_data.end());
	return bytes;
}

bool StartReader::feed(View &bytes)
{
	while (!bytes.empty() && !frame_) {
		const std::size_t wanted =
			bytes_.size() < kStartBytes
				? kStartBytes
				: kStartBytes + number_at(bytes_, kKeyBytes + 2, 2);
		const auto part = bytes.first(std::min(bytes.size(), wanted - bytes_.size()));
		bytes_.insert(bytes_.end(), part.begin(), part.end());
		bytes = bytes.subspan(part.size());
		if (!parse())
			return false;
	}
	return true;
}

// An invalid key is detected at its first wrong byte, because a peer with another protocol may not
// send more.
bool StartReader::parse()
{
	const std::string_view key = reply_ ? kReplyKey : kRequestKey;
	const std::size_t have = std::min(bytes_.size(), kKeyBytes);
	if (!std::equal(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(have),
			bytes_.begin()))
		return false;
	if (bytes_.size() < kStartBytes)
		return true;
	const std::uint8_t flags = bytes_[kKeyBytes], revision = bytes_[kKeyBytes + 1];
	const std::size_t length = number_at(bytes_, kKeyBytes + 2, 2);
	const bool enhanced = revision == kNewestRevision && flags & kEnhancedFlag;
	if (revision > kNewestRevision || length > kMostPrivateData ||
	    (enhanced && length < kEnhancedBytes) || (!reply_ && flags & kReject))
		return false;
	if (bytes_.size() < kStartBytes + length)
		return true;
	const View data = View(bytes_).subspan(kStartBytes);
	StartFrame frame{.reply = reply_,
			 .markers = (flags & kMarkers) != 0,
			 .crc = (flags & kCrc) != 0,
			 .reject = (flags & kReject) != 0,
			 .revision = revision};
	if (enhanced)
		frame.enhanced = parse_enhanced(data);
	const View rest = data.subspan(enhanced ? kEnhancedBytes : 0);
	frame.private_data.assign(rest.begin(), rest.end());
	frame_ = std::move(frame);
	return true;
}

// A marker contains the distance to the start of its FPDU. A marker directly before an FPDU belongs
// to it and contains 0 (RFC 5044 section 4.3). FPDUs and markers are multiples of four bytes, so no
// word is split.
void FpduWriter::put(Bytes &out, View bytes, std::size_t start) const
{
	if (!markers_) {
		out.insert(out.end(), bytes.begin(), bytes.end());
		return;
	}
	for (const std::uint8_t byte : bytes) {
		if ((position_ + out.size()) % kMarkerInterval == 0) {
			const std::size_t distance = out.size() > start ? out.size() - start : 0;
			put_number(out, 0, 2);
			put_number(out, distance, 2);
		}
		out.push_back(byte);
	}
}

Bytes FpduWriter::frame(View ulpdu)
{
	Bytes out;
	const std::size_t most = padded(ulpdu.size()) + kCrcBytes;
	out.reserve(most + (most / (kMarkerInterval - kMarkerBytes) + 1) * kMarkerBytes);
	const std::size_t start = markers_ && position_ % kMarkerInterval == 0 ? kMarkerBytes : 0;
	const std::array<std::uint8_t, kLengthBytes> length{
		static_cast<std::uint8_t>(ulpdu.size() >> 8),
		static_cast<std::uint8_t>(ulpdu.size())};
	put(out, length, start);
	put(out, ulpdu, start);
	constexpr std::array<std::uint8_t, 3> zeros{};
	put(out, View(zeros).first(padded(ulpdu.size()) - kLengthBytes - ulpdu.size()), start);
	// A marker before the CRC belongs to the FPDU and is covered by the CRC.
	if (markers_ && (position_ + out.size()) % kMarkerInterval == 0) {
		const std::size_t distance = out.size() - start;
		put_number(out, 0, 2);
		put_number(out, distance, 2);
	}
	const std::uint32_t sum = crc_ ? crc32c(out) : 0;
	for (unsigned shift = 0; shift < 32; shift += 8)
		out.push_back(static_cast<std::uint8_t>(sum >> shift));
	position_ += out.size();
	return out;
}

std::size_t FpduReader::wanted() const
{
	return fpdu_.size() < kLengthBytes ? kLengthBytes
					   : padded(number_at(fpdu_, 0, 2)) + kCrcBytes;
}

// Returns false if the marker does not point to the start of the FPDU.
bool FpduReader::take_marker(std::uint8_t byte)
{
	marker_.push_back(byte);
	++position_;
	if (marker_.size() < kMarkerBytes)
		return true;
	const std::uint64_t at = position_ - kMarkerBytes;
	const std::uint64_t distance = fpdu_.empty() ? 0 : at - start_;
	sum_ = crc32c(marker_, sum_);
	// The lowest two bits are ignored (RFC 5044 section 4.3).
	const bool right = (number_at(marker_, 2, 2) & ~3ull) == distance;
	marker_.clear();
	return right;
}

std::optional<Error> FpduReader::feed(View bytes, const std::function<bool(View ulpdu)> &taken)
{
	while (!bytes.empty() && !failed_) {
		if (markers_ && (!marker_.empty() || position_ % kMarkerInterval == 0)) {
			// position_ is not a multiple of the interval any more once the marker's
			// last byte was taken.
			if (!take_marker(bytes.front()))
				failed_ = errors::kMarker;
			bytes = bytes.subspan(1);
			continue;
		}
		if (fpdu_.empty())
			start_ = position_;
		std::size_t size = std::min(bytes.size(), wanted() - fpdu_.size());
		if (markers_)
			size = std::min<std::size_t>(size,
						     kMarkerInterval - position_ % kMarkerInterval);
		const auto part = bytes.first(size);
		fpdu_.insert(fpdu_.end(), part.begin(), part.end());
		position_ += size;
		bytes = bytes.subspan(size);
		// The CRC covers everything except itself.
		const std::size_t covered =
			fpdu_.size() < kLengthBytes ? kLengthBytes : wanted() - kCrcBytes;
		const std::size_t before = fpdu_.size() - size;
		if (before < covered)
			sum_ = crc32c(part.first(std::min(size, covered - before)), sum_);
		if (fpdu_.size() < wanted())
			continue;
		std::uint32_t received = 0;
		for (unsigned i = 0; i < kCrcBytes; ++i)
			received |= std::uint32_t{fpdu_[covered + i]} << 8 * i;
		if (crc_ && received != sum_) {
			failed_ = errors::kCrc;
			break;
		}
		const std::size_t ulpdu = number_at(fpdu_, 0, 2);
		const bool goes_on = taken(View(fpdu_).subspan(kLengthBytes, ulpdu));
		fpdu_.clear();
		sum_ = 0;
		ended_ = position_;
		if (!goes_on)
			break;
	}
	return failed_;
}

} // namespace weft::iwarp
