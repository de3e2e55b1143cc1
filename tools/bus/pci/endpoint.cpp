// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/pci/endpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <spdlog/logger.h>

#include "base/loop.hpp"

namespace weft::pci
{

namespace
{

PciDescription as_seen(PciDescription description, const Interrupts &interrupts)
{
	description.intx = description.intx && interrupts.carries_intx();
	return description;
}

constexpr std::uint64_t table_size(const PciMsix &msix)
{
	return 16ull * msix.vectors;
}

constexpr std::uint64_t pba_size(const PciMsix &msix)
{
	return (msix.vectors + 63ull) / 64 * 8;
}

// Returns the part of @data, which starts at @offset, that lies in [@start, @start + @length), and
// its offset in that range.
template<typename Span>
std::pair<std::uint64_t, Span> part_within(std::uint64_t offset, Span data, std::uint64_t start,
					   std::uint64_t length)
{
	const auto begin = std::max(offset, start);
	const auto end = std::min(offset + data.size(), start + length);
	if (begin >= end)
		return {0, {}};
	return {begin - start, data.subspan(begin - offset, end - begin)};
}

} // namespace

Endpoint::Endpoint(Loop &loop, PciDevice &device, Interrupts &interrupts,
		   std::shared_ptr<spdlog::logger> log, std::size_t most_mappings)
    : loop_(loop), device_(device), interrupts_(interrupts), log_(std::move(log)),
      description_(as_seen(device.description(), interrupts)), config_(description_),
      lender_(std::make_shared<MemoryLender>(most_mappings))
{
	device_.attach(*this);
	try {
		device_.reset(PciReset::bus);
	} catch (...) {
		device_.detach(); // the constructor has failed, so undo attach()
		throw;
	}
}

Endpoint::~Endpoint()
{
	device_.detach();
}

void Endpoint::raise_msix(unsigned vector)
{
	// A message is a memory write, which requires bus mastering.
	if (config_.msix_enabled() && config_.bus_master())
		interrupts_.raise_msix(vector);
}

void Endpoint::set_intx(bool asserted)
{
	if (!description_.intx || asserted == intx_)
		return;
	intx_ = asserted;
	config_.set_interrupt_status(asserted);
	interrupts_.set_intx(asserted);
}

std::uint64_t Endpoint::region_size(std::uint32_t index) const
{
	if (index < kPciBars)
		return description_.bars[index].size;
	return index == kConfigRegion ? ConfigSpace::kSize : 0;
}

PciMapping Endpoint::mapping(std::uint32_t index)
{
	return index < kPciBars && region_size(index) ? device_.mapping(index) : PciMapping{};
}

bool Endpoint::region_contains(std::uint32_t index, std::uint64_t offset, std::uint64_t size) const
{
	const auto region = region_size(index);
	return region && offset <= region && size <= region - offset;
}

// The model does not handle these accesses: the MSI-X table and the pending bits belong to the
// guest and to the endpoint.
bool Endpoint::is_msix_structure(std::uint32_t bar, std::uint64_t offset, std::size_t size) const
{
	const PciMsix &msix = description_.msix;
	const auto within = [&](unsigned window_bar, std::uint64_t start, std::uint64_t length) {
		return bar == window_bar && offset < start + length && start < offset + size;
	};
	return msix.vectors && (within(msix.table_bar, msix.table_offset, table_size(msix)) ||
				within(msix.pba_bar, msix.pba_offset, pba_size(msix)));
}

void Endpoint::read_msix_structure(std::uint32_t bar, std::uint64_t offset,
				   std::span<std::byte> data) const
{
	const PciMsix &msix = description_.msix;
	std::ranges::fill(data, std::byte{0});
	if (bar == msix.table_bar) {
		const auto [at, part] =
			part_within(offset, data, msix.table_offset, table_size(msix));
		if (!part.empty())
			interrupts_.read_table(at, part);
	}
	if (bar == msix.pba_bar) {
		const auto [at, part] = part_within(offset, data, msix.pba_offset, pba_size(msix));
		for (std::size_t i = 0; i < part.size(); ++i)
			for (unsigned bit = 0; bit < 8; ++bit)
				if (interrupts_.pending((at + i) * 8 + bit))
					part[i] |= std::byte{1} << bit;
	}
}

void Endpoint::write_msix_structure(std::uint32_t bar, std::uint64_t offset,
				    std::span<const std::byte> data)
{
	const PciMsix &msix = description_.msix;
	if (bar != msix.table_bar)
		return;
	const auto [at, part] = part_within(offset, data, msix.table_offset, table_size(msix));
	if (!part.empty())
		interrupts_.write_table(at, part);
}

bool Endpoint::region_read(std::uint32_t index, std::uint64_t offset, std::span<std::byte> data)
{
	if (!region_contains(index, offset, data.size()))
		return false;
	if (data.empty())
		return true;
	if (index == kConfigRegion) {
		config_.read(offset, data);
		read_vendor_registers(offset, data);
	} else if (is_msix_structure(index, offset, data.size())) {
		read_msix_structure(index, offset, data);
	} else {
		device_.region_read(index, offset, data);
	}
	return true;
}

bool Endpoint::region_write(std::uint32_t index, std::uint64_t offset,
			    std::span<const std::byte> data)
{
	if (!region_contains(index, offset, data.size()))
		return false;
	if (data.empty())
		return true;
	if (index == kConfigRegion)
		write_config(offset, data);
	else if (is_msix_structure(index, offset, data.size()))
		write_msix_structure(index, offset, data);
	else
		device_.region_write(index, offset, data);
	return true;
}

// The device implements all dwords of its vendor-specific capability except the first.
void Endpoint::read_vendor_registers(std::uint64_t offset, std::span<std::byte> data)
{
	for (unsigned at = 4; at < description_.vendor_capability; at += 4) {
		const std::uint64_t begin = ConfigSpace::kVendorSpecific + at;
		if (begin + 4 <= offset || begin >= offset + data.size())
			continue;
		const std::uint32_t value = device_.capability_read(at);
		for (unsigned i = 0; i < 4; ++i)
			if (begin + i >= offset && begin + i < offset + data.size())
				data[begin + i - offset] = static_cast<std::byte>(value >> (8 * i));
	}
}

void Endpoint::write_vendor_registers(std::uint64_t offset, std::span<const std::byte> data)
{
	for (unsigned at = 4; at < description_.vendor_capability; at += 4) {
		const std::uint64_t begin = ConfigSpace::kVendorSpecific + at;
		const std::uint64_t end = offset + data.size();
		const bool whole = offset <= begin && begin + 4 <= end;
		const bool part = begin <= offset && end <= begin + 4;
		if (!whole && !part)
			continue;
		// The other bytes keep their value, as those that a bus does not enable.
		std::uint32_t value = whole ? 0 : device_.capability_read(at);
		for (unsigned i = 0; i < 4; ++i) {
			if (begin + i < offset || begin + i >= end)
				continue;
			value &= ~(0xffu << (8 * i));
			value |= std::to_integer<std::uint32_t>(data[begin + i - offset])
				 << (8 * i);
		}
		device_.capability_write(at, value);
	}
}

void Endpoint::write_config(std::uint64_t offset, std::span<const std::byte> data)
{
	const bool was_master = config_.bus_master();
	const auto effects = config_.write(offset, data);
	if (effects.function_level_reset) {
		log_->info("function-level reset");
		reset(PciReset::function_level);
		return;
	}
	if (effects.command_changed)
		interrupts_.set_intx_disabled(config_.intx_disabled());
	if (effects.msix_changed) {
		if (!config_.msix_enabled())
			interrupts_.clear_pending();
	}
	// A message is a memory write, which requires bus mastering. Until then, pending messages
	// stay pending.
	if (effects.msix_changed || config_.bus_master() != was_master)
		interrupts_.set_msix_masked(config_.msix_masked() || !config_.bus_master());
	if (config_.bus_master() != was_master)
		device_.bus_master_changed(!was_master);
	write_vendor_registers(offset, data);
}

GuestMemory::MapResult Endpoint::map(const MemorySection &section, int fd)
{
	// Memory that the daemon cannot access is not mapped, but counts towards the limit, too.
	if (memory_.mappings() >= lender_->most_mappings())
		throw std::system_error(ENOSPC, std::generic_category(),
					"the guest's DMA mappings");
	std::shared_ptr<const MemoryMapping> mapping;
	if (fd >= 0)
		mapping = MemoryMapping::map_file(fd, section.offset, section.size,
						  section.writable, lender_);
	const auto result = memory_.map(section.address, section.size, section.readable,
					section.writable, std::move(mapping));
	if (result == GuestMemory::MapResult::mapped)
		device_.memory_changed();
	return result;
}

bool Endpoint::unmap(std::uint64_t address, std::uint64_t size)
{
	if (!memory_.unmap(address, size))
		return false;
	device_.memory_changed();
	return true;
}

void Endpoint::unmap_all()
{
	memory_.clear();
	device_.memory_changed();
}

void Endpoint::reset(PciReset kind)
{
	config_.reset();
	device_.reset(kind);
	set_intx(false);
	interrupts_.reset();
}

void Endpoint::release()
{
	interrupts_.release();
	unmap_all();
	reset(PciReset::host_gone);
}

void Endpoint::admit()
{
	lender_ = std::make_shared<MemoryLender>(lender_->most_mappings());
}

} // namespace weft::pci
