// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts between a queue pair and its context in commands.
#pragma once

#include <cstdint>

#include "cards/mlx5/queue_pair.hpp"

namespace weft::mlx5::qp_context
{

// Which fields a transition takes without a bit of its opt mask (Documentation/mlx5.rst, "Queue
// pairs").
enum class Required : std::uint8_t { none, to_init, to_rtr, to_rts };

// The outcome of create(). not_modelled: real cards have such a queue pair, the model has not.
enum class Created : std::uint8_t { done, not_modelled, bad_field };

// CREATE_QP: all but the page list.
Created create(const std::uint8_t *context, QueuePair &qp);
// A transition. False: a field is out of range.
bool modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required, unsigned ports,
	    QpService kind, QueuePairAttributes &qp);
// QUERY_QP, into a context that is all zero.
void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context);

} // namespace weft::mlx5::qp_context
