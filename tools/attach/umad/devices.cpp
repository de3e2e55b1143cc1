// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the functions of libibumad that list devices and their attributes. The only device is
// the node to which the program is attached.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attach/umad/abi.hpp"
#include "attach/umad/client.hpp"

namespace
{

using namespace weft::attach;
using weft::attach::umad::debug;

int fill(const PortDescription &from, umad_port_t &port)
{
	std::memset(&port, 0, sizeof(port));
	std::strcpy(port.ca_name, kCaName);
	std::strcpy(port.link_layer, "InfiniBand");
	port.portnum = static_cast<int>(from.number);
	port.base_lid = from.lid;
	port.lmc = from.lmc;
	port.sm_lid = from.sm_lid;
	port.sm_sl = from.sm_sl;
	port.state = from.state;
	port.phys_state = from.phys_state;
	port.rate = from.rate;
	port.capmask = htobe32(from.capability_mask);
	port.gid_prefix = htobe64(from.gid_prefix);
	port.port_guid = htobe64(from.port_guid);
	port.pkeys_size = from.pkeys;
	port.pkeys = static_cast<std::uint16_t *>(
		std::calloc(from.pkeys ? from.pkeys : 1, sizeof(*port.pkeys)));
	if (!port.pkeys)
		return ENOMEM;
	std::memcpy(port.pkeys, from.pkey, from.pkeys * sizeof(*port.pkeys));
	return 0;
}

int describe_ca(const char *ca_name, Description &description)
{
	if (!weft::attach::umad::is_ca_name(ca_name))
		return ENODEV;
	const int error = weft::attach::umad::describe(description);
	if (error)
		debug("node %s: %s", std::getenv(kNodeVariable), std::strerror(error));
	return error ? ENODEV : 0;
}

} // namespace

extern "C" {

int umad_init()
{
	return weft::attach::umad::is_attached() ? 0 : -1;
}

int umad_done()
{
	return 0;
}

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	if (max < 1)
		return 0;
	std::strcpy(cas[0], kCaName);
	return 1;
}

int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	umad_ca_t ca;
	const int error = umad_get_ca(ca_name, &ca);
	if (error)
		return error;
	int filled = 0;
	if (portguids) {
		if (ca.numports + 1 > max) {
			umad_release_ca(&ca);
			return -ENOMEM;
		}
		for (; filled <= ca.numports; ++filled)
			portguids[filled] =
				ca.ports[filled] ? ca.ports[filled]->port_guid : __be64{0};
	}
	umad_release_ca(&ca);
	return filled;
}

int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	Description description{};
	if (const int error = describe_ca(ca_name, description))
		return -error;
	std::memset(ca, 0, sizeof(*ca));
	std::strcpy(ca->ca_name, kCaName);
	ca->node_type = description.node_type;
	std::snprintf(ca->ca_type, sizeof(ca->ca_type), "weft%u", description.device_id);
	std::snprintf(ca->hw_ver, sizeof(ca->hw_ver), "0x%x", description.revision);
	std::strcpy(ca->fw_ver, "0.0.0");
	ca->node_guid = htobe64(description.node_guid);
	ca->system_guid = htobe64(description.system_guid);
	for (std::uint32_t index = 0; index < description.ports && index < kMostPorts; ++index) {
		const PortDescription &from = description.port[index];
		if (from.number >= UMAD_CA_MAX_PORTS || from.pkeys > kMostPkeys)
			continue;
		auto *const port = static_cast<umad_port_t *>(std::calloc(1, sizeof(umad_port_t)));
		if (!port || fill(from, *port)) {
			std::free(port);
			umad_release_ca(ca);
			return -ENOMEM;
		}
		ca->ports[from.number] = port;
		if (ca->numports < port->portnum)
			ca->numports = port->portnum;
	}
	return 0;
}

int umad_release_ca(umad_ca_t *ca)
{
	for (auto *&port : ca->ports) {
		if (port)
			umad_release_port(port);
		std::free(port);
		port = nullptr;
	}
	return 0;
}

int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	Description description{};
	if (const int error = describe_ca(ca_name, description))
		return -error;
	const int index = weft::attach::umad::find_port(description, portnum);
	if (index < 0)
		return -EINVAL;
	return -fill(description.port[index], *port);
}

int umad_release_port(umad_port_t *port)
{
	std::free(port->pkeys);
	port->pkeys = nullptr;
	port->pkeys_size = 0;
	return 0;
}

umad_device_node *umad_get_ca_device_list()
{
	// The name is stored after the node in the same allocation, so that one free() releases
	// both.
	auto *const node = static_cast<umad_device_node *>(
		std::calloc(1, sizeof(umad_device_node) + UMAD_CA_NAME_LEN));
	if (!node)
		return nullptr;
	std::strcpy(reinterpret_cast<char *>(node + 1), kCaName);
	node->ca_name = reinterpret_cast<char *>(node + 1);
	return node;
}

void umad_free_ca_device_list(umad_device_node *head)
{
	while (head) {
		umad_device_node *const next = head->next;
		std::free(head);
		head = next;
	}
}

int umad_sort_ca_device_list(umad_device_node **head, size_t)
{
	umad_device_node *sorted = nullptr;
	while (umad_device_node *const node = *head) {
		*head = node->next;
		umad_device_node **place = &sorted;
		while (*place && std::strcmp((*place)->ca_name, node->ca_name) <= 0)
			place = &(*place)->next;
		node->next = *place;
		*place = node;
	}
	*head = sorted;
	return 0;
}

} // extern "C"
