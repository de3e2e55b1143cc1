// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts queue pair contexts in command mailboxes to the model's QueuePair and back.
#pragma once

#include <cstdint>

#include <hw/mthca/commands.hpp>
#include <hw/mthca/contexts.hpp>

#include "cards/mthca/queue_pair.hpp"
#include "cards/mellanox_icm/qp_transitions.hpp"

namespace weft::mthca::qp_context
{

// Sets the attributes of RST2INIT. Later transitions change them only if the opt mask selects them,
// so drivers may omit them there (iPXE).
hw::mthca::Status create(const std::uint8_t *context, unsigned ports, std::uint32_t opt_mask,
			 QueuePair &qp);
// Sets the attributes of other transitions: those that are required, and those that @opt_mask
// selects.
hw::mthca::Status modify(const std::uint8_t *context, std::uint32_t opt_mask, Required required,
			 unsigned ports, QueuePairAttributes &qp);
// Encodes the QP for QUERY_QP.
void encode(const QueuePair &qp, const QueuePairProgress &progress, std::uint8_t *context);

} // namespace weft::mthca::qp_context
