// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Any packets from a link into a switch and the nodes behind it: nothing crashes, hangs or leaks a
// credit.
#include <cstdint>
#include <cstdlib>
#include <span>

#include <spdlog/spdlog.h>

#include "fabric/fabric.hpp"
#include "fabric/mad_port.hpp"
#include "fabric/switch.hpp"

namespace
{

using namespace weft::fabric;

class Sink : public PortSink
{
public:
	void receive(Packet &&packet) override { Packet dropped(std::move(packet)); }
	void link_changed(bool) override {}
};

// The input: a length byte pair, then so many bytes of one packet, and so on.
void feed(Port &port, std::span<const std::byte> input)
{
	while (input.size() > 2) {
		std::size_t size = std::to_integer<std::size_t>(input[0]) << 8 |
				   std::to_integer<std::size_t>(input[1]);
		size = std::min(size % 4300, input.size() - 2);
		auto packet = Packet::from_wire(input.subspan(2, size));
		input = input.subspan(2 + size);
		if (packet && port.send(*packet) == Sent::no_credit)
			std::abort();
	}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	spdlog::set_level(spdlog::level::off);
	Fabric fabric;
	Switch &sw = fabric.add_switch({.name = "sw", .ports = 4});
	Switch &other = fabric.add_switch({.name = "other", .ports = 4});
	Port &from = fabric.add_port("from");
	Port &to = fabric.add_port("to");
	Port &end = fabric.add_port("end");
	fabric.connect(from, sw.port(1));
	fabric.connect(sw.port(2), other.port(1));
	// A loop, for packets that go round.
	fabric.connect(sw.port(3), other.port(2));
	fabric.connect(to, other.port(3));
	fabric.connect(end, other.port(4));
	Sink sink;
	Sink end_sink;
	from.attach(sink);
	from.enable();
	end.attach(end_sink);
	end.enable();
	{
		MadPort node(to, {.description = "node", .node_guid = 1}, {});
		feed(from, std::as_bytes(std::span(data, size)));
	}
	end.detach();
	from.detach();
	return 0;
}
