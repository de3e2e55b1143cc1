// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends arbitrary MADs from a host to the subnet manager and the SA. Both must still respond
// afterwards.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <spdlog/spdlog.h>

#include "net/fabric/fabric.hpp"
#include "net/fabric/mad_port.hpp"
#include "net/fabric/switch.hpp"
#include "sm/subnet_manager.hpp"

namespace
{

using namespace weft;

struct Fixture {
	Fixture()
	{
		spdlog::set_level(spdlog::level::off);
		fabric::Switch &sw = fabric.add_switch({.name = "sw", .ports = 4});
		fabric::Port &port = fabric.add_port("host");
		fabric::Port &own = fabric.add_port("sm");
		fabric.connect(port, sw.port(1));
		fabric.connect(own, sw.port(2));
		host = std::make_unique<fabric::MadPort>(
			port, fabric::MadPort::Config{.description = "host", .node_guid = 0x10},
			fabric::MadPort::Handlers{.received =
							  [this](fabric::AddressedMad &&mad) {
								  answered = mad.mad.header.tid;
							  },
						  .port_changed = {}});
		/*
		 * The manager runs on this thread, so that the same input always has the same
		 * effect.
		 */
		manager = std::make_unique<sm::SubnetManager>(own, sm::Config{}, &reactor);
		const auto swept = [](const sm::SubnetManager::Status &status) {
			return status.sweeps != 0;
		};
		if (!manager->wait_for(swept, std::chrono::seconds(1)))
			std::abort();
	}

	fabric::MadAddress address(std::uint32_t qp) const
	{
		fabric::MadAddress to;
		to.dlid = host->port_info().sm_lid;
		to.src_qp = qp;
		to.dest_qp = qp;
		to.qkey = qp == 0 ? 0 : ib::qkey_gsi;
		return to;
	}

	// Repeats a simple request until it is answered.
	void expect_alive()
	{
		ib::Mad mad{};
		mad.header.base_version = 1;
		mad.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_adm);
		mad.header.class_version = 2;
		mad.header.method = 1;
		mad.header.attr_id = std::uint16_t{ib::attr_class_port_info};
		mad.header.tid = ++tid;
		for (int tries = 0; tries < 10; tries++) {
			host->send(address(1), mad);
			const auto done = [this](const sm::SubnetManager::Status &) {
				return answered == tid;
			};
			if (manager->wait_for(done, std::chrono::seconds(2)))
				return;
		}
		std::abort();
	}

	VirtualEnvironment environment;
	Reactor reactor{"fuzz", Reactor::Drive::manual, environment};
	fabric::Fabric fabric{fabric::Fabric::kDefaultSeed, &reactor};
	std::unique_ptr<fabric::MadPort> host;
	std::unique_ptr<sm::SubnetManager> manager;
	std::uint64_t answered = 0;
	std::uint64_t tid = std::uint64_t{1} << 40;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static Fixture fixture;
	while (size >= 2) {
		std::uint8_t kind = data[0];
		data++;
		size--;
		ib::Mad mad{};
		std::size_t part = std::min(size, sizeof(mad));
		std::memcpy(&mad, data, part);
		data += part;
		size -= part;
		mad.header.base_version = 1;
		std::uint32_t qp = kind & 1;
		if (qp == 1) {
			mad.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_adm);
			if ((kind & 2) == 0)
				mad.header.class_version = 2;
		} else {
			// Skip Sets that the node's own agent, and not the manager, would execute.
			mad.header.mgmt_class =
				static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
			mad.header.class_version = 1;
			if (mad.header.is_method(ib::MadMethod::set))
				mad.header.attr_id = std::uint16_t{ib::attr_sm_info};
		}
		fixture.host->send(fixture.address(qp), mad);
	}
	fixture.expect_alive();
	return 0;
}
