// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A port of a card: its addresses and tables as the subnet manager sets them, and its end of a
// link.
#pragma once

#include <array>
#include <cstdint>

#include <ib/smp.hpp>

namespace weft::fabric
{
class Port;
}

namespace weft::connectx
{

class CardPort
{
public:
	static constexpr unsigned kGids = 8;
	static constexpr unsigned kPkeys = 128;
	static constexpr ib::Mtu kMaxMtu = ib::Mtu::mtu_4096;
	static constexpr unsigned kVlCap = 4; // encoded: VL0 to VL7
	static constexpr std::uint32_t kDefaultCapabilities =
		ib::port_cap_trap | ib::port_cap_sl_mapping | ib::port_cap_system_image_guid |
		ib::port_cap_capability_mask_notice | ib::port_cap_client_reregistration |
		ib::port_cap_other_local_changes_notice;

	// @fabric_port outlives this.
	CardPort(unsigned number, ib::Guid guid, fabric::Port &fabric_port);

	unsigned number() const { return number_; } // 1 or 2
	ib::Guid guid() const { return guids_[0]; }
	fabric::Port &fabric_port() const { return fabric_port_; }

	// Back to the state at power-on: no LID, link down.
	void reset();

	ib::PortInfo &info() { return info_; }
	const ib::PortInfo &info() const { return info_; }
	ib::PortState state() const { return info_.state(); }
	bool active() const { return state() == ib::PortState::active; }
	std::uint16_t lid() const { return info_.lid; }
	unsigned lmc() const { return info_.lmc(); }
	// Whether a unicast @lid is one of this port's own.
	bool owns_lid(std::uint16_t lid) const
	{
		return (lid >> lmc()) == (info_.lid >> lmc()) && info_.lid != 0;
	}
	ib::Mtu mtu() const { return info_.neighbor_mtu(); }

	// Zero beyond the table, which is no valid P_Key.
	std::uint16_t pkey(unsigned index) const
	{
		return index < kPkeys ? pkeys_[index] : std::uint16_t{0};
	}
	// Index of the entry that lets in packets with @pkey (IBA 10.9.3); -1 if none.
	int find_pkey(std::uint16_t pkey) const;
	ib::Gid gid(unsigned index) const
	{
		return ib::Gid::from_parts(info_.gid_prefix,
					   index < kGids ? guids_[index] : ib::Guid{0});
	}
	bool owns_gid(const ib::Gid &gid) const;
	std::uint8_t vl(unsigned sl) const { return sl_to_vl_.vl(sl); }

	void count_pkey_violation();
	void count_qkey_violation();

	std::array<std::uint16_t, kPkeys> &pkeys() { return pkeys_; }
	const std::array<std::uint16_t, kPkeys> &pkeys() const { return pkeys_; }
	std::array<ib::Guid, kGids> &guids() { return guids_; }
	const std::array<ib::Guid, kGids> &guids() const { return guids_; }
	ib::SlToVl &sl_to_vl() { return sl_to_vl_; }
	const ib::SlToVl &sl_to_vl() const { return sl_to_vl_; }
	std::array<ib::VlArbitration, 4> &vl_arbitration() { return vl_arbitration_; }
	const std::array<ib::VlArbitration, 4> &vl_arbitration() const { return vl_arbitration_; }

	// The driver opened it (INIT_PORT).
	bool opened() const { return opened_; }
	void set_opened(bool opened) { opened_ = opened; }

private:
	const unsigned number_;
	fabric::Port &fabric_port_;
	ib::PortInfo info_{};
	std::array<ib::Guid, kGids> guids_{};
	std::array<std::uint16_t, kPkeys> pkeys_{};
	ib::SlToVl sl_to_vl_{};
	std::array<ib::VlArbitration, 4> vl_arbitration_{};
	bool opened_ = false;
};

} // namespace weft::connectx
