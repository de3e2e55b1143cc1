// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides, for tests, three hosts on two switches with a subnet manager, and functions that build
// the hosts' requests to subnet administration.
#pragma once

#include "sm/tests/three_hosts.hpp"

namespace weft::sm::testing
{

using ib::component;
using ib::MadMethod;
using Mc = ib::McMemberRecord;

constexpr std::uint64_t kJoinMask = component(Mc::c_mgid) | component(Mc::c_port_gid) |
				    component(Mc::c_pkey) | component(Mc::c_join_state);
// Components that Linux sets for a group that may have to be created.
constexpr std::uint64_t kCreateMask =
	kJoinMask | component(Mc::c_qkey) | component(Mc::c_mtu_selector) | component(Mc::c_mtu) |
	component(Mc::c_traffic_class) | component(Mc::c_rate_selector) | component(Mc::c_rate) |
	component(Mc::c_sl) | component(Mc::c_flow_label) | component(Mc::c_hop_limit);

struct SaTest : ThreeHosts {
	SubnetManager &sm = lab.start(left, 7, config());

	static constexpr std::uint64_t kSaKey = 0x5a17;
	static Config config()
	{
		Config config;
		config.sa_key = kSaKey;
		return config;
	}
	void SetUp() override { ASSERT_TRUE(Lab::settled(sm)); }

	static ib::Gid group(std::uint32_t low)
	{
		return ib::Gid::from_parts(0xff12401bffff0000, low);
	}
	// Returns a request of `by` for `member` to join or leave a group like the broadcast group.
	static ib::SaMad membership(Host &by, MadMethod method, Host &member, const ib::Gid &mgid,
				    std::uint64_t mask, std::uint8_t state = Mc::full_member)
	{
		ib::SaMad mad = by.request(method, ib::attr_mc_member_record, mask);
		auto &record = Host::record<Mc>(mad);
		record.mgid = mgid;
		record.port_gid = member.gid();
		record.qkey = 0x0b1bu;
		record.pkey = ib::pkey_default_full;
		record.mtu_selector = ib::make_selected(ib::Selector::exactly, 4);
		record.rate_selector = ib::make_selected(ib::Selector::exactly, 3);
		record.set_scope_join_state(2, state);
		return mad;
	}
	std::optional<ib::SaMad> join(Host &host, const ib::Gid &mgid, std::uint64_t mask,
				      std::uint8_t state = Mc::full_member)
	{
		return host.ask_sa(membership(host, MadMethod::set, host, mgid, mask, state));
	}
	std::optional<ib::SaMad> leave(Host &host, const ib::Gid &mgid,
				       std::uint8_t state = Mc::full_member)
	{
		ib::SaMad mad = host.request(MadMethod::remove, ib::attr_mc_member_record,
					     kJoinMask & ~component(Mc::c_pkey));
		auto &record = Host::record<Mc>(mad);
		record.mgid = mgid;
		record.port_gid = host.gid();
		record.set_scope_join_state(2, state);
		return host.ask_sa(mad);
	}
	std::optional<ib::SaMad> path(Host &from, Host &to)
	{
		ib::SaMad mad = from.request(MadMethod::get, ib::attr_path_record,
					     component(ib::PathRecord::c_dgid) |
						     component(ib::PathRecord::c_sgid) |
						     component(ib::PathRecord::c_num_path) |
						     component(ib::PathRecord::c_pkey));
		auto &record = Host::record<ib::PathRecord>(mad);
		record.dgid = to.gid();
		record.sgid = from.gid();
		record.reversible_num_path = 1;
		record.pkey = ib::pkey_default_full;
		return from.ask_sa(mad);
	}
};

} // namespace weft::sm::testing
