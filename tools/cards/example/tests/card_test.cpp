// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the example device through its registers, memory and interrupts. The test creates the
// device as weftd does.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hw/example/registers.hpp>

#include "cards/model.hpp"
#include "bus/pci/testing/fake_host.hpp"

namespace weft::example
{
namespace
{

namespace wire = hw::example;
using wire::State;
using wire::Status;

constexpr std::uint64_t kQueue = 0x10000;
constexpr std::uint64_t kSource = 0x20000;
constexpr std::uint64_t kDestination = 0x30000;

class Example : public ::testing::Test
{
protected:
	Example()
	{
		const cards::Model *model = cards::find_model("example");
		if (!model)
			throw std::logic_error("nobody has registered the model");
		card_ = model->make({.name = "node1", .guid = 1, .ports = {}, .flags = {}},
				    &host_.loop());
		host_.plug(*card_->function());
	}
	~Example() override { host_.unplug(); }

	wire::Request &request(std::uint32_t number)
	{
		return host_.object<wire::Request>(kQueue + number % wire::queue_entries *
								    sizeof(wire::Request));
	}
	// Fills in one more request, without a doorbell.
	wire::Request &put(std::uint64_t source, std::uint64_t destination, std::uint32_t length)
	{
		wire::Request &entry = request(posted_++);
		entry = {source, destination, length, Status::posted, 0};
		return entry;
	}
	void ring() { ring(kQueue, posted_); }
	void ring(std::uint64_t queue, std::uint32_t count)
	{
		host_.write<std::uint64_t>(0, wire::doorbell, queue | (count & wire::count_mask));
	}
	State state()
	{
		return static_cast<State>(host_.read<std::uint64_t>(0, wire::doorbell) & 0xff);
	}
	std::uint64_t counted(std::string_view name)
	{
		for (const auto &counts : {card_->activity(), card_->faults()})
			for (const cards::Count &count : counts)
				if (count.name == name)
					return count.value;
		throw std::out_of_range(std::string(name));
	}

	testing::FakeHost host_;
	std::unique_ptr<cards::Card> card_;
	std::uint32_t posted_ = 0;
};

// A request copies bytes from one address to another and raises an interrupt.
TEST_F(Example, RequestCopiesDataAndRaisesAnInterrupt)
{
	EXPECT_EQ(state(), State::idle);
	std::ranges::fill(host_.memory(kSource, 100), std::byte{0x5a});
	const wire::Request &entry = put(kSource, kDestination, 100);
	ring();
	EXPECT_EQ(entry.status, Status::done);
	EXPECT_EQ(state(), State::running);
	EXPECT_TRUE(
		std::ranges::equal(host_.memory(kSource, 100), host_.memory(kDestination, 100)));
	EXPECT_EQ(host_.object<std::uint8_t>(kDestination + 100), 0);
	EXPECT_EQ(host_.take_interrupts(0), 1u);
	EXPECT_EQ(counted("doorbells"), 1u);
	EXPECT_EQ(counted("requests"), 1u);
}

// A full queue is processed in slices, between which the guest runs. The ring and its index wrap
// around.
TEST_F(Example, FullQueueIsProcessedInSeveralEventLoopIterations)
{
	for (std::uint32_t round = 0; round < 2 * wire::counts / wire::queue_entries; ++round) {
		for (std::uint32_t i = 0; i < wire::queue_entries; ++i)
			put(kSource, kDestination, wire::most_bytes);
		ring();
		EXPECT_EQ(request(posted_ - 1).status, Status::posted);
		ASSERT_TRUE(host_.loop().run_until(
			[&] { return request(posted_ - 1).status != Status::posted; }));
		EXPECT_EQ(request(posted_ - 1).status, Status::done);
	}
	EXPECT_EQ(counted("requests"), 2 * wire::counts);
	EXPECT_EQ(state(), State::running);
}

// An invalid request completes with a status, and the next request is executed.
TEST_F(Example, InvalidRequestDoesNotAffectOtherRequests)
{
	const wire::Request &empty = put(kSource, kDestination, 0);
	const wire::Request &longest = put(kSource, kDestination, wire::most_bytes);
	const wire::Request &too_long = put(kSource, kDestination, wire::most_bytes + 1);
	const wire::Request &from_nowhere = put(std::uint64_t{1} << 60, kDestination, 8);
	const wire::Request &to_nowhere = put(kSource, ~std::uint64_t{0} - 3, 8);
	const wire::Request &good = put(kSource, kDestination, 8);
	ring();
	EXPECT_EQ(empty.status, Status::bad_length);
	EXPECT_EQ(longest.status, Status::done);
	EXPECT_EQ(too_long.status, Status::bad_length);
	EXPECT_EQ(from_nowhere.status, Status::no_memory);
	EXPECT_EQ(to_nowhere.status, Status::no_memory);
	EXPECT_EQ(good.status, Status::done);
}

// A driver that violates a rule makes the card fail until it is reset.
TEST_F(Example, InvalidDoorbellValueMakesTheCardFailUntilItIsReset)
{
	const auto fails = [&](std::uint64_t queue, std::uint32_t count) {
		ring(queue, count);
		EXPECT_EQ(state(), State::failed);
		// A failed card accesses no memory.
		const wire::Request &entry = put(kSource, kDestination, 8);
		ring();
		EXPECT_EQ(entry.status, Status::posted);
		card_->function()->reset(PciReset::function_level);
		EXPECT_EQ(state(), State::idle);
		posted_ = 0;
	};
	fails(kQueue, wire::queue_entries + 1);
	fails(std::uint64_t{1} << 60, 1);
	put(kSource, kDestination, 8);
	ring();
	fails(kQueue + 0x1000, posted_);
	put(kSource, kDestination, 8);
	ring();
	EXPECT_EQ(state(), State::running);
}

// Without bus mastering the card accesses no memory. When bus mastering is disabled, the queue is
// dropped.
TEST_F(Example, QueueIsNotProcessedWithoutBusMastering)
{
	put(kSource, kDestination, 8);
	ring();
	host_.set_bus_master(false);
	EXPECT_EQ(state(), State::idle);
	const wire::Request &entry = put(kSource, kDestination, 8);
	ring();
	EXPECT_EQ(entry.status, Status::posted);
	EXPECT_EQ(state(), State::failed);
}

// Accesses to a part of a register are ignored, and there are no registers behind the last one.
TEST_F(Example, PartialRegisterAccessesAreIgnored)
{
	put(kSource, kDestination, 8);
	host_.write<std::uint32_t>(0, wire::doorbell, kQueue | 1);
	host_.write<std::uint64_t>(0, wire::doorbell + 8, kQueue | 1);
	EXPECT_EQ(state(), State::idle);
	EXPECT_EQ(host_.read<std::uint32_t>(0, wire::register_bar_size - 4), 0u);
	EXPECT_EQ(counted("doorbells"), 0u);
}

// The only fault of the card: it drops as many interrupts as requested, and no more.
TEST_F(Example, InjectedInterruptLossDropsTheRequestedNumberOfInterrupts)
{
	EXPECT_FALSE(card_->arm_fault("a-headache", 1));
	EXPECT_FALSE(card_->randomise_faults(1, 1));
	EXPECT_TRUE(card_->armed().empty());
	ASSERT_TRUE(card_->arm_fault("interrupt-lost", 2));
	for (unsigned i = 0; i < 3; ++i) {
		std::uint64_t left = 0;
		for (const cards::Count &armed : card_->armed())
			left += armed.value;
		EXPECT_EQ(left, 2u - std::min(i, 2u));
		put(kSource, kDestination, 8);
		ring();
	}
	EXPECT_EQ(host_.take_interrupts(0), 1u);
	EXPECT_EQ(counted("interrupt-lost"), 2u);
	EXPECT_EQ(counted("interrupts"), 1u);
}

} // namespace
} // namespace weft::example
