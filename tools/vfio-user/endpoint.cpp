// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "vfio-user/endpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <spdlog/logger.h>

#include "base/loop.hpp"

namespace weft::vfio_user
{

Endpoint::Endpoint(Loop &loop, PciDevice &device, std::shared_ptr<spdlog::logger> log,
		   std::size_t most_mappings)
    : loop_(loop), device_(device), log_(std::move(log)), description_(device.description()),
      config_(description_), lender_(std::make_shared<MemoryLender>(most_mappings)),
      interrupts_(loop, description_.msix.vectors, description_.intx)
{
	device_.attach(*this);
	device_.reset(PciReset::Bus);
}

Endpoint::~Endpoint()
{
	device_.detach();
}

void Endpoint::raise_msix(unsigned vector)
{
	// A message is a memory write, which takes a bus master.
	if (config_.msix_enabled() && config_.bus_master())
		interrupts_.raise_msix(vector);
}

void Endpoint::set_intx(bool asserted)
{
	if (!description_.intx || asserted == interrupts_.intx())
		return;
	config_.set_interrupt_status(asserted);
	interrupts_.set_intx(asserted);
}

std::uint64_t Endpoint::region_size(std::uint32_t index) const
{
	if (index < kPciBars)
		return description_.bars[index].size;
	return index == kRegionConfig ? ConfigSpace::kSize : 0;
}

bool Endpoint::region_contains(std::uint32_t index, std::uint64_t offset, std::uint64_t size) const
{
	const auto region = region_size(index);
	return region && offset <= region && size <= region - offset;
}

// The client has the MSI-X table, and keeps what is masked there; behind it is nothing here. The
// pending bits it may ask for, as QEMU does: of a vector that has no descriptor yet.
bool Endpoint::is_msix_structure(std::uint32_t bar, std::uint64_t offset, std::size_t size) const
{
	const PciMsix &msix = description_.msix;
	const auto within = [&](unsigned window_bar, std::uint64_t start, std::uint64_t length) {
		return bar == window_bar && offset < start + length && start < offset + size;
	};
	return msix.vectors &&
	       (within(msix.table_bar, msix.table_offset, 16ull * msix.vectors) ||
		within(msix.pba_bar, msix.pba_offset, (msix.vectors + 63ull) / 64 * 8));
}

void Endpoint::read_msix_structure(std::uint32_t bar, std::uint64_t offset,
				   std::span<std::byte> data) const
{
	const PciMsix &msix = description_.msix;
	for (std::byte &byte : data) {
		byte = std::byte{0};
		const std::uint64_t first = (offset++ - msix.pba_offset) * 8;
		for (unsigned bit = 0; bit < 8; ++bit)
			if (bar == msix.pba_bar && interrupts_.pending(first + bit))
				byte |= std::byte{1} << bit;
	}
}

bool Endpoint::region_read(std::uint32_t index, std::uint64_t offset, std::span<std::byte> data)
{
	if (!region_contains(index, offset, data.size()))
		return false;
	if (data.empty())
		return true;
	if (index == kRegionConfig)
		config_.read(offset, data);
	else if (is_msix_structure(index, offset, data.size()))
		read_msix_structure(index, offset, data);
	else
		device_.region_read(index, offset, data);
	return true;
}

bool Endpoint::region_write(std::uint32_t index, std::uint64_t offset,
			    std::span<const std::byte> data)
{
	if (!region_contains(index, offset, data.size()))
		return false;
	if (data.empty())
		return true;
	if (index == kRegionConfig)
		write_config(offset, data);
	else if (!is_msix_structure(index, offset, data.size()))
		device_.region_write(index, offset, data);
	return true;
}

void Endpoint::write_config(std::uint64_t offset, std::span<const std::byte> data)
{
	const bool was_master = config_.bus_master();
	const auto effects = config_.write(offset, data);
	if (effects.function_level_reset) {
		log_->info("function-level reset");
		reset(PciReset::FunctionLevel);
		return;
	}
	if (effects.command_changed)
		interrupts_.set_intx_disabled(config_.intx_disabled());
	if (effects.msix_changed && !config_.msix_enabled())
		interrupts_.clear_pending();
	if (config_.bus_master() != was_master)
		device_.bus_master_changed(!was_master);
}

GuestMemory::MapResult Endpoint::map(const DmaMap &section, int fd)
{
	// Those out of reach are no mappings, but have a place in the map as well.
	if (memory_.sections() >= lender_->most_mappings())
		throw std::system_error(ENOSPC, std::generic_category(), "the machine's sections");
	const bool readable = section.flags & kDmaReadable;
	const bool writable = section.flags & kDmaWritable;
	std::shared_ptr<const MemoryMapping> mapping;
	if (fd >= 0)
		mapping = MemoryMapping::map_file(fd, section.offset, section.size, writable,
						  lender_);
	const auto result =
		memory_.map(section.address, section.size, readable, writable, std::move(mapping));
	if (result == GuestMemory::MapResult::Mapped)
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
	interrupts_.set_intx_disabled(false);
	interrupts_.clear_pending();
}

void Endpoint::release()
{
	interrupts_.release();
	unmap_all();
	lender_ = std::make_shared<MemoryLender>(lender_->most_mappings());
	reset(PciReset::HostGone);
}

} // namespace weft::vfio_user
