// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the state that a ConnectX-2 has while a guest is connected. It extends the state that mlx4
// and mthca cards share (mellanox_icm::CoreBase).
#pragma once

#include "cards/mellanox_icm/core_base.hpp"
#include "cards/mlx4/card.hpp"
#include "cards/mlx4/card_context.hpp"
#include "cards/mlx4/commands.hpp"
#include "cards/mlx4/doorbells.hpp"

namespace weft::mlx4
{

// Creates the card's access for programs of the host.
hca::ProgramPorts programs_of(const CardConfig &config);

class Core final : public mellanox_icm::CoreBase<CardKind>
{
public:
	// @activity, @faults and @programs must outlive the core.
	Core(const CardConfig &config, const TransportFactory &make_transport, PciHost &host,
	     Activity &activity, Faults &faults, hca::ProgramPorts &programs);
	~Core() override;

	void reset();
	void break_down(std::uint32_t code);

	bool semaphore_taken = false;

private:
	void port_info_changed(unsigned port, std::uint32_t changed) override;
	void pkeys_changed(unsigned port, unsigned block, std::uint32_t entries) override;
	void guids_changed(unsigned port, unsigned block, std::uint32_t entries) override;
};

} // namespace weft::mlx4
