// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Decodes and checks work queue entries. The entries are in guest memory: they are copied before
// they are checked, and no field is read twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hw/mthca/wqe.hpp>

#include "cards/hca/requests.hpp"
#include "cards/mthca/names.hpp"

namespace weft::mthca
{

/**
 * decode() - read a send WQE
 * @link: the link in the previous WQE, which contains the opcode and the size of this one
 * @wqe: a private copy of the WQE with its own link; @link contains its length
 * @service: service of the QP to which the WQE was posted
 * @out: receives the request; after a failure only its field signalled is valid
 *
 * Every bit pattern gives a request or a syndrome. Keys and addresses are not checked, and neither
 * is the length against the MTU or the message limit.
 *
 * Returns Syndrome::none or the syndrome with which the WQE shall complete.
 */
Syndrome decode(const hw::mthca::WqeNext &link, std::span<const std::byte> wqe, ServiceType service,
		SendRequest &out);

/**
 * decode_receive() - read the scatter list of a receive WQE
 * @segments: a private copy of the data segments
 * @out: receives the pieces, in order, without empty ones
 *
 * The list ends at the key that marks its end, because the size in the WQE is not reliable
 * (that of iPXE). Returns the sum of the lengths.
 */
std::uint64_t decode_receive(std::span<const std::byte> segments, std::vector<Piece> &out);

} // namespace weft::mthca
