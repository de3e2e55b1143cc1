// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the state that an InfiniHost III has while a guest is connected. It extends the state that
// mlx4 and mthca cards share (mellanox_icm::CoreBase).
#pragma once

#include "cards/mellanox_icm/core_base.hpp"
#include "cards/mthca/card.hpp"
#include "cards/mthca/card_context.hpp"
#include "cards/mthca/commands.hpp"
#include "cards/mthca/doorbells.hpp"

namespace weft::mthca
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

	void break_down(std::uint32_t code);

private:
	// SubnetAgent::Host. Only changes of the port's state have an event, so changes that the
	// driver has made itself cause none. The driver of an untrusted guest makes no changes
	// itself. For each change, it gets an event that its port is active, even if the port was
	// active before, and reads the attributes again. The same applies if a program of the host
	// on this node has made the change.
	void raise_port_event(unsigned port);
	void port_info_changed(unsigned port, std::uint32_t) override { raise_port_event(port); }
	void pkeys_changed(unsigned port, unsigned, std::uint32_t) override
	{
		raise_port_event(port);
	}
	void guids_changed(unsigned port, unsigned, std::uint32_t) override
	{
		raise_port_event(port);
	}
};

} // namespace weft::mthca
