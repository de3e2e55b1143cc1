// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the decoder of WQEs with valid, invalid and random bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cards/mthca/send_decoder.hpp"

namespace weft::mthca
{

using hw::mellanox_icm::WqeAtomic;
using hw::mellanox_icm::WqeData;
using hw::mellanox_icm::WqeInline;
using hw::mellanox_icm::WqeOpcode;
using hw::mellanox_icm::WqeRemoteAddress;
using hw::mthca::WqeDatagram;
using hw::mthca::WqeNext;

namespace
{

// A WQE and the link before it, which describes it.
struct Posted {
	WqeNext link{};
	std::vector<std::byte> bytes;

	explicit Posted(WqeOpcode opcode,
			std::uint32_t flags = WqeNext::completion | WqeNext::always)
	{
		link.next_word = static_cast<std::uint32_t>(opcode);
		WqeNext own{};
		own.flags = flags;
		own.immediate = 0x12345678;
		add(own);
	}
	template<typename Segment>
	Posted &add(const Segment &segment)
	{
		bytes.resize(bytes.size() + sizeof(segment));
		std::memcpy(bytes.data() + bytes.size() - sizeof(segment), &segment,
			    sizeof(segment));
		link.size_word = static_cast<std::uint32_t>(bytes.size() / 16) | WqeNext::doorbell;
		return *this;
	}
	Syndrome decode(ServiceType service, SendRequest &out) const
	{
		return mthca::decode(link, bytes, service, out);
	}
};

} // namespace

// The opcode, the size and the fence of a WQE are in the previous WQE.
TEST(SendDecoder, OpcodeAndFenceOfAWqeAreReadFromThePreviousWqe)
{
	Posted posted(WqeOpcode::rdma_write_imm, WqeNext::always | WqeNext::solicited);
	posted.add(WqeRemoteAddress{0x1000, 0x55, 0})
		.add(WqeData{100, 0x1234, 0xabcdef000})
		.add(WqeData{0, 7, 9});
	posted.link.size_word = posted.link.size_word | WqeNext::fence_bit;
	SendRequest request;
	ASSERT_EQ(posted.decode(ServiceType::rc, request), Syndrome::none);
	EXPECT_EQ(request.opcode, SendOpcode::rdma_write_imm);
	EXPECT_TRUE(request.fence);
	EXPECT_TRUE(request.solicited);
	EXPECT_FALSE(request.signalled);
	EXPECT_EQ(request.immediate, 0x12345678u);
	EXPECT_EQ(request.remote_address, 0x1000u);
	ASSERT_EQ(request.pieces.size(), 1u) << "an empty piece is none";
	EXPECT_EQ(request.length, 100u);
}

// The GID index of an address vector counts the GIDs of both ports, with 32 for each port.
TEST(SendDecoder, AddressVectorOfTheSecondPortIsDecoded)
{
	WqeDatagram segment{};
	segment.address.port_pd = 2u << 24 | 0x123456;
	segment.address.grh_path_bits = 0x80 | 3;
	segment.address.dlid = std::uint16_t{0x11};
	segment.address.sgid_index = 32 + 5;
	segment.address.sl_class_flow = 4u << 28 | 0x21u << 20 | 0x54321;
	segment.qpn_word = 0x020014u;
	segment.qkey = 0x80010000u;
	SendRequest request;
	ASSERT_EQ(Posted(WqeOpcode::send)
			  .add(segment)
			  .add(WqeData{8, 1, 2})
			  .decode(ServiceType::ud, request),
		  Syndrome::none);
	const Datagram &to = request.datagram;
	EXPECT_EQ(to.port, 2u);
	EXPECT_EQ(to.pd, 0x123456u);
	EXPECT_TRUE(to.grh);
	EXPECT_EQ(to.path_bits, 3u);
	EXPECT_EQ(to.sgid_index, 5u);
	EXPECT_EQ(to.sl, 4u);
	EXPECT_EQ(to.traffic_class, 0x21u);
	EXPECT_EQ(to.flow_label, 0x54321u);
	EXPECT_EQ(to.qpn, 0x020014u);
}

// Inline data has a length of ten bits, and comes before and between other pieces.
TEST(SendDecoder, InlineDataIsGathered)
{
	Posted posted(WqeOpcode::send);
	struct {
		WqeInline head{WqeData::inline_bit | 10 << 10 | 12};
		std::uint8_t bytes[12] = {1, 2, 3};
	} twelve;
	static_assert(sizeof(twelve) == 16);
	posted.add(twelve).add(WqeData{4, 9, 0x100});
	SendRequest request;
	ASSERT_EQ(posted.decode(ServiceType::uc, request), Syndrome::none);
	EXPECT_EQ(request.length, 16u);
	EXPECT_EQ(request.inline_data.at(2), std::byte{3});
}

// A link must match its WQE, and the service and the card must support the operation.
TEST(SendDecoder, InvalidOrUnsupportedWqesAreRefused)
{
	SendRequest request;
	Posted cut(WqeOpcode::send);
	cut.add(WqeData{8, 1, 0x1000});
	cut.link.size_word = cut.link.size_word + 1;
	EXPECT_EQ(cut.decode(ServiceType::rc, request), Syndrome::local_qp_operation);
	EXPECT_EQ(Posted(WqeOpcode::send).add(WqeData{8, 1, 2}).decode(ServiceType::ud, request),
		  Syndrome::local_qp_operation)
		<< "no address";
	for (auto opcode :
	     {WqeOpcode::lso, WqeOpcode::fast_register, WqeOpcode::local_invalidate,
	      WqeOpcode::bind_window, WqeOpcode::masked_fetch_add, WqeOpcode::send_invalidate})
		EXPECT_EQ(Posted(opcode).add(WqeDatagram{}).decode(ServiceType::rc, request),
			  Syndrome::local_qp_operation)
			<< unsigned(opcode);
	EXPECT_EQ(Posted(WqeOpcode::rdma_read)
			  .add(WqeRemoteAddress{})
			  .decode(ServiceType::uc, request),
		  Syndrome::local_qp_operation);
	EXPECT_EQ(Posted(WqeOpcode::fetch_add)
			  .add(WqeRemoteAddress{})
			  .add(WqeAtomic{})
			  .add(WqeData{4, 1, 2})
			  .decode(ServiceType::rc, request),
		  Syndrome::local_length);
	EXPECT_EQ(decode(WqeNext{}, {}, ServiceType::rc, request), Syndrome::local_qp_operation);
}

// Arbitrary bit patterns are decoded safely, and decoded requests are consistent.
TEST(SendDecoder, RandomWqesAreRefusedOrDecodedWithinTheirBounds)
{
	constexpr unsigned seed = 20261122;
	std::mt19937 random(seed);
	SendRequest request;
	unsigned accepted = 0;
	for (int round = 0; round < 100000; round++) {
		std::vector<std::byte> wqe((1 + random() % 63) * 16);
		for (auto &byte : wqe)
			byte = static_cast<std::byte>(random() % 3 ? 0 : random());
		WqeNext link{};
		link.next_word = static_cast<std::uint32_t>(random());
		link.size_word = static_cast<std::uint32_t>(wqe.size() / 16);
		for (auto service : {ServiceType::rc, ServiceType::ud, ServiceType::whole_packet}) {
			if (decode(link, wqe, service, request) != Syndrome::none)
				continue;
			accepted++;
			std::uint64_t sum = 0;
			for (const Piece &piece : request.pieces) {
				sum += piece.length;
				if (piece.is_inline) {
					ASSERT_LE(piece.address + piece.length,
						  request.inline_data.size())
						<< "seed " << seed;
				}
			}
			ASSERT_EQ(sum, request.length) << "seed " << seed << " round " << round;
		}
	}
	EXPECT_GT(accepted, 1000u) << "the generator has lost its grip";
}

// A receive list ends at the invalid key, whatever its size field contains.
TEST(ReceiveDecoder, ScatterListEndsAtTheInvalidLkey)
{
	WqeData list[] = {
		{64, 5, 0x1000}, {0, 9, 0}, {16, 6, 0x2000}, {77, 0x100, 0}, {999, 7, 0x3000}};
	std::vector<Piece> pieces;
	EXPECT_EQ(decode_receive(std::as_bytes(std::span(list)), pieces), 80u);
	ASSERT_EQ(pieces.size(), 2u);
	EXPECT_EQ(pieces[1].address, 0x2000u);
}

} // namespace weft::mthca
