// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the layout of messages and rings: the vhost-user protocol (QEMU's
// docs/interop/vhost-user.rst), split virtqueues (virtio 1.1, section 2.6), and the commands of a
// PCI function that the virtqueues carry (Linux's uapi <linux/virtio_pcidev.h>). All values are in
// the host's byte order, which is little-endian where virtio requires it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft::vhost_user
{

static_assert(std::endian::native == std::endian::little);

// Requests that a client with in-band notifications needs.
enum class Request : std::uint32_t {
	get_features = 1,
	set_features = 2,
	set_owner = 3,
	set_mem_table = 5,
	set_vring_num = 8,
	set_vring_addr = 9,
	set_vring_base = 10,
	get_protocol_features = 15,
	set_protocol_features = 16,
	set_vring_enable = 18,
	set_backend_request_fd = 21,
	vring_kick = 35,
};

// Requests from the back end, which use the descriptor of SetBackendRequestFd.
enum class BackendRequest : std::uint32_t { vring_call = 4 };

constexpr std::uint32_t kVersionMask = 0x3;
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kFlagReply = 1 << 2;
constexpr std::uint32_t kFlagNeedReply = 1 << 3;

#pragma pack(push, 1)
struct Header {
	std::uint32_t request;
	std::uint32_t flags;
	std::uint32_t size; // size of the payload that follows
};
struct VringState {
	std::uint32_t index;
	std::uint32_t number;
};
struct VringAddresses {
	std::uint32_t index;
	std::uint32_t flags;
	// Addresses in the client's own address space.
	std::uint64_t descriptors;
	std::uint64_t used;
	std::uint64_t available;
	std::uint64_t log;
};
struct MemoryRegion {
	std::uint64_t guest_address;
	std::uint64_t size;
	std::uint64_t client_address;
	std::uint64_t offset; // offset in the file of its descriptor
};
struct MemoryTable {
	std::uint32_t count; // number of MemoryRegion that follow, each with a descriptor
	std::uint32_t padding;
};
struct Integer {
	std::uint64_t value;
};
#pragma pack(pop)
static_assert(sizeof(Header) == 12 && sizeof(VringState) == 8 && sizeof(VringAddresses) == 40);
static_assert(sizeof(MemoryRegion) == 32 && sizeof(MemoryTable) == 8);

// Limit of the protocol without further features.
constexpr std::size_t kMaxRegions = 8;
constexpr std::size_t kMaxPayload = sizeof(MemoryTable) + kMaxRegions * sizeof(MemoryRegion);
constexpr std::size_t kMaxMessage = sizeof(Header) + kMaxPayload;

// Feature bits of the device, and of the protocol.
constexpr std::uint64_t kFeatureProtocol = 1ull << 30;
constexpr std::uint64_t kFeatureVersion1 = 1ull << 32;
constexpr std::uint64_t kFeatures = kFeatureProtocol | kFeatureVersion1;

constexpr std::uint64_t kProtocolReplyAck = 1ull << 3;
constexpr std::uint64_t kProtocolBackendRequests = 1ull << 5;
constexpr std::uint64_t kProtocolInbandNotifications = 1ull << 14;
constexpr std::uint64_t kProtocolFeatures =
	kProtocolReplyAck | kProtocolBackendRequests | kProtocolInbandNotifications;

// The two queues of a PCI function: for commands of the guest, and for messages to it.
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

// Maximum number of entries of a queue, which is the number that UML requests.
constexpr std::uint32_t kMaxRing = 256;

// First byte of a command or message; @size bytes follow the header if it carries data, and one
// byte for a MemorySet.
enum class Operation : std::uint8_t {
	config_read = 1,
	config_write = 2,
	memory_read = 3,
	memory_write = 4,
	memory_set = 5,
	interrupt = 6, // a pin interrupt; from here on, messages to the guest
	msi = 7,
	power_management_event = 8,
};
struct Command {
	std::uint8_t operation;
	std::uint8_t bar;
	std::uint16_t reserved;
	std::uint32_t size;
	std::uint64_t address; // offset in configuration space or in the BAR
};
static_assert(sizeof(Command) == 16);

// Maximum size of a read or write: a page, which is more than drivers need.
constexpr std::uint32_t kMaxTransfer = 4096;

} // namespace weft::vhost_user
