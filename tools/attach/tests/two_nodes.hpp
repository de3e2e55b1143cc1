// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides two end nodes with a link between them, in virtual time, and the ports that programs on
// them have opened.
#pragma once

#include <cstring>
#include <initializer_list>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "attach/mad_class.hpp"
#include "attach/node_port.hpp"
#include "attach/opened_port.hpp"
#include "base/environment.hpp"
#include "base/loop.hpp"
#include "net/fabric/fabric.hpp"
#include "net/fabric/mad_port.hpp"

namespace weft::attach::testing
{

class TwoNodes : public ::testing::Test
{
public:
	static constexpr ib::Lid kLidA = 5, kLidB = 9;

	TwoNodes()
	{
		for (int round = 0; round < 2; ++round) {
			make_active(a, kLidA);
			make_active(b, kLidB);
		}
	}

	std::unique_ptr<OpenedPort> open(const std::shared_ptr<NodePort> &port)
	{
		bool known = false;
		port->with_view([&](const fabric::PortView &) { known = true; });
		EXPECT_TRUE(loop.run_until([&] { return known; }));
		return std::make_unique<OpenedPort>(loop, port, [] {});
	}

	static AgentRequest client(std::uint8_t mgmt_class, std::uint8_t version,
				   std::uint8_t rmpp = 0)
	{
		AgentRequest request{};
		request.mgmt_class = mgmt_class;
		request.mgmt_class_version = version;
		request.qpn = mgmt_class == 0x01 || mgmt_class == 0x81 ? 0 : 1;
		request.rmpp_version = rmpp;
		return request;
	}
	static AgentRequest server(std::uint8_t mgmt_class, std::uint8_t version,
				   std::uint8_t method, std::uint8_t rmpp = 0)
	{
		AgentRequest request = client(mgmt_class, version, rmpp);
		request.method_mask[method / 64] = std::uint64_t{1} << method % 64;
		return request;
	}
	static std::uint32_t add(OpenedPort &port, const AgentRequest &request)
	{
		std::uint32_t id = 99;
		EXPECT_EQ(port.add_agent(request, id), 0);
		return id;
	}

	static ib::Mad mad(std::uint8_t mgmt_class, std::uint8_t version, std::uint8_t method,
			   std::uint64_t tid)
	{
		ib::Mad made{};
		made.header.base_version = ib::mad_base_version;
		made.header.mgmt_class = mgmt_class;
		made.header.class_version = version;
		made.header.method = method;
		made.header.tid = tid;
		return made;
	}
	static Message message(std::uint32_t agent, ib::Lid to, const ib::Mad &mad,
			       std::uint32_t timeout_ms = 0, std::uint32_t retries = 0)
	{
		Message made;
		made.header.agent = agent;
		made.header.timeout_ms = timeout_ms;
		made.header.retries = retries;
		made.header.lid = to;
		made.header.qpn = mad.header.is_smp() ? 0u : 1u;
		made.header.qkey = mad.header.is_smp() ? 0u : ib::qkey_gsi;
		const auto bytes = std::as_bytes(std::span(&mad, 1));
		made.bytes.assign(bytes.begin(), bytes.end());
		return made;
	}
	static const ib::Mad &mad_in(const Message &message)
	{
		return *reinterpret_cast<const ib::Mad *>(message.bytes.data());
	}

	// Returns the next message for the program.
	Message next(OpenedPort &port)
	{
		if (!loop.run_until([&] { return port.first() != nullptr; },
				    std::chrono::minutes(10))) {
			ADD_FAILURE() << "nothing came for the program";
			return {};
		}
		Message first = *port.first();
		port.received_first();
		return first;
	}
	// Sets the first entries of the port's P_Key table.
	static void set_pkeys(fabric::MadPort &port, std::initializer_list<ib::Pkey> pkeys)
	{
		ib::PkeyTable table{};
		std::size_t entry = 0;
		for (const ib::Pkey pkey : pkeys)
			table.pkey[entry++] = pkey;
		set_own(port, ib::attr_pkey_table, table);
	}

	// Runs all tasks that are ready, and all that become due within @time.
	void pass(Clock::duration time)
	{
		bool over = false;
		Timer timer(loop, [&] { over = true; });
		timer.arm(time);
		EXPECT_TRUE(loop.run_until([&] { return over; }, time * 2));
	}

	VirtualEnvironment environment;
	Reactor reactor{"test", Reactor::Drive::manual, environment};
	Loop loop{"test", reactor};
	fabric::Fabric fabric{1, &reactor};
	fabric::Port &port_a = fabric.add_port("a/1");
	fabric::Port &port_b = fabric.add_port("b/1");
	fabric::Link &link = fabric.connect(port_a, port_b);
	fabric::MadPort a{
		port_a, {.description = "a", .node_guid = 0xa0, .environment = &environment}, {}};
	fabric::MadPort b{
		port_b, {.description = "b", .node_guid = 0xb0, .environment = &environment}, {}};
	std::shared_ptr<NodePort> node_a = std::make_shared<NodePort>(loop, a, true);
	std::shared_ptr<NodePort> node_b = std::make_shared<NodePort>(loop, b, true);

private:
	// Moves the port to the next state towards ACTIVE. Both ends must reach a state before
	// either is moved to the next one.
	static void make_active(fabric::MadPort &port, ib::Lid lid)
	{
		ib::PortInfo info = port.port_info();
		info.lid = lid;
		info.sm_lid = kLidA;
		info.set_state(info.state() == ib::PortState::init ? ib::PortState::armed
								   : ib::PortState::active);
		info.set_phys_state(ib::PhysState{});
		set_own(port, ib::attr_port_info, info);
	}

	// Sets an attribute of the node itself.
	template<typename Attribute>
	static void set_own(fabric::MadPort &port, std::uint16_t id, const Attribute &attribute)
	{
		ib::Smp smp{};
		smp.header.base_version = ib::mad_base_version;
		smp.header.class_version = 1;
		smp.header.mgmt_class =
			static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
		smp.header.method = static_cast<std::uint8_t>(ib::MadMethod::set);
		smp.header.attr_id = id;
		smp.dr_slid = ib::lid_permissive;
		smp.dr_dlid = ib::lid_permissive;
		std::memcpy(smp.data, &attribute, sizeof(attribute));
		ASSERT_TRUE(port.send_directed(smp));
	}
};

} // namespace weft::attach::testing
