// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Decodes and checks a send request. The request is in guest memory: it is copied before it is
// checked, and no field is read twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cards/hca/requests.hpp"
#include "cards/mlx5/queue_pair.hpp"

namespace weft::mlx5
{

/**
 * decode_send() - decode a send request
 * @wqe: a private copy, at most wqe_bytes_max bytes; control segment included
 * @qp: the QP to which it was posted
 * @out: receives the request without its slots; after a failure only its field signalled is valid
 *
 * Every bit pattern gives a request or a syndrome. Keys and addresses are not checked here, and
 * neither is the length against the MTU or the message limit.
 *
 * Returns Syndrome::none or the syndrome with which the request shall complete.
 */
Syndrome decode_send(std::span<const std::byte> wqe, const QueuePair &qp, SendRequest &out);

/**
 * decode_receive() - decode the scatter list of a receive request
 * @segments: a private copy of the data segments
 * @out: the pieces, in order, without empty ones
 *
 * Returns the sum of their lengths.
 */
std::uint64_t decode_receive(std::span<const std::byte> segments, std::vector<Piece> &out);

// Returns the opcode of such a request, as completions report it.
std::uint8_t send_code(SendOpcode opcode);

} // namespace weft::mlx5
