// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A guest that uses its card in any way, with commands, descriptors and register accesses in random
// order from a seed, next to one that must not notice.
#include <random>

#include "cards/mlx5/tests/malicious_driver.hpp"

namespace weft::mlx5::testing
{
namespace
{

constexpr ib::Lid kVictimLid = 6;
constexpr std::size_t kInputBytes = 512;
constexpr unsigned kInputs = 300;

// Victim - a guest whose queue pairs exchange messages, and which is open to datagrams of others.
class Victim
{
public:
	explicit Victim(fabric::Port &port) : driver(port, 0x0002c90500000200)
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
		datagram_ = driver.allocate(8192);
		untouched_ = driver.allocate(kUntouched);
		std::fill_n(driver.bytes(untouched_, kUntouched), kUntouched, kMark);
	}
	// Takes what comes by the cable. There is always a receive for a datagram.
	void work()
	{
		driver.set_port_active();
		while (datagrams_posted_ - seen_ < 1u << TinyDriver::kLogReceives)
			driver.receive(datagrams_, datagrams_posted_++, datagram_, 8192);
		driver.host.loop().poll();
		driver.take_async_events();
		for (; hw::mlx5::Cqe::opcode.get(driver.entry(datagram_cq_, seen_).bytes) != 0xf &&
		       hw::mlx5::Cqe::owner.get(driver.entry(datagram_cq_, seen_).bytes) ==
			       (seen_ >> datagram_cq_.log_size & 1);
		     ++seen_)
			driver.store(datagram_cq_.record, seen_ + 1);
	}
	// One queue pair sends to the other: all of it arrives, and nothing else has changed.
	void exchange_messages()
	{
		work();
		++messages_;
		const auto content = static_cast<std::uint8_t>(messages_);
		std::fill_n(driver.bytes(from_, kMessage), kMessage, content);
		driver.receive(two_, messages_ - 1, to_, kMessage);
		Bytes wqe = TinyDriver::control(TinyDriver::kSend, false);
		TinyDriver::add_data(wqe, from_, kMessage, driver.key);
		index_ = driver.send(one_, index_, wqe);
		const hw::mlx5::Cqe cqe = driver.entry(cq_, messages_ - 1);
		driver.store(cq_.record, messages_);
		ASSERT_EQ(hw::mlx5::Cqe::opcode.get(cqe.bytes),
			  static_cast<unsigned>(hw::mlx5::CqeOpcode::responder_send))
			<< "syndrome " << hw::mlx5::Cqe::syndrome.get(cqe.bytes);
		ASSERT_EQ(hw::mlx5::Cqe::wqe_counter.get(cqe.bytes), (messages_ - 1) & 0xffff);
		ASSERT_EQ(hw::mlx5::Cqe::byte_count.get(cqe.bytes), kMessage);
		ASSERT_EQ(*driver.bytes(to_ + kMessage - 1, 1), content);
		const std::uint8_t *const begin = driver.bytes(untouched_, kUntouched);
		ASSERT_EQ(std::count(begin, begin + kUntouched, kMark), kUntouched);
	}
	std::uint32_t datagrams() const { return seen_; }

	TinyDriver driver;

private:
	static constexpr std::uint32_t kMessage = 8192, kUntouched = 1 << 20;
	static constexpr std::uint8_t kMark = 0x3c;

	TinyDriver::Cq cq_, datagram_cq_;
	TinyDriver::Qp one_, two_, datagrams_;
	std::uint64_t from_ = 0, to_ = 0, datagram_ = 0, untouched_ = 0;
	std::uint32_t messages_ = 0, index_ = 0, datagrams_posted_ = 0, seen_ = 0;
};

} // namespace

// The sanitizers find what it breaks in the daemon. Its own card must come back by a reset after
// each input, which HostileGuest checks.
TEST(Mlx5Malicious, RandomOperationsHurtNobodyElse)
{
	const auto first_seed =
		static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
	std::uint32_t datagrams = 0;
	for (unsigned seed = first_seed; seed < first_seed + 3; ++seed) {
		SCOPED_TRACE(seed);
		fabric::Fabric fabric;
		fabric::Port &mine = fabric.add_port("malicious"),
			     &other = fabric.add_port("other");
		fabric.connect(mine, other);
		Victim victim(other);
		weft::testing::HostileGuest<MaliciousDriver> guest(
			mine, 0x0002c90500000100, kVictimLid, [&] { victim.work(); });
		std::mt19937 random(seed);
		std::vector<std::uint8_t> input(kInputBytes);
		for (unsigned i = 0; i < kInputs; ++i) {
			std::ranges::generate(input,
					      [&] { return static_cast<std::uint8_t>(random()); });
			guest.run(weft::testing::Input(input));
			SCOPED_TRACE(i);
			victim.exchange_messages();
			if (::testing::Test::HasFatalFailure())
				return;
		}
		datagrams += victim.datagrams();
	}
	EXPECT_GT(datagrams, 0u) << "nothing has ever reached the other guest";
}

} // namespace weft::mlx5::testing
