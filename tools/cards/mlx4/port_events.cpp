// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/port_events.hpp"

namespace weft::mlx4
{

using hw::mlx4::Eqe;
namespace port_management_subtype = hw::mlx4::port_management_subtype;

namespace
{

Eqe management_change(unsigned port, std::uint8_t subtype)
{
	Eqe entry{};
	Eqe::type.set(entry.bytes, static_cast<std::uint32_t>(EventType::port_management_change));
	Eqe::subtype.set(entry.bytes, subtype);
	Eqe::management_port.set(entry.bytes, port);
	return entry;
}

void raise_table(EventQueues &events, unsigned port, std::uint8_t subtype, std::uint32_t block,
		 std::uint32_t entries)
{
	Eqe entry = management_change(port, subtype);
	Eqe::management_block.set(entry.bytes, block);
	Eqe::management_entries.set(entry.bytes, entries);
	events.raise(entry);
}

} // namespace

void raise_port_info(EventQueues &events, const CardPort &port, std::uint32_t changed)
{
	Eqe entry = management_change(port.number(), port_management_subtype::port_info);
	Eqe::management_sm_lid.set(entry.bytes, port.info().sm_lid);
	Eqe::management_lid.set(entry.bytes, port.info().lid);
	Eqe::management_changed.set(entry.bytes, changed);
	Eqe::management_sm_sl.set(entry.bytes, port.info().sm_sl());
	Eqe::management_gid_prefix.set(entry.bytes, port.info().gid_prefix);
	events.raise(entry);
}

void raise_pkey_table(EventQueues &events, unsigned port, std::uint32_t block,
		      std::uint32_t entries)
{
	raise_table(events, port, port_management_subtype::pkey_table, block, entries);
}

void raise_guid_info(EventQueues &events, unsigned port, std::uint32_t block, std::uint32_t entries)
{
	raise_table(events, port, port_management_subtype::guid_info, block, entries);
}

} // namespace weft::mlx4
