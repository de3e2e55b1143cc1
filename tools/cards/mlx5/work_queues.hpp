// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads the work requests of a ConnectX-5 for the transport engine, from the WQEs in a guest's
// queues.
#pragma once

#include "cards/hca/work_source.hpp"
#include "cards/mlx5/names.hpp"

namespace weft::mlx5
{

struct CardContext;

class WorkQueues final : public WorkSource
{
public:
	explicit WorkQueues(const CardContext &card) : card_(card) {}

	// The index counts blocks of 64 bytes. The doorbell record has the index after the last
	// posted block.
	Taken take_send(const hca::QueuePair &qp, std::uint16_t index, SendRequest &request,
			Syndrome &failure) override;
	std::uint32_t receives_posted(const hca::QueuePair &qp, std::uint16_t next) const override;
	Taken take_receive(const hca::QueuePair &qp, std::uint16_t &next,
			   hca::SharedReceiveQueue *xrc_srq, ReceiveWork &work) override;
	Taken take_datagram(const hca::QueuePair &qp, std::span<const std::byte> payload,
			    std::uint64_t bytes, ReceiveWork &work) override;
	void stop_receives(const hca::QueuePair &qp, const ReceiveWork &work) override;
	hca::SharedReceiveQueue *shared_receive_queue(std::uint32_t srqn) const override;

private:
	const CardContext &card_;
};

} // namespace weft::mlx5
