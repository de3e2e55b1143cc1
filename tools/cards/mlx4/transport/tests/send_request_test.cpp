// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the decoder of send WQEs with valid, invalid and random bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cards/mlx4/transport/send_request.hpp"
#include "cards/mlx4/transport/tests/wqe_builder.hpp"

namespace weft::mlx4::transport
{

using namespace hw::mlx4;

/* A gather list of memory and inline data keeps its order and its total length. */
TEST(SendRequest, MemoryAndInlineDataAreGathered)
{
	auto wqe = WqeBuilder(WqeOpcode::send)
			   .add(WqeData{100, 0x1234, 0xabcdef000})
			   .inline_bytes(10)
			   .add(WqeData{0, 7, 9})
			   .inline_bytes(0)
			   .add(WqeData{1, 0x99, 5})
			   .done();
	SendRequest request;
	ASSERT_EQ(decode(wqe, ServiceType::rc, request), Syndrome::none);
	ASSERT_EQ(request.pieces.size(), 3u) << "empty pieces are left out";
	EXPECT_EQ(request.pieces[0].lkey, 0x1234u);
	EXPECT_EQ(request.pieces[0].address, 0xabcdef000u);
	EXPECT_TRUE(request.pieces[1].is_inline);
	EXPECT_EQ(request.inline_data.size(), 10u);
	EXPECT_EQ(request.inline_data[9], std::byte{9});
	EXPECT_EQ(request.length, 111u);
	EXPECT_TRUE(request.signalled);
}

/* libmlx4 splits long inline data at 64-byte boundaries, and the decoder joins it. */
TEST(SendRequest, JoinsInlineDataSplitAt64Bytes)
{
	auto wqe = WqeBuilder(WqeOpcode::rdma_write)
			   .add(WqeRemoteAddress{0x1000, 0x55, 0})
			   .inline_bytes(28)
			   .inline_bytes(60)
			   .inline_bytes(5)
			   .done();
	SendRequest request;
	ASSERT_EQ(decode(wqe, ServiceType::rc, request), Syndrome::none);
	EXPECT_EQ(request.length, 93u);
	for (unsigned i = 0; i < 93; i++)
		EXPECT_EQ(request.inline_data[i], static_cast<std::byte>(i));
	EXPECT_EQ(request.remote_address, 0x1000u);
	EXPECT_EQ(request.rkey, 0x55u);
}

/* Each service has its own opcodes. All other opcodes are a local QP operation error. */
TEST(SendRequest, RefusesOpcodesThatTheTransportServiceDoesNotSupport)
{
	SendRequest request;
	auto refused = [&](WqeOpcode opcode, ServiceType service) {
		/* This is long enough for the operands of every opcode. */
		WqeBuilder builder(opcode);
		for (int i = 0; i < 4; i++)
			builder.add(WqeData{8, 1, 0x1000});
		return decode(builder.done(), service, request) == Syndrome::local_qp_operation;
	};
	EXPECT_FALSE(refused(WqeOpcode::rdma_read, ServiceType::rc));
	EXPECT_TRUE(refused(WqeOpcode::rdma_read, ServiceType::uc));
	EXPECT_FALSE(refused(WqeOpcode::rdma_write, ServiceType::uc));
	EXPECT_TRUE(refused(WqeOpcode::rdma_write, ServiceType::ud));
	EXPECT_TRUE(refused(WqeOpcode::lso, ServiceType::rc));
	EXPECT_TRUE(refused(WqeOpcode::send_imm, ServiceType::whole_packet));
	EXPECT_TRUE(refused(WqeOpcode::config, ServiceType::rc));
	EXPECT_TRUE(refused(static_cast<WqeOpcode>(0x0f), ServiceType::xrc));
}

/* A WQE with an inconsistent size or truncated segments is refused. */
TEST(SendRequest, RefusesTruncatedWqes)
{
	SendRequest request;
	auto whole =
		WqeBuilder(WqeOpcode::send).add(WqeDatagram{}).add(WqeData{8, 1, 0x1000}).done();
	EXPECT_EQ(decode(whole, ServiceType::ud, request), Syndrome::none);
	EXPECT_EQ(decode(std::span(whole).first(32), ServiceType::ud, request),
		  Syndrome::local_qp_operation);
	auto cut = WqeBuilder(WqeOpcode::send).add(WqeData{}).done();
	EXPECT_EQ(decode(cut, ServiceType::ud, request), Syndrome::local_qp_operation);
	auto inline_beyond = WqeBuilder(WqeOpcode::send).inline_bytes(12).done();
	WqeInline head{WqeData::inline_bit | 13};
	std::memcpy(inline_beyond.data() + 16, &head, sizeof(head));
	EXPECT_EQ(decode(inline_beyond, ServiceType::rc, request), Syndrome::local_qp_operation);
	EXPECT_EQ(decode({}, ServiceType::rc, request), Syndrome::local_qp_operation);
}

/* Responses cannot be stored in the WQE, and an atomic returns eight bytes. */
TEST(SendRequest, RejectsRdmaReadsIntoInlineDataAndAtomicsWithA4ByteBuffer)
{
	SendRequest request;
	auto read = WqeBuilder(WqeOpcode::rdma_read).add(WqeRemoteAddress{}).inline_bytes(8).done();
	EXPECT_EQ(decode(read, ServiceType::rc, request), Syndrome::local_qp_operation);
	auto atomic = WqeBuilder(WqeOpcode::fetch_add)
			      .add(WqeRemoteAddress{})
			      .add(WqeAtomic{})
			      .add(WqeData{4, 1, 0x1000})
			      .done();
	EXPECT_EQ(decode(atomic, ServiceType::rc, request), Syndrome::local_length);
}

/* Arbitrary bit patterns are decoded safely, and decoded requests are consistent. */
TEST(SendRequest, RandomWqesAreRefusedOrDecodedWithinTheirBounds)
{
	constexpr unsigned seed = 20261121;
	std::mt19937 random(seed);
	SendRequest request;
	unsigned accepted = 0;
	for (int round = 0; round < 200000; round++) {
		std::vector<std::byte> wqe((1 + random() % 63) * wqe_unit);
		for (auto &byte : wqe)
			byte = static_cast<std::byte>(random() % 3 ? 0 : random());
		WqeControl control;
		std::memcpy(&control, wqe.data(), sizeof(control));
		control.size_word = static_cast<std::uint32_t>(wqe.size() / wqe_unit);
		std::memcpy(wqe.data(), &control, sizeof(control));
		for (auto service : {ServiceType::rc, ServiceType::ud, ServiceType::whole_packet}) {
			if (decode(wqe, service, request) != Syndrome::none)
				continue;
			accepted++;
			std::uint64_t sum = 0;
			for (const Piece &piece : request.pieces) {
				sum += piece.length;
				if (piece.is_inline) {
					ASSERT_LE(piece.address + piece.length,
						  request.inline_data.size())
						<< "seed " << seed << " round " << round;
				}
			}
			ASSERT_EQ(sum, request.length) << "seed " << seed << " round " << round;
		}
	}
	EXPECT_GT(accepted, 1000u) << "the generator has lost its grip";
}

/* A receive list ends at the terminator. Empty segments are skipped, and the total is correct. */
TEST(ReceiveList, ScatterListEndsAtTheInvalidLkey)
{
	WqeData list[] = {{64, 5, 0x1000},
			  {0, 9, 0},
			  {16, 6, 0x2000},
			  {0, WqeData::terminator_lkey, 0},
			  {999, 7, 0x3000}};
	std::vector<Piece> pieces;
	EXPECT_EQ(decode_receive(std::as_bytes(std::span(list)), pieces), 80u);
	ASSERT_EQ(pieces.size(), 2u);
	EXPECT_EQ(pieces[1].address, 0x2000u);
}

} // namespace weft::mlx4::transport
