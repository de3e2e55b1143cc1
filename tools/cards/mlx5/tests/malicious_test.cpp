// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a malicious guest does not affect another guest. Commands, descriptors and register
// accesses of the malicious guest are generated from a seed; --gtest_random_seed repeats a run.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include <sys/epoll.h>

#include "base/environment.hpp"
#include "cards/mlx5/tests/malicious_driver.hpp"

namespace weft::mlx5::testing
{
namespace
{

using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;

constexpr ib::Lid kVictimLid = 6;
constexpr std::size_t kInputBytes = 2048;
constexpr unsigned kInputs = 100; // for each seed
constexpr unsigned kSeeds = 3;

// BusyHost - time of a host on which weftd is often preempted: it advances in small steps and, now
// and then, by more than a timeout of a queue pair. It depends only on the seed, and so does the
// result of the test.
class BusyHost final : public Environment
{
public:
	explicit BusyHost(std::uint32_t seed) : random_(seed) {}

	Clock::time_point now() const override
	{
		now_ += random_() % 256 ? std::chrono::microseconds(1)
					: std::chrono::milliseconds(random_() % 1200);
		return Clock::time_point(now_);
	}
	std::chrono::system_clock::time_point date() const override
	{
		return std::chrono::system_clock::time_point(
			std::chrono::duration_cast<std::chrono::system_clock::duration>(now_));
	}
	std::uint64_t random() override { return random_(); }
	// Tests never wait for time to pass.
	int wait(int poll, epoll_event *events, int most, Clock::time_point) override
	{
		return std::max(0, ::epoll_wait(poll, events, most, 0));
	}

private:
	mutable std::mt19937 random_;
	mutable Clock::duration now_ = std::chrono::hours(1);
};

// Victim - a guest whose queue pairs exchange messages, and which receives datagrams.
// MaliciousDriver expects that its third queue pair receives datagrams.
class Victim
{
public:
	Victim(fabric::Port &port, Environment &environment)
	    : driver(port, 0x0002c90500000200, environment)
	{
		driver.lid = driver.peer_lid = kVictimLid;
		driver.bring_up();
		driver.port.enable();
		driver.set_port_active();
		cq_ = driver.make_cq(6);
		datagram_cq_ = driver.make_cq(6);
		std::tie(one_, two_) = driver.make_pair(cq_);
		datagrams_ = driver.make_qp(QpService::ud, datagram_cq_);
		driver.to_rts(datagrams_, 0);
		from_ = driver.allocate(kMessage);
		to_ = driver.allocate(kMessage);
		datagram_ = driver.allocate(kDatagram);
		untouched_ = driver.allocate(kUntouched);
		std::fill_n(driver.bytes(untouched_, kUntouched), kUntouched, kMark);
	}
	// Handles events and received datagrams, and keeps the receive queue for datagrams full.
	void work()
	{
		driver.set_port_active();
		while (datagrams_posted_ - received_ < 1u << TinyDriver::kLogReceives)
			driver.receive(datagrams_, datagrams_posted_++, datagram_, kDatagram);
		driver.host.loop().poll();
		driver.take_async_events();
		for (; has_datagram(); ++received_)
			driver.store(datagram_cq_.record, received_ + 1);
	}
	// Sends a message from one queue pair to the other, and checks that it arrives and that
	// the rest of memory is unchanged.
	void exchange_message()
	{
		work();
		++messages_;
		const auto content = static_cast<std::uint8_t>(messages_);
		std::fill_n(driver.bytes(from_, kMessage), kMessage, content);
		driver.receive(two_, messages_ - 1, to_, kMessage);
		Bytes wqe = TinyDriver::control(TinyDriver::kSend, false);
		TinyDriver::add_data(wqe, from_, kMessage, driver.key);
		index_ = driver.send(one_, index_, wqe);
		const Cqe cqe = driver.entry(cq_, messages_ - 1);
		driver.store(cq_.record, messages_);
		ASSERT_EQ(Cqe::opcode.get(cqe.bytes),
			  static_cast<unsigned>(CqeOpcode::responder_send))
			<< "syndrome " << Cqe::syndrome.get(cqe.bytes);
		ASSERT_EQ(Cqe::wqe_counter.get(cqe.bytes), (messages_ - 1) & 0xffff);
		ASSERT_EQ(Cqe::byte_count.get(cqe.bytes), kMessage);
		ASSERT_EQ(*driver.bytes(to_ + kMessage - 1, 1), content);
		const std::uint8_t *const begin = driver.bytes(untouched_, kUntouched);
		ASSERT_EQ(std::count(begin, begin + kUntouched, kMark), kUntouched);
	}
	std::uint32_t received_datagrams() const { return received_; }

	TinyDriver driver;

private:
	static constexpr std::uint32_t kMessage = 8192, kDatagram = 8192, kUntouched = 1 << 20;
	static constexpr std::uint8_t kMark = 0x3c;

	bool has_datagram()
	{
		const Cqe cqe = driver.entry(datagram_cq_, received_);
		return Cqe::opcode.get(cqe.bytes) != 0xf &&
		       Cqe::owner.get(cqe.bytes) == (received_ >> datagram_cq_.log_size & 1);
	}

	TinyDriver::Cq cq_, datagram_cq_;
	TinyDriver::Qp one_, two_, datagrams_;
	std::uint64_t from_ = 0, to_ = 0, datagram_ = 0, untouched_ = 0;
	std::uint32_t messages_ = 0, index_ = 0, datagrams_posted_ = 0, received_ = 0;
};

// Memory errors in the daemon are found by the sanitizers. MaliciousGuest checks that a reset
// recovers the malicious guest's card after each input.
void run_beside_victim(bool polled)
{
	const auto first_seed =
		static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
	std::uint32_t datagrams = 0;
	for (unsigned seed = first_seed; seed < first_seed + kSeeds; ++seed) {
		SCOPED_TRACE(seed);
		fabric::Fabric fabric;
		fabric::Port &mine = fabric.add_port("malicious"),
			     &other = fabric.add_port("other");
		fabric.connect(mine, other);
		BusyHost host(seed);
		Victim victim(other, host);
		weft::testing::MaliciousGuest<MaliciousDriver> guest(
			mine, 0x0002c90500000100, kVictimLid, [&] { victim.work(); }, host, polled);
		std::mt19937 random(seed);
		std::vector<std::uint8_t> input(kInputBytes);
		for (unsigned i = 0; i < kInputs; ++i) {
			std::ranges::generate(input,
					      [&] { return static_cast<std::uint8_t>(random()); });
			guest.run(weft::testing::Input(input));
			SCOPED_TRACE(i);
			victim.exchange_message();
			if (::testing::Test::HasFatalFailure())
				return;
		}
		datagrams += victim.received_datagrams();
	}
	EXPECT_GT(datagrams, 0u) << "no datagram has reached the other guest";
}

} // namespace

TEST(Mlx5Malicious, RandomOperationsOfOneGuestDoNotAffectAnotherGuest)
{
	run_beside_victim(false);
}

TEST(Mlx5Malicious, RandomOperationsOfAGuestWhoseDoorbellsArePolledDoNotAffectAnotherGuest)
{
	run_beside_victim(true);
}

} // namespace weft::mlx5::testing
