// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements MPA, which frames messages in a byte stream (RFC 5044; revision 2: RFC 6581). A stream
// begins with a request and a reply, which FPDUs follow.
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
	static constexpr std::uint16_t kUnlimited = 0x3fff; // no limit was negotiated

	std::uint16_t ird = 0; // number of Reads that the sender can answer at a time
	std::uint16_t ord = 0; // maximum number of Reads that the sender has outstanding
	bool peer_to_peer = false;
	// Message types that may be the first one in peer-to-peer mode.
	bool by_send = false, by_write = false, by_read = false;
	bool operator==(const Enhanced &) const = default;
};

// A request or a reply.
struct StartFrame {
	bool reply = false;
	bool markers = false; // the sender wants to receive markers
	bool crc = true;
	bool reject = false; // in replies only
	std::uint8_t revision = 1;
	std::optional<Enhanced> enhanced{}; // in revision 2 only
	Bytes private_data{};               // without the bytes of `enhanced`
	bool operator==(const StartFrame &) const = default;
};

// Encodes @frame, whose private data must not exceed the limit.
Bytes encode(const StartFrame &frame);

// Parses a request or a reply byte by byte.
class StartReader
{
public:
	explicit StartReader(bool reply) : reply_(reply) {}

	// Removes the bytes of the frame from the front of @bytes. Returns false once the frame is
	// invalid.
	bool feed(View &bytes);
	// Set when the frame is complete.
	const std::optional<StartFrame> &frame() const { return frame_; }

private:
	bool parse();

	const bool reply_;
	Bytes bytes_;
	std::optional<StartFrame> frame_;
};

// Maximum length of a ULPDU. The 16 bits of a marker can express any distance to the start of its
// FPDU.
constexpr std::size_t kMostUlpdu = 64768;
constexpr std::size_t kMarkerInterval = 512;

// Creates a stream of FPDUs.
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
	std::uint64_t position_ = 0; // position in the stream, counted after the start frame
};

// Parses a stream of FPDUs.
class FpduReader
{
public:
	FpduReader(bool markers, bool crc) : markers_(markers), crc_(crc) {}

	// Calls @taken for each ULPDU that @bytes complete, until it returns false. Returns an
	// error once the stream is invalid; all later calls return it, too.
	std::optional<Error> feed(View bytes, const std::function<bool(View ulpdu)> &taken);
	// Returns true if an FPDU has begun and is not complete.
	bool within() const { return position_ != ended_; }

private:
	bool take_marker(std::uint8_t byte);
	std::size_t wanted() const;

	const bool markers_;
	const bool crc_;
	std::uint64_t position_ = 0;
	// position of the FPDU's first byte, not counting a preceding marker
	std::uint64_t ended_ = 0;
	// position of the FPDU's first byte, not counting a marker before it
	std::uint64_t start_ = 0;
	Bytes fpdu_;            // without markers
	Bytes marker_;          // the part that was received
	std::uint32_t sum_ = 0; // CRC of the bytes so far, including markers
	std::optional<Error> failed_;
};

} // namespace weft::iwarp
