// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule MGMT-08: parse(build(x)) == x for every opcode, and malformed packets are rejected
// with the reason.
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/wire/headers.hpp"

namespace
{

using packet::Error;
using packet::Headers;
using packet::Layout;
using Traits = ib::OpcodeTraits;

template<class Header>
void randomise(Header &header, std::mt19937_64 &random)
{
	auto *bytes = reinterpret_cast<std::uint8_t *>(&header);
	for (std::size_t i = 0; i < sizeof(Header); i++)
		bytes[i] = static_cast<std::uint8_t>(random());
}

// Random contents in every header that the opcode calls for; the rest zero.
Headers random_headers(std::uint8_t opcode, bool grh, std::mt19937_64 &random)
{
	Headers h;
	Traits traits = ib::opcode_traits(opcode);
	randomise(h.lrh, random);
	h.has_grh = grh;
	if (grh)
		randomise(h.grh, random);
	randomise(h.bth, random);
	h.bth.opcode = opcode;
	if (traits.has(Traits::deth))
		randomise(h.deth, random);
	if (traits.has(Traits::xrceth))
		randomise(h.xrceth, random);
	if (traits.has(Traits::reth))
		randomise(h.reth, random);
	if (traits.has(Traits::atomic_eth) || traits.has(Traits::masked_atomic_eth))
		randomise(h.atomic, random);
	if (traits.has(Traits::masked_atomic_eth)) {
		randomise(h.swap_or_add_mask, random);
		randomise(h.compare_mask, random);
	}
	if (traits.has(Traits::aeth))
		randomise(h.aeth, random);
	if (traits.has(Traits::atomic_ack_eth))
		randomise(h.atomic_ack, random);
	if (traits.has(Traits::immdt))
		randomise(h.immdt, random);
	if (traits.has(Traits::ieth))
		randomise(h.ieth, random);
	return h;
}

// Sets the fields that build() is documented to compute itself.
void normalise(Headers &h, unsigned payload, unsigned header_bytes)
{
	unsigned pad = -payload & 3;
	unsigned total = header_bytes + payload + pad + ib::icrc_bytes;
	h.lrh.vl_lver &= 0xf0;
	h.lrh.set_lnh(h.has_grh ? ib::Lnh::global : ib::Lnh::local);
	h.lrh.set_length(total / 4);
	if (h.has_grh) {
		h.grh.set_version(6);
		h.grh.next_header = 0x1b;
		h.grh.payload_length = static_cast<std::uint16_t>(total - 48);
	}
	h.bth.set_pad(pad);
	h.bth.flags &= 0xf0;
}

// Member by member: the bool makes padding that memcmp would see.
void expect_same(const Headers &a, const Headers &b)
{
	EXPECT_EQ(0, std::memcmp(&a.lrh, &b.lrh, sizeof(a.lrh)));
	EXPECT_EQ(a.has_grh, b.has_grh);
	EXPECT_EQ(0, std::memcmp(&a.grh, &b.grh, sizeof(a.grh)));
	EXPECT_EQ(0, std::memcmp(&a.bth, &b.bth, sizeof(a.bth)));
	EXPECT_EQ(0, std::memcmp(&a.deth, &b.deth, sizeof(a.deth)));
	EXPECT_EQ(0, std::memcmp(&a.xrceth, &b.xrceth, sizeof(a.xrceth)));
	EXPECT_EQ(0, std::memcmp(&a.reth, &b.reth, sizeof(a.reth)));
	EXPECT_EQ(0, std::memcmp(&a.atomic, &b.atomic, sizeof(a.atomic)));
	EXPECT_EQ(a.swap_or_add_mask.raw(), b.swap_or_add_mask.raw());
	EXPECT_EQ(a.compare_mask.raw(), b.compare_mask.raw());
	EXPECT_EQ(0, std::memcmp(&a.aeth, &b.aeth, sizeof(a.aeth)));
	EXPECT_EQ(0, std::memcmp(&a.atomic_ack, &b.atomic_ack, sizeof(a.atomic_ack)));
	EXPECT_EQ(0, std::memcmp(&a.immdt, &b.immdt, sizeof(a.immdt)));
	EXPECT_EQ(0, std::memcmp(&a.ieth, &b.ieth, sizeof(a.ieth)));
}

TEST(PacketHeaders, mgmt_08_parsing_a_built_packet_returns_its_headers)
{
	constexpr std::uint64_t seed = 8;
	SCOPED_TRACE(testing::Message() << "seed " << seed);
	std::mt19937_64 random(seed);
	unsigned known = 0;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		Traits traits = ib::opcode_traits(static_cast<std::uint8_t>(opcode));
		if (!traits.has(Traits::valid))
			continue;
		known++;
		for (bool grh : {false, true}) {
			for (unsigned payload : {0u, 1u, 2u, 3u, 4u, 255u, 2048u, 4096u}) {
				if (payload != 0 && !traits.has(Traits::payload))
					continue;
				SCOPED_TRACE(testing::Message() << "opcode " << opcode << " grh "
								<< grh << " payload " << payload);
				Headers in = random_headers(static_cast<std::uint8_t>(opcode), grh,
							    random);
				std::uint8_t bytes[ib::headers_max];
				unsigned size = 0;
				ASSERT_EQ(Error::none,
					  packet::build(in, payload, bytes, sizeof(bytes), &size));
				EXPECT_EQ(size, packet::header_bytes(in));
				unsigned pad = -payload & 3;
				Headers out;
				Layout layout;
				ASSERT_EQ(Error::none,
					  packet::parse(bytes, size, size + payload + pad + 4, out,
							layout));
				EXPECT_EQ(layout.header_bytes, size);
				EXPECT_EQ(layout.payload_bytes, payload);
				EXPECT_EQ(layout.pad_bytes, pad);
				normalise(in, payload, size);
				expect_same(in, out);
			}
		}
	}
	// RC 23, UC 12, UD 2, XRC 23, masked atomics 4.
	EXPECT_EQ(known, 64u);
}

struct Built {
	std::vector<std::uint8_t> bytes;
	unsigned packet_bytes;
};

Built ud_packet(bool grh, unsigned payload)
{
	Headers h;
	h.has_grh = grh;
	h.bth.opcode = ib::opcode_ud_send_only;
	Built built{std::vector<std::uint8_t>(ib::headers_max), 0};
	unsigned size = 0;
	EXPECT_EQ(Error::none,
		  packet::build(h, payload, built.bytes.data(), ib::headers_max, &size));
	built.bytes.resize(size);
	built.packet_bytes = size + payload + (-payload & 3) + 4;
	return built;
}

Error parse(const Built &built)
{
	Headers h;
	Layout layout;
	return packet::parse(built.bytes.data(), static_cast<unsigned>(built.bytes.size()),
			     built.packet_bytes, h, layout);
}

TEST(PacketHeaders, mgmt_08_parser_returns_a_specific_error_for_each_malformation_of_a_packet)
{
	Built good = ud_packet(true, 10);
	ASSERT_EQ(Error::none, parse(good));

	auto broken = [&](std::size_t at, std::uint8_t flip) {
		Built bad = good;
		bad.bytes.at(at) ^= flip;
		return parse(bad);
	};
	EXPECT_EQ(Error::bad_link_version, broken(0, 0x01));
	EXPECT_EQ(Error::not_transport, broken(1, 0x02));
	EXPECT_EQ(Error::bad_link_length, broken(5, 0x01));
	EXPECT_EQ(Error::bad_ip_version, broken(8, 0x10));
	EXPECT_EQ(Error::bad_global_length, broken(13, 0x04));
	EXPECT_EQ(Error::bad_next_header, broken(14, 0x01));
	EXPECT_EQ(Error::bad_opcode, broken(48, 0x80));
	EXPECT_EQ(Error::bad_transport_version, broken(49, 0x01));

	// The length fits the packet but not the payload: the packet is cut within every header in
	// turn.
	for (unsigned size = 0; size < good.bytes.size(); size++) {
		Built cut = good;
		cut.bytes.resize(size);
		EXPECT_EQ(Error::truncated, parse(cut)) << size;
	}

	// Four bytes of pad claimed for an empty payload.
	Built empty = ud_packet(false, 0);
	empty.bytes[9] |= 0x10;
	EXPECT_EQ(Error::bad_pad, parse(empty));
}

TEST(PacketHeaders, mgmt_08_invalid_payload_lengths_are_rejected)
{
	Headers h;
	std::uint8_t bytes[ib::headers_max];
	unsigned size = 77;
	h.bth.opcode = ib::opcode_ud_send_only;
	EXPECT_EQ(Error::bad_payload_length,
		  packet::build(h, ib::payload_max + 1, bytes, sizeof(bytes), &size));
	EXPECT_EQ(Error::no_space, packet::build(h, 4, bytes, 27, &size));
	h.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::ack);
	EXPECT_EQ(Error::bad_payload_length, packet::build(h, 4, bytes, sizeof(bytes), &size));
	h.bth.opcode = 0xff;
	EXPECT_EQ(Error::bad_opcode, packet::build(h, 0, bytes, sizeof(bytes), &size));
	EXPECT_EQ(0u, packet::header_bytes(h));
	EXPECT_EQ(77u, size);

	// An ACK must not have a payload.
	h.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::ack);
	ASSERT_EQ(Error::none, packet::build(h, 0, bytes, sizeof(bytes), &size));
	reinterpret_cast<ib::Lrh *>(bytes)->set_length((size + 4 + 4) / 4);
	Layout layout;
	EXPECT_EQ(Error::bad_payload_length, packet::parse(bytes, size, size + 8, h, layout));
}

TEST(PacketHeaders, every_parse_error_has_a_name)
{
	for (int error = 0; error <= static_cast<int>(Error::no_space); error++)
		EXPECT_STRNE("unknown error", packet::error_name(static_cast<Error>(error)));
}

} // namespace
