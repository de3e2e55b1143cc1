// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// MPA: message framing in a byte stream (RFC 5044; revision 2: RFC 6581). First a request and a
// reply, then FPDUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "net/iwarp/bytes.hpp"
#include "net/iwarp/errors.hpp"

namespace weft::iwarp
{

constexpr std::size_t kMostPrivateData = 512; // RFC 5044 section 7.1

// Contents of the first four bytes of an enhanced frame's private data (RFC 6581 section 4).
struct Enhanced {
	static constexpr std::uint16_t kUnlimited = 0x3fff; // there is no such agreement

	std::uint16_t ird = 0; // Reads that the sender answers at a time
	std::uint16_t ord = 0; // that it has outstanding
	bool peer_to_peer = false;
	// Types that the first message may have then.
	bool by_send = false, by_write = false, by_read = false;
	bool operator==(const Enhanced &) const = default;
};

// A request or a reply.
struct StartFrame {
	bool reply = false;
	bool markers = false; // the sender wants to receive them
	bool crc = true;
	bool reject = false; // replies alone
	std::uint8_t revision = 1;
	std::optional<Enhanced> enhanced{}; // revision 2 alone
	Bytes private_data{};               // without what `enhanced` says
	bool operator==(const StartFrame &) const = default;
};

// @frame's private data are few enough.
Bytes encode(const StartFrame &frame);

// Takes a request, or a reply, byte by byte.
class StartReader
{
public:
	explicit StartReader(bool reply) : reply_(reply) {}

	// Takes what belongs to the frame from the front of @bytes. Nothing once the frame can be
	// none.
	bool feed(View &bytes);
	// Once the frame is whole.
	const std::optional<StartFrame> &frame() const { return frame_; }

private:
	bool parse();

	const bool reply_;
	Bytes bytes_;
	std::optional<StartFrame> frame_;
};

// Largest ULPDU at which a marker's 16 bits reach back to the beginning of the FPDU.
constexpr std::size_t kMostUlpdu = 64768;
constexpr std::size_t kMarkerInterval = 512;

// Makes a stream of FPDUs.
class FpduWriter
{
public:
	FpduWriter(bool markers, bool crc) : markers_(markers), crc_(crc) {}

	// Returns the FPDU for @ulpdu, which is at most kMostUlpdu bytes long.
	Bytes frame(View ulpdu);

private:
	void put(Bytes &out, View bytes, std::size_t start) const;

	const bool markers_;
	const bool crc_;
	std::uint64_t position_ = 0; // in the stream, from the first byte after the start
};

// Takes one apart.
class FpduReader
{
public:
	FpduReader(bool markers, bool crc) : markers_(markers), crc_(crc) {}

	// Takes @bytes, and calls @taken for each ULPDU that they complete, until it returns false.
	// An error, then and ever after: the stream cannot be followed.
	std::optional<Error> feed(View bytes, const std::function<bool(View ulpdu)> &taken);
	// Returns true if an FPDU has begun and not ended.
	bool within() const { return position_ != ended_; }

private:
	bool take_marker(std::uint8_t byte);
	std::size_t wanted() const;

	const bool markers_;
	const bool crc_;
	std::uint64_t position_ = 0;
	std::uint64_t ended_ = 0; // where the last FPDU has
	std::uint64_t start_ = 0; // position of the FPDU's first byte, its markers apart
	Bytes fpdu_;              // without markers
	Bytes marker_;            // the part that is there
	std::uint32_t sum_ = 0;   // of what the check covers, markers included
	std::optional<Error> failed_;
};

} // namespace weft::iwarp
