// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Work queue entries, decoded and checked. They are guest memory: they are copied before they are
// checked, and no field is read twice.
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
 * @link: of the WQE before it, which says what this one is
 * @wqe: a private copy of the WQE, its own link included; as long as @link says
 * @service: of the QP it was posted to
 * @out: receives the request; what is in it after a failure is of no use but for signalled
 *
 * Every bit pattern gives a request or a syndrome. Keys, addresses and the length against the MTU
 * or the message limit are not looked at.
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
 * Its end is the key that stands for no memory: the size in the WQE is not to be relied on (iPXE).
 * Returns the sum of the lengths.
 */
std::uint64_t decode_receive(std::span<const std::byte> segments, std::vector<Piece> &out);

} // namespace weft::mthca
