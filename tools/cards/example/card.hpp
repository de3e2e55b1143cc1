// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the example device (see include/hw/example/registers.hpp): a complete card in one
// class, as a starting point for a new one. Documentation/write-a-card.rst explains it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include <hw/example/registers.hpp>

#include "base/loop.hpp"
#include "cards/card.hpp"
#include "bus/pci/device.hpp"

namespace weft::example
{

using hw::example::State;

class ExampleCard final : public cards::Card, private PciDevice
{
public:
	ExampleCard();

	// Card.
	PciDevice *function() override { return this; }
	std::vector<cards::Count> activity() const override;
	std::vector<cards::Count> faults() const override;
	std::vector<cards::Count> armed() const override;
	bool arm_fault(std::string_view name, std::uint32_t count) override;

private:
	// PciDevice.
	const PciDescription &description() const override { return description_; }
	void attach(PciHost &host) override;
	void detach() override;
	void region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data) override;
	void region_write(unsigned bar, std::uint64_t offset,
			  std::span<const std::byte> data) override;
	void reset(PciReset kind) override;
	void bus_master_changed(bool on) override;

	// The only place where the state changes.
	void enter(State state);
	void ring(std::uint64_t value);
	void serve();
	bool carry_out(std::uint64_t address);
	hw::example::Status carry(const hw::example::Request &request);
	void interrupt();
	std::uint32_t outstanding() const;

	const PciDescription description_;
	PciHost *host_ = nullptr;
	std::optional<Wakeup> wakeup_; // while attached

	State state_ = State::idle;
	std::uint64_t queue_ = 0;
	std::uint32_t posted_ = 0; // number of requests, modulo counts, as reported by the driver
	std::uint32_t served_ = 0; // number of executed requests, modulo counts

	// Written on the loop, read on any thread.
	std::atomic<std::uint64_t> doorbells_{0};
	std::atomic<std::uint64_t> requests_{0};
	std::atomic<std::uint64_t> interrupts_{0};
	std::atomic<std::uint32_t> interrupts_to_lose_{0};
	std::atomic<std::uint64_t> interrupts_lost_{0};
};

} // namespace weft::example
