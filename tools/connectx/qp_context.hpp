// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Between the context of a queue pair in a command mailbox and its host form.
#pragma once

#include <cstdint>

#include <hw/connectx/commands.hpp>

#include "connectx/queue_pair.hpp"
#include "mellanox/qp_transitions.hpp"

namespace weft::connectx::qp_context
{

// Takes from @context what makes a queue pair: RST2INIT.
hw::connectx::Status create(const std::uint8_t *context, QueuePair &qp);
// Takes from @context what a transition sets. On an error @qp may be changed in part: work on a
// copy. @ports: how many the card has.
hw::connectx::Status modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required,
			    unsigned ports, QueuePairAttributes &qp);
// The other way: QUERY_QP.
void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context);

} // namespace weft::connectx::qp_context
