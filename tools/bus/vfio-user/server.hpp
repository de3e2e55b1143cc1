// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Serves one device to QEMU: a register access is a message that is answered inline.
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
