// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests shared receive queues, whose WQEs the driver links by address.
#include "cards/mthca/tests/tiny_driver.hpp"

namespace weft::mthca::testing
{
namespace
{

using hw::mellanox_icm::Eqe;
using hw::mellanox_icm::EventType;
using hw::mthca::WqeNext;

class MthcaShared : public ::testing::Test
{
public:
	static constexpr std::uint32_t kSrqn = 0x11;

	// Creates a queue of four entries of 64 bytes, with record 400; returns its address.
	std::uint64_t make_shared_queue()
	{
		using Srq = hw::mthca::SrqContext;
		const std::uint64_t buffer = driver.allocate(4096);
		Srq context{};
		Srq::log_size.set(context.bytes, 2);
		Srq::log_stride.set(context.bytes, 2);
		Srq::lkey.set(context.bytes, TinyDriver::kKey);
		Srq::record.set(context.bytes, 400);
		Srq::uar_page.set(context.bytes, TinyDriver::kUar);
		Srq::start.set(context.bytes, buffer);
		Srq::pd.set(context.bytes, TinyDriver::kPd);
		EXPECT_EQ(driver.command(Opcode::sw2hw_srq, kSrqn, 0, context.bytes).status,
			  Status::ok);
		return buffer;
	}

	TinyDriver driver;
};

// An SRQ is a list linked by addresses. WQEs are used in the order of the links, and addresses
// beyond the queue are clamped to it.
TEST_F(MthcaShared, LinkedWqesAreConsumedInLinkOrder)
{
	driver.bring_up();
	const std::uint64_t buffer = make_shared_queue();
	SharedReceiveQueue &srq = *driver.context().shared_receive_queue(kSrqn);
	EXPECT_FALSE(srq.take());
	driver.host.object<WqeNext>(buffer).next_word =
		static_cast<std::uint32_t>(buffer + 128) | 1;
	driver.host.object<WqeNext>(buffer + 128).next_word = 0xffffffc0u;
	driver.record(400) = 3;
	EXPECT_EQ(srq.take(), 0);
	EXPECT_EQ(srq.wqe_address(2), buffer + 128);
	EXPECT_EQ(srq.take(), 2);
	const auto wild = srq.take();
	ASSERT_TRUE(wild);
	EXPECT_LT(*wild, 4);
	EXPECT_FALSE(srq.take());
	driver.record(400) = 0xffff;
	EXPECT_LE(srq.available(), 4u) << "more than there is room for is not believed";
}

// The limit event is raised once until the limit is set again. A list that cannot be read puts the
// SRQ into the error state.
TEST_F(MthcaShared, SrqLimitEventIsRaisedOnceEachTimeTheLimitIsArmed)
{
	driver.bring_up();
	const std::uint64_t buffer = make_shared_queue();
	for (std::uint64_t i = 0; i < 4; ++i)
		driver.host.object<WqeNext>(buffer + 64 * i).next_word =
			static_cast<std::uint32_t>(buffer + 64 * ((i + 1) % 4));
	SharedReceiveQueue &srq = *driver.context().shared_receive_queue(kSrqn);
	const auto limit = [this](std::uint64_t least) {
		ASSERT_EQ(driver.command(Opcode::arm_srq, kSrqn, 0, {}, 0, least).status,
			  Status::ok);
	};
	const auto reported = [this](EventType type) {
		const Eqe event = driver.next_event();
		return Eqe::type.get(event.bytes) == unsigned(type) &&
		       Eqe::number.get(event.bytes) == kSrqn;
	};
	const auto silent = [this] { return Eqe::type.get(driver.next_event().bytes) == 0xff; };
	driver.record(400) = 4;
	limit(3);
	EXPECT_TRUE(srq.take());
	EXPECT_TRUE(silent()) << "three are left";
	EXPECT_TRUE(srq.take());
	EXPECT_TRUE(reported(EventType::srq_limit));
	EXPECT_TRUE(srq.take());
	EXPECT_TRUE(silent());
	limit(2);
	EXPECT_TRUE(reported(EventType::srq_limit)) << "at once";

	driver.card.faults().arm(Fault::srq_list, 1);
	EXPECT_FALSE(srq.take());
	EXPECT_TRUE(reported(EventType::srq_catastrophic));
	EXPECT_EQ(srq.available(), 0u);
	EXPECT_TRUE(silent());
}

} // namespace
} // namespace weft::mthca::testing
