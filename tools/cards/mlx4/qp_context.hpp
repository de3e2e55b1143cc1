// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts queue pair contexts in command mailboxes to the model's QueuePair and back.
#pragma once

#include <cstdint>

#include <hw/mlx4/commands.hpp>

#include "cards/mlx4/queue_pair.hpp"
#include "cards/mellanox_icm/qp_transitions.hpp"

namespace weft::mlx4::qp_context
{

// Sets the attributes of RST2INIT from @context.
hw::mlx4::Status create(const std::uint8_t *context, QueuePair &qp);
// Sets the attributes of a transition from @context. After an error, @qp may be partly changed, so
// the caller passes a copy. @ports is the number of the card's ports.
hw::mlx4::Status modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required,
			unsigned ports, QueuePairAttributes &qp);
// Encodes the QP into @context for QUERY_QP.
void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context);

} // namespace weft::mlx4::qp_context
