// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/tests/tiny_driver.hpp"

#include <string>
#include <utility>

namespace weft::mlx4::testing
{

namespace bar0 = hw::mlx4::bar0;

namespace
{

std::vector<fabric::Port *> add_ports(fabric::Fabric &fabric, unsigned count,
				      std::vector<fabric::Port *> &peers)
{
	std::vector<fabric::Port *> ports;
	for (unsigned i = 1; i <= count; ++i) {
		ports.push_back(&fabric.add_port("card/" + std::to_string(i)));
		peers.push_back(&fabric.add_port("peer/" + std::to_string(i)));
		fabric.connect(*ports.back(), *peers.back());
	}
	return ports;
}

CardConfig make_config(const std::vector<fabric::Port *> &ports, bool trusted)
{
	CardConfig config;
	config.name = "test";
	config.node_guid = 0x0002c90300000100;
	config.ports = ports;
	config.trusted = trusted;
	return config;
}

} // namespace

TinyDriver::TinyDriver(unsigned ports, TransportFactory make_transport, bool trusted)
    : CardDriver(host),
      card(
	      make_config(add_ports(fabric, ports, peers), trusted),
	      make_transport ? std::move(make_transport)
			     : [this](CardContext &) -> std::unique_ptr<Transport> {
		      auto made = std::make_unique<RecordingTransport>();
		      transport_ = made.get();
		      return made;
	      })
{
	host.plug(card);
}

TinyDriver::~TinyDriver()
{
	host.unplug();
}

void TinyDriver::start_over()
{
	host.set_bus_master(true);
	host.set_msix_enabled(true);
	host.write(0, bar0::reset, __builtin_bswap32(bar0::reset_bit));
	host.loop().poll();
	host.clear_memory();
	forget_memory();
}

} // namespace weft::mlx4::testing
