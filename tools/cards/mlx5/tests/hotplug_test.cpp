// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests hot-plug: unplugging a card releases all resources that its guest has used. The sanitizer
// detects memory leaks; these tests count descriptors and mappings.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{
namespace
{

using hw::mlx5::Cqe;
using hw::mlx5::WqeDatagram;

constexpr unsigned kCycles = 1000;

// Returns the number of the process's file descriptors, which leak detectors do not check.
std::ptrdiff_t descriptors()
{
	return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}
std::ptrdiff_t mappings()
{
	std::ifstream maps("/proc/self/maps");
	return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

// Brings the card up as a driver does, and leaves all kinds of objects and work behind: requests
// and packets in flight, a queue pair in the error state, members of a group, armed queues.
void use(TinyDriver &driver, unsigned cycle)
{
	driver.bring_up();
	driver.set_port_active();
	driver.xrc_domain = driver.command(Opcode::alloc_xrcd).number();
	const auto cq = driver.make_cq(5, cycle % 2);
	const auto pool = driver.make_rmp();
	ASSERT_NE(pool.number, 0u);
	ASSERT_NE(driver.make_xrc_srq(cq, 5).number, 0u);
	const auto [one, two] = driver.make_pair(cq);
	const auto failed = driver.make_qp(QpService::ud, cq);
	driver.to_rts(failed, 0);
	Bytes member(32);
	hw::mlx5::object_number.set(member.data(), failed.number);
	member[16] = 0xff;
	ASSERT_EQ(driver.command(Opcode::attach_to_mcg, member).status, Status::ok);
	ASSERT_EQ(driver.command(Opcode::to_err_qp, failed.number).status, Status::ok);
	const std::uint64_t data = driver.allocate(1 << 20), place = driver.allocate(1 << 20);
	// A request completes in each cycle, which shows that the card works.
	driver.send(one, 0, TinyDriver::control(0));
	ASSERT_TRUE(driver.run_until_entry(cq, 0)) << "cycle " << cycle;
	Bytes wqe = TinyDriver::control(cycle % 3 ? TinyDriver::kWrite : TinyDriver::kRead);
	TinyDriver::add_remote(wqe, place, driver.key);
	TinyDriver::add_data(wqe, data, 1 << 20, driver.key);
	driver.post(one, 1, wqe);
	driver.ring_at_once(one);
	if (cycle % 5 == 0)
		driver.host.loop().poll();
}

} // namespace

TEST(Mlx5HotPlug, HotPlugUnderTrafficLeaksNoFileDescriptorsOrMemoryMappings)
{
	TinyDriver driver;
	use(driver, 0);
	driver.plug_again();
	const auto open_before = descriptors(), mapped_before = mappings();
	for (unsigned cycle = 0; cycle < kCycles && !HasFatalFailure(); ++cycle) {
		use(driver, cycle);
		driver.plug_again();
	}
	EXPECT_EQ(descriptors(), open_before);
	EXPECT_LE(mappings(), mapped_before + 16) << "allocators add some";
}

// Tests the whole model, as weftd creates it for each guest.
TEST(Mlx5HotPlug, CardDestructionLeaksNoFileDescriptorsOrMemoryMappings)
{
	{
		TinyDriver first;
		use(first, 0);
	}
	const auto open_before = descriptors(), mapped_before = mappings();
	for (unsigned cycle = 0; cycle < kCycles && !HasFatalFailure(); ++cycle) {
		TinyDriver driver;
		use(driver, cycle);
	}
	EXPECT_EQ(descriptors(), open_before);
	EXPECT_LE(mappings(), mapped_before + 16) << "allocators add some";
}

} // namespace weft::mlx5::testing
