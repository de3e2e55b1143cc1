// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts between the context of a queue pair in a command mailbox and its host form.
#pragma once

#include <cstdint>

#include <hw/mlx4/commands.hpp>

#include "cards/mlx4/queue_pair.hpp"
#include "cards/mellanox_icm/qp_transitions.hpp"

namespace weft::mlx4::qp_context
{

// Takes from @context what makes a queue pair: RST2INIT.
hw::mlx4::Status create(const std::uint8_t *context, QueuePair &qp);
// Takes from @context what a transition sets. On an error @qp may be changed in part: work on a
// copy. @ports: how many the card has.
hw::mlx4::Status modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required,
			unsigned ports, QueuePairAttributes &qp);
// The other way: QUERY_QP.
void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context);

} // namespace weft::mlx4::qp_context
