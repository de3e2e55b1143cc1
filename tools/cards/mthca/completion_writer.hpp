// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Writes this card's completions to its completion queues, and their events to its event queues.
#pragma once

#include <hw/mthca/cqe.hpp>

#include "cards/hca/completion_sink.hpp"
#include "cards/mthca/names.hpp"

namespace weft::mthca
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
	std::uint32_t receive_address(const hca::QueuePair &qp, std::uint16_t index) const;
	bool post(std::uint32_t cqn, const hw::mthca::Cqe &cqe, bool solicited);

	const CardContext &card_;
};

} // namespace weft::mthca
