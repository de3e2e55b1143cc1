// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the PCI function of an mlx4 or mthca card.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cards/hca/activity.hpp"
#include "cards/hca/program_ports.hpp"
#include "cards/mellanox_icm/faults.hpp"
#include "cards/mellanox_icm/registers.hpp"
#include "bus/pci/device.hpp"

namespace weft::mellanox_icm
{

enum Bar : unsigned { kBarRegisters = 0, kBarUar = 2, kBarMsix = 4 };

// Returns the part of the description that all cards of the family have in common. Each card adds
// the rest.
inline PciDescription describe_function(std::uint16_t vendor, std::uint16_t device,
					std::uint64_t serial, std::uint64_t msix_size,
					unsigned vectors, std::uint32_t pba_offset)
{
	PciDescription description;
	description.vendor = description.subsystem_vendor = vendor;
	description.device = device;
	description.class_code = 0x0c0600; // serial bus, InfiniBand
	description.intx = true;
	description.link_width = 8;
	description.serial = serial;
	description.bars[kBarMsix] = {msix_size, true, false};
	description.msix.vectors = static_cast<std::uint16_t>(vectors);
	description.msix.table_bar = kBarMsix;
	description.msix.table_offset = 0;
	description.msix.pba_bar = kBarMsix;
	description.msix.pba_offset = pba_offset;
	return description;
}

/*
 * Function - the PCI device. State lives from attach() to detach(); everything is on the host's
 * loop. Kind says which card it is:
 *
 *	using Config, Core, CardContext, TransportFactory;	// the card's
 *	static void check(const Config &config);	// throws std::invalid_argument
 *	static PciDescription describe(const Config &config);
 *	static hca::ProgramPorts programs(const Config &config);
 *	static std::uint32_t read(Core &core, std::uint64_t offset);	// a register's dword
 *	static void write(Core &core, std::uint64_t offset, std::uint32_t value);
 *
 * Its members are instantiated where the Core is known, explicitly: elsewhere it need not be.
 */
template<class Kind>
class Function : public PciDevice
{
public:
	using Config = typename Kind::Config;
	using Core = typename Kind::Core;
	using CardContext = typename Kind::CardContext;
	using TransportFactory = typename Kind::TransportFactory;

	// Throws std::invalid_argument if the configuration is not possible. @make_transport
	// creates the data path.
	Function(Config config, TransportFactory make_transport);
	~Function() override;

	const PciDescription &description() const override { return description_; }
	void attach(PciHost &host) override;
	void detach() override;
	void region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data) override;
	void region_write(unsigned bar, std::uint64_t offset,
			  std::span<const std::byte> data) override;
	void reset(PciReset kind) override;
	void memory_changed() override;
	void bus_master_changed(bool on) override;

	// Simulates a hardware failure: @code, which is not 0, appears in the catastrophic error
	// buffer, and the driver is expected to reset the card. Called on the loop.
	void break_down(std::uint32_t code);
	// Raises an interrupt of every vector without a cause. Called on the loop.
	void interrupt_idly();
	// Thread-safe.
	const Activity &activity() const { return activity_; }
	Faults &faults() { return faults_; }
	std::vector<fabric::LocalAccess *> local_access() const { return programs_->access(); }
	// Returns the objects of the control plane, for tests; null while detached.
	CardContext *context();

private:
	const Config config_;
	const TransportFactory make_transport_;
	const PciDescription description_;
	Activity activity_;
	Faults faults_;
	// Created when the configuration has been checked.
	std::optional<hca::ProgramPorts> programs_;
	std::unique_ptr<Core> core_;
};

template<class Kind>
Function<Kind>::Function(Config config, TransportFactory make_transport)
    : config_(std::move(config)), make_transport_(std::move(make_transport)),
      description_(Kind::describe(config_))
{
	Kind::check(config_);
	if (std::ranges::find(config_.ports, nullptr) != config_.ports.end())
		throw std::invalid_argument(config_.name + ": a port is missing");
	if (config_.node_guid == 0)
		throw std::invalid_argument(config_.name + ": the node GUID is 0");
	programs_.emplace(Kind::programs(config_));
}

template<class Kind>
Function<Kind>::~Function() = default;

template<class Kind>
void Function<Kind>::attach(PciHost &host)
{
	core_ = std::make_unique<Core>(config_, make_transport_, host, activity_, faults_,
				       *programs_);
}

template<class Kind>
void Function<Kind>::detach()
{
	core_.reset();
}

template<class Kind>
void Function<Kind>::reset(PciReset)
{
	core_->reset();
}

// The change is handled like disabling and enabling bus mastering: packets in flight do not read
// memory any more, because the guest may reuse removed memory after the notification. Packets whose
// memory still exists are retransmitted, as after a loss on a link.
template<class Kind>
void Function<Kind>::memory_changed()
{
	core_->set_bus_master(false);
	core_->set_bus_master(core_->host.bus_master());
}

template<class Kind>
void Function<Kind>::bus_master_changed(bool on)
{
	core_->set_bus_master(on);
}

template<class Kind>
void Function<Kind>::break_down(std::uint32_t code)
{
	if (core_)
		core_->break_down(code);
}

template<class Kind>
void Function<Kind>::interrupt_idly()
{
	if (core_)
		core_->interrupt_idly();
}

template<class Kind>
auto Function<Kind>::context() -> CardContext *
{
	return core_ ? &core_->context : nullptr;
}

// Registers are dwords. Reading a part of a dword returns that part. Writing a part is ignored.
template<class Kind>
void Function<Kind>::region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data)
{
	if (bar != kBarRegisters) {
		std::ranges::fill(data, std::byte{0});
		return;
	}
	read_dwords(offset, data,
		    [this](std::uint64_t place) { return Kind::read(*core_, place); });
}

template<class Kind>
void Function<Kind>::region_write(unsigned bar, std::uint64_t offset,
				  std::span<const std::byte> data)
{
	if (bar == kBarUar)
		core_->doorbells.write(offset, data);
	else if (bar == kBarRegisters)
		write_dwords(offset, data, [this](std::uint64_t place, std::uint32_t value) {
			Kind::write(*core_, place, value);
		});
}

} // namespace weft::mellanox_icm
