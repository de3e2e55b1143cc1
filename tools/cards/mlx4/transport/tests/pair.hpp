// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Provides a test fixture: two nodes with a card each, one link between them, and the event loop
 * that runs both.
 */
#pragma once

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "cards/mlx4/transport/tests/node.hpp"

namespace weft::mlx4::transport
{

class Pair : public ::testing::Test
{
public:
	explicit Pair(std::uint64_t seed = fabric::Fabric::kDefaultSeed) : fabric(seed) {}

	fabric::Fabric fabric;
	fabric::Port &port_a = fabric.add_port("a");
	fabric::Port &port_b = fabric.add_port("b");
	fabric::Link &link = fabric.connect(port_a, port_b);
	Node a{port_a, 1};
	Node b{port_b, 2};
	std::mt19937 random{static_cast<std::uint32_t>(seed_of_run())};

	static unsigned seed_of_run()
	{
		return static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed()) +
		       4711;
	}

	/*
	 * Runs both nodes until done() returns true or the time limit has passed. Returns the last
	 * result of done().
	 */
	template<class Done>
	bool run(Done &&done, std::chrono::milliseconds limit = std::chrono::seconds(20))
	{
		auto end = std::chrono::steady_clock::now() + limit;
		while (!done()) {
			bool worked = a.poll();
			worked |= b.poll();
			if (worked)
				continue;
			if (std::chrono::steady_clock::now() > end)
				return done();
			/* Wait for timers and delayed packets. */
			std::this_thread::sleep_for(std::chrono::microseconds(50));
		}
		return true;
	}
	/* Runs until there are no further tasks. */
	void settle()
	{
		bool worked;
		do {
			worked = a.poll();
			worked |= b.poll();
		} while (worked);
	}

	Completion wait(Node &node, CompletionQueue &cq)
	{
		std::optional<Completion> completion;
		bool came = run([&] { return (completion = node.poll_cq(cq)).has_value(); });
		EXPECT_TRUE(came) << "no completion came";
		return completion.value_or(Completion{});
	}
	/* Waits for @count successful completions. */
	void wait_good(Node &node, CompletionQueue &cq, unsigned count)
	{
		for (unsigned i = 0; i < count; i++) {
			Completion completion = wait(node, cq);
			ASSERT_FALSE(completion.is_error)
				<< "syndrome " << static_cast<unsigned>(completion.syndrome)
				<< " at completion " << i;
		}
	}

	void fill(std::span<std::byte> bytes)
	{
		for (auto &byte : bytes)
			byte = static_cast<std::byte>(random());
	}
	static bool same(std::span<const std::byte> x, std::span<const std::byte> y)
	{
		return std::ranges::equal(x, y);
	}
};

/* A pair of nodes with one QP each, connected to each other. */
class ConnectedPair : public Pair
{
public:
	explicit ConnectedPair(const QpOptions &options = {}) { connect(options); }

	CompletionQueue &cq_a = a.create_cq();
	CompletionQueue &cq_b = b.create_cq();
	QueuePair *qp_a = nullptr;
	QueuePair *qp_b = nullptr;

	void connect(const QpOptions &options)
	{
		qp_a = &a.create_qp(options, cq_a, cq_a);
		qp_b = &b.create_qp(options, cq_b, cq_b);
		a.connect(*qp_a, b, *qp_b, options);
		b.connect(*qp_b, a, *qp_a, options);
		settle();
	}
	/* Replaces the QPs by new ones with other options. */
	void reconnect(const QpOptions &options)
	{
		a.destroy(*qp_a);
		b.destroy(*qp_b);
		connect(options);
	}
};

} // namespace weft::mlx4::transport
