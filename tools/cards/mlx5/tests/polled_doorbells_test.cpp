// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests doorbells that are stores to a page that the guest has mapped.
#include <atomic>

#include <sys/stat.h>

#include "base/memory_mapping.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

namespace uar = hw::mlx5::uar;
using hw::mlx5::EqContext;

class Mlx5PolledDoorbells : public ::testing::Test
{
public:
	void SetUp() override
	{
		map();
		driver.bring_up();
		driver.set_port_active();
		first_uar = std::exchange(driver.uar, driver.command(Opcode::alloc_uar).number());
	}
	void map()
	{
		const PciMapping part = driver.card.mapping(0);
		ASSERT_GE(part.fd, 0);
		pages = MemoryMapping::map_file(part.fd, 0, limits::kRegistersSize, true);
	}
	std::atomic_ref<std::uint64_t> place(std::uint32_t page, std::uint32_t offset)
	{
		std::byte *const at = pages->data() + std::size_t{page} * uar::page_size + offset;
		return std::atomic_ref(*reinterpret_cast<std::uint64_t *>(at));
	}
	// Stores a doorbell of two dwords in the page of the queues.
	void store(std::uint32_t offset, std::uint32_t first, std::uint32_t second)
	{
		place(driver.uar, offset)
			.store(std::uint64_t{__builtin_bswap32(second)} << 32 |
			       __builtin_bswap32(first));
	}
	void ring(const TinyDriver::Qp &qp, std::uint32_t half = 0)
	{
		store(uar::blue_flame + half * uar::blue_flame_half, 0, qp.number << 8);
	}
	// Writes the arm word as a driver does: first the record, then the doorbell.
	void write_arm_word(const TinyDriver::Cq &cq, std::uint32_t sequence,
			    std::uint32_t consumer)
	{
		driver.store(cq.record + 4, sequence << 28 | consumer);
	}
	void ring_arm(const TinyDriver::Cq &cq, std::uint32_t sequence, std::uint32_t consumer)
	{
		store(uar::cq_doorbell, sequence << 28 | consumer, cq.number);
	}
	void arm(const TinyDriver::Cq &cq, std::uint32_t sequence, std::uint32_t consumer)
	{
		write_arm_word(cq, sequence, consumer);
		ring_arm(cq, sequence, consumer);
		settle();
	}
	// Waits until the card has polled all pages twice.
	void settle()
	{
		const std::uint64_t before = driver.card.polls().polls;
		ASSERT_TRUE(driver.host.loop().run_until(
			[&] { return driver.card.polls().polls >= before + 3; }));
	}
	void pass()
	{
		const std::uint64_t before = driver.card.polls().polls;
		ASSERT_TRUE(driver.host.loop().run_until(
			[&] { return driver.card.polls().polls > before; }));
		ASSERT_EQ(driver.card.polls().polls, before + 1);
	}
	// Waits until the records of kManyQueues queues have been read.
	void finish_round()
	{
		for (unsigned passes = 0; passes <= kManyQueues / 64 + 1; ++passes)
			pass();
	}
	// Needs kManyQueues queues on the page. A pass reads 64 of them and leaves the rest. @ring
	// makes a pass read all again. The second round therefore reads queues 64 to 127 first and
	// queue 63 last. @post gives work to queue 63, and @create adds a queue to those that are
	// left.
	template<typename Ring, typename Post, typename Create>
	void create_within_a_round(Ring &&ring, Post &&post, Create &&create)
	{
		finish_round();
		ring();
		pass();
		post();
		ring();
		pass();
		create(); // before the next pass
	}
	// Starts again as a guest that this process has taken over from another one, which has
	// mapped a file that is not known.
	void forget_file()
	{
		driver.card.reset(PciReset::host_gone);
		driver.start_over();
		driver.bring_up();
		driver.set_port_active();
		driver.uar = driver.command(Opcode::alloc_uar).number();
	}
	std::uint64_t polls_within(std::chrono::milliseconds time)
	{
		const std::uint64_t before = driver.card.polls().polls;
		driver.host.loop().run_until([] { return false; }, time);
		return driver.card.polls().polls - before;
	}
	// Idle queues are polled 500 times a second, each time in @passes passes.
	void expect_pauses(unsigned passes)
	{
		// After this time, the pauses have reached their limit.
		polls_within(std::chrono::milliseconds(50));
		const auto start = std::chrono::steady_clock::now();
		const std::uint64_t count = polls_within(std::chrono::milliseconds(200));
		const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
		EXPECT_GE(count, 1u);
		EXPECT_LE(static_cast<double>(count), passes * (500 * time.count() + 2));
	}
	unsigned events() { return driver.completion_events(); }
	std::uint32_t post(const TinyDriver::Qp &qp, std::uint32_t index)
	{
		return driver.post(qp, index, TinyDriver::control(0));
	}
	// Posts a NOP on @qp and waits for its completion.
	std::uint32_t complete(const TinyDriver::Qp &qp, const TinyDriver::Cq &cq,
			       std::uint32_t index)
	{
		const std::uint32_t next = post(qp, index);
		ring(qp);
		EXPECT_TRUE(driver.run_until_entry(cq, index));
		return next;
	}

	static constexpr unsigned kManyQueues = 130;
	TinyDriver driver{true, 1, false, true};
	std::shared_ptr<const MemoryMapping> pages;
	std::uint32_t first_uar = 0;
};

TEST_F(Mlx5PolledDoorbells, AllUarPagesExceptTheFirstAreMappable)
{
	const PciMapping part = driver.card.mapping(0);
	EXPECT_LT(std::uint64_t{first_uar} * uar::page_size, part.offset);
	EXPECT_GE(std::uint64_t{driver.uar} * uar::page_size, part.offset);
	EXPECT_EQ(part.offset + part.size, limits::kRegistersSize);
	EXPECT_GE(part.offset, hw::mlx5::segment::end);
	EXPECT_LT(driver.card.mapping(4).fd, 0) << "the MSI-X table";
	EXPECT_LT(TinyDriver().card.mapping(0).fd, 0) << "doorbells are trapped by default";

	EXPECT_EQ(driver.command(Opcode::dealloc_uar, first_uar).status, Status::ok);
	EXPECT_LT(driver.command(Opcode::alloc_uar).number(), limits::kFirstPolledUar);
	EXPECT_GE(driver.command(Opcode::alloc_uar).number(), limits::kFirstPolledUar);
}

TEST_F(Mlx5PolledDoorbells, CreateEqRefusesAUarPageThatTheGuestCanMap)
{
	EqContext context{};
	EqContext::log_size.set(context.bytes, 4);
	EqContext::uar_page.set(context.bytes, driver.uar);
	const auto create = [&] {
		Bytes in = TinyDriver::input_with(hw::mlx5::pages_offset, hw::mlx5::context_offset,
						  context.bytes);
		driver.append_pages(in, driver.allocate(4096), 4096);
		return driver.command(Opcode::create_eq, std::move(in)).status;
	};
	EXPECT_EQ(create(), Status::bad_parameter);
	EXPECT_EQ(driver.card.unsupported().count(), 1u);
	EqContext::uar_page.set(context.bytes, first_uar);
	EXPECT_EQ(create(), Status::ok);
}

TEST_F(Mlx5PolledDoorbells, WritingASendDoorbellToAMappedUarPageStartsTheSendQueue)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	std::uint32_t index = complete(one, cq, 0);
	index = post(one, index);
	ring(one, 1);
	EXPECT_TRUE(driver.run_until_entry(cq, 1)) << "by the other half of the register";
	EXPECT_EQ(driver.card.activity().send_doorbells, 0u);
	EXPECT_GE(driver.card.polls().doorbells, 2u);
}

// Several queues share the registers of a page, and the last doorbell replaces the others.
TEST_F(Mlx5PolledDoorbells, SendQueuesAreProcessedEvenIfTheirDoorbellsAreOverwritten)
{
	const unsigned queues = 150; // more than a pass reads
	const auto cq = driver.make_cq(8);
	std::vector<TinyDriver::Qp> qps;
	for (unsigned i = 0; i < queues; ++i) {
		qps.push_back(driver.make_qp(QpService::rc, cq));
		driver.to_rts(qps.back(), qps.back().number);
	}
	settle();
	for (const auto &qp : qps)
		post(qp, 0);
	ring(qps.back());
	EXPECT_TRUE(driver.run_until_entry(cq, queues - 1));
}

TEST_F(Mlx5PolledDoorbells, FirstCqArmTakesEffectEvenIfItsDoorbellIsOverwritten)
{
	const auto cq = driver.make_cq(4), other = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	settle();
	// The arm word of a new queue is 0, as is its record.
	write_arm_word(cq, 0, 0);
	write_arm_word(other, 0, 0);
	ring_arm(other, 0, 0);
	settle();
	complete(one, cq, 0);
	EXPECT_EQ(events(), 1u);
}

TEST_F(Mlx5PolledDoorbells, SecondCqArmTakesEffectEvenIfItsDoorbellIsOverwritten)
{
	const auto cq = driver.make_cq(4), other = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	arm(cq, 0, 0);
	std::uint32_t index = complete(one, cq, 0);
	EXPECT_EQ(events(), 1u);
	index = complete(one, cq, index);
	EXPECT_EQ(events(), 1u) << "it was not armed again";
	write_arm_word(cq, 1, 2);
	arm(other, 0, 0);
	complete(one, cq, index);
	EXPECT_EQ(events(), 2u);
}

TEST_F(Mlx5PolledDoorbells, CqArmRaisesAnEventImmediatelyIfTheCqContainsAnUnpolledCqe)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	complete(one, cq, 0);
	EXPECT_EQ(events(), 0u);
	arm(cq, 0, 0);
	EXPECT_EQ(events(), 1u);
}

// Otherwise the number of pending events could exceed that of sequence numbers, and a later arm
// could have the same word as an earlier one.
TEST_F(Mlx5PolledDoorbells, EachCqArmSequenceNumberRaisesAtMostOneEvent)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	arm(cq, 0, 0);
	std::uint32_t index = complete(one, cq, 0);
	arm(cq, 0, 1);
	index = complete(one, cq, index);
	EXPECT_EQ(events(), 1u) << "the first event was not received yet";
	arm(cq, 1, 2);
	complete(one, cq, index);
	EXPECT_EQ(events(), 2u);
}

TEST_F(Mlx5PolledDoorbells, DoorbellsInAMappedUarPageCannotStartQueuesOfOtherUarPages)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	// A queue of the first page, whose doorbells are trapped.
	const std::uint32_t own = std::exchange(driver.uar, first_uar);
	const auto [foreign, peer] = driver.make_pair(cq);
	driver.uar = own;
	driver.receive(foreign, 0, driver.allocate(64), 64);
	post(foreign, 0);
	for (std::uint32_t at = 0; at < uar::page_size; at += 8)
		store(at, foreign.number << 8, foreign.number << 8);
	settle();
	EXPECT_EQ(hw::mlx5::Cqe::opcode.get(driver.entry(cq, 0).bytes), 0xfu);
	for (std::uint32_t at = 0; at < uar::page_size; at += 8)
		store(at, 0xffffffff, 0xffffffff);
	settle();
	EXPECT_EQ(events(), 0u);
	complete(one, cq, 0);
}

TEST_F(Mlx5PolledDoorbells, SendQueueIsProcessedFromIndexZeroAfterTheQpWasReset)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	complete(one, cq, 0);
	EXPECT_EQ(driver.command(Opcode::to_rst_qp, one.number).status, Status::ok);
	driver.store(one.record + 4, 0);
	driver.to_rts(one, two.number);
	// The record has the same value as before.
	post(one, 0);
	ring(two);
	EXPECT_TRUE(driver.run_until_entry(cq, 1));
}

TEST_F(Mlx5PolledDoorbells, AllocatedUarPageIsZeroed)
{
	place(driver.uar, 0x100).store(1);
	const std::uint32_t page = driver.uar;
	EXPECT_EQ(driver.command(Opcode::dealloc_uar, page).status, Status::ok);
	std::uint32_t next = 0;
	do
		next = driver.command(Opcode::alloc_uar).number();
	while (next != page && next != 0);
	EXPECT_EQ(next, page);
	EXPECT_EQ(place(page, 0x100).load(), 0u);
}

TEST_F(Mlx5PolledDoorbells, UarPagesGetANewBackingFileWhenTheGuestDisconnectsButNotOnABusReset)
{
	const auto inode = [&] {
		struct stat status{};
		EXPECT_EQ(::fstat(driver.card.mapping(0).fd, &status), 0);
		return status.st_ino;
	};
	const auto first = inode();
	driver.card.reset(PciReset::bus);
	EXPECT_EQ(inode(), first) << "the guest keeps its mapping when it resets the card";
	driver.card.reset(PciReset::host_gone);
	EXPECT_NE(inode(), first);
}

// A pass reads 64 send queues. They must not keep it from completion queues.
TEST_F(Mlx5PolledDoorbells, CqArmIsDetectedWhileManySendDoorbellsAreRung)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	for (unsigned queues = 2; queues < 64; ++queues)
		driver.make_qp(QpService::rc, cq);
	settle();
	write_arm_word(cq, 1, 0);
	ring_arm(cq, 1, 0);
	post(one, 0);
	const std::uint64_t last = driver.card.polls().polls + 10;
	EXPECT_TRUE(driver.host.loop().run_until([&] {
		ring(two);
		return events() == 1 || driver.card.polls().polls > last;
	}));
	EXPECT_EQ(events(), 1u);
}

TEST_F(Mlx5PolledDoorbells, SendQueueIsProcessedEvenIfAnotherSendQueueIsCreatedDuringPolling)
{
	const auto cq = driver.make_cq(4);
	std::vector<TinyDriver::Qp> qps;
	for (unsigned i = 0; i < kManyQueues; ++i)
		qps.push_back(driver.make_qp(QpService::rc, cq));
	driver.to_rts(qps[63], qps[63].number);
	create_within_a_round([&] { ring(qps[0]); }, [&] { post(qps[63], 0); },
			      [&] { driver.make_qp(QpService::rc, cq); });
	EXPECT_TRUE(driver.run_until_entry(cq, 0));
}

TEST_F(Mlx5PolledDoorbells, CqArmIsDetectedEvenIfAnotherCqIsCreatedDuringPolling)
{
	std::vector<TinyDriver::Cq> cqs;
	for (unsigned i = 0; i < kManyQueues; ++i)
		cqs.push_back(driver.make_cq(4));
	const auto [one, two] = driver.make_pair(cqs[63]);
	// The first doorbell arms all new queues.
	arm(cqs[0], 0, 0);
	finish_round();
	complete(one, cqs[63], complete(one, cqs[63], 0));
	EXPECT_EQ(events(), 1u);
	create_within_a_round([&] { ring_arm(cqs[0], 0, 0); },
			      [&] { write_arm_word(cqs[63], 1, 1); }, [&] { driver.make_cq(4); });
	EXPECT_TRUE(driver.host.loop().run_until([&] { return events() == 2; }));
}

TEST_F(Mlx5PolledDoorbells, DoorbellRecordsArePolledIfTheBackingFileOfTheMappedUarPagesIsUnknown)
{
	forget_file();
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	settle();
	write_arm_word(cq, 1, 0);
	settle();
	post(one, 0);
	EXPECT_TRUE(driver.run_until_entry(cq, 0));
	EXPECT_EQ(events(), 1u);
}

// The numbers of queues are those at which one pass ends, and such that the last pass of a round
// ends within a page.
TEST_F(Mlx5PolledDoorbells,
       PollingManyDoorbellRecordsIsDividedIntoPassesIfTheUarBackingFileIsUnknown)
{
	for (const unsigned queues : {64u, 150u}) {
		SCOPED_TRACE(queues);
		forget_file();
		const auto cq = driver.make_cq(4);
		const auto [one, two] = driver.make_pair(cq);
		for (unsigned made = 2; made < queues; ++made)
			driver.make_qp(QpService::rc, cq);
		// The next pages are read in the same round.
		for (unsigned page = 0; page < 2; ++page) {
			driver.uar = driver.command(Opcode::alloc_uar).number();
			for (unsigned made = 0; made < 40; ++made)
				driver.make_qp(QpService::rc, driver.make_cq(0));
		}
		expect_pauses((queues + 63) / 64 + 2);
		write_arm_word(cq, 1, 0);
		post(one, 0);
		EXPECT_TRUE(driver.run_until_entry(cq, 0));
		EXPECT_TRUE(driver.host.loop().run_until([&] { return events() == 1; }));
	}
}

TEST_F(Mlx5PolledDoorbells, DoorbellWritesAreProcessedIfTheUarPageIsNotMapped)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	write_arm_word(cq, 1, 0);
	const std::uint64_t page = std::uint64_t{driver.uar} * uar::page_size;
	driver.write(page + uar::cq_doorbell, 1 << 28);
	driver.write(page + uar::cq_doorbell + 4, cq.number);
	driver.send(one, 0, TinyDriver::control(0));
	EXPECT_TRUE(driver.run_until_entry(cq, 0));
	EXPECT_EQ(events(), 1u);
	EXPECT_EQ(driver.card.activity().send_doorbells, 1u);
}

TEST_F(Mlx5PolledDoorbells, CardStopsPollingDoorbellsAfterAllQueuesWereDestroyed)
{
	const auto cq = driver.make_cq(4);
	const auto qp = driver.make_qp(QpService::rc, cq);
	settle();
	EXPECT_EQ(driver.command(Opcode::destroy_qp, qp.number).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::destroy_cq, cq.number).status, Status::ok);
	driver.host.loop().poll();
	const std::uint64_t polls = driver.card.polls().polls;
	driver.host.loop().run_until([] { return false; }, std::chrono::milliseconds(20));
	EXPECT_EQ(driver.card.polls().polls, polls);
}

TEST_F(Mlx5PolledDoorbells, IdleQueuesArePolledFiveHundredTimesASecond)
{
	driver.make_qp(QpService::rc, driver.make_cq(4));
	expect_pauses(1);
}

} // namespace weft::mlx5::testing
