// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes a switch and the nodes behind it with arbitrary packets from a link. No input may cause a
// crash, a hang, or the loss of a credit.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include <spdlog/spdlog.h>

#include "net/fabric/fabric.hpp"
#include "net/fabric/mad_packet.hpp"
#include "net/fabric/mad_port.hpp"
#include "net/fabric/switch.hpp"

namespace
{

using namespace weft::fabric;

class Sink : public PortSink
{
public:
	void receive(Packet &&packet) override { Packet dropped(std::move(packet)); }
	void link_changed(bool) override {}
};

// Two switches, with a loop in which packets could circulate, and two nodes.
struct Fixture {
	Fixture()
	{
		fabric.connect(from, sw.port(1));
		fabric.connect(sw.port(2), other.port(1));
		fabric.connect(sw.port(3), other.port(2));
		fabric.connect(to, other.port(3));
		fabric.connect(end, other.port(4));
		from.attach(sink);
		from.enable();
		end.attach(end_sink);
		end.enable();
		node.emplace(to, MadPort::Config{.description = "node", .node_guid = 1},
			     MadPort::Handlers{});
	}
	~Fixture()
	{
		node.reset();
		end.detach();
		from.detach();
	}

	Fabric fabric;
	Switch &sw = fabric.add_switch({.name = "sw", .ports = 4});
	Switch &other = fabric.add_switch({.name = "other", .ports = 4});
	Port &from = fabric.add_port("from");
	Port &to = fabric.add_port("to");
	Port &end = fabric.add_port("end");
	Sink sink;
	Sink end_sink;
	std::optional<MadPort> node;
};

// Returns true if the packet must not change any state: only SMPs other than Get do.
bool changes_nothing(const Packet &packet)
{
	if (packet.lrh().vl() != ib::vl_management)
		return true;
	const auto mad = mad_of_packet(packet);
	return !mad || mad->mad.header.is_method(ib::MadMethod::get);
}

// The input consists of packets, each after a length of two bytes. Returns true if the fixture is
// unchanged.
bool feed(Port &port, std::span<const std::byte> input)
{
	bool unchanged = true;
	while (input.size() > 2) {
		std::size_t size = std::to_integer<std::size_t>(input[0]) << 8 |
				   std::to_integer<std::size_t>(input[1]);
		size = std::min(size % 4300, input.size() - 2);
		auto packet = Packet::from_wire(input.subspan(2, size));
		input = input.subspan(2 + size);
		if (!packet)
			continue;
		unchanged = unchanged && changes_nothing(*packet);
		if (port.send(*packet) == Sent::no_credit)
			std::abort();
	}
	return unchanged;
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
	spdlog::set_level(spdlog::level::off);
	return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	// Creating the fixture takes a hundred times longer than an input, so it is only replaced
	// after a change.
	static std::optional<Fixture> fixture;
	if (!fixture)
		fixture.emplace();
	if (!feed(fixture->from, std::as_bytes(std::span(data, size))))
		fixture.reset();
	return 0;
}
