// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts queue pair contexts from and to command mailboxes.
#pragma once

#include <cstdint>

#include <hw/mthca/commands.hpp>
#include <hw/mthca/contexts.hpp>

#include "cards/mthca/queue_pair.hpp"
#include "cards/mellanox_icm/qp_transitions.hpp"

namespace weft::mthca::qp_context
{

// RST2INIT: what stays for the life of the queue pair. Drivers may leave it out later (iPXE).
hw::mthca::Status create(const std::uint8_t *context, unsigned ports, std::uint32_t opt_mask,
			 QueuePair &qp);
// Any other transition: what it requires, and what @opt_mask chooses.
hw::mthca::Status modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required,
			 unsigned ports, QueuePairAttributes &qp);
// QUERY_QP.
void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context);

} // namespace weft::mthca::qp_context
