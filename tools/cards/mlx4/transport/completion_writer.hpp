// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Writes this card's completions to its completion queues, and their events to its event queues.
 */
#pragma once

#include <hw/mlx4/cqe.hpp>

#include "cards/mlx4/names.hpp"
#include "cards/hca/completion_sink.hpp"

namespace weft::mlx4
{
struct CardContext;
}

namespace weft::mlx4::transport
{

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
	bool post(std::uint32_t cqn, const hw::mlx4::Cqe &cqe, bool solicited);

	const CardContext &card_;
};

} // namespace weft::mlx4::transport
