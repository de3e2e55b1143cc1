// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vhost-user/server.hpp"

#include <memory>

#include "bus/vhost-user/interrupts.hpp"
#include "bus/vhost-user/session.hpp"

namespace weft::vhost_user
{

namespace
{

class Protocol final : public pci::Protocol
{
public:
	explicit Protocol(unsigned vectors) : interrupts_(vectors) {}

	const pci::Framing &framing() const override { return kFraming; }
	pci::Interrupts &interrupts() override { return interrupts_; }
	std::unique_ptr<pci::Session> begin(pci::Endpoint &endpoint,
					    std::shared_ptr<spdlog::logger> log) override
	{
		return std::make_unique<Session>(endpoint, interrupts_, std::move(log));
	}

private:
	Interrupts interrupts_;
};

} // namespace

Server::Server(Loop &loop, PciDevice &device, const std::string &name)
    : pci::Server(
	      loop, device, name,
	      [](Loop &, const PciDescription &description) {
		      return std::make_unique<Protocol>(description.msix.vectors);
	      },
	      kMaxRegions)
{
}

} // namespace weft::vhost_user
