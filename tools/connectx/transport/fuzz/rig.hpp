// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A card with a QP of every kind, for fuzzing: connected to a second card where there is something
 * to connect. Kept from input to input, because making it costs more than an input does; QPs that
 * an input has broken are made anew.
 */
#pragma once

#include <array>

#include <spdlog/spdlog.h>

#include "connectx/transport/tests/node.hpp"

namespace weft::connectx::transport
{

class FuzzRig
{
public:
	static constexpr unsigned kinds = 5;

	FuzzRig()
	{
		for (unsigned kind = 0; kind < kinds; kind++)
			make(kind);
	}

	/* Puts broken QPs in order and forgets completions. */
	void prepare()
	{
		for (Node *node : {&a, &b}) {
			auto &cq = node == &a ? cq_a : cq_b;
			while (node->poll_cq(cq)) {
			}
			node->take_events();
		}
		for (unsigned kind = 0; kind < kinds; kind++)
			if (pairs[kind][0]->state != QpState::rts ||
			    pairs[kind][1]->state != QpState::rts) {
				a.destroy(*pairs[kind][0]);
				b.destroy(*pairs[kind][1]);
				/* Queue memory is not given back: start over before it is used up.
				 */
				make(kind);
				remade++;
			}
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
	bool worn_out() const { return remade > 300; }

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
	std::array<std::array<QueuePair *, 2>, kinds> pairs{};
	unsigned remade = 0;

private:
	void make(unsigned kind)
	{
		constexpr ServiceType services[kinds] = {ServiceType::rc, ServiceType::uc,
							 ServiceType::ud, ServiceType::xrc,
							 ServiceType::mlx};
		QpOptions options;
		options.service = services[kind];
		options.log_send = options.log_receive = 4;
		options.xrc_domain = 3;
		options.ack_timeout = 0;
		options.first_psn = 0;
		options.mtu = ib::Mtu::mtu_256;
		pairs[kind] = {&a.create_qp(options, cq_a, cq_a),
			       &b.create_qp(options, cq_b, cq_b)};
		a.connect(*pairs[kind][0], b, *pairs[kind][1], options);
		b.connect(*pairs[kind][1], a, *pairs[kind][0], options);
		for (unsigned i = 0; i < 4 && options.service != ServiceType::xrc; i++)
			b.post_receive(*pairs[kind][1], {memory_b.piece(0, 8192)});
		settle();
	}
};

inline FuzzRig &fuzz_rig()
{
	/* First, so that at exit the logger outlives the fabric that logs. */
	spdlog::set_level(spdlog::level::off);
	static std::unique_ptr<FuzzRig> rig;
	if (!rig || rig->worn_out()) {
		rig.reset();
		rig = std::make_unique<FuzzRig>();
	}
	rig->prepare();
	return *rig;
}

} // namespace weft::connectx::transport
