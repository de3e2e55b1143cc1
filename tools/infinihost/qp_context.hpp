// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Queue pair contexts as they come in and go out by command mailboxes.
#pragma once

#include <cstdint>

#include <hw/infinihost/commands.hpp>
#include <hw/infinihost/contexts.hpp>

#include "infinihost/queue_pair.hpp"
#include "mellanox/qp_transitions.hpp"

namespace weft::infinihost::qp_context
{

// RST2INIT: what stays for the life of the queue pair. Drivers may leave it out later (iPXE).
hw::infinihost::Status create(const std::uint8_t *context, unsigned ports, std::uint32_t opt_mask,
			      QueuePair &qp);
// Any other transition: what it requires, and what @opt_mask chooses.
hw::infinihost::Status modify(const std::uint8_t *context, std::uint32_t opt_mask,
			      Required required, unsigned ports, QueuePairAttributes &qp);
// QUERY_QP.
void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context);

} // namespace weft::infinihost::qp_context
