// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Builds and parses the headers of a packet, from the LRH to the last extension header.
 *
 * The headers may be stored separately from the payload: build() writes only headers, and parse()
 * reads only headers and takes the length of the whole packet. The code is freestanding, because
 * both kernel modules and user-space programs link it. No function allocates memory, takes locks or
 * sleeps, so all can be called in any context.
 */
#pragma once

#include <ib/packet.hpp>

namespace packet
{

/*
 * The headers of one packet in wire form. bth.opcode determines which extension headers are used
 * (ib::opcode_traits()); the others are ignored by build() and zero after parse().
 *
 * build() computes LNH, both lengths, the pad count, IPVer and NxtHdr; after parse() they contain
 * the values of the packet.
 */
struct Headers {
	ib::Lrh lrh{};
	bool has_grh = false;
	ib::Grh grh{};
	ib::Bth bth{};
	ib::Deth deth{};
	ib::XrcEth xrceth{};
	ib::Reth reth{};
	ib::AtomicEth atomic{};
	/* Differs from `atomic` only for the masked atomic opcodes. */
	ib::be64 swap_or_add_mask{};
	ib::be64 compare_mask{};
	ib::Aeth aeth{};
	ib::AtomicAckEth atomic_ack{};
	ib::ImmDt immdt{};
	ib::Ieth ieth{};
};

/* The reason why a packet is refused. */
enum class Error : std::uint8_t {
	none,
	/* The buffer is smaller than the headers. */
	truncated,
	/* LRH.LVer is not 0. */
	bad_link_version,
	/* LRH.LNH has the value for raw packets, so no transport of InfiniBand follows. */
	not_transport,
	/* LRH.PktLen is not the length of the packet. */
	bad_link_length,
	/* GRH.IPVer is not 6. */
	bad_ip_version,
	/* GRH.NxtHdr is not 1Bh. */
	bad_next_header,
	/* GRH.PayLen is not the length after the GRH. */
	bad_global_length,
	/* BTH.TVer is not 0. */
	bad_transport_version,
	/* The opcode is not defined. */
	bad_opcode,
	/* The pad count does not fit the payload. */
	bad_pad,
	/* The payload is larger than the largest MTU, or the opcode permits none. */
	bad_payload_length,
	/* The buffer passed to build() is too small. */
	no_space,
};

/* Returns a short text for logs; never a null pointer. */
const char *error_name(Error error);

/* Results of parse() in addition to the headers. */
struct Layout {
	/* Bytes from the LRH to the last extension header. */
	unsigned header_bytes;
	/* Size of the payload without the pad. */
	unsigned payload_bytes;
	unsigned pad_bytes;
};

/*
 * Returns the number of bytes that build() will write for these headers; 0 for an unknown opcode.
 */
unsigned header_bytes(const Headers &headers);

/*
 * Writes the headers of a packet with payload_bytes of payload to out.
 * Returns Error::none and sets *written, or bad_opcode, bad_payload_length or no_space with nothing
 * written.
 */
Error build(const Headers &headers, unsigned payload_bytes, std::uint8_t *out, unsigned capacity,
	    unsigned *written);

/*
 * Reads the headers of a packet.
 * @data:         the first bytes of the packet, with all headers and possibly more.
 * @size:         number of bytes at data.
 * @packet_bytes: length of the whole packet, LRH to ICRC inclusive.
 * @headers:      filled in on success; undefined on failure.
 * @layout:       filled in on success; undefined on failure.
 * Returns the first error that is found, or Error::none.
 */
Error parse(const std::uint8_t *data, unsigned size, unsigned packet_bytes, Headers &headers,
	    Layout &layout);

} // namespace packet
