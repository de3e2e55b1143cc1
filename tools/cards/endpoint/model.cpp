// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements an end node without a guest, which can only be managed: its port is up, and its
// management agents answer. It needs no thread, descriptor or socket, so that one daemon can
// emulate a subnet of ten thousand nodes.
#include "cards/model.hpp"

#include "net/fabric/mad_port.hpp"

namespace weft::endpoint
{

namespace
{

class Endpoint final : public cards::Card
{
public:
	explicit Endpoint(const cards::Settings &settings)
	    : port_(*settings.ports.front(),
		    {.description = settings.name, .node_guid = settings.guid}, {})
	{
	}

	std::vector<fabric::LocalAccess *> local_access() override { return {&port_}; }

private:
	// Requests are answered on the threads of their senders.
	fabric::MadPort port_;
};

const cards::Registration kRegistration{
	{.name = "endpoint",
	 .least_ports = 1,
	 .most_ports = 1,
	 .pluggable = false,
	 .flags = {},
	 .make = [](const cards::Settings &settings, Loop *) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<Endpoint>(settings);
	 }}};

} // namespace

} // namespace weft::endpoint
