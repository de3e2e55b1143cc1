// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Decodes and checks a send work queue entry. The WQE is guest memory: it is copied before it is
 * checked, and no field is read twice.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hw/mlx4/wqe.hpp>

#include "cards/mlx4/names.hpp"
#include "cards/hca/requests.hpp"

namespace weft::mlx4::transport
{

/**
 * decode() - read a send WQE
 * @wqe: a private copy of the WQE, at most wqe_bytes_max bytes; control segment included
 * @service: service of the QP to which the WQE was posted
 * @out: receives the request; after a failure only its field signalled is valid
 *
 * Every bit pattern gives a request or a syndrome. Keys and addresses are not checked, and neither
 * is the length against the MTU or the message limit.
 *
 * Returns Syndrome::none or the syndrome with which the WQE shall complete.
 */
Syndrome decode(std::span<const std::byte> wqe, ServiceType service, SendRequest &out);

/**
 * decode_receive() - read the scatter list of a receive WQE
 * @segments: a private copy of the data segments
 * @out: receives the pieces, in order, without empty ones
 *
 * Returns the sum of their lengths.
 */
std::uint64_t decode_receive(std::span<const std::byte> segments, std::vector<Piece> &out);

/* Decode the segments of requests that change keys. */
FastRegister decoded(const hw::mlx4::WqeFastRegister &segment);
BindWindow decoded(const hw::mlx4::WqeBindWindow &segment);

} // namespace weft::mlx4::transport
