// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * IP over InfiniBand offloads: checksums on transmit, checksum status on receive, and large sends
 * cut into segments (Documentation/connectx.rst, "IPoIB checksum and LSO").
 * A payload here begins with the four bytes of IPoIB encapsulation, RFC 4391 section 6.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cards/hca/completion_sink.hpp"

namespace weft::hca::transport
{

/* A running one's complement sum of 16-bit big-endian words, RFC 1071. */
class OnesComplement
{
public:
	/* Pieces but the last must have an even length. */
	void add(std::span<const std::byte> bytes);
	void add_word(std::uint16_t word) { sum_ += word; }
	/* The sum, folded; its complement is what a checksum field holds. */
	std::uint16_t folded() const;

private:
	std::uint64_t sum_ = 0;
};

/**
 * fill_checksums() - complete the checksums of an outgoing packet
 * @payload: encapsulation header, IP header and the rest; whole
 * @ip: fill in the header checksum of IPv4
 * @l4: fill in the checksum of TCP or UDP, whatever its field held before
 *
 * A payload that is not IP, is cut short, is a fragment, or has another protocol stays as it is.
 */
void fill_checksums(std::span<std::byte> payload, bool ip, bool l4);

/* Looks at a received payload. Only a checksum that was computed and holds is reported. */
ChecksumStatus check_checksums(std::span<const std::byte> payload);

/**
 * class LargeSend - cuts one large send into segments, one at a time
 *
 * The header is repeated before each piece of at most mss bytes; IP lengths and identification and
 * the TCP sequence number and flags are brought up to date, and checksums if they are asked for.
 * The data stay where they are until their segment is made.
 */
class LargeSend
{
public:
	/*
	 * @header: encapsulation, IP and TCP; outlives this
	 * @length: of the data behind it; a send of none is one segment of the header alone
	 */
	LargeSend(std::span<const std::byte> header, std::uint64_t length, unsigned mss,
		  bool ip_checksum, bool l4_checksum);

	/* The last segment was made. */
	bool done() const { return done_; }
	/* The next segment: its size, and the part of the data that is in it. */
	std::size_t size() const { return header_.size() + data_bytes(); }
	std::size_t header_bytes() const { return header_.size(); }
	std::uint64_t offset() const { return sent_; }
	std::size_t data_bytes() const;
	/* Makes it: @segment is size() bytes, and has its data behind room for the header. */
	void finish(std::span<std::byte> segment);

private:
	std::span<const std::byte> header_;
	std::uint64_t length_;
	std::uint64_t sent_ = 0;
	unsigned mss_;
	unsigned index_ = 0;
	bool done_ = false;
	bool ip_checksum_;
	bool l4_checksum_;
};

} // namespace weft::hca::transport
