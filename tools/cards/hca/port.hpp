// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a port of a card: the addresses and tables that the subnet manager sets, and its end
// of a link.
#pragma once

#include <cstdint>

#include <ib/smp.hpp>

#include "net/fabric/managed_port.hpp"

namespace weft::hca
{

class CardPort
{
public:
	static constexpr unsigned kGids = fabric::kGuidsPerBlock;
	static constexpr unsigned kPkeys = 128;
	static constexpr ib::Mtu kMaxMtu = ib::Mtu::mtu_4096;
	// Maximum values for a card's ports.
	struct Limits {
		ib::Mtu mtu = kMaxMtu;
		unsigned pkeys = kPkeys;
	};
	static constexpr unsigned kVlCap = 4; // encoded: VL0 to VL7
	static constexpr std::uint32_t kDefaultCapabilities =
		ib::port_cap_trap | ib::port_cap_sl_mapping | ib::port_cap_system_image_guid |
		ib::port_cap_capability_mask_notice | ib::port_cap_client_reregistration |
		ib::port_cap_other_local_changes_notice;

	// @fabric_port must outlive the port.
	CardPort(unsigned number, ib::Guid guid, fabric::Port &fabric_port, const Limits &limits);
	CardPort(unsigned number, ib::Guid guid, fabric::Port &fabric_port)
	    : CardPort(number, guid, fabric_port, Limits{})
	{
	}

	unsigned number() const { return number_; } // 1 or 2
	ib::Guid guid() const { return managed_.guids[0]; }
	fabric::Port &fabric_port() const { return fabric_port_; }

	// Returns to the state after power-on: no LID, link down.
	void reset();

	// Returns the state that the subnet manager reads and sets.
	fabric::ManagedPort &managed() { return managed_; }
	ib::PortInfo &info() { return managed_.info; }
	const ib::PortInfo &info() const { return managed_.info; }
	ib::PortState state() const { return info().state(); }
	bool active() const { return state() == ib::PortState::active; }
	std::uint16_t lid() const { return info().lid; }
	unsigned lmc() const { return info().lmc(); }
	// Returns true if @lid is a unicast LID of this port.
	bool owns_lid(std::uint16_t lid) const
	{
		return (lid >> lmc()) == (info().lid >> lmc()) && info().lid != 0;
	}
	ib::Mtu mtu() const { return info().neighbor_mtu(); }

	// Returns an entry of the P_Key table, or 0, which is not a valid P_Key, for an index
	// beyond the table.
	std::uint16_t pkey(unsigned index) const
	{
		return index < managed_.pkeys.size() ? managed_.pkeys[index].value()
						     : std::uint16_t{0};
	}
	// Returns the index of the entry that accepts packets with @pkey (IBA 10.9.3), or -1 if
	// there is none.
	int find_pkey(std::uint16_t pkey) const;
	ib::Gid gid(unsigned index) const
	{
		return ib::Gid::from_parts(info().gid_prefix,
					   index < kGids ? managed_.guids[index].value()
							 : ib::Guid{0});
	}
	bool owns_gid(const ib::Gid &gid) const;
	std::uint8_t vl(unsigned sl) const { return managed_.sl_to_vl.vl(sl); }

	void count_pkey_violation();
	void count_qkey_violation();

	// The driver and a program on the host can each be a subnet manager on this port: IsSM of
	// the capability mask is set while either is. Both functions return true if the mask
	// changes.
	bool set_driver_capabilities(std::uint32_t mask);
	bool set_program_is_sm(bool is_sm);

	// Returns true after the driver has opened the port (INIT_PORT).
	bool opened() const { return opened_; }
	void set_opened(bool opened) { opened_ = opened; }

private:
	bool update_capabilities(std::uint32_t mask);

	const unsigned number_;
	const ib::Guid original_guid_; // GUID before a driver changed it
	const Limits limits_;
	fabric::Port &fabric_port_;
	fabric::ManagedPort managed_;
	bool opened_ = false;
	bool driver_is_sm_ = false, program_is_sm_ = false;
};

} // namespace weft::hca
