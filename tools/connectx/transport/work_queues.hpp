// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Taking work requests from the queues of a guest: receive WQEs, shared or not, and send WQEs.
 */
#pragma once

#include <cstdint>

#include "connectx/card_context.hpp"
#include "connectx/transport/qp.hpp"

namespace weft::connectx::transport
{

enum class Taken : std::uint8_t {
	/* There is work. */
	yes,
	/* None is posted. */
	none,
	/* The queue cannot be read: its memory or page list is not there. */
	broken,
};

/* Receive WQEs that are posted and not taken; 0 for a QP without a receive queue. */
std::uint32_t receives_posted(const CardContext &card, const Qp &qp);

/**
 * take_receive() - take the next receive WQE of a QP
 * @xrc_srq: for XRC the queue that the packet names; null otherwise
 * @work: filled in, up to the pieces; on broken too, but for those
 */
Taken take_receive(CardContext &card, Qp &qp, SharedReceiveQueue *xrc_srq, ReceiveWork &work);

/**
 * take_send() - read the next send WQE
 * @work: index and request are filled in; failure, if the WQE is no good
 *
 * Ends with the first WQE whose owner bit is not that of the lap. The index is moved on.
 */
Taken take_send(const CardContext &card, Qp &qp, SendWork &work);

/* Whether a send WQE is posted and was rung for, without reading it. */
bool send_posted(const CardContext &card, const Qp &qp);

} // namespace weft::connectx::transport
