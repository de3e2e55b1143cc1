// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Serves one device to a User-Mode Linux guest (CONFIG_UML_PCI_OVER_VIRTIO): a register access is a
// command in a virtqueue. The server answers a command before it acknowledges the kick that
// announced the command.
#pragma once

#include <string>

#include "bus/pci/server.hpp"

namespace weft::vhost_user
{

class Server final : public pci::Server
{
public:
	// See pci::Server.
	Server(Loop &loop, PciDevice &device, const std::string &name);
};

} // namespace weft::vhost_user
