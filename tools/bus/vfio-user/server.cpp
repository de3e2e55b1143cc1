// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vfio-user/server.hpp"

#include <memory>

#include "bus/vfio-user/interrupts.hpp"
#include "bus/vfio-user/session.hpp"

namespace weft::vfio_user
{

namespace
{

class Protocol final : public pci::Protocol
{
public:
	Protocol(Loop &loop, const PciDescription &description)
	    : interrupts_(loop, description.msix.vectors, description.intx)
	{
	}

	const pci::Framing &framing() const override { return kFraming; }
	pci::Interrupts &interrupts() override { return interrupts_; }
	// A client maps its memory once. It sets up MSI-X again when its driver starts.
	bool is_setup(const Message &message) const override
	{
		switch (static_cast<Command>(message.header<Header>().command)) {
		case Command::version:
		case Command::dma_map:
		case Command::dma_unmap:
		case Command::set_irqs:
			return true;
		default:
			return false;
		}
	}
	std::unique_ptr<pci::Session> begin(pci::Endpoint &endpoint,
					    std::shared_ptr<spdlog::logger> log) override
	{
		return std::make_unique<Session>(endpoint, interrupts_, std::move(log));
	}

private:
	Interrupts interrupts_;
};

} // namespace

Server::Server(Loop &loop, PciDevice &device, const std::string &name, std::size_t most_mappings)
    : pci::Server(
	      loop, device, name,
	      [](Loop &own, const PciDescription &description) {
		      return std::make_unique<Protocol>(own, description);
	      },
	      most_mappings)
{
}

} // namespace weft::vfio_user
