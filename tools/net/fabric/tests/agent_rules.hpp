// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines conformance tests for subnet management agents. The tests of each type of node
// instantiate the suite with a class Node, which represents a managed port whose link is up. The
// class must have these members:
//   - static constexpr PortKind kKind: the kind of the port
//   - static constexpr unsigned kNumber: the attribute modifier that selects the port in SMPs
//   - Answer ask(ib::Smp): sends a request, and returns nothing if no answer arrives
//   - ib::PortInfo key_port(): returns the stored PortInfo of the port that has the node's M_Key
//   - void settle(): waits until the link has made the changes that were requested
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <utility>

#include <ib/smp.hpp>

#include "net/fabric/port_info_rules.hpp"

namespace weft::fabric::testing
{

template<class Node>
struct AgentRules : ::testing::Test {
	static constexpr bool kIsSwitch = Node::kKind != PortKind::channel_adapter;
	static constexpr bool kHasLink = Node::kKind != PortKind::switch_management;
	static constexpr bool kEndPort = Node::kKind != PortKind::switch_external;

	static ib::Smp smp(ib::MadMethod method, std::uint16_t attribute, std::uint32_t modifier)
	{
		ib::Smp request{};
		request.header.base_version = ib::mad_base_version;
		request.header.mgmt_class =
			static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
		request.header.class_version = 1;
		request.header.method = static_cast<std::uint8_t>(method);
		request.header.attr_id = attribute;
		request.header.attr_mod = modifier;
		request.dr_slid = ib::lid_permissive;
		request.dr_dlid = ib::lid_permissive;
		return request;
	}
	std::optional<ib::Smp> get(std::uint16_t attribute, std::uint32_t modifier = 0)
	{
		return node.ask(smp(ib::MadMethod::get, attribute, modifier));
	}
	template<class Attribute>
	std::optional<ib::Smp> set(std::uint16_t id, std::uint32_t modifier,
				   const Attribute &wanted, std::uint64_t mkey = 0)
	{
		ib::Smp request = smp(ib::MadMethod::set, id, modifier);
		request.mkey = mkey;
		ib::smp_attribute<Attribute>(request) = wanted;
		return node.ask(request);
	}
	static unsigned status(const std::optional<ib::Smp> &answer)
	{
		return answer ? answer->header.status & 0x7fffu : 0xffffu;
	}
	ib::PortInfo port_info() { return port_info_of(node.kNumber); }
	ib::PortInfo port_info_of(unsigned number)
	{
		const auto answer = get(ib::attr_port_info, number);
		EXPECT_EQ(status(answer), 0u);
		return answer ? ib::smp_attribute<ib::PortInfo>(*answer) : ib::PortInfo{};
	}
	// Sends Set(PortInfo) with the current values and a change.
	template<class Change>
	std::optional<ib::Smp> change(Change &&make)
	{
		ib::PortInfo info = port_info();
		info.set_state(ib::PortState::nop);
		info.set_phys_state(ib::PhysState::nop);
		make(info);
		return set(ib::attr_port_info, node.kNumber, info);
	}
	template<class Change>
	void expect_refused(Change &&make)
	{
		const ib::PortInfo before = port_info();
		EXPECT_EQ(status(change(make)), unsigned{ib::mad_status_invalid_value});
		const ib::PortInfo after = port_info();
		EXPECT_EQ(std::memcmp(&before, &after, sizeof(before)), 0) << "refused whole";
	}
	ib::PortState state_after(ib::PortState wanted)
	{
		const auto answer =
			change([wanted](ib::PortInfo &info) { info.set_state(wanted); });
		EXPECT_EQ(status(answer), 0u);
		return answer ? ib::smp_attribute<ib::PortInfo>(*answer).state()
			      : ib::PortState::nop;
	}
	void turn(ib::PhysState wanted)
	{
		EXPECT_EQ(status(change(
				  [wanted](ib::PortInfo &info) { info.set_phys_state(wanted); })),
			  0u);
		node.settle();
	}

	Node node;
};
TYPED_TEST_SUITE_P(AgentRules);

TYPED_TEST_P(AgentRules, UnsupportedAttributesAreRefused)
{
	const auto status = [this](ib::MadMethod method, std::uint16_t id, std::uint32_t modifier) {
		return this->status(this->node.ask(this->smp(method, id, modifier)));
	};
	using Method = ib::MadMethod;
	constexpr unsigned unsupported = ib::mad_status_unsupported_method_attribute;
	constexpr unsigned invalid = ib::mad_status_invalid_value;

	EXPECT_EQ(status(Method::get, ib::attr_node_info, 0), 0u);
	EXPECT_EQ(status(Method::get, ib::attr_node_description, 0), 0u);
	EXPECT_EQ(status(Method::get, 0x0099, 0), unsupported);
	EXPECT_EQ(status(Method::set, 0x0099, 0), unsupported);
	EXPECT_EQ(status(Method::set, ib::attr_node_info, 0), unsupported);
	EXPECT_EQ(status(Method::get, ib::attr_port_info, 9), invalid);
	EXPECT_EQ(status(Method::set, ib::attr_port_info, 9), invalid);
	EXPECT_EQ(status(Method::get, ib::attr_guid_info, 1), invalid);
	EXPECT_EQ(status(Method::set, ib::attr_guid_info, 1), invalid);
	EXPECT_EQ(status(Method::get, ib::attr_pkey_table, 0xfff), invalid);
	EXPECT_EQ(status(Method::set, ib::attr_pkey_table, 0xfff), invalid);
	EXPECT_EQ(status(Method::get, ib::attr_vl_arbitration, 0), invalid) << "they count from 1";
	EXPECT_EQ(status(Method::set, ib::attr_vl_arbitration, 5u << 16), invalid);
	EXPECT_EQ(status(Method::get, ib::attr_switch_info, 0) == 0, this->kIsSwitch);
	EXPECT_EQ(status(Method::get, ib::attr_linear_forwarding, 0) == 0, this->kIsSwitch);
	EXPECT_EQ(status(Method::get, ib::attr_multicast_forwarding, 0) == 0, this->kIsSwitch);

	ib::Smp old = this->smp(Method::get, ib::attr_node_info, 0);
	old.header.class_version = 9;
	EXPECT_EQ(this->status(this->node.ask(old)), unsigned{ib::mad_status_bad_version});
}

TYPED_TEST_P(AgentRules, PkeyVlArbitrationAndSlToVlTablesReturnTheValuesThatWereSet)
{
	const std::uint32_t port = this->kIsSwitch ? this->node.kNumber : 0;
	ib::PkeyTable pkeys{};
	pkeys.pkey[0] = std::uint16_t{0xffff};
	pkeys.pkey[7] = std::uint16_t{0x8123};
	auto answer = this->set(ib::attr_pkey_table, port << 16, pkeys);
	ASSERT_EQ(this->status(answer), 0u);
	EXPECT_EQ(answer->header.method, static_cast<std::uint8_t>(ib::MadMethod::get_resp));
	EXPECT_EQ(ib::smp_attribute<ib::PkeyTable>(*answer).pkey[7], 0x8123u);

	ib::VlArbitration table{};
	table.entry[3] = {1, 77};
	answer = this->set(ib::attr_vl_arbitration, 4u << 16 | port, table);
	ASSERT_EQ(this->status(answer), 0u);
	EXPECT_EQ(ib::smp_attribute<ib::VlArbitration>(*answer).entry[3].weight, 77);

	ib::SlToVl map{};
	map.set_vl(3, 2);
	answer = this->set(ib::attr_sl_to_vl, this->kIsSwitch ? port << 8 | port : 0, map);
	ASSERT_EQ(this->status(answer), 0u);
	EXPECT_EQ(ib::smp_attribute<ib::SlToVl>(*answer).vl(3), 2u);
}

TYPED_TEST_P(AgentRules, FirstEntryOfGuidInfoIsReadOnly)
{
	const auto before = this->get(ib::attr_guid_info);
	ASSERT_EQ(this->status(before), 0u);
	ib::GuidInfo wanted{};
	wanted.guid[0] = std::uint64_t{0xbad};
	wanted.guid[7] = std::uint64_t{0x1234};
	const auto answer = this->set(ib::attr_guid_info, 0, wanted);
	ASSERT_EQ(this->status(answer), 0u);
	const auto &guids = ib::smp_attribute<ib::GuidInfo>(*answer);
	EXPECT_EQ(guids.guid[0].value(), ib::smp_attribute<ib::GuidInfo>(*before).guid[0].value());
	EXPECT_EQ(guids.guid[7].value(), 0x1234u);
}

TYPED_TEST_P(AgentRules, InvalidPortInfoIsRefused)
{
	this->expect_refused(
		[](ib::PortInfo &info) { info.set_neighbor_mtu(static_cast<ib::Mtu>(6)); });
	this->expect_refused(
		[](ib::PortInfo &info) { info.set_operational_vls(info.vl_cap() + 1u); });
	this->expect_refused(
		[](ib::PortInfo &info) { info.set_state(static_cast<ib::PortState>(7)); });
	this->expect_refused(
		[](ib::PortInfo &info) { info.set_phys_state(ib::PhysState::link_up); });
	if (!this->kEndPort)
		return;
	this->expect_refused([](ib::PortInfo &info) { info.lid = std::uint16_t{0xc000}; });
	this->expect_refused([](ib::PortInfo &info) { info.sm_lid = std::uint16_t{0xffff}; });
	if (!this->kHasLink)
		return;
	this->expect_refused([](ib::PortInfo &info) {
		info.lid = std::uint16_t{5};
		info.set_lmc(1);
	}); // not a multiple of its number of LIDs, IBA 4.1.3
	EXPECT_EQ(this->status(this->change([](ib::PortInfo &info) {
		info.lid = std::uint16_t{6};
		info.set_lmc(1);
	})),
		  0u);
}

TYPED_TEST_P(AgentRules, UnsupportedWidthOrSpeedIsIgnored)
{
	const ib::PortInfo before = this->port_info();
	const auto enabled = [this](unsigned width, unsigned speed) {
		const auto answer = this->change([&](ib::PortInfo &info) {
			info.link_width_enabled = static_cast<std::uint8_t>(width);
			info.set_speed_enabled(speed);
		});
		EXPECT_EQ(this->status(answer), 0u);
		const ib::PortInfo info = this->port_info();
		return std::pair<unsigned, unsigned>(info.link_width_enabled, info.speed_enabled());
	};
	using Both = std::pair<unsigned, unsigned>;
	const Both all(before.link_width_supported, before.speed_supported());
	EXPECT_EQ(enabled(ib::width_12x, 8), all) << "nothing of it is supported: no change";
	EXPECT_EQ(enabled(0, 0), all) << "zero is no change";
	EXPECT_EQ(enabled(ib::width_1x, ib::speed_sdr), Both(ib::width_1x, ib::speed_sdr));
	EXPECT_EQ(enabled(0xff, 0xf), all) << "all that is supported";
}

TYPED_TEST_P(AgentRules, ClientReregisterIsNotStored)
{
	const auto answer =
		this->change([](ib::PortInfo &info) { info.set_client_reregister(true); });
	EXPECT_EQ(this->status(answer), 0u);
	EXPECT_FALSE(this->port_info().client_reregister());
}

// IBA 7.2.7 and 14.2.5.6: INIT, ARMED, ACTIVE, one after the other; and down from all of them.
TYPED_TEST_P(AgentRules, InvalidPortStateTransitionsAreRefused)
{
	if (!this->kHasLink)
		return;
	using State = ib::PortState;
	ASSERT_EQ(this->port_info().state(), State::init);
	this->expect_refused([](ib::PortInfo &info) { info.set_state(State::active); });
	EXPECT_EQ(this->state_after(State::armed), State::armed);
	EXPECT_EQ(this->state_after(State::active), State::active);
	EXPECT_EQ(this->state_after(State::active), State::active);
	this->expect_refused([](ib::PortInfo &info) { info.set_state(State::armed); });
	EXPECT_EQ(this->state_after(State::down), State::init)
		<< "managers take nothing from an answer that says DOWN";
	this->node.settle();
	EXPECT_EQ(this->port_info().state(), State::init) << "its link has trained again";

	EXPECT_EQ(this->state_after(State::armed), State::armed);
	EXPECT_EQ(this->state_after(State::active), State::active);
	this->turn(ib::PhysState::polling);
	EXPECT_EQ(this->port_info().state(), State::init) << "polling, too, trains it";
}

TYPED_TEST_P(AgentRules, DisabledPortStaysDownUntilSetToPolling)
{
	if (!this->kHasLink)
		return;
	// If the node is reached through this port, it is unreachable while the port is down.
	if (!this->node.kReachedOtherwise)
		return;
	for (const ib::PhysState off : {ib::PhysState::disabled, ib::PhysState::sleep}) {
		this->turn(off);
		EXPECT_EQ(this->port_info().state(), ib::PortState::down);
		EXPECT_EQ(this->port_info().phys_state(), off);
		EXPECT_EQ(this->state_after(ib::PortState::down), ib::PortState::down);
		this->node.settle();
		EXPECT_EQ(this->port_info().phys_state(), off);
		this->turn(ib::PhysState::polling);
		EXPECT_EQ(this->port_info().state(), ib::PortState::init);
		EXPECT_EQ(this->port_info().phys_state(), ib::PhysState::link_up);
	}
}

// IBA 14.2.4: port 0 holds the M_Key of a switch.
TYPED_TEST_P(AgentRules, MkeyProtectsSetAndTrapRepress)
{
	constexpr std::uint64_t key = 0x77;
	const unsigned key_port = this->kIsSwitch ? 0 : this->node.kNumber;
	ib::PortInfo info = this->port_info_of(key_port);
	info.set_state(ib::PortState::nop);
	info.set_phys_state(ib::PhysState::nop);
	info.mkey = key;
	info.set_mkey_protect(1);
	ASSERT_EQ(this->status(this->set(ib::attr_port_info, key_port, info)), 0u);
	EXPECT_EQ(this->port_info_of(key_port).mkey.value(), 0u) << "hidden from others";

	info = this->port_info();
	info.set_state(ib::PortState::nop);
	info.set_phys_state(ib::PhysState::nop);
	if (this->kEndPort)
		info.mkey = key;
	EXPECT_FALSE(this->set(ib::attr_port_info, this->node.kNumber, info));
	EXPECT_FALSE(this->set(ib::attr_port_info, this->node.kNumber, info, 5));
	EXPECT_EQ(this->node.key_port().mkey_violations.value(), 2u);
	/* The TrapRepress is routed by LID, like the trap that it answers. */
	ib::Smp repress = this->smp(ib::MadMethod::trap_repress, ib::attr_sm_notice, 0);
	repress.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
	EXPECT_FALSE(this->node.ask(repress));
	EXPECT_EQ(this->node.key_port().mkey_violations.value(), 3u);
	EXPECT_EQ(this->status(this->set(ib::attr_port_info, this->node.kNumber, info, key)), 0u);
	EXPECT_EQ(this->status(this->get(ib::attr_node_info)), 0u) << "anybody may read";
}

REGISTER_TYPED_TEST_SUITE_P(AgentRules, UnsupportedAttributesAreRefused,
			    PkeyVlArbitrationAndSlToVlTablesReturnTheValuesThatWereSet,
			    FirstEntryOfGuidInfoIsReadOnly, InvalidPortInfoIsRefused,
			    UnsupportedWidthOrSpeedIsIgnored, ClientReregisterIsNotStored,
			    InvalidPortStateTransitionsAreRefused,
			    DisabledPortStaysDownUntilSetToPolling, MkeyProtectsSetAndTrapRepress);

} // namespace weft::fabric::testing
