// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads the work requests of an InfiniHost III for the transport engine: linked WQEs, each of which
// is described by the preceding one.
#pragma once

#include "cards/hca/work_source.hpp"
#include "cards/mthca/names.hpp"

namespace weft::mthca
{

struct CardContext;

class WorkQueues final : public WorkSource
{
public:
	explicit WorkQueues(const CardContext &card) : card_(card) {}

	// The queue ends where the last doorbell ended.
	Taken take_send(const hca::QueuePair &qp, std::uint16_t index, SendRequest &request,
			Syndrome &failure) override;
	std::uint32_t receives_posted(const hca::QueuePair &qp, std::uint16_t next) const override;
	Taken take_receive(const hca::QueuePair &qp, std::uint16_t &next,
			   hca::SharedReceiveQueue *xrc_srq, ReceiveWork &work) override;
	hca::SharedReceiveQueue *shared_receive_queue(std::uint32_t srqn) const override;

private:
	const CardContext &card_;
};

} // namespace weft::mthca
