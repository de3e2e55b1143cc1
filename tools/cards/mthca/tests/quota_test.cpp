// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the limits on the memory of weftd that one guest can use by commands. The tests reach each
// limit and exceed it by one. The ConnectX-2's quota_test tests the limits in code that both models
// share (tools/cards/mellanox_icm).
#include "cards/mthca/tests/tiny_driver.hpp"

namespace weft::mthca::testing
{
namespace
{

using hw::mthca::CqContext;
using hw::mthca::InitHca;
using hw::mthca::QpContext;
using hw::mthca::SrqContext;

class MthcaQuota : public ::testing::Test
{
public:
	// The first number that is not reserved for firmware.
	static constexpr std::uint32_t kFirst = 16;

	void SetUp() override
	{
		// The tables are for twice as many objects of each kind.
		constexpr unsigned log_objects = 17;
		InitHca init = driver.init();
		InitHca::log_qps.set(init.bytes, log_objects);
		InitHca::log_cqs.set(init.bytes, log_objects);
		InitHca::log_srqs.set(init.bytes, log_objects);
		driver.bring_up(init);
	}
	CqContext completion_queue(unsigned log_size) const
	{
		CqContext context{};
		CqContext::log_size.set(context.bytes, log_size);
		CqContext::uar_page.set(context.bytes, TinyDriver::kUar);
		CqContext::eqn.set(context.bytes, TinyDriver::kEqn);
		CqContext::pd.set(context.bytes, TinyDriver::kPd);
		CqContext::lkey.set(context.bytes, TinyDriver::kKey);
		return context;
	}
	SrqContext shared_queue(unsigned log_size) const
	{
		SrqContext context{};
		SrqContext::log_size.set(context.bytes, log_size);
		SrqContext::log_stride.set(context.bytes, 1);
		SrqContext::uar_page.set(context.bytes, TinyDriver::kUar);
		return context;
	}
	// Creates the maximum number of objects. Another one is refused until one has been
	// destroyed.
	template<class Create, class Remove>
	static void fill(std::size_t most, Create create, Remove remove)
	{
		const auto next = static_cast<std::uint32_t>(kFirst + most);
		for (std::uint32_t number = kFirst; number < next; ++number)
			ASSERT_EQ(create(number), Status::ok) << number;
		EXPECT_EQ(create(next), Status::exceeds_limit);
		remove(kFirst);
		EXPECT_EQ(create(next), Status::ok);
		EXPECT_EQ(create(kFirst), Status::exceeds_limit);
	}

	TinyDriver driver;
};

// The numbers of QPs, CQs and SRQs are limited, however large the tables are.
TEST_F(MthcaQuota, NumberOfQueuesOfEachTypeIsLimited)
{
	const CqContext cq = completion_queue(0);
	fill(
		limits::kMostCqs,
		[&](std::uint32_t cqn) {
			return driver.command(Opcode::sw2hw_cq, cqn, 0, cq.bytes).status;
		},
		[&](std::uint32_t cqn) { driver.command(Opcode::hw2sw_cq, cqn, 1); });

	std::uint8_t mailbox[hw::mthca::qp_mailbox_size]{};
	std::uint8_t *const qp = mailbox + hw::mellanox_icm::qp_mailbox_context;
	for (const auto *stride : {&QpContext::log_sq_stride, &QpContext::log_rq_stride})
		stride->set(qp, 2);
	QpContext::uar_page.set(qp, TinyDriver::kUar);
	QpContext::pd.set(qp, TinyDriver::kPd);
	for (const auto *cqn : {&QpContext::send_cqn, &QpContext::receive_cqn})
		cqn->set(qp, kFirst + 1);
	hw::mthca::PathLayout::port.set(qp + QpContext::primary_path, 1);
	fill(
		limits::kMostQps,
		[&](std::uint32_t qpn) {
			return driver.command(Opcode::rst2init_qp, qpn, 0, mailbox).status;
		},
		[&](std::uint32_t qpn) { driver.command(Opcode::to_rst_qp, qpn, 3); });

	const SrqContext srq = shared_queue(0);
	fill(
		limits::kMostSrqs,
		[&](std::uint32_t srqn) {
			return driver.command(Opcode::sw2hw_srq, srqn, 0, srq.bytes).status;
		},
		[&](std::uint32_t srqn) { driver.command(Opcode::hw2sw_srq, srqn, 1); });
}

// No CQ can be created with, or resized to, more entries than the reported maximum.
TEST_F(MthcaQuota, CompletionQueuesAboveTheMaximumSizeAreRefused)
{
	const auto make = [&](unsigned log_size) {
		return driver.command(Opcode::sw2hw_cq, kFirst, 0, completion_queue(log_size).bytes)
			.status;
	};
	EXPECT_EQ(make(limits::kLogMaxCqSize + 1), Status::exceeds_limit);
	ASSERT_EQ(make(limits::kLogMaxCqSize), Status::ok);
	hw::mthca::ResizeCq resize{};
	hw::mthca::ResizeCq::log_size.set(resize.bytes, limits::kLogMaxCqSize + 1);
	EXPECT_EQ(driver.command(hw::mthca::opcode::resize_cq, kFirst, 1, resize.bytes).status,
		  Status::exceeds_limit);
}

// INIT_HCA is refused if a table is larger than the card reports.
TEST(MthcaTables, InitHcaRefusesTablesAboveTheMaximumSize)
{
	TinyDriver driver;
	driver.start_firmware();
	const auto initialise = [&](const auto &field, unsigned value) {
		InitHca init = driver.init();
		field.set(init.bytes, value);
		return driver.command(Opcode::init_hca, 0, 0, init.bytes).status;
	};
	EXPECT_EQ(initialise(InitHca::log_qps, limits::kLogMaxQps + 1), Status::exceeds_limit);
	EXPECT_EQ(initialise(InitHca::log_srqs, limits::kLogMaxSrqs + 1), Status::exceeds_limit);
	EXPECT_EQ(initialise(InitHca::log_cqs, limits::kLogMaxCqs + 1), Status::exceeds_limit);
	EXPECT_EQ(initialise(InitHca::log_eqs, limits::kLogMaxEqs + 1), Status::exceeds_limit);
	EXPECT_EQ(initialise(InitHca::log_mpts, limits::kLogMaxMpts + 1), Status::exceeds_limit);
	EXPECT_EQ(initialise(InitHca::log_mcg_size, limits::kLogMaxMcgs + 1),
		  Status::exceeds_limit);
	EXPECT_EQ(initialise(InitHca::log_uarc_pages, 9), Status::exceeds_limit);
	EXPECT_EQ(initialise(InitHca::log_qps, limits::kLogMaxQps), Status::ok);
}

} // namespace
} // namespace weft::mthca::testing
