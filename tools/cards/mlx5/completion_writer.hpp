// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Writes this card's completions to its completion queues, and their events to its event queues.
#pragma once

#include <hw/mlx5/queues.hpp>

#include "cards/hca/completion_sink.hpp"
#include "cards/mlx5/names.hpp"

namespace weft::mlx5
{

struct CardContext;

class CompletionWriter final : public CompletionSink
{
public:
	explicit CompletionWriter(const CardContext &card) : card_(card) {}

	bool sent(const hca::QueuePair &qp, const SendDone &done) override;
	bool received(const hca::QueuePair &qp, std::uint32_t cqn,
		      const ReceiveDone &done) override;
	bool failed(const hca::QueuePair &qp, std::uint32_t cqn, const Failure &failure) override;
	bool raise(Event event, std::uint32_t qpn) override;

private:
	bool post(std::uint32_t cqn, hw::mlx5::Cqe cqe, bool solicited,
		  std::span<const std::byte> data);
	std::uint32_t owner_index(const hca::QueuePair &qp, std::uint32_t xrc_srqn,
				  bool is_receive) const;

	const CardContext &card_;
};

} // namespace weft::mlx5
