// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Provides two connected cards for fuzzing, which are reused for all inputs because creating them
 * costs more than an input does. Objects that an input changes (the QPs that it used, and the
 * memory keys) are recreated for the next one, so the result of an input does not depend on earlier
 * ones.
 */
#pragma once

#include <array>

#include <spdlog/spdlog.h>

#include "cards/mlx4/transport/tests/node.hpp"

namespace weft::mlx4::transport
{

class FuzzFixture
{
public:
	static constexpr unsigned kKinds = 5;
	using Ends = std::array<QueuePair *, 2>;

	/*
	 * Returns the connected QPs of a kind at the two cards; new ones at the first call for an
	 * input.
	 */
	const Ends &pair(unsigned kind)
	{
		if (!pairs_[kind][0])
			make(kind);
		return pairs_[kind];
	}
	/* Called after each input: destroys what it used, and drops its completions. */
	void finish()
	{
		for (Ends &ends : pairs_)
			if (ends[0]) {
				a.destroy(*ends[0]);
				b.destroy(*ends[1]);
				ends = {};
			}
		settle();
		while (a.poll_cq(cq_a)) {
		}
		while (b.poll_cq(cq_b)) {
		}
		a.take_events();
		b.take_events();
		for (Node *node : {&a, &b})
			node->restore_keys();
	}
	void settle()
	{
		for (unsigned turn = 0; turn < 200; turn++) {
			bool worked = a.poll();
			worked |= b.poll();
			if (!worked)
				break;
		}
	}

	fabric::Fabric fabric;
	fabric::Port &port_a = fabric.add_port("a");
	fabric::Port &port_b = fabric.add_port("b");
	fabric::Link &link = fabric.connect(port_a, port_b);
	Node a{port_a, 1};
	Node b{port_b, 2};
	CompletionQueue &cq_a = a.create_cq(12);
	CompletionQueue &cq_b = b.create_cq(12);
	SharedReceiveQueue &srq = b.create_srq(6, 0, 3, cq_b.number());
	Region memory_a = a.region(1 << 16);
	Region memory_b = b.region(1 << 16);
	/* A free key at node a, which has no memory yet. */
	std::uint32_t free_key = a.free_key(4);

private:
	void make(unsigned kind)
	{
		constexpr ServiceType services[kKinds] = {ServiceType::rc, ServiceType::uc,
							  ServiceType::ud, ServiceType::xrc,
							  ServiceType::whole_packet};
		QpOptions options;
		options.service = services[kind];
		/* These numbers are the same for all inputs, and no other object has them. */
		options.qpn = 0xabc100 + kind;
		options.log_send = 3;
		options.log_receive = 4;
		options.xrc_domain = 3;
		/* Time is real in this test, so each timeout must be short or disabled. */
		options.ack_timeout = 0;
		options.retry_count = options.rnr_retry = 1;
		options.first_psn = 0;
		options.mtu = ib::Mtu::mtu_256;
		pairs_[kind] = {&a.create_qp(options, cq_a, cq_a),
				&b.create_qp(options, cq_b, cq_b)};
		Ends &ends = pairs_[kind];
		a.connect(*ends[0], b, *ends[1], options);
		b.connect(*ends[1], a, *ends[0], options);
		for (unsigned i = 0; i < 4; i++)
			if (options.service == ServiceType::xrc)
				b.post_srq(srq, {memory_b.piece(0, 8192)});
			else
				b.post_receive(*ends[1], {memory_b.piece(0, 8192)});
		settle();
	}

	std::array<Ends, kKinds> pairs_{};
};

inline FuzzFixture &fuzz_fixture()
{
	/* Initialise the logger first, so that at exit it outlives the fabric, which logs. */
	spdlog::set_level(spdlog::level::off);
	static FuzzFixture fixture;
	return fixture;
}

} // namespace weft::mlx4::transport
