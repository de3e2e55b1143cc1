// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Takes work requests from a guest's queues in order. Each card has its own code to read a request
 * (WorkSource); this class keeps the position in each queue.
 */
#pragma once

#include "cards/hca/context.hpp"
#include "cards/hca/transport/qp.hpp"

namespace weft::hca::transport
{

/* Returns the number of posted receives that were not taken; 0 for a QP without a receive queue. */
inline std::uint32_t receives_posted(const Context &card, const Qp &qp)
{
	return card.work.receives_posted(qp.pair, qp.receive.next_wqe);
}

/* Takes the next receive request of a QP; see WorkSource. */
inline Taken take_receive(Context &card, Qp &qp, SharedReceiveQueue *xrc_srq, ReceiveWork &work)
{
	return card.work.take_receive(qp.pair, qp.receive.next_wqe, xrc_srq, work);
}

/* Takes the next send request of a QP. The index advances even if the request is invalid. */
Taken take_send(Context &card, Qp &qp, SendWork &work);

} // namespace weft::hca::transport
