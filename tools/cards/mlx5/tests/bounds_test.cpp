// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the limits of the daemon's resources that one guest can use (Documentation/mlx5.rst,
// "Limits").
#include <memory>
#include <sstream>
#include <string>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/number_pool.hpp"
#include "cards/mlx5/tests/tiny_driver.hpp"
#include "cards/mlx5/unsupported.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::Cqe;

class Mlx5Bounds : public ::testing::Test
{
public:
	void SetUp() override { driver.bring_up(); }
	Status attach(const TinyDriver::Qp &qp, std::uint32_t group)
	{
		Bytes in(32);
		hw::mlx5::object_number.set(in.data(), qp.number);
		in[16] = 0xff;
		hw::mlx5::store_be32(in.data(), 28, group);
		return driver.command(Opcode::attach_to_mcg, std::move(in)).status;
	}

	TinyDriver driver;
};

// Only types that a test can use up quickly are tested; the others have the same pool.
TEST_F(Mlx5Bounds, NumberOfObjectsOfEachTypeIsLimited)
{
	NumberPool pool(3, 6);
	for (std::uint32_t number = 3; number < 6; ++number)
		EXPECT_EQ(pool.take(), number);
	EXPECT_EQ(pool.take(), std::nullopt);
	pool.give(4);
	EXPECT_EQ(pool.take(), 4u);
	EXPECT_EQ(pool.take(), std::nullopt);

	unsigned queues = 2; // those of bring_up()
	std::uint64_t entries = 0;
	while (queues < limits::kEqs && driver.make_eq(4, 0, 0, entries))
		++queues;
	EXPECT_EQ(queues, limits::kEqs);
	EXPECT_EQ(driver.make_eq(4, 0, 0, entries), 0u);

	Status status = Status::ok;
	unsigned pages = 0;
	for (; pages <= limits::kUarPages && status == Status::ok; ++pages)
		status = driver.command(Opcode::alloc_uar).status;
	EXPECT_EQ(status, Status::no_resources);
	// One page belongs to the driver, and the last request was refused.
	EXPECT_EQ(pages, limits::kUarPages - limits::kFirstUar);
	EXPECT_EQ(driver.command(Opcode::dealloc_uar, limits::kFirstUar + 1).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::alloc_uar).status, Status::ok);
}

TEST_F(Mlx5Bounds, DriverHas64CompletionEventQueuesBesidesFourOthers)
{
	std::uint64_t entries = 0;
	unsigned others = 2; // those of bring_up()
	while (others++ < 4)
		ASSERT_NE(driver.make_eq(4, 0, 0, entries), 0u);
	for (unsigned i = 0; i < 64; ++i) {
		driver.completion_eq = driver.make_eq(4, 0, 4 + i, entries);
		ASSERT_NE(driver.completion_eq, 0u) << i;
		ASSERT_NE(driver.make_cq(4).number, 0u) << i;
	}
	EXPECT_EQ(driver.make_eq(4, 0, 4, entries), 0u);
}

// The sizes of the other queues have fields of four bits.
TEST_F(Mlx5Bounds, CqsAndEqsAboveTheMaximumSizeAreRefused)
{
	using hw::mlx5::CqContext;
	using hw::mlx5::EqContext;
	// A queue of the largest size is refused only because its pages are missing.
	const auto create = [&](Opcode opcode, std::span<const std::uint8_t> context) {
		return driver
			.command(opcode, TinyDriver::input_with(hw::mlx5::pages_offset,
								hw::mlx5::context_offset, context))
			.status;
	};
	CqContext cq{};
	CqContext::eqn.set(cq.bytes, driver.completion_eq);
	CqContext::log_size.set(cq.bytes, limits::kLogCqSize + 1);
	EXPECT_EQ(create(Opcode::create_cq, cq.bytes), Status::bad_parameter);
	CqContext::log_size.set(cq.bytes, limits::kLogCqSize);
	EXPECT_EQ(create(Opcode::create_cq, cq.bytes), Status::bad_input_length);
	EqContext eq{};
	EqContext::log_size.set(eq.bytes, limits::kLogEqSize + 1);
	EXPECT_EQ(create(Opcode::create_eq, eq.bytes), Status::bad_parameter);
	EqContext::log_size.set(eq.bytes, limits::kLogEqSize);
	EXPECT_EQ(create(Opcode::create_eq, eq.bytes), Status::bad_input_length);
}

TEST_F(Mlx5Bounds, NumbersOfMulticastGroupsAndMembersAreLimited)
{
	const auto cq = driver.make_cq(4);
	for (unsigned i = 0; i < limits::kMostMembers; ++i)
		ASSERT_EQ(attach(driver.make_qp(QpService::ud, cq), 0), Status::ok) << i;
	const auto last = driver.make_qp(QpService::ud, cq);
	EXPECT_EQ(attach(last, 0), Status::exceeds_limit);
	for (std::uint32_t group = 1; group < 1u << limits::kLogGroups; ++group)
		ASSERT_EQ(attach(last, group), Status::ok) << group;
	EXPECT_EQ(attach(last, 1), Status::ok) << "a member already";
	EXPECT_EQ(attach(last, 1u << limits::kLogGroups), Status::exceeds_limit);
}

// Nothing is read of a queue whose record claims more.
TEST_F(Mlx5Bounds, DoorbellRecordThatExceedsTheQueueIsIgnored)
{
	driver.set_port_active();
	const auto cq = driver.make_cq(6);
	const auto [one, two] = driver.make_pair(cq);
	constexpr std::uint32_t blocks = 1u << TinyDriver::kLogBlocks;
	for (std::uint32_t i = 0; i < blocks; ++i)
		driver.post(one, i, TinyDriver::control(0));
	driver.store(one.record + 4, blocks + 1);
	driver.ring_send(one);
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cq, 0).bytes), 0xfu);
	driver.store(one.record + 4, blocks);
	driver.ring_send(one);
	EXPECT_TRUE(driver.run_until_entry(cq, blocks - 1));
	// The same holds for receives: none counts as posted.
	driver.store(two.record, (1u << TinyDriver::kLogReceives) + 1);
	CardContext &card = *driver.card.context();
	EXPECT_EQ(card.work_queues.receives_posted(*card.queue_pair(two.number), 0), 0u);
	driver.store(two.record, 1u << TinyDriver::kLogReceives);
	EXPECT_EQ(card.work_queues.receives_posted(*card.queue_pair(two.number), 0),
		  1u << TinyDriver::kLogReceives);
}

TEST_F(Mlx5Bounds, AtMost256UnsupportedRequestsAreLogged)
{
	std::ostringstream log;
	const auto before = spdlog::default_logger();
	auto mine = std::make_shared<spdlog::logger>(
		"test", std::make_shared<spdlog::sinks::ostream_sink_st>(log));
	mine->set_level(spdlog::level::info);
	spdlog::set_default_logger(mine);
	Unsupported unsupported("card");
	for (std::uint32_t number = 0; number < 300; ++number)
		unsupported.note(RequestKind::capabilities, number);
	unsupported.note(RequestKind::capabilities, 0);
	spdlog::set_default_logger(before);
	EXPECT_EQ(unsupported.count(), 301u);
	const std::string lines = log.str();
	EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 256);
}

} // namespace weft::mlx5::testing
