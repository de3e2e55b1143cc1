// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the CRC of FPDUs (RFC 5044 section 4.4, RFC 3720 appendix B.4).
#pragma once

#include <cstdint>

#include "net/iwarp/bytes.hpp"

namespace weft::iwarp
{

// Returns the CRC of @bytes. @crc is the CRC of the preceding bytes (0 if there are none).
std::uint32_t crc32c(View bytes, std::uint32_t crc = 0);
// Computes the same without the special instruction, for processors that do not have it.
std::uint32_t crc32c_by_table(View bytes, std::uint32_t crc = 0);

} // namespace weft::iwarp
