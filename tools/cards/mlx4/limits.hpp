// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the maximum sizes of the card's objects, and the addresses of the registers that software
// queries (QUERY_FW, QUERY_DEV_CAP).
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

// Numbers below these powers of two are reserved for firmware.
constexpr unsigned kLogReservedQps = 6;
constexpr unsigned kLogReservedSrqs = 6;
constexpr unsigned kLogReservedCqs = 7;
constexpr unsigned kLogReservedEqs = 2;
constexpr unsigned kLogReservedMpts = 4;
constexpr unsigned kLogReservedMtts = 4;

// Maximum number of entries of a queue.
constexpr unsigned kLogMaxQpSize = 14;
constexpr unsigned kLogMaxSrqSize = 14;
constexpr unsigned kLogMaxCqSize = 22;
constexpr unsigned kLogMaxEqSize = 18;
// Limit of entries (4 MiB) that the command to create a CQ marks as owned by the card. A resize
// marks the same number again for the entries that are copied. Each entry that is written later
// marks another one. Software reads entries in order, so it never reads an unmarked one.
constexpr unsigned kLogMarkedEntries = 17;
// Binary logarithm of the largest page of a queue buffer, minus 12.
constexpr unsigned kMaxLogPageSize = 19;

// Maximum values for INIT_HCA. Drivers exceed the limits of QUERY_DEV_CAP. Only the used parts of a
// table cost memory: a page of pointers for each 512 numbers.
constexpr unsigned kLogMaxQps = 20;
constexpr unsigned kLogMaxSrqs = 20;
constexpr unsigned kLogMaxCqs = 20;
constexpr unsigned kLogMaxEqs = 9;
constexpr unsigned kLogMaxMpts = 24;
constexpr unsigned kLogMaxMcgs = 20;
constexpr unsigned kLogMinMcgEntry = 6;
constexpr unsigned kLogMaxMcgEntry = 12;

// Maximum number of objects, whatever the tables' sizes, because each uses memory of the daemon.
// The amount of ICM does not limit them, because one page of the guest may be mapped everywhere.
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
