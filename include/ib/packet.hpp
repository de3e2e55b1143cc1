// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the headers of an InfiniBand packet in wire format (IBA volume 1, chapters 5, 7, 8 and
 * 9). Every field is big-endian; sub-byte fields have accessors. core/wire builds packets of these
 * headers; opcodes.hpp lists the headers of each opcode.
 */
#pragma once

#include "types.hpp"
#include "opcodes.hpp"

namespace ib
{

/* Link next header, IBA 7.7.7. */
enum class Lnh : std::uint8_t { raw = 0, ipv6 = 1, local = 2, global = 3 };

/* Local route header, IBA 7.7. */
struct Lrh {
	std::uint8_t vl_lver;
	std::uint8_t sl_lnh;
	be16 dlid;
	be16 length_word;
	be16 slid;

	constexpr std::uint8_t vl() const { return field_get<7, 4>(vl_lver); }
	constexpr std::uint8_t lver() const { return field_get<3, 0>(vl_lver); }
	constexpr std::uint8_t sl() const { return field_get<7, 4>(sl_lnh); }
	constexpr Lnh lnh() const { return static_cast<Lnh>(field_get<1, 0>(sl_lnh)); }
	/* Length in 4-byte words from the LRH to the ICRC inclusive. */
	constexpr std::uint16_t length() const { return field_get<10, 0>(length_word.value()); }

	constexpr void set_vl(unsigned v) { vl_lver = field_set<7, 4>(vl_lver, v); }
	constexpr void set_sl(unsigned v) { sl_lnh = field_set<7, 4>(sl_lnh, v); }
	constexpr void set_lnh(Lnh v)
	{
		sl_lnh = field_set<1, 0>(sl_lnh, static_cast<unsigned>(v));
	}
	constexpr void set_length(unsigned words)
	{
		length_word = field_set<10, 0>(length_word.value(), words);
	}
};
static_assert(sizeof(Lrh) == 8);

/* Global route header, IBA 8.3. */
struct Grh {
	be32 version_class_flow;
	be16 payload_length;
	std::uint8_t next_header;
	std::uint8_t hop_limit;
	Gid sgid;
	Gid dgid;

	static constexpr std::uint8_t ip_version = 6;
	static constexpr std::uint8_t next_header_bth = 0x1b;

	constexpr std::uint8_t version() const
	{
		return static_cast<std::uint8_t>(field_get<31, 28>(version_class_flow.value()));
	}
	constexpr std::uint8_t traffic_class() const
	{
		return static_cast<std::uint8_t>(field_get<27, 20>(version_class_flow.value()));
	}
	constexpr std::uint32_t flow_label() const
	{
		return field_get<19, 0>(version_class_flow.value());
	}
	constexpr void set_version(unsigned v)
	{
		version_class_flow = field_set<31, 28>(version_class_flow.value(), v);
	}
	constexpr void set_traffic_class(unsigned v)
	{
		version_class_flow = field_set<27, 20>(version_class_flow.value(), v);
	}
	constexpr void set_flow_label(std::uint32_t v)
	{
		version_class_flow = field_set<19, 0>(version_class_flow.value(), v);
	}
};
static_assert(sizeof(Grh) == 40 && offsetof(Grh, sgid) == 8);

/* Base transport header, IBA 9.2. */
struct Bth {
	std::uint8_t opcode;
	std::uint8_t flags;
	be16 pkey;
	be32 dest_qp_word;
	be32 psn_word;

	constexpr bool solicited() const { return field_get<7, 7>(flags) != 0; }
	constexpr bool migrated() const { return field_get<6, 6>(flags) != 0; }
	constexpr std::uint8_t pad() const { return field_get<5, 4>(flags); }
	constexpr std::uint8_t tver() const { return field_get<3, 0>(flags); }
	constexpr bool fecn() const { return field_get<31, 31>(dest_qp_word.value()) != 0; }
	constexpr bool becn() const { return field_get<30, 30>(dest_qp_word.value()) != 0; }
	constexpr std::uint32_t dest_qp() const { return field_get<23, 0>(dest_qp_word.value()); }
	constexpr bool ack_request() const { return field_get<31, 31>(psn_word.value()) != 0; }
	constexpr std::uint32_t psn() const { return field_get<23, 0>(psn_word.value()); }

	constexpr void set_solicited(bool v) { flags = field_set<7, 7>(flags, v); }
	constexpr void set_migrated(bool v) { flags = field_set<6, 6>(flags, v); }
	constexpr void set_pad(unsigned v) { flags = field_set<5, 4>(flags, v); }
	constexpr void set_fecn(bool v)
	{
		dest_qp_word = field_set<31, 31>(dest_qp_word.value(), v);
	}
	constexpr void set_becn(bool v)
	{
		dest_qp_word = field_set<30, 30>(dest_qp_word.value(), v);
	}
	constexpr void set_dest_qp(std::uint32_t v)
	{
		dest_qp_word = field_set<23, 0>(dest_qp_word.value(), v);
	}
	constexpr void set_ack_request(bool v)
	{
		psn_word = field_set<31, 31>(psn_word.value(), v);
	}
	constexpr void set_psn(std::uint32_t v)
	{
		psn_word = field_set<23, 0>(psn_word.value(), v);
	}
};
static_assert(sizeof(Bth) == 12);

/* Datagram extended transport header, IBA 9.3.2. */
struct Deth {
	be32 qkey;
	std::uint8_t reserved;
	be24 src_qp;
};
static_assert(sizeof(Deth) == 8);

/* XRC extended transport header, IBA annex A14. */
struct XrcEth {
	std::uint8_t reserved;
	be24 srq;
};
static_assert(sizeof(XrcEth) == 4);

/* RDMA extended transport header, IBA 9.3.3. */
struct Reth {
	be64 address;
	be32 rkey;
	be32 length;
};
static_assert(sizeof(Reth) == 16);

/* Atomic extended transport header, IBA 9.3.4: swap_or_add then compare. */
struct AtomicEth {
	be64 address;
	be32 rkey;
	be64 swap_or_add;
	be64 compare;
};
static_assert(sizeof(AtomicEth) == 28);

/* Masked atomics: an AtomicETH followed by the masks (see opcodes.hpp). */
struct MaskedAtomicEth {
	AtomicEth atomic;
	be64 swap_or_add_mask;
	be64 compare_mask;
};
static_assert(sizeof(MaskedAtomicEth) == 44);

/* ACK extended transport header, IBA 9.3.5. */
struct Aeth {
	std::uint8_t syndrome;
	be24 msn;

	enum class Kind : std::uint8_t { ack = 0, rnr_nak = 1, reserved = 2, nak = 3 };
	enum NakCode : std::uint8_t {
		psn_sequence = 0,
		invalid_request = 1,
		remote_access = 2,
		remote_operational = 3,
		invalid_rd = 4,
	};
	/* The credit count that means "credits are not used", IBA 9.7.7.2. */
	static constexpr std::uint8_t credits_invalid = 31;

	constexpr Kind kind() const { return static_cast<Kind>(field_get<6, 5>(syndrome)); }
	/* Credits of an ACK, timer of an RNR NAK, code of a NAK. */
	constexpr std::uint8_t value() const { return field_get<4, 0>(syndrome); }
	static constexpr std::uint8_t make_syndrome(Kind kind, unsigned value)
	{
		return static_cast<std::uint8_t>(static_cast<unsigned>(kind) << 5 | (value & 0x1f));
	}
};
static_assert(sizeof(Aeth) == 4);

/* Atomic acknowledge extended transport header, IBA 9.5.3. */
struct AtomicAckEth {
	be64 original;
};
static_assert(sizeof(AtomicAckEth) == 8);

/* Immediate data, IBA 9.3.6. The value is opaque to the network. */
struct ImmDt {
	be32 value;
};
static_assert(sizeof(ImmDt) == 4);

/* Invalidate extended transport header, IBA 9.3.7. */
struct Ieth {
	be32 rkey;
};
static_assert(sizeof(Ieth) == 4);

constexpr unsigned icrc_bytes = 4;
constexpr unsigned vcrc_bytes = 2;

/* The longest run of headers: LRH, GRH, BTH, XRCETH, MaskedAtomicETH. */
constexpr unsigned headers_max =
	sizeof(Lrh) + sizeof(Grh) + sizeof(Bth) + sizeof(XrcEth) + sizeof(MaskedAtomicEth);
static_assert(headers_max == 108);

/* The largest payload a packet may carry. */
constexpr unsigned payload_max = 4096;

} // namespace ib
