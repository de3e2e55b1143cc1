// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vfio-user/session.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/logger.h>

namespace weft::vfio_user
{

static_assert(kRegionConfig == pci::Endpoint::kConfigRegion && kPageSize == pci::kPageSize &&
	      kMaxMessageFds == pci::kMaxMessageFds);

// A command with its minimum payload and the maximum number of descriptors it may carry.
struct Session::Entry {
	Command command;
	const char *name;
	std::uint32_t smallest_payload;
	std::uint32_t most_fds;
	Handler handler;
};

constexpr Session::Entry Session::kEntries[] = {
	{Command::version, "VERSION", sizeof(VersionHeader), 0, &Session::version},
	{Command::dma_map, "DMA_MAP", sizeof(DmaMap), 1, &Session::dma_map},
	{Command::dma_unmap, "DMA_UNMAP", sizeof(DmaUnmap), 0, &Session::dma_unmap},
	{Command::get_info, "DEVICE_GET_INFO", sizeof(DeviceInfo), 0, &Session::get_info},
	{Command::get_region_info, "DEVICE_GET_REGION_INFO", sizeof(RegionInfo), 0,
	 &Session::get_region_info},
	{Command::get_region_io_fds, "DEVICE_GET_REGION_IO_FDS", sizeof(RegionIoFds), 0,
	 &Session::get_region_io_fds},
	{Command::get_irq_info, "DEVICE_GET_IRQ_INFO", sizeof(IrqInfo), 0, &Session::get_irq_info},
	{Command::set_irqs, "DEVICE_SET_IRQS", sizeof(IrqSet), kMaxMessageFds, &Session::set_irqs},
	{Command::region_read, "REGION_READ", sizeof(RegionAccess), 0, &Session::region_read},
	{Command::region_write, "REGION_WRITE", sizeof(RegionAccess), 0, &Session::region_write},
	{Command::reset, "DEVICE_RESET", 0, 0, &Session::reset},
	{Command::region_write_multi, "REGION_WRITE_MULTI", sizeof(RegionWriteMulti), 0,
	 &Session::region_write_multi},
	{Command::device_feature, "DEVICE_FEATURE", sizeof(DeviceFeature), 0,
	 &Session::device_feature},
	// These are sent by the server only.
	{Command::dma_read, "DMA_READ", 0, kMaxMessageFds, &Session::unsupported},
	{Command::dma_write, "DMA_WRITE", 0, kMaxMessageFds, &Session::unsupported},
	// Migration is not supported.
	{Command::mig_data_read, "MIG_DATA_READ", 0, kMaxMessageFds, &Session::unsupported},
	{Command::mig_data_write, "MIG_DATA_WRITE", 0, kMaxMessageFds, &Session::unsupported},
};

namespace
{

pci::Framing::Extent measure(std::span<const std::byte> head)
{
	Header header;
	std::memcpy(&header, head.data(), sizeof(header));
	if (header.size < sizeof(Header))
		return {sizeof(Header), "a message shorter than its header"};
	if (header.size > kMaxMessage)
		return {sizeof(Header),
			"a message longer than the negotiated transfer size allows"};
	if ((header.flags & kFlagTypeMask) == kFlagTypeReply)
		return {sizeof(Header), "a reply to a request that was never made"};
	if ((header.flags & kFlagTypeMask) != kFlagTypeCommand)
		return {sizeof(Header), "a message of unknown type"};
	return {header.size, nullptr};
}

} // namespace

constinit const pci::Framing kFraming{sizeof(Header), kMaxMessage, measure, false};

Session::Session(pci::Endpoint &endpoint, Interrupts &interrupts,
		 std::shared_ptr<spdlog::logger> log)
    : endpoint_(endpoint), interrupts_(interrupts), log_(std::move(log))
{
}

template<typename T>
T Session::request(const Message &message)
{
	T value;
	std::memcpy(&value, message.payload.data(), sizeof(value));
	return value;
}

template<typename T>
void Session::append(const T &value)
{
	append_bytes(std::as_bytes(std::span(&value, 1)));
}

void Session::append_bytes(std::span<const std::byte> bytes)
{
	reply_.insert(reply_.end(), bytes.begin(), bytes.end());
}

std::span<const std::byte> Session::handle(Message &message)
{
	reply_.resize(sizeof(Header));
	reply_fd_ = -1;
	const auto request = message.header<Header>();
	const int error = dispatch(request, message);
	if (ended() || request.flags & kFlagNoReply) {
		reply_fd_ = -1;
		return {};
	}
	Header header{request.id, request.command, 0, kFlagTypeReply, 0};
	if (error) {
		reply_.resize(sizeof(Header));
		header.flags |= kFlagError;
		header.error = static_cast<std::uint32_t>(error);
	}
	header.size = static_cast<std::uint32_t>(reply_.size());
	std::memcpy(reply_.data(), &header, sizeof(header));
	return reply_;
}

int Session::dispatch(const Header &header, Message &message)
{
	const auto entry = std::ranges::find_if(kEntries, [&](const Entry &candidate) {
		return static_cast<std::uint16_t>(candidate.command) == header.command;
	});
	int error;
	if (entry == std::end(kEntries))
		error = ENOSYS;
	else if (greeted_ == (entry->command == Command::version))
		error = EINVAL; // VERSION must come first, and only once
	else if (message.payload.size() < entry->smallest_payload ||
		 message.fds.size() > entry->most_fds)
		error = EINVAL;
	else
		error = (this->*entry->handler)(message);
	if (error)
		log_->warn("request {} ({}) of {} bytes refused: {}", header.command,
			   entry == std::end(kEntries) ? "unknown" : entry->name, header.size,
			   std::strerror(error));
	return error;
}

namespace
{

// Returns the capabilities of the reply: a subset of the proposed ones, with values that both sides
// support.
nlohmann::json common_capabilities(const nlohmann::json &proposed, std::size_t most_dma_maps)
{
	auto common = nlohmann::json::object();
	const auto limit = [&](const char *name, std::uint64_t ours) {
		const auto found = proposed.find(name);
		if (found != proposed.end() && found->is_number_unsigned())
			common[name] = std::min(ours, found->get<std::uint64_t>());
	};
	limit("max_data_xfer_size", kMaxDataTransfer);
	limit("max_dma_maps", most_dma_maps);
	// The receive limits of the two sides are independent of each other.
	if (proposed.contains("max_msg_fds"))
		common["max_msg_fds"] = kMaxMessageFds;
	if (proposed.contains("pgsizes"))
		common["pgsizes"] = kPageSize;
	if (const auto found = proposed.find("write_multiple");
	    found != proposed.end() && found->is_boolean() && found->get<bool>())
		common["write_multiple"] = true;
	return common;
}

} // namespace

int Session::version(Message &message)
{
	const auto proposal = request<VersionHeader>(message);
	if (proposal.major != kVersionMajor) {
		end(fmt::format("it speaks version {}.{} of the protocol, not {}.{}",
				proposal.major, proposal.minor, kVersionMajor, kVersionMinor));
		return 0;
	}
	auto data = nlohmann::json::object();
	if (message.payload.size() > sizeof(VersionHeader)) {
		const auto text = message.payload.subspan(sizeof(VersionHeader));
		const auto *begin = reinterpret_cast<const char *>(text.data());
		if (text.size() > kMaxVersionData || text.back() != std::byte{0})
			return EINVAL;
		data = nlohmann::json::parse(begin, begin + text.size() - 1, nullptr, false);
		if (!data.is_object())
			return EINVAL;
	}
	const auto proposed = data.find("capabilities");
	if (proposed != data.end() && !proposed->is_object())
		return EINVAL;
	// Use a reference, because a copy of a deeply nested value needs a stack frame for each
	// level.
	static const auto kNone = nlohmann::json::object();
	const nlohmann::json &capabilities = proposed == data.end() ? kNone : *proposed;
	const auto common = common_capabilities(capabilities, endpoint_.lender()->most_mappings());

	append(VersionHeader{kVersionMajor, std::min(proposal.minor, kVersionMinor)});
	const std::string text = nlohmann::json{{"capabilities", common}}.dump();
	append_bytes(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
	greeted_ = true;
	log_->debug("version {}.{} with {}", proposal.major, proposal.minor, text);
	return 0;
}

int Session::dma_map(Message &message)
{
	const auto section = request<DmaMap>(message);
	if (section.flags & ~(kDmaReadable | kDmaWritable) || !section.size ||
	    (section.address | section.size) % kPageSize)
		return EINVAL;
	// The descriptor is closed after the request, because the mapping keeps the memory.
	const int fd = message.fds.empty() ? -1 : message.fds[0].get();
	try {
		const auto result = endpoint_.map({section.address, section.size, section.offset,
						   (section.flags & kDmaReadable) != 0,
						   (section.flags & kDmaWritable) != 0},
						  fd);
		if (result == GuestMemory::MapResult::overlap)
			return EEXIST;
		if (result == GuestMemory::MapResult::invalid)
			return EINVAL;
	} catch (const std::system_error &error) {
		return error.code().value();
	}
	log_->debug("memory {:#x} + {:#x} {}{}{}", section.address, section.size,
		    section.flags & kDmaReadable ? "r" : "-",
		    section.flags & kDmaWritable ? "w" : "-", fd < 0 ? ", out of reach" : "");
	return 0;
}

int Session::dma_unmap(Message &message)
{
	const auto section = request<DmaUnmap>(message);
	const MemoryLender &lender = *endpoint_.lender();
	const std::uint64_t lent = lender.bytes();
	if (section.flags == kDmaUnmapAll) {
		if (section.address || section.size)
			return EINVAL;
		endpoint_.unmap_all();
	} else if (section.flags) {
		return ENOTSUP; // dirty page bitmaps are for migration
	} else if (!endpoint_.unmap(section.address, section.size)) {
		return ENOENT;
	}
	message.charge_unmapped(lent - std::min(lent, lender.bytes()));
	log_->debug("memory {:#x} + {:#x} gone", section.address, section.size);
	append(section);
	return 0;
}

int Session::get_info(Message &message)
{
	if (request<DeviceInfo>(message).argsz < sizeof(DeviceInfo))
		return EINVAL;
	append(DeviceInfo{sizeof(DeviceInfo), kDeviceReset | kDevicePci, kRegions, kIrqs});
	return 0;
}

int Session::get_region_info(Message &message)
{
	const auto query = request<RegionInfo>(message);
	if (query.argsz < sizeof(RegionInfo) || query.index >= kRegions)
		return EINVAL;
	RegionInfo info{
		sizeof(RegionInfo), 0, query.index, 0, endpoint_.region_size(query.index), 0};
	if (info.size)
		info.flags = kRegionRead | kRegionWrite;
	const PciMapping mapping = endpoint_.mapping(query.index);
	if (mapping.fd < 0) {
		append(info);
		return 0;
	}
	// A client whose buffer is too small asks again with a larger one. QEMU refuses a reply
	// with the flag of capabilities that has none.
	info.argsz = sizeof(RegionInfo) + sizeof(SparseMapping);
	if (query.argsz < info.argsz) {
		append(info);
		return 0;
	}
	info.flags |= kRegionMappable | kRegionCapabilities;
	info.cap_offset = sizeof(RegionInfo);
	append(info);
	append(SparseMapping{kCapabilitySparseMapping, kSparseMappingVersion, 0, 1, 0,
			     mapping.offset, mapping.size});
	reply_fd_ = mapping.fd;
	return 0;
}

// No region has descriptors for its accesses: those outside mapped parts are messages.
int Session::get_region_io_fds(Message &message)
{
	const auto query = request<RegionIoFds>(message);
	if (query.argsz < sizeof(RegionIoFds) || query.flags || query.count ||
	    query.index >= kRegions)
		return EINVAL;
	append(RegionIoFds{sizeof(RegionIoFds), 0, query.index, 0});
	return 0;
}

int Session::get_irq_info(Message &message)
{
	const auto query = request<IrqInfo>(message);
	if (query.argsz < sizeof(IrqInfo) || query.index >= kIrqs)
		return EINVAL;
	append(interrupts_.info(query.index));
	return 0;
}

int Session::set_irqs(Message &message)
{
	return interrupts_.set(request<IrqSet>(message), message.payload.subspan(sizeof(IrqSet)),
			       std::move(message.fds));
}

int Session::region_read(Message &message)
{
	const auto access = request<RegionAccess>(message);
	if (access.count > kMaxDataTransfer ||
	    !endpoint_.region_contains(access.region, access.offset, access.count))
		return EINVAL;
	message.charge_moved(access.count);
	append(access);
	const auto head = reply_.size();
	reply_.resize(head + access.count);
	endpoint_.region_read(access.region, access.offset, std::span(reply_).subspan(head));
	return 0;
}

int Session::region_write(Message &message)
{
	const auto access = request<RegionAccess>(message);
	const auto data = message.payload.subspan(sizeof(RegionAccess));
	message.charge_moved(data.size());
	if (data.size() != access.count ||
	    !endpoint_.region_write(access.region, access.offset, data))
		return EINVAL;
	append(access);
	return 0;
}

// All writes are checked before the first is executed, so that an error means that none was.
int Session::region_write_multi(Message &message)
{
	const auto writes = request<RegionWriteMulti>(message);
	const auto entries = message.payload.subspan(sizeof(RegionWriteMulti));
	if (writes.count > kMaxMultiWrites || entries.size() % sizeof(RegionWriteSingle) ||
	    writes.count != entries.size() / sizeof(RegionWriteSingle))
		return EINVAL;
	const auto each = [&](auto &&visit) {
		for (auto left = entries; !left.empty();
		     left = left.subspan(sizeof(RegionWriteSingle))) {
			RegionWriteSingle write;
			std::memcpy(&write, left.data(), sizeof(write));
			if (!visit(write))
				return false;
		}
		return true;
	};
	const bool valid = each([&](const RegionWriteSingle &write) {
		return write.access.count <= sizeof(write.data) &&
		       endpoint_.region_contains(write.access.region, write.access.offset,
						 write.access.count);
	});
	if (!valid)
		return EINVAL;
	each([&](const RegionWriteSingle &write) {
		return endpoint_.region_write(write.access.region, write.access.offset,
					      std::span(write.data).first(write.access.count));
	});
	message.charge(writes.count);
	append(writes);
	return 0;
}

int Session::reset(Message &)
{
	log_->info("reset");
	endpoint_.reset(PciReset::bus);
	return 0;
}

// All features that the protocol defines are about migration. VFIO returns ENOTTY for a feature
// that does not exist.
int Session::device_feature(Message &)
{
	return ENOTTY;
}

int Session::unsupported(Message &)
{
	return ENOTSUP;
}

} // namespace weft::vfio_user
