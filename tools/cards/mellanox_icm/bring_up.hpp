// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tracks the bring-up of a card by its driver, and the memory that the driver has given to the
// firmware.
#pragma once

#include <cstdint>
#include <span>

#include <hw/mellanox_icm/commands.hpp>

namespace weft::mellanox_icm
{

// The stages of bringing a card up, in order.
enum class Stage {
	power_on,
	running,     // RUN_FW
	initialised, // INIT_HCA
};

// Drivers must lend pages to the firmware. The pages are counted, but never used.
class BringUp
{
public:
	struct Needs {
		std::uint64_t firmware_pages;
		std::uint64_t aux_pages;
	};

	explicit BringUp(Needs needs) : needs_(needs) {}

	Stage stage() const { return stage_; }
	std::uint64_t aux_pages() const { return needs_.aux_pages; }

	// MAP_FA and UNMAP_FA. Before take_firmware_back(), the caller must close the card.
	hw::mellanox_icm::Status lend_firmware(std::span<const std::uint8_t> mailbox);
	void take_firmware_back();
	// MAP_ICM_AUX and UNMAP_ICM_AUX.
	hw::mellanox_icm::Status lend_aux(std::span<const std::uint8_t> mailbox);
	void take_aux_back() { aux_pages_ = 0; }

	// RUN_FW.
	hw::mellanox_icm::Status run();
	// INIT_HCA. may_initialise() returns true if it is permitted now, and initialise() records
	// that it was executed.
	bool may_initialise() const;
	void initialise() { stage_ = Stage::initialised; }
	// CLOSE_HCA.
	void close();
	// Returns to the state after power-on.
	void reset();

private:
	const Needs needs_;
	Stage stage_ = Stage::power_on;
	std::uint64_t firmware_pages_ = 0;
	std::uint64_t aux_pages_ = 0;
};

} // namespace weft::mellanox_icm
