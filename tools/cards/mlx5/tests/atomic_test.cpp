// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests atomic requests: the byte order of operands, and the masked operations.
#include <initializer_list>

#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;
using hw::mlx5::HcaCap;
using hw::mlx5::WqeControl;

namespace
{

constexpr std::uint32_t kLocalQpOperation = 2;

} // namespace

class Mlx5Atomics : public ::testing::Test
{
public:
	void SetUp() override
	{
		driver.bring_up();
		driver.set_port_active();
		cq = driver.make_cq(6);
		place = driver.allocate(4096);
		result = driver.allocate(4096);
		connect();
	}
	void connect()
	{
		std::tie(one, two) = driver.make_pair(cq);
		index = 0;
	}
	std::uint64_t &word() { return driver.host.object<std::uint64_t>(place); }
	// Executes a request on the word. Returns the syndrome of its completion, or 0 if there was
	// none.
	std::uint32_t execute(std::uint32_t opcode, std::uint32_t modifier,
			      std::initializer_list<std::uint64_t> operands)
	{
		Bytes wqe = TinyDriver::control(opcode);
		WqeControl::op_modifier.set(wqe.data(), modifier);
		TinyDriver::add_remote(wqe, place, driver.key);
		for (const std::uint64_t operand : operands) {
			wqe.resize(wqe.size() + 8);
			hw::mlx5::store_be64(wqe.data(), wqe.size() - 8, operand);
		}
		TinyDriver::add_data(wqe, result, 8, driver.key);
		index = driver.send(one, index, wqe);
		EXPECT_TRUE(driver.run_until_entry(cq, entries));
		const Cqe cqe = driver.entry(cq, entries++);
		return Cqe::opcode.get(cqe.bytes) == static_cast<unsigned>(CqeOpcode::requester)
			       ? 0
			       : Cqe::syndrome.get(cqe.bytes);
	}
	std::uint64_t former() { return driver.host.object<std::uint64_t>(result); }

	TinyDriver driver;
	TinyDriver::Cq cq;
	TinyDriver::Qp one, two;
	std::uint64_t place = 0, result = 0;
	std::uint32_t index = 0, entries = 0;
};

TEST_F(Mlx5Atomics, AtomicOperandsAndResultsInMemoryAreInHostByteOrder)
{
	word() = 41;
	EXPECT_EQ(execute(TinyDriver::kFetchAdd, 0, {1, 0}), 0u);
	EXPECT_EQ(former(), 41u);
	EXPECT_EQ(word(), 42u);
	EXPECT_EQ(execute(TinyDriver::kCompareSwap, 0, {7, 42}), 0u);
	EXPECT_EQ(word(), 7u);
}

TEST_F(Mlx5Atomics, MaskedCompareSwapAppliesMasks)
{
	word() = 0x1111222233334444;
	EXPECT_EQ(execute(TinyDriver::kMaskedCompareSwap, WqeControl::masked_8_bytes,
			  {~std::uint64_t{0}, 0xaaaaaaaaaaaa4444, 0xffff0000, 0xffff}),
		  0u);
	EXPECT_EQ(former(), 0x1111222233334444u);
	EXPECT_EQ(word(), 0x11112222ffff4444u);
	EXPECT_EQ(execute(TinyDriver::kMaskedCompareSwap, WqeControl::masked_8_bytes,
			  {0, 0x4445, ~std::uint64_t{0}, 0xffff}),
		  0u);
	EXPECT_EQ(former(), 0x11112222ffff4444u);
	EXPECT_EQ(word(), 0x11112222ffff4444u) << "another value in the mask";
}

// A set bit in the second operand marks the highest bit of a field, and no carry leaves the field.
TEST_F(Mlx5Atomics, MaskedFetchAddDoesNotCarryAcrossFields)
{
	word() = 0x00ff00ff00ff00ff;
	EXPECT_EQ(execute(TinyDriver::kMaskedFetchAdd, WqeControl::masked_8_bytes,
			  {0x0101010101010101, 0x8080808080808080}),
		  0u);
	EXPECT_EQ(former(), 0x00ff00ff00ff00ffu);
	EXPECT_EQ(word(), 0x0100010001000100u);
}

// The card reports operands of 8 bytes only.
TEST_F(Mlx5Atomics, MaskedAtomicsWithAnOperandSizeOtherThan8BytesAreRefused)
{
	Bytes page = driver.command(Opcode::query_hca_cap, Bytes(16), HcaCap::offset + HcaCap::size,
				    HcaCap::kind_atomic << 1)
			     .out;
	constexpr hw::mlx5::Field operations{HcaCap::offset + 0x10, 15, 0};
	constexpr hw::mlx5::Field sizes{HcaCap::offset + 0x14, 15, 0};
	EXPECT_EQ(operations.get(page.data()), 0xfu);
	EXPECT_EQ(sizes.get(page.data()), 8u);
	word() = 1;
	for (const std::uint32_t modifier : {0u, 1u, 8u, 10u, 11u}) {
		EXPECT_EQ(execute(TinyDriver::kMaskedCompareSwap, modifier, {2, 1, 0xff, 0xff}),
			  kLocalQpOperation)
			<< modifier;
		connect();
		EXPECT_EQ(execute(TinyDriver::kMaskedFetchAdd, modifier, {1, 0}), kLocalQpOperation)
			<< modifier;
		connect();
	}
	EXPECT_EQ(word(), 1u);
}

} // namespace weft::mlx5::testing
