// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the number and maximum sizes of the card's objects. The card's capabilities report them,
// and they bound the daemon's memory that a guest can use (Documentation/mlx5.rst, "Limits").
#pragma once

#include <cstddef>
#include <cstdint>

#include <hw/mlx5/registers.hpp>

namespace weft::mlx5::limits
{

// BAR 0: the initialization segment, and a UAR in each further page.
constexpr std::uint64_t kRegistersSize = 16 << 20;
constexpr std::uint32_t kUarPages = kRegistersSize / hw::mlx5::uar::page_size;
constexpr std::uint32_t kFirstUar = 16;
// The first UAR whose doorbells can be polled. UARs before it are never mapped.
constexpr std::uint32_t kFirstPolledUar = 32;

constexpr unsigned kMostPorts = 2;

// 64 event queues for completions, each with its vector. Linux's driver has up to four others: for
// commands, asynchronous events, page requests and page faults.
constexpr unsigned kCompletionEqs = 64;
constexpr unsigned kEqs = kCompletionEqs + 4;

// BAR 4.
constexpr std::uint16_t kVectors = kEqs;
constexpr std::uint64_t kMsixBarSize = 8192;
constexpr std::uint32_t kPbaOffset = 4096;

// The command queue: 2^5 entries of 2^6 bytes.
constexpr unsigned kLogCommands = 5;
constexpr unsigned kCommands = 1u << kLogCommands;
constexpr unsigned kLogCommandStride = 6;
// Maximum length of an input in bytes: a memory key of 2^18 pages, 1 GiB of 4 KiB pages.
constexpr std::size_t kMostInput = (2 << 20) + 4096;
// Maximum length of an output in bytes: a page of capabilities, or the page addresses that drivers
// reclaim.
constexpr std::size_t kMostOutput = 8192;

// Maximum number of objects of each kind, and the first number that the card assigns.
constexpr unsigned kLogQps = 17;
constexpr unsigned kLogCqs = 17;
constexpr unsigned kLogSrqs = 16;
constexpr unsigned kLogKeys = 20;
constexpr unsigned kLogPds = 16;
constexpr unsigned kLogXrcDomains = 16;
constexpr std::uint32_t kFirstNumber = 64;

// Maximum number of entries of a queue, in powers of two; send queues count blocks of 64 bytes.
constexpr unsigned kLogQpSize = 15;
constexpr unsigned kLogSrqSize = 15;
constexpr unsigned kLogCqSize = 22;
constexpr unsigned kLogEqSize = 22;
// Maximum number of completions that are compressed together.
constexpr unsigned kMostCompressed = 64;
constexpr std::uint32_t kSendWqeBytes = 1024;
constexpr std::uint32_t kReceiveWqeBytes = 512;

// Page sizes of queues and keys are 2^12 to 2^31 bytes.
constexpr unsigned kLeastPageShift = 12;
constexpr unsigned kMostPageShift = 31;
// Maximum number of page addresses and pieces in all objects of a card together; each takes 8 or 24
// bytes of the daemon's memory.
constexpr std::size_t kMostPages = std::size_t{1} << 22;
// Limits of one key: pages, pieces, and the nesting of keys with pieces.
constexpr std::size_t kMostKeyPages = std::size_t{1} << 20;
constexpr unsigned kLogPieces = 16;
constexpr unsigned kMostIndirections = 4;

// Maximum number of groups, and of queue pairs in a group.
constexpr unsigned kLogGroups = 13;
constexpr unsigned kMostMembers = 240;

// Enhanced IPoIB: maximum numbers of send queues and receive queues; of transport interfaces and
// tables of queues; of flow tables, and of groups and entries in all tables together.
constexpr unsigned kLogRawQueues = 10;
constexpr unsigned kLogSendInterfaces = 7;
constexpr unsigned kLogReceiveInterfaces = 10;
constexpr unsigned kLogQueueTables = 8;
constexpr unsigned kLogQueueTableSize = 8;
constexpr unsigned kLogTransportDomains = 6;
constexpr std::uint32_t kCounterSets = 32;
constexpr unsigned kLogFlowTables = 6;
constexpr unsigned kMostFlowLevel = 128; // Linux 6.12 creates a table above level 64
constexpr unsigned kLogFlowTableSize = 16;
constexpr unsigned kLogFlowGroups = 8;
constexpr unsigned kLogFlowEntries = 10;
// Maximum size of a large send in bytes, in powers of two.
constexpr unsigned kLogLargeSend = 16;

constexpr unsigned kLogPkeys = 7;
constexpr unsigned kLogMessage = 30;
// Outstanding reads and atomics of a queue pair, in each direction.
constexpr unsigned kLogReads = 4;
constexpr unsigned kAckDelay = 15;

// Firmware 16.35.2000 is the first version with all features that the drivers of this model
// require.
constexpr std::uint32_t kFirmwareMajor = 16;
constexpr std::uint32_t kFirmwareMinor = 35;
constexpr std::uint32_t kFirmwareSubminor = 2000;
constexpr char kBoardId[] = "WFT_0000000005";
constexpr char kProductName[] = "Emulated ConnectX-5";

} // namespace weft::mlx5::limits
