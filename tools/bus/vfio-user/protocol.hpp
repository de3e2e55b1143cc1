// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the wire format of the vfio-user protocol, as specified in QEMU's
// docs/interop/vfio-user.rst (version 0.1). All values are in the host's byte order. A message is a
// Header and a payload; the structures below are the fixed parts of payloads, requests and replies
// alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::vfio_user
{

constexpr std::uint16_t kVersionMajor = 0;
constexpr std::uint16_t kVersionMinor = 1;

// Maximum size of one region access, which determines the maximum size of a message ("Message
// sizes").
constexpr std::uint32_t kMaxDataTransfer = 1 << 20;
constexpr std::uint32_t kMaxMessageFds = 16;
// The number of DMA mappings that a guest may share. A guest in QEMU has about ten, and one more
// for each DIMM that is plugged in. The limit is reported to the client ("max_dma_maps").
constexpr std::uint32_t kMaxDmaMaps = 4096;
// Maximum size of the version data with its terminating NUL; QEMU sends about 200 bytes.
constexpr std::size_t kMaxVersionData = 4096;
// Maximum number of writes in one message, as in QEMU.
constexpr std::uint64_t kMaxMultiWrites = 200;
constexpr std::uint32_t kPageSize = 4096;

enum class Command : std::uint16_t {
	version = 1,
	dma_map = 2,
	dma_unmap = 3,
	get_info = 4,
	get_region_info = 5,
	get_region_io_fds = 6,
	get_irq_info = 7,
	set_irqs = 8,
	region_read = 9,
	region_write = 10,
	dma_read = 11,
	dma_write = 12,
	reset = 13,
	region_write_multi = 15,
	device_feature = 16,
	mig_data_read = 17,
	mig_data_write = 18,
};

constexpr std::uint32_t kFlagTypeMask = 0xf;
constexpr std::uint32_t kFlagTypeCommand = 0;
constexpr std::uint32_t kFlagTypeReply = 1;
constexpr std::uint32_t kFlagNoReply = 1 << 4;
constexpr std::uint32_t kFlagError = 1 << 5;

struct Header {
	std::uint16_t id;
	std::uint16_t command;
	std::uint32_t size; // size of the whole message, including the header
	std::uint32_t flags;
	std::uint32_t error; // errno value, valid with kFlagError
};
static_assert(sizeof(Header) == 16);

constexpr std::uint32_t kMaxMessage = sizeof(Header) + 16 + kMaxDataTransfer;

struct VersionHeader {
	std::uint16_t major;
	std::uint16_t minor;
};
static_assert(sizeof(VersionHeader) == 4);

constexpr std::uint32_t kDmaReadable = 1 << 0;
constexpr std::uint32_t kDmaWritable = 1 << 1;

struct DmaMap {
	std::uint32_t argsz;
	std::uint32_t flags;
	std::uint64_t offset;
	std::uint64_t address;
	std::uint64_t size;
};
static_assert(sizeof(DmaMap) == 32);

// From <linux/vfio.h>: QEMU unmaps all memory with it when a container is removed.
constexpr std::uint32_t kDmaUnmapAll = 1 << 1;

struct DmaUnmap {
	std::uint32_t argsz;
	std::uint32_t flags;
	std::uint64_t address;
	std::uint64_t size;
};
static_assert(sizeof(DmaUnmap) == 24);

constexpr std::uint32_t kDeviceReset = 1 << 0;
constexpr std::uint32_t kDevicePci = 1 << 1;

struct DeviceInfo {
	std::uint32_t argsz;
	std::uint32_t flags;
	std::uint32_t num_regions;
	std::uint32_t num_irqs;
};
static_assert(sizeof(DeviceInfo) == 16);

// Region indexes of a PCI device; 0 to 5 are the BARs.
constexpr std::uint32_t kRegionRom = 6;
constexpr std::uint32_t kRegionConfig = 7;
constexpr std::uint32_t kRegionVga = 8;
constexpr std::uint32_t kRegions = 9;

constexpr std::uint32_t kRegionRead = 1 << 0;
constexpr std::uint32_t kRegionWrite = 1 << 1;
constexpr std::uint32_t kRegionMappable = 1 << 2;
constexpr std::uint32_t kRegionCapabilities = 1 << 3;

struct RegionInfo {
	std::uint32_t argsz;
	std::uint32_t flags;
	std::uint32_t index;
	std::uint32_t cap_offset;
	std::uint64_t size;
	std::uint64_t offset;
};
static_assert(sizeof(RegionInfo) == 32);

// A capability of a region, from <linux/vfio.h>: the parts of the region that can be mapped. The
// file of the reply contains the whole region, from @offset of RegionInfo on.
struct SparseMapping {
	std::uint16_t id;
	std::uint16_t version;
	std::uint32_t next; // 0: the last capability
	std::uint32_t parts;
	std::uint32_t reserved;
	std::uint64_t offset;
	std::uint64_t size;
};
static_assert(sizeof(SparseMapping) == 32);

constexpr std::uint16_t kCapabilitySparseMapping = 1;
constexpr std::uint16_t kSparseMappingVersion = 1;

struct RegionIoFds {
	std::uint32_t argsz;
	std::uint32_t flags;
	std::uint32_t index;
	std::uint32_t count;
};
static_assert(sizeof(RegionIoFds) == 16);

// Interrupt indexes of a PCI device.
constexpr std::uint32_t kIrqIntx = 0;
constexpr std::uint32_t kIrqMsi = 1;
constexpr std::uint32_t kIrqMsix = 2;
constexpr std::uint32_t kIrqError = 3;
constexpr std::uint32_t kIrqRequest = 4;
constexpr std::uint32_t kIrqs = 5;

constexpr std::uint32_t kIrqEventfd = 1 << 0;
constexpr std::uint32_t kIrqMaskable = 1 << 1;
constexpr std::uint32_t kIrqAutomasked = 1 << 2;

struct IrqInfo {
	std::uint32_t argsz;
	std::uint32_t flags;
	std::uint32_t index;
	std::uint32_t count;
};
static_assert(sizeof(IrqInfo) == 16);

constexpr std::uint32_t kIrqSetDataNone = 1 << 0;
constexpr std::uint32_t kIrqSetDataBool = 1 << 1;
constexpr std::uint32_t kIrqSetDataEventfd = 1 << 2;
constexpr std::uint32_t kIrqSetActionMask = 1 << 3;
constexpr std::uint32_t kIrqSetActionUnmask = 1 << 4;
constexpr std::uint32_t kIrqSetActionTrigger = 1 << 5;

// Followed by @count bytes with kIrqSetDataBool.
struct IrqSet {
	std::uint32_t argsz;
	std::uint32_t flags;
	std::uint32_t index;
	std::uint32_t start;
	std::uint32_t count;
};
static_assert(sizeof(IrqSet) == 20);

// Followed by @count bytes in a write request and in a read reply.
struct RegionAccess {
	std::uint64_t offset;
	std::uint32_t region;
	std::uint32_t count;
};
static_assert(sizeof(RegionAccess) == 16);

struct RegionWriteMulti {
	std::uint64_t count; // number of RegionWriteSingle structures that follow
};
static_assert(sizeof(RegionWriteMulti) == 8);

struct RegionWriteSingle {
	RegionAccess access;
	std::byte data[8];
};
static_assert(sizeof(RegionWriteSingle) == 24);

struct DeviceFeature {
	std::uint32_t argsz;
	std::uint32_t flags;
};
static_assert(sizeof(DeviceFeature) == 8);

} // namespace weft::vfio_user
