// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Layout of messages and rings: the vhost-user protocol after QEMU's docs/interop/vhost-user.rst,
// split virtqueues after the virtio specification (1.1, 2.6), and the commands of a PCI function
// over them, after Linux's uapi <linux/virtio_pcidev.h>. All values are in the host's byte order,
// which is little-endian where virtio requires it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft::vhost_user
{

static_assert(std::endian::native == std::endian::little);

// Requests that a client with in-band notifications needs.
enum class Request : std::uint32_t {
	GetFeatures = 1,
	SetFeatures = 2,
	SetOwner = 3,
	SetMemTable = 5,
	SetVringNum = 8,
	SetVringAddr = 9,
	SetVringBase = 10,
	GetProtocolFeatures = 15,
	SetProtocolFeatures = 16,
	SetVringEnable = 18,
	SetBackendRequestFd = 21,
	VringKick = 35,
};

// Requests that the back end makes, over the descriptor of SetBackendRequestFd.
enum class BackendRequest : std::uint32_t { VringCall = 4 };

constexpr std::uint32_t kVersionMask = 0x3;
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kFlagReply = 1 << 2;
constexpr std::uint32_t kFlagNeedReply = 1 << 3;

#pragma pack(push, 1)
struct Header {
	std::uint32_t request;
	std::uint32_t flags;
	std::uint32_t size; // of the payload that follows
};
struct VringState {
	std::uint32_t index;
	std::uint32_t number;
};
struct VringAddresses {
	std::uint32_t index;
	std::uint32_t flags;
	// In the client's own address space.
	std::uint64_t descriptors;
	std::uint64_t used;
	std::uint64_t available;
	std::uint64_t log;
};
struct MemoryRegion {
	std::uint64_t guest_address;
	std::uint64_t size;
	std::uint64_t client_address;
	std::uint64_t offset; // in its descriptor's file
};
struct MemoryTable {
	std::uint32_t count; // of MemoryRegion that follow, with a descriptor each
	std::uint32_t padding;
};
struct Integer {
	std::uint64_t value;
};
#pragma pack(pop)
static_assert(sizeof(Header) == 12 && sizeof(VringState) == 8 && sizeof(VringAddresses) == 40);
static_assert(sizeof(MemoryRegion) == 32 && sizeof(MemoryTable) == 8);

// Maximum of the protocol without further features.
constexpr std::size_t kMaxRegions = 8;
constexpr std::size_t kMaxPayload = sizeof(MemoryTable) + kMaxRegions * sizeof(MemoryRegion);
constexpr std::size_t kMaxMessage = sizeof(Header) + kMaxPayload;

// Features of the device, and of the protocol.
constexpr std::uint64_t kFeatureProtocol = 1ull << 30;
constexpr std::uint64_t kFeatureVersion1 = 1ull << 32;
constexpr std::uint64_t kFeatures = kFeatureProtocol | kFeatureVersion1;

constexpr std::uint64_t kProtocolReplyAck = 1ull << 3;
constexpr std::uint64_t kProtocolBackendRequests = 1ull << 5;
constexpr std::uint64_t kProtocolInbandNotifications = 1ull << 14;
constexpr std::uint64_t kProtocolFeatures =
	kProtocolReplyAck | kProtocolBackendRequests | kProtocolInbandNotifications;

// The queues of a PCI function: commands of the machine, and messages to it.
constexpr std::uint32_t kCommandQueue = 0;
constexpr std::uint32_t kMessageQueue = 1;
constexpr std::uint32_t kQueues = 2;

// Split virtqueues.
struct Descriptor {
	std::uint64_t address;
	std::uint32_t length;
	std::uint16_t flags;
	std::uint16_t next;
};
static_assert(sizeof(Descriptor) == 16);
constexpr std::uint16_t kDescriptorNext = 1 << 0;
constexpr std::uint16_t kDescriptorWritable = 1 << 1;
constexpr std::uint16_t kDescriptorIndirect = 1 << 2;

struct UsedElement {
	std::uint32_t head;
	std::uint32_t written;
};
static_assert(sizeof(UsedElement) == 8);

// The available and the used ring: flags, an index, and an entry for each descriptor.
constexpr std::uint64_t kRingFlags = 0;
constexpr std::uint64_t kRingIndex = 2;
constexpr std::uint64_t kRingEntries = 4;
constexpr std::uint16_t kNoInterrupt = 1; // flags of the available ring

// Entries that a queue may have: what UML asks for.
constexpr std::uint32_t kMaxRing = 256;

// First byte of a command or message; @size bytes follow the header if it carries data, and one
// byte for a MemorySet.
enum class Operation : std::uint8_t {
	ConfigRead = 1,
	ConfigWrite = 2,
	MemoryRead = 3,
	MemoryWrite = 4,
	MemorySet = 5,
	Interrupt = 6, // by pin; to the machine, as are those below
	Msi = 7,
	PowerManagementEvent = 8,
};
struct Command {
	std::uint8_t operation;
	std::uint8_t bar;
	std::uint16_t reserved;
	std::uint32_t size;
	std::uint64_t address; // in configuration space or in the BAR
};
static_assert(sizeof(Command) == 16);

// Bytes that one command may read or write: a page, which is beyond what drivers do.
constexpr std::uint32_t kMaxTransfer = 4096;

} // namespace weft::vhost_user
