// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts queue pair contexts in commands to the model's QueuePair and back.
#pragma once

#include <cstdint>

#include "cards/mlx5/queue_pair.hpp"

namespace weft::mlx5::qp_context
{

// Fields that a transition sets without a bit of its opt mask (Documentation/mlx5.rst, "Queue
// pairs").
enum class Required : std::uint8_t { none, to_init, to_rtr, to_rts };

// Result of create(). not_modelled: real cards support this queue pair, but the model does not.
enum class Created : std::uint8_t { done, not_modelled, bad_field };

// Sets the attributes of CREATE_QP, except for the page list.
Created create(const std::uint8_t *context, QueuePair &qp);
// Sets the attributes of a transition. Returns false if a field is out of range.
bool modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required, unsigned ports,
	    QpService kind, QueuePairAttributes &qp);
// Fills in a zeroed context for QUERY_QP.
void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context);

} // namespace weft::mlx5::qp_context
