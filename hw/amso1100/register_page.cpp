// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "register_page.hpp"

namespace amso1100
{
namespace
{

/* Reads an interface address. Returns true if it is valid: unicast and not zero. */
bool read_address(const kern::Mmio &page, size_t offset, u8 (&address)[6])
{
	u8 any = 0;
	for (size_t i = 0; i < sizeof(address); i++) {
		address[i] = page.read8(offset + i);
		any |= address[i];
	}
	return any && !(address[0] & 1);
}

} // namespace

kern::Result<RegisterPage> read_register_page(const kern::Mmio &page)
{
	RegisterPage result;
	for (size_t i = 0; i < sizeof(wire::page_magic) - 1; i++)
		if (page.read8(wire::page::magic + i) != static_cast<u8>(wire::page_magic[i]))
			return kern::Error{-ENODEV};
	if (page.read_be32(wire::page::version) != wire::interface_version ||
	    page.read_be32(wire::page::ivn) != wire::message_version)
		return kern::Error{-EPROTO};
	if (!read_address(page, wire::page::host_address, result.host_address) ||
	    !read_address(page, wire::page::rdma_address, result.rdma_address))
		return kern::Error{-EPROTO};
	result.window_size = page.read_be32(wire::page::window_size);
	const u32 place = page.read_be32(wire::page::next_receive) - wire::receive_ring_address;
	result.receive_index = place / wire::receive::size;
	if (place % wire::receive::size || result.receive_index >= wire::receive_entries)
		return kern::Error{-EPROTO};
	return result;
}

} // namespace amso1100
