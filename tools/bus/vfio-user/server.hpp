// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Serves one device to QEMU by vfio-user. Each register access arrives as a message, which the
// server handles and answers on the event loop of the device.
#pragma once

#include <cstddef>
#include <string>

#include "bus/pci/server.hpp"
#include "bus/vfio-user/protocol.hpp"

namespace weft::vfio_user
{

class Server final : public pci::Server
{
public:
	// See pci::Server.
	Server(Loop &loop, PciDevice &device, const std::string &name,
	       std::size_t most_mappings = kMaxDmaMaps);
};

} // namespace weft::vfio_user
