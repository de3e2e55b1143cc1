// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests when the links come up, and how the card detects that its driver handles events of its
// ports.
#include <chrono>
#include <cstring>
#include <functional>

#include <ib/smp.hpp>

#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::Eqe;
using hw::mlx5::EventType;

namespace
{

using std::chrono::milliseconds;

constexpr unsigned kLastBlock = 3; // of the P_Key table
constexpr unsigned kBlockEntries = 32;

} // namespace

class Mlx5Link : public ::testing::Test
{
public:
	void SetUp() override { driver.bring_up(); }

	void read_pkeys(unsigned block, unsigned count)
	{
		using hw::mlx5::MadIfc;
		const ib::Smp smp = lid_routed_smp(ib::MadMethod::get, ib::attr_pkey_table, block);
		Bytes in(MadIfc::size);
		MadIfc::port.set(in.data(), 1);
		std::memcpy(in.data() + MadIfc::mad, &smp, sizeof(smp));
		for (unsigned i = 0; i < count; ++i)
			ASSERT_EQ(driver.command(Opcode::mad_ifc, in, MadIfc::size).status,
				  Status::ok);
	}
	// As Linux, the driver creates QP1 and reads the table for it before it subscribes.
	void set_up_qp1()
	{
		qp1 = driver.make_qp(QpService::qp1, driver.make_cq(4));
		driver.to_rts(qp1, 0);
		read_pkeys(kLastBlock, kBlockEntries);
	}
	// Returns the number of events with that subtype that the card has written for port 1.
	unsigned events(std::uint32_t subtype)
	{
		unsigned count = 0;
		for (unsigned i = 0; i < 1u << TinyDriver::kLogEq; ++i) {
			const auto event =
				driver.host.object<Eqe>(driver.async_entries + i * Eqe::size);
			count += Eqe::owner.get(event.bytes) == 0 &&
				 Eqe::type.get(event.bytes) ==
					 static_cast<unsigned>(EventType::port_change) &&
				 Eqe::subtype.get(event.bytes) == subtype &&
				 Eqe::port.get(event.bytes) == 1;
		}
		return count;
	}
	// The subnet manager makes the port active, after its link is up.
	void activate()
	{
		ASSERT_TRUE(run_until([&] { return driver.port.enabled(); }, milliseconds(5000)));
		driver.take_async_events();
		ib::PortInfo &info = driver.card.context()->port(1)->info();
		info.set_state(ib::PortState::armed);
		ib::Smp smp = lid_routed_smp(ib::MadMethod::set, ib::attr_port_info, 1);
		auto &wanted = ib::smp_attribute<ib::PortInfo>(smp);
		wanted = info;
		wanted.set_state(ib::PortState::active);
		wanted.set_phys_state(ib::PhysState::nop);
		wanted.lid = TinyDriver::kLid;
		wanted.sm_lid = 1;
		bool handled = false;
		const auto answer = driver.card.context()->management.wire_smp(1, smp, 1, handled);
		ASSERT_TRUE(answer);
		ASSERT_EQ(info.state(), ib::PortState::active);
	}
	bool run_until(const std::function<bool()> &done, milliseconds limit)
	{
		return driver.host.loop().run_until(done, limit);
	}

	TinyDriver driver;
	TinyDriver::Qp qp1;
};

// Programs may poll the state of the port by MADs for as long as it is down.
TEST_F(Mlx5Link, ReadingPkeysRepeatedlyDoesNotDelayLinkUpBeyondFiveSeconds)
{
	EXPECT_FALSE(driver.port.enabled());
	const auto begin = driver.host.loop().now();
	while (!driver.port.enabled()) {
		ASSERT_LT(driver.host.loop().now() - begin, milliseconds(5000));
		read_pkeys(0, 1);
		run_until([] { return false; }, milliseconds(10));
	}
	EXPECT_EQ(driver.command(Opcode::teardown_hca).status, Status::ok);
	EXPECT_FALSE(driver.port.enabled());
	EXPECT_EQ(driver.command(Opcode::init_hca).status, Status::ok);
	EXPECT_FALSE(driver.port.enabled());
}

TEST_F(Mlx5Link, LinkStaysDownUntilTheDriverHasReadThePkeyTableTwiceAfterAPkeyEvent)
{
	read_pkeys(kLastBlock, 4 * kBlockEntries);
	EXPECT_EQ(events(hw::mlx5::port_change::pkey), 0u) << "there is no QP1 yet";
	set_up_qp1();
	EXPECT_EQ(events(hw::mlx5::port_change::pkey), 1u);
	EXPECT_FALSE(driver.port.enabled());
	read_pkeys(0, 4 * kBlockEntries);
	read_pkeys(kLastBlock, 2 * kBlockEntries - 1);
	EXPECT_FALSE(driver.port.enabled());
	read_pkeys(kLastBlock, 1);
	EXPECT_TRUE(driver.port.enabled());
	EXPECT_EQ(events(hw::mlx5::port_change::active), 0u) << "it becomes active later";
	driver.take_async_events();
	EXPECT_FALSE(run_until([&] { return events(hw::mlx5::port_change::pkey) > 1; },
			       milliseconds(300)));
}

// A driver that subscribes late has missed the event of a port that is active already.
TEST_F(Mlx5Link, PortActiveEventIsRaisedAfterTheDriverSubscribesIfThePortIsAlreadyActive)
{
	ASSERT_TRUE(run_until([&] { return driver.port.enabled(); }, milliseconds(5000)));
	driver.set_port_active();
	set_up_qp1();
	EXPECT_EQ(events(hw::mlx5::port_change::active), 0u);
	read_pkeys(kLastBlock, 2 * kBlockEntries);
	EXPECT_EQ(events(hw::mlx5::port_change::active), 1u);
	read_pkeys(kLastBlock, 4 * kBlockEntries);
	EXPECT_EQ(events(hw::mlx5::port_change::active), 1u);
}

// ib_ipoib joins its groups again after the event, and drops packets meanwhile.
TEST_F(Mlx5Link, PortActiveEventIsNotRepeatedForADriverThatReactsToThePkeyEventBefore)
{
	set_up_qp1();
	ASSERT_NO_FATAL_FAILURE(activate());
	EXPECT_EQ(events(hw::mlx5::port_change::active), 1u);
	read_pkeys(kLastBlock, 2 * kBlockEntries);
	EXPECT_EQ(events(hw::mlx5::port_change::active), 1u);
	const unsigned asked = events(hw::mlx5::port_change::pkey);
	driver.take_async_events();
	EXPECT_FALSE(run_until([&] { return events(hw::mlx5::port_change::pkey) > asked; },
			       milliseconds(2000)));
}

// On a busy host, the driver has taken the event, but reads the table slowly.
TEST_F(Mlx5Link, PkeyEventIsNotSentAgainWhileTheDriverReadsTheTable)
{
	set_up_qp1();
	ASSERT_NO_FATAL_FAILURE(activate());
	driver.take_async_events();
	const unsigned asked = events(hw::mlx5::port_change::pkey);
	for (unsigned i = 0; i < kBlockEntries; ++i) {
		run_until([] { return false; }, milliseconds(40));
		EXPECT_EQ(events(hw::mlx5::port_change::pkey), asked);
		read_pkeys(kLastBlock, 2);
	}
	EXPECT_EQ(events(hw::mlx5::port_change::active), 1u);
}

// A program that reads the table once does not make the card take the driver for subscribed.
TEST_F(Mlx5Link, PkeyEventsContinueAfterASingleReadOfTheTable)
{
	set_up_qp1();
	ASSERT_NO_FATAL_FAILURE(activate());
	driver.take_async_events();
	const unsigned asked = events(hw::mlx5::port_change::pkey);
	read_pkeys(kLastBlock, kBlockEntries);
	EXPECT_TRUE(run_until([&] { return events(hw::mlx5::port_change::pkey) > asked; },
			      milliseconds(5000)));
}

TEST_F(Mlx5Link, PortActiveEventIsRepeatedForADriverThatReactsOnlyToALaterPkeyEvent)
{
	set_up_qp1();
	ASSERT_NO_FATAL_FAILURE(activate());
	const unsigned asked = events(hw::mlx5::port_change::pkey);
	driver.take_async_events();
	ASSERT_TRUE(run_until([&] { return events(hw::mlx5::port_change::pkey) > asked; },
			      milliseconds(5000)));
	EXPECT_EQ(events(hw::mlx5::port_change::active), 1u);
	read_pkeys(kLastBlock, 2 * kBlockEntries);
	EXPECT_EQ(events(hw::mlx5::port_change::active), 2u);
}

TEST_F(Mlx5Link, PkeyEventIsRepeatedOnlyAfterTheDriverHasReadThePreviousEvent)
{
	set_up_qp1();
	const auto asked = [&](unsigned count) {
		return run_until([&] { return events(hw::mlx5::port_change::pkey) >= count; },
				 milliseconds(400));
	};
	EXPECT_FALSE(asked(2));
	driver.take_async_events();
	EXPECT_TRUE(run_until([&] { return events(hw::mlx5::port_change::pkey) >= 2; },
			      milliseconds(5000)));
	driver.take_async_events();
	EXPECT_EQ(driver.command(Opcode::to_rst_qp, qp1.number).status, Status::ok);
	EXPECT_FALSE(asked(3)) << "there is no QP1 any more";
}

} // namespace weft::mlx5::testing
