// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests reliable connections over links that lose, duplicate and reorder packets.
#include <gtest/gtest.h>

#include <random>

#include "cards/mlx4/transport/tests/pair.hpp"
#include "net/fabric/link.hpp"

namespace weft::mlx4::transport
{

namespace
{

/* Each parameter is a fault of the link. The fabric prints the seed. */
struct Trouble {
	const char *name;
	fabric::Faults faults;
};

class Lossy : public ConnectedPair, public ::testing::WithParamInterface<Trouble>
{
protected:
	Lossy() : ConnectedPair(options()) { link.set_faults(GetParam().faults); }

	static QpOptions options()
	{
		QpOptions options;
		options.log_send = 9;
		options.log_receive = 9;
		options.mtu = ib::Mtu::mtu_256;
		options.ack_timeout = 12; /* 33 ms: longer than the fabric holds a packet back */
		return options;
	}
};

} // namespace

/*
 * Whatever faults the link has, each request of a reliable connection is executed exactly once, in
 * order, and with intact data.
 */
TEST_P(Lossy, RcExecutesEachRequestOnceAndInOrder)
{
	std::random_device entropy;
	const unsigned seed = entropy();
	SCOPED_TRACE(::testing::Message() << "seed " << seed);
	random.seed(seed);

	constexpr std::uint64_t size = 512 << 10;
	Region from = a.region(size), to = b.region(size), back = a.region(size);
	/*
	 * Nothing writes to this region, because the response of a read may still be in flight when
	 * later writes are executed.
	 */
	Region source_b = b.region(size);
	fill(b.bytes(source_b));
	Region counter = b.region(64), former = a.region(8 * 512);
	fill(a.bytes(from));
	fill(b.bytes(to));
	std::vector<std::byte> model(b.bytes(to).begin(), b.bytes(to).end());
	std::vector<std::byte> read_model(size);
	std::uint64_t adds = 0;
	constexpr unsigned count = 300;

	std::vector<std::uint16_t> order;
	unsigned sends = 0;
	for (unsigned i = 0; i < count; i++) {
		std::uint64_t length = random() % 3000;
		std::uint64_t source = random() % (size - length);
		std::uint64_t target = random() % (size - length);
		auto copy = [&](auto &into) {
			std::copy_n(a.bytes(from).begin() + static_cast<long>(source), length,
				    into.begin() + static_cast<long>(target));
		};
		switch (random() % 4) {
		case 0:
			b.post_receive(*qp_b, {to.piece(target, length)});
			order.push_back(a.post(*qp_a, WqeBuilder(WqeOpcode::send)
							      .add(from.piece(source, length))
							      .done()));
			copy(model);
			sends++;
			break;
		case 1:
			order.push_back(a.post(
				*qp_a,
				WqeBuilder(WqeOpcode::rdma_write)
					.add(WqeRemoteAddress{to.address + target, to.key, 0})
					.add(from.piece(source, length))
					.done()));
			copy(model);
			break;
		case 2:
			order.push_back(a.post(
				*qp_a, WqeBuilder(WqeOpcode::rdma_read)
					       .add(WqeRemoteAddress{source_b.address + target,
								     source_b.key, 0})
					       .add(back.piece(source, length))
					       .done()));
			std::copy_n(b.bytes(source_b).begin() + static_cast<long>(target), length,
				    read_model.begin() + static_cast<long>(source));
			break;
		case 3:
			order.push_back(a.post(*qp_a, WqeBuilder(WqeOpcode::fetch_add)
							      .add(WqeRemoteAddress{counter.address,
										    counter.key, 0})
							      .add(WqeAtomic{1, 0})
							      .add(former.piece(8 * adds, 8))
							      .done()));
			adds++;
			break;
		}
	}
	a.ring(*qp_a);
	for (unsigned i = 0; i < count; i++) {
		Completion completion = wait(a, cq_a);
		ASSERT_FALSE(completion.is_error)
			<< "request " << i << " syndrome " << unsigned(completion.syndrome);
		ASSERT_EQ(completion.wqe_index, order[i]);
	}
	wait_good(b, cq_b, sends);
	EXPECT_FALSE(b.poll_cq(cq_b)) << "a send was received twice";
	EXPECT_TRUE(same(b.bytes(to), model));
	EXPECT_EQ(b.host().object<std::uint64_t>(counter.address), adds);
	for (std::uint64_t i = 0; i < adds; i++)
		EXPECT_EQ(a.host().object<std::uint64_t>(former.address + 8 * i), i);
	for (std::uint64_t i = 0; i < size; i++)
		if (read_model[i] != std::byte{0}) {
			ASSERT_EQ(a.bytes(back)[i], read_model[i]) << "read at " << i;
		}
}

using namespace std::chrono_literals;

INSTANTIATE_TEST_SUITE_P(
	Links, Lossy,
	::testing::Values(Trouble{"perfect", {}}, Trouble{"slow", {.delay = 200us}},
			  Trouble{"drops", {.loss = 0.02}}, Trouble{"drops_much", {.loss = 0.1}},
			  Trouble{"doubles", {.duplication = 0.2}},
			  Trouble{"reorders", {.reordering = 0.1}},
			  Trouble{"corrupts", {.corruption = 0.05, .silent_corruption = 0.05}},
			  Trouble{"all_at_once",
				  {.delay = 50us,
				   .jitter = 100us,
				   .loss = 0.03,
				   .duplication = 0.05,
				   .reordering = 0.05,
				   .silent_corruption = 0.02}}),
	[](const auto &trouble) { return trouble.param.name; });

} // namespace weft::mlx4::transport
