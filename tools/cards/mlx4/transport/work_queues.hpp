// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Reads the work requests of a ConnectX-2 for the transport engine: WQEs in the send, receive and
 * shared receive queues of a guest.
 */
#pragma once

#include "cards/mlx4/names.hpp"
#include "cards/hca/work_source.hpp"

namespace weft::mlx4
{
struct CardContext;
}

namespace weft::mlx4::transport
{

class WorkQueues final : public WorkSource
{
public:
	explicit WorkQueues(const CardContext &card) : card_(card) {}

	/* The queue ends before the first WQE whose owner bit does not match the current lap. */
	Taken take_send(const hca::QueuePair &qp, std::uint16_t index, SendRequest &request,
			Syndrome &failure) override;
	std::uint32_t receives_posted(const hca::QueuePair &qp, std::uint16_t next) const override;
	Taken take_receive(const hca::QueuePair &qp, std::uint16_t &next,
			   hca::SharedReceiveQueue *xrc_srq, ReceiveWork &work) override;
	hca::SharedReceiveQueue *shared_receive_queue(std::uint32_t srqn) const override;

private:
	const CardContext &card_;
};

} // namespace weft::mlx4::transport
