// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the offloads for IP over InfiniBand: checksums on transmit, checksum status on
 * receive, and segmentation of large sends (Documentation/connectx.rst, "IPoIB checksum and LSO").
 * A payload here begins with the four bytes of IPoIB encapsulation (RFC 4391 section 6).
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
	/* All pieces except the last must have an even length. */
	void add(std::span<const std::byte> bytes);
	void add_word(std::uint16_t word) { sum_ += word; }
	/* Returns the folded sum. A checksum field contains its complement. */
	std::uint16_t folded() const;

private:
	std::uint64_t sum_ = 0;
};

/**
 * fill_checksums() - complete the checksums of an outgoing packet
 * @payload: the whole payload, from the encapsulation header on
 * @ip: fill in the header checksum of IPv4
 * @l4: fill in the checksum of TCP or UDP; the previous value of the field is ignored
 *
 * A payload that is not IP or is truncated is not changed. The L4 checksum is filled in only for
 * TCP and UDP, and not in fragments.
 */
void fill_checksums(std::span<std::byte> payload, bool ip, bool l4);

/* Checks a received payload. Only checksums that exist and are correct are reported. */
ChecksumStatus check_checksums(std::span<const std::byte> payload);

/**
 * class LargeSend - cuts one large send into segments, one at a time
 *
 * The header is repeated before each piece of at most mss bytes. IP lengths and identification and
 * the TCP sequence number and flags are updated, and checksums if requested. The data is not copied
 * before its segment is created.
 */
class LargeSend
{
public:
	/*
	 * @header: encapsulation, IP and TCP headers; must outlive this
	 * @length: length of the data after it; without data there is one segment with the header
	 */
	LargeSend(std::span<const std::byte> header, std::uint64_t length, unsigned mss,
		  bool ip_checksum, bool l4_checksum);

	/* Returns true after the last segment. */
	bool done() const { return done_; }
	/* The size of the next segment, and the range of the data that it contains. */
	std::size_t size() const { return header_.size() + data_bytes(); }
	std::size_t header_bytes() const { return header_.size(); }
	std::uint64_t offset() const { return sent_; }
	std::size_t data_bytes() const;
	/*
	 * Completes the next segment. @segment has size() bytes, and its data already follows the
	 * space for the header.
	 */
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
