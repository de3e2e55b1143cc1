// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that destroying or invalidating a key aborts packets in flight that use it through a memory
// window or through an mkey that refers to other mkeys (KLM list). Data that the guest writes to
// its pages afterwards never arrives.
#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;
using hw::mlx5::MkeyContext;
using hw::mlx5::MkeyMode;
using hw::mlx5::WqeControl;
using hw::mlx5::WqeUmr;
namespace umr = hw::mlx5::umr;

namespace
{

constexpr std::uint8_t kLeased = 0x11, kSecret = 0x77;

} // namespace

class Mlx5Lease : public ::testing::Test
{
public:
	// This is more than the card sends in one iteration of its loop: 64 packets of 64 KiB.
	static constexpr std::uint32_t kSize = 4 << 20;
	// The amount of data that a QP sends at once.
	static constexpr std::uint32_t kWindow = 256 << 10;

	void SetUp() override
	{
		driver.bring_up();
		driver.set_port_active();
		cq = driver.make_cq(6);
		std::tie(one, two) = driver.make_pair(cq);
		from = driver.allocate(kSize);
		to = driver.allocate(kSize);
		region = make_region(from);
		window = make_list(region, from);
		std::fill_n(driver.bytes(from, kSize), kSize, kLeased);
	}
	MkeyContext context(MkeyMode mode, std::uint64_t start)
	{
		MkeyContext context{};
		for (const auto *field :
		     {&MkeyContext::local_read, &MkeyContext::local_write,
		      &MkeyContext::remote_read, &MkeyContext::remote_write,
		      &MkeyContext::umr_enable, &MkeyContext::remote_invalidate})
			field->set(context.bytes, 1);
		MkeyContext::mode_low.set(context.bytes, static_cast<std::uint32_t>(mode));
		MkeyContext::qpn.set(context.bytes, MkeyContext::any_qp);
		MkeyContext::variant.set(context.bytes, 0x11);
		MkeyContext::pd.set(context.bytes, driver.pd);
		MkeyContext::start.set(context.bytes, start);
		MkeyContext::length.set(context.bytes, kSize);
		MkeyContext::log_page_size.set(context.bytes, 12);
		return context;
	}
	std::uint32_t make_region(std::uint64_t address)
	{
		Bytes pages;
		driver.append_pages(pages, address, kSize);
		MkeyContext given = context(MkeyMode::pages, address);
		MkeyContext::octwords.set(given.bytes, kSize / 4096 / 2);
		return driver.make_key(given, kSize / 4096 / 2, pages);
	}
	// Creates a key with one piece, which is a whole region.
	std::uint32_t make_list(std::uint32_t inner, std::uint64_t address)
	{
		Bytes list;
		TinyDriver::add_data(list, address, kSize, inner);
		MkeyContext given = context(MkeyMode::pieces, address);
		MkeyContext::octwords.set(given.bytes, 1);
		return driver.make_key(given, 1, list);
	}
	// The second queue pair reads the first's memory: a part of the response is in flight, the
	// rest is not sent yet.
	void begin_read(std::uint32_t rkey)
	{
		Bytes wqe = TinyDriver::control(TinyDriver::kRead);
		TinyDriver::add_remote(wqe, from, rkey);
		TinyDriver::add_data(wqe, to, kSize, driver.key);
		driver.post(two, 0, wqe);
		driver.ring_at_once(two);
		unsigned turns = 0;
		driver.host.loop().run_until([&] { return turns++ == 1; });
		const std::uint8_t *const begin = driver.bytes(to, kSize);
		const auto arrived = std::count(begin, begin + kSize, kLeased);
		ASSERT_GT(arrived, 0);
		ASSERT_LT(arrived, kSize);
	}
	// The first QP writes to the second one's memory. All of the data is in flight.
	void begin_write(std::uint32_t lkey) { begin_write(lkey, from); }
	void begin_write(std::uint32_t lkey, std::uint64_t source)
	{
		Bytes wqe = TinyDriver::control(TinyDriver::kWrite);
		TinyDriver::add_remote(wqe, to, driver.key);
		TinyDriver::add_data(wqe, source, kWindow, lkey);
		driver.post(one, 0, wqe);
		driver.ring_at_once(one);
	}
	// A request that makes a key free.
	Bytes invalidation(std::uint32_t key)
	{
		Bytes wqe = TinyDriver::control(hw::mlx5::opcode_umr);
		WqeControl::immediate.set(wqe.data(), key);
		WqeUmr head{};
		WqeUmr::inline_list.set(head.bytes, 1);
		WqeUmr::mask.set(head.bytes, umr::free);
		MkeyContext given{};
		MkeyContext::free.set(given.bytes, 1);
		wqe.insert(wqe.end(), head.bytes, head.bytes + sizeof(head.bytes));
		wqe.insert(wqe.end(), given.bytes, given.bytes + sizeof(given.bytes));
		return wqe;
	}
	// The guest uses its pages for other data, none of which arrives.
	void reuse_and_expect_nothing()
	{
		std::fill_n(driver.bytes(from, kSize), kSize, kSecret);
		ASSERT_TRUE(driver.run_until_entry(cq, entries));
		expect_nothing();
	}
	void expect_nothing()
	{
		const std::uint8_t *const begin = driver.bytes(to, kSize);
		EXPECT_EQ(std::count(begin, begin + kSize, kSecret), 0);
	}
	std::uint32_t next_syndrome()
	{
		if (!driver.run_until_entry(cq, entries))
			return ~0u;
		const Cqe cqe = driver.entry(cq, entries++);
		const std::uint32_t opcode = Cqe::opcode.get(cqe.bytes);
		return opcode == static_cast<unsigned>(CqeOpcode::requester_error) ||
				       opcode == static_cast<unsigned>(CqeOpcode::responder_error)
			       ? Cqe::syndrome.get(cqe.bytes)
			       : 0;
	}

	static constexpr std::uint32_t kLocalProtection = 0x04;

	TinyDriver driver;
	TinyDriver::Cq cq;
	TinyDriver::Qp one, two;
	std::uint64_t from = 0, to = 0;
	std::uint32_t region = 0, window = 0;
	std::uint32_t entries = 0; // number of completion queue entries that were read
};

TEST_F(Mlx5Lease, DestroyingAnMrAbortsReadsThroughItsMemoryWindow)
{
	begin_read(window);
	ASSERT_EQ(driver.command_at_once(Opcode::destroy_mkey, region >> 8), Status::ok);
	reuse_and_expect_nothing();
	EXPECT_NE(next_syndrome(), 0u);
}

TEST_F(Mlx5Lease, DestroyingAnMrAbortsWritesThroughAKlmMkey)
{
	begin_write(window);
	ASSERT_EQ(driver.command_at_once(Opcode::destroy_mkey, region >> 8), Status::ok);
	reuse_and_expect_nothing();
	EXPECT_EQ(next_syndrome(), kLocalProtection) << "sent again in vain";
}

// The same holds for two nested keys.
TEST_F(Mlx5Lease, DestroyingAnMrAbortsWritesThroughNestedKlmMkeys)
{
	begin_write(make_list(window, from));
	ASSERT_EQ(driver.command_at_once(Opcode::destroy_mkey, region >> 8), Status::ok);
	reuse_and_expect_nothing();
	EXPECT_EQ(next_syndrome(), kLocalProtection);
}

// A memory window has its own key, which is destroyed like any other.
TEST_F(Mlx5Lease, DestroyingAMemoryWindowAbortsReadsThroughIt)
{
	begin_read(window);
	ASSERT_EQ(driver.command_at_once(Opcode::destroy_mkey, window >> 8), Status::ok);
	reuse_and_expect_nothing();
	EXPECT_NE(next_syndrome(), 0u);
}

// A UMR request of another queue pair makes the region's key free.
TEST_F(Mlx5Lease, InvalidatingAnMrAbortsReadsThroughItsMemoryWindow)
{
	const auto [third, fourth] = driver.make_pair(cq);
	begin_read(window);
	driver.post(third, 0, invalidation(region));
	driver.ring_at_once(third);
	ASSERT_EQ(next_syndrome(), 0u) << "the invalidation";
	reuse_and_expect_nothing();
	EXPECT_NE(next_syndrome(), 0u);
}

// A peer's SEND, which arrives before the first packet of the write, does the same.
TEST_F(Mlx5Lease, RemoteInvalidationAbortsWritesThroughAKlmMkey)
{
	const auto [third, fourth] = driver.make_pair(cq);
	driver.receive(fourth, 0, to + kSize - 4096, 4096);
	Bytes wqe = TinyDriver::control(TinyDriver::kSendInvalidate, false);
	WqeControl::immediate.set(wqe.data(), region);
	driver.post(third, 0, wqe);
	driver.ring_at_once(third);
	begin_write(window);
	reuse_and_expect_nothing();
	EXPECT_EQ(next_syndrome(), 0u) << "the SEND";
	EXPECT_EQ(next_syndrome(), kLocalProtection);
	expect_nothing();
}

// The packets of all list keys are dropped, because the card does not know which keys contain parts
// of that region; packets of other keys are sent again.
TEST_F(Mlx5Lease, DestroyingAnMrDelaysButDoesNotFailWritesThroughKlmMkeysWithoutThatMr)
{
	const std::uint64_t other = driver.allocate(kSize);
	std::fill_n(driver.bytes(other, kSize), kSize, std::uint8_t{0x22});
	begin_write(make_list(make_region(other), other), other);
	// A request reaches the region by the window, so that the region's end matters.
	std::vector<BusRange> ranges;
	ASSERT_EQ(driver.card.context()->memory.resolve({.key = window, .pd = driver.pd}, from, 8,
							ranges),
		  MemoryError::none);
	ASSERT_EQ(driver.command_at_once(Opcode::destroy_mkey, region >> 8), Status::ok);
	EXPECT_EQ(next_syndrome(), 0u);
	EXPECT_EQ(*driver.bytes(to + kWindow - 1, 1), 0x22);
}

// Destroying a region's key does not affect what is sent by other keys without parts.
TEST_F(Mlx5Lease, DestroyingAnMrDoesNotAffectOtherMrs)
{
	begin_write(driver.key);
	std::vector<BusRange> ranges;
	ASSERT_EQ(driver.card.context()->memory.resolve({.key = window, .pd = driver.pd}, from, 8,
							ranges),
		  MemoryError::none);
	ASSERT_EQ(driver.command_at_once(Opcode::destroy_mkey, region >> 8), Status::ok);
	driver.host.loop().poll();
	EXPECT_EQ(*driver.bytes(to + kWindow - 1, 1), kLeased) << "they were not sent again";
	EXPECT_EQ(next_syndrome(), 0u);
}

} // namespace weft::mlx5::testing
