// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the maximum sizes of the card's objects, and the addresses of the registers that software
// queries (QUERY_FW, QUERY_DEV_LIM).
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::mthca::limits
{

// BAR 0.
constexpr std::size_t kEqConsumerIndexes = 0x1d000;
constexpr std::size_t kEqArm = 0x1e000;
constexpr std::size_t kErrorBuffer = 0x1f000;
constexpr std::size_t kErrorBufferDwords = 16;
constexpr std::size_t kBreakdownDword = 3;
constexpr std::uint32_t kErrorEventQueueLost = 1; // a code in the error buffer
constexpr std::size_t kClearInterrupt = 0xf00d8;

// BAR 2.
constexpr unsigned kLogUarMegabytes = 3;
constexpr std::uint64_t kUarSize = std::uint64_t{1} << (20 + kLogUarMegabytes);
constexpr std::uint32_t kUarPages = kUarSize / 4096;

// Size of BAR 4, which drivers do not use on a card without memory.
constexpr std::uint16_t kVectors = 32;
constexpr std::uint64_t kMsixBarSize = 8192;
constexpr std::uint32_t kPbaOffset = 4096;

constexpr unsigned kFirmwarePages = 16; // iPXE requires at least one
constexpr unsigned kAuxPages = 4;       // the same
constexpr unsigned kLogMaxCommands = 4;

// Numbers below these powers of two are reserved for firmware. Key index 1 must stay unused,
// because lkey 0x100 marks the end of receive lists.
constexpr unsigned kLogReservedQps = 4;
constexpr unsigned kLogReservedSrqs = 4;
constexpr unsigned kLogReservedCqs = 4;
constexpr unsigned kLogReservedMpts = 4;
constexpr unsigned kLogReservedMtts = 4;
// iPXE uses this number in contexts, and rings doorbells on page 1.
constexpr unsigned kReservedUars = 1;

// Maximum number of entries of a queue.
constexpr unsigned kLogMaxQpSize = 14;
constexpr unsigned kLogMaxSrqSize = 14;
constexpr unsigned kLogMaxCqSize = 17;
constexpr unsigned kLogMaxEqSize = 17;

// Maximum values for INIT_HCA. Only the used parts of a table cost memory.
constexpr unsigned kLogMaxQps = 20;
constexpr unsigned kLogMaxSrqs = 20;
constexpr unsigned kLogMaxCqs = 20;
constexpr unsigned kLogMaxEqs = 6;
constexpr unsigned kLogMaxMpts = 24;
constexpr unsigned kLogMaxMcgs = 20;
constexpr unsigned kLogMinMcgEntry = 6;
constexpr unsigned kLogMaxMcgEntry = 12;

// Maximum number of objects, whatever the tables' sizes, because each uses memory of the daemon.
constexpr std::size_t kMostQps = 65536;
constexpr std::size_t kMostSrqs = 65536;
constexpr std::size_t kMostCqs = 65536;

// rdma-core assumes 32 GIDs per port in address vectors.
constexpr unsigned kLogGids = 5;
constexpr unsigned kLogPkeys = 6;
constexpr unsigned kLogMaxReads = 4;
// The field nds has six bits.
constexpr unsigned kMaxWqe = 1008;
constexpr unsigned kMaxSge = 59;

} // namespace weft::mthca::limits
