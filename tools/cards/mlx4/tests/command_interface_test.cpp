// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the command register: how commands are accepted and completed, and which are refused.
#include <gtest/gtest.h>

#include "cards/mlx4/limits.hpp"
#include "cards/mlx4/tests/tiny_driver.hpp"

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::Eqe;
using hw::mlx4::QueryFw;
namespace bar0 = hw::mlx4::bar0;

TEST(CommandInterface, ToggleBitReadsZeroAfterReset)
{
	TinyDriver driver;
	driver.command(Opcode::query_fw, 0, 0, {}, 0x100); // leaves the bit set
	driver.host.write(0, bar0::reset, __builtin_bswap32(bar0::reset_bit));
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, bar0::hcr + hw::mlx4::hcr::control), 0u);
}

TEST(CommandInterface, QueryFwIsAcceptedAsTheFirstCommand)
{
	TinyDriver driver;
	const auto result = driver.command(Opcode::query_fw, 0, 0, {}, QueryFw::size);
	ASSERT_EQ(result.status, Status::ok);
	EXPECT_EQ(QueryFw::command_revision.get(result.out.data()), 3u);
	EXPECT_GE(QueryFw::fw_pages.get(result.out.data()), 1u);
}

TEST(CommandInterface, InitialisationCommandsOutOfOrderAreRefused)
{
	TinyDriver driver;
	EXPECT_EQ(driver.command(Opcode::query_dev_cap, 0, 0, {}, 0x100).status,
		  Status::bad_system_state);
	EXPECT_EQ(driver.command(Opcode::run_fw).status, Status::bad_system_state)
		<< "without the firmware's pages";
	EXPECT_EQ(driver.command(Opcode::init_hca, 0, 0, driver.init_hca_mailbox().bytes).status,
		  Status::bad_system_state);
	driver.bring_up();
	EXPECT_EQ(driver.command(Opcode::init_hca, 0, 0, driver.init_hca_mailbox().bytes).status,
		  Status::bad_system_state)
		<< "a second time";
	EXPECT_EQ(driver.command(Opcode::query_dev_cap, 0, 0, {}, 0x100).status, Status::ok);
}

TEST(CommandInterface, UnknownOpcodesAreRefused)
{
	TinyDriver driver;
	driver.bring_up();
	for (unsigned opcode = 0; opcode < 0x1000; ++opcode) {
		const auto status =
			driver.raw(static_cast<Opcode>(opcode), 0, 0, ~0ull, ~0ull).status;
		if (opcode == 0 || (opcode > 0x5a && opcode < 0xff6)) {
			EXPECT_EQ(status, Status::bad_opcode) << opcode;
		}
	}
}

TEST(CommandInterface, CommandsWithMailboxesOutsideGuestMemoryFail)
{
	TinyDriver driver;
	driver.bring_up();
	const std::uint64_t outside = TinyDriver::kMemorySize;
	EXPECT_EQ(driver.raw(Opcode::query_fw, 0, 0, 0, outside).status, Status::bad_parameter);
	EXPECT_EQ(driver.raw(Opcode::query_fw, 0, 0, 0, outside - 0xff).status,
		  Status::bad_parameter)
		<< "one byte too far";
	EXPECT_EQ(driver.raw(Opcode::query_fw, 0, 0, 0, outside - 0x100).status, Status::ok);
	EXPECT_EQ(driver.raw(Opcode::set_port, 1, 0, ~0ull - 3, 0).status, Status::bad_parameter);
}

TEST(CommandInterface, MailboxesAreNotReadWithoutBusMastering)
{
	TinyDriver driver;
	driver.host.set_bus_master(false);
	EXPECT_EQ(driver.command(Opcode::query_fw, 0, 0, {}, 0x100).status, Status::bad_parameter);
	driver.host.set_bus_master(true);
	EXPECT_EQ(driver.command(Opcode::query_fw, 0, 0, {}, 0x100).status, Status::ok);
}

TEST(CommandInterface, CommandCompletionEventReportsTokenStatusAndResult)
{
	TinyDriver driver;
	driver.bring_up_events();
	driver.raw(Opcode::nop, 0x1f, 0, 0, 0, true, 0x1234);
	auto event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::type.get(event->bytes), 0x0au);
	EXPECT_EQ(Eqe::command_token.get(event->bytes), 0x1234u);
	EXPECT_EQ(Eqe::command_status.get(event->bytes), 0u);
	EXPECT_EQ(driver.host.take_interrupts(0), 1u);

	driver.raw(Opcode::query_eq, 31, 0, 0, 0x1000, true, 0x4321);
	event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::command_token.get(event->bytes), 0x4321u);
	EXPECT_EQ(Eqe::command_status.get(event->bytes),
		  static_cast<std::uint32_t>(Status::bad_resource_state));
	EXPECT_EQ(driver.host.take_interrupts(0), 0u) << "not armed again";
}

TEST(CommandInterface, TeardownCommandsSucceedEvenIfTheObjectDoesNotExist)
{
	TinyDriver driver;
	for (const bool up : {false, true}) {
		if (up)
			driver.bring_up();
		for (const auto opcode :
		     {Opcode::hw2sw_mpt, Opcode::hw2sw_eq, Opcode::hw2sw_cq, Opcode::hw2sw_srq,
		      Opcode::to_rst_qp, Opcode::sync_tpt, Opcode::unmap_icm, Opcode::unmap_icm_aux,
		      Opcode::conf_special_qp, Opcode::close_port})
			EXPECT_EQ(
				driver.command(opcode, opcode == Opcode::close_port ? 1 : 0).status,
				Status::ok)
				<< static_cast<int>(opcode) << (up ? " up" : " down");
	}
	EXPECT_EQ(driver.command(Opcode::close_hca).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::close_hca).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::unmap_fa).status, Status::ok);
}

TEST(CommandInterface, InitHcaRefusesInvalidTableSizes)
{
	TinyDriver driver;
	driver.bring_up();
	driver.command(Opcode::close_hca);
	const auto try_with = [&](const hw::mlx4::Field &field, std::uint32_t value) {
		auto mailbox = driver.init_hca_mailbox();
		field.set(mailbox.bytes, value);
		return driver.command(Opcode::init_hca, 0, 0, mailbox.bytes).status;
	};
	using hw::mlx4::InitHca;
	EXPECT_EQ(try_with(InitHca::version, 1), Status::bad_parameter);
	EXPECT_EQ(try_with(InitHca::log_qps, 31), Status::exceeds_limit);
	EXPECT_EQ(try_with(InitHca::log_cqs, 31), Status::exceeds_limit);
	EXPECT_EQ(try_with(InitHca::log_eqs, 31), Status::exceeds_limit);
	EXPECT_EQ(try_with(InitHca::log_dmpts, 63), Status::exceeds_limit);
	EXPECT_EQ(try_with(InitHca::log_mcg_size, 31), Status::exceeds_limit);
	EXPECT_EQ(try_with(InitHca::log_mcg_entry_size, 31), Status::bad_parameter);
	EXPECT_EQ(try_with(InitHca::log_mcg_hash_size, 9), Status::bad_parameter);
	EXPECT_EQ(try_with(InitHca::log_uar_page_size, 4), Status::bad_parameter);
	EXPECT_EQ(try_with(InitHca::version, 2), Status::ok);
}

TEST(CommandInterface, ResetDestroysQpsAndCqsAndMakesQueryDevCapFailWithBadSystemState)
{
	TinyDriver driver;
	driver.bring_up_events();
	const auto cq = driver.create_cq(TinyDriver::kFirstCq, 4);
	ASSERT_EQ(
		driver.command(Opcode::rst2init_qp, TinyDriver::kFirstQp, 0, driver.qp_mailbox(cq))
			.status,
		Status::ok);
	driver.host.write(0, bar0::reset, __builtin_bswap32(bar0::reset_bit));
	EXPECT_EQ(driver.transport().destroyed, std::vector<std::uint32_t>{TinyDriver::kFirstQp});
	EXPECT_EQ(driver.context().completion_queue(cq.number), nullptr);
	EXPECT_EQ(driver.command(Opcode::query_dev_cap, 0, 0, {}, 0x100).status,
		  Status::bad_system_state);
}

TEST(CommandInterface, ReadingTheSemaphoreRegisterAcquiresItAndResetReleasesIt)
{
	TinyDriver driver;
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, bar0::semaphore), 0u);
	EXPECT_NE(driver.host.read<std::uint32_t>(0, bar0::semaphore), 0u);
	driver.host.write(0, bar0::reset, __builtin_bswap32(bar0::reset_bit));
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, bar0::semaphore), 0u);
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, bar0::ownership), 0u);
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, bar0::ownership), 0u);
}

TEST(CommandInterface, CardFailureIsReportedInTheErrorBuffer)
{
	TinyDriver driver;
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, limits::kErrorBuffer), 0u);
	driver.card.break_down(0x1234);
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, limits::kErrorBuffer),
		  __builtin_bswap32(0x1234));
	driver.host.write(0, bar0::reset, __builtin_bswap32(bar0::reset_bit));
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, limits::kErrorBuffer), 0u);
}

TEST(CommandInterface, CardAssertsIntxIfMsixIsDisabled)
{
	TinyDriver driver;
	driver.bring_up_events();
	driver.host.set_msix_enabled(false);
	driver.raw(Opcode::nop, 0x1f, 0, 0, 0, true);
	EXPECT_TRUE(driver.host.intx());
	driver.host.write(0, limits::kClearInterrupt + 4, __builtin_bswap32(1));
	EXPECT_FALSE(driver.host.intx());
}

} // namespace
} // namespace weft::mlx4::testing
