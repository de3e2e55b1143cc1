// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The maximum sizes of the card's objects, and the addresses of the registers that software queries
// (QUERY_FW, QUERY_DEV_CAP).
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::mlx4::limits
{

// BAR 0.
constexpr std::size_t kErrorBuffer = 0x1f000;
constexpr std::size_t kErrorBufferDwords = 16;
constexpr std::uint32_t kErrorEventQueueLost = 1; // a code in the error buffer
constexpr std::size_t kClearInterrupt = 0xf00d8;

// BAR 2.
constexpr unsigned kLogUarMegabytes = 3;
constexpr std::uint64_t kUarSize = std::uint64_t{1} << (20 + kLogUarMegabytes);
constexpr std::uint32_t kUarPages = kUarSize / 4096;

// BAR 4.
constexpr std::uint16_t kVectors = 128;
constexpr std::uint64_t kMsixBarSize = 8192;
constexpr std::uint32_t kPbaOffset = 4096;

constexpr unsigned kFirmwarePages = 16;
constexpr unsigned kAuxPages = 4;
constexpr unsigned kLogMaxCommands = 4;
constexpr unsigned kInterruptPin = 0;

// Numbers below these powers of two belong to the firmware.
constexpr unsigned kLogReservedQps = 6;
constexpr unsigned kLogReservedSrqs = 6;
constexpr unsigned kLogReservedCqs = 7;
constexpr unsigned kLogReservedEqs = 2;
constexpr unsigned kLogReservedMpts = 4;
constexpr unsigned kLogReservedMtts = 4;

// Most entries of a queue.
constexpr unsigned kLogMaxQpSize = 14;
constexpr unsigned kLogMaxSrqSize = 14;
constexpr unsigned kLogMaxCqSize = 22;
constexpr unsigned kLogMaxEqSize = 18;
// The command that makes a completion queue marks at most so many entries as the card's, 4 MiB, and
// one that resizes it as many again for what it holds; each entry that is written later marks
// another one. Software looks at entries in their order, and so never at one that is not marked.
constexpr unsigned kLogMarkedEntries = 17;
// Largest page of a queue buffer, less 12.
constexpr unsigned kMaxLogPageSize = 19;

// Maximum values for INIT_HCA. Drivers do not keep to the limits of QUERY_DEV_CAP, and a table
// costs only what is used of it: a page of pointers for each 512 numbers.
constexpr unsigned kLogMaxQps = 20;
constexpr unsigned kLogMaxSrqs = 20;
constexpr unsigned kLogMaxCqs = 20;
constexpr unsigned kLogMaxEqs = 9;
constexpr unsigned kLogMaxMpts = 24;
constexpr unsigned kLogMaxMcgs = 20;
constexpr unsigned kLogMinMcgEntry = 6;
constexpr unsigned kLogMaxMcgEntry = 12;

// Objects that may exist at a time, whatever the tables' sizes: each takes memory of the daemon,
// and ICM does not bound them, because one page of the guest may back all of it.
constexpr std::size_t kMostQps = 65536;
constexpr std::size_t kMostSrqs = 65536;
constexpr std::size_t kMostCqs = 65536;

// Context sizes in ICM.
constexpr std::size_t kQpcEntry = 256;
constexpr std::size_t kAltcEntry = 64;
constexpr std::size_t kAuxcEntry = 64;
constexpr std::size_t kRdmarcEntry = 32;
constexpr std::size_t kCqcEntry = 64;
constexpr std::size_t kSrqcEntry = 64;
constexpr std::size_t kEqcEntry = 64;
constexpr std::size_t kCmptEntry = 64;

constexpr std::uint32_t kReservedLkey = 0x00000200;
constexpr unsigned kSpecialQps = 8;
constexpr unsigned kLogMaxReads = 4;
constexpr unsigned kLogMaxMessage = 30;
constexpr unsigned kLogMaxLso = 17;
constexpr unsigned kCoreClockMhz = 427;

} // namespace weft::mlx4::limits
