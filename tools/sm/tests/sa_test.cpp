// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that subnet administration answers the requests of IPoIB, rdma_cm and the diagnostic tools.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "sm/rmpp_sender.hpp"
#include "sm/tests/sa_lab.hpp"

namespace weft::sm
{
namespace
{

using namespace testing;
using Path = ib::PathRecord;
TEST_F(SaTest, JoinOfTheIpoibBroadcastGroupReturnsTheGroupsParameters)
{
	auto answer = join(a, ib::ipoib_broadcast_gid(0xffff), kJoinMask);
	ASSERT_TRUE(answer);
	ASSERT_EQ(0, answer->header.status);
	EXPECT_TRUE(answer->header.is_method(MadMethod::get_resp));
	const auto &record = record_of<Mc>(*answer);
	EXPECT_GE(record.mlid, 0xc000);
	EXPECT_EQ(0x0b1bu, record.qkey);
	EXPECT_EQ(4, ib::selected_value(record.mtu_selector));
	EXPECT_EQ(3, ib::selected_value(record.rate_selector));
	EXPECT_EQ(0xffff, record.pkey);
	EXPECT_EQ(1, record.join_state());
	EXPECT_EQ(2, record.scope());
	EXPECT_EQ(a.gid(), record.port_gid);
}

// The replies have the client's transaction ID and wrong contents. The same seed gives the same
// contents.
TEST_F(SaTest, SameSeedCorruptsSaRepliesInTheSameWay)
{
	const ib::SaMad truth = *path(a, b);
	auto differs = [&](const ib::SaMad &answer) {
		return answer.header.status != truth.header.status ||
		       answer.header.attr_id != truth.header.attr_id ||
		       !std::ranges::equal(answer.data, truth.data);
	};
	auto some = [&] {
		std::vector<std::vector<std::uint8_t>> answers;
		for (int i = 0; i < 20; i++) {
			auto answer = path(a, b);
			EXPECT_TRUE(answer && differs(*answer)) << i;
			answers.emplace_back(std::begin(answer->data), std::end(answer->data));
		}
		return answers;
	};
	sm.reply_corrupter().randomise(7, 1);
	const auto first = some();
	EXPECT_EQ(20u, sm.reply_corrupter().corrupted());
	sm.reply_corrupter().randomise(8, 1);
	EXPECT_NE(first, some());
	sm.reply_corrupter().randomise(7, 1);
	EXPECT_EQ(first, some());
	sm.reply_corrupter().randomise(7, 0);
	EXPECT_FALSE(differs(*path(a, b)));
	EXPECT_EQ(60u, sm.reply_corrupter().corrupted());
}

TEST_F(SaTest, MulticastReachesExactlyTheGroupMembersAfterTheJoinResponse)
{
	fabric::Port &end = lab.fabric.add_port("listener");
	for (Host *host : {&a, &b})
		ASSERT_EQ(0,
			  join(*host, ib::ipoib_broadcast_gid(0xffff), kJoinMask)->header.status);
	auto answer = join(c, group(0x10101), kCreateMask);
	ASSERT_TRUE(answer);
	ASSERT_EQ(0, answer->header.status);
	ib::Lid other = record_of<Mc>(*answer).mlid;
	EXPECT_NE(0xc000, other);
	static_cast<void>(end);

	// The switches have been programmed before the response is sent, so there is no need to
	// wait.
	auto count = [&](Host &host) {
		return host.mads.port().counters().multicast_rcv_packets.load();
	};
	ib::Mad mad{};
	fabric::MadAddress to;
	to.dlid = 0xc000;
	to.src_qp = 1;
	to.dest_qp = 1;
	ASSERT_TRUE(a.mads.send(to, mad));
	EXPECT_EQ(0u, count(a));
	EXPECT_EQ(1u, count(b));
	EXPECT_EQ(0u, count(c));
	to.dlid = other;
	ASSERT_TRUE(a.mads.send(to, mad));
	EXPECT_EQ(1u, count(b));
	// The sender does not have to be a member, but the packet follows the tree of members.
	ASSERT_EQ(0, leave(b, ib::ipoib_broadcast_gid(0xffff))->header.status);
	to.dlid = 0xc000;
	ASSERT_TRUE(a.mads.send(to, mad));
	EXPECT_EQ(1u, count(b));
}

TEST_F(SaTest, MulticastGroupIsDeletedWhenItsLastFullMemberLeaves)
{
	EXPECT_EQ(ib::sa_status_insufficient_components,
		  join(a, group(7), kJoinMask)->header.status);
	auto first = join(a, group(7), kCreateMask);
	ASSERT_EQ(0, first->header.status);
	auto second = join(b, group(7), kJoinMask);
	ASSERT_EQ(0, second->header.status);
	EXPECT_EQ(record_of<Mc>(*first).mlid, record_of<Mc>(*second).mlid);
	// This parameter differs from the group's.
	ib::SaMad wrong = b.request(MadMethod::set, ib::attr_mc_member_record,
				    kJoinMask | component(Mc::c_qkey));
	Host::record<Mc>(wrong) = record_of<Mc>(*second);
	Host::record<Mc>(wrong).qkey = 5u;
	EXPECT_EQ(ib::sa_status_req_invalid, b.ask_sa(wrong)->header.status);

	EXPECT_EQ(ib::sa_status_req_invalid, leave(c, group(7))->header.status);
	auto gone = leave(a, group(7));
	EXPECT_EQ(0, gone->header.status);
	EXPECT_TRUE(gone->header.is_method(MadMethod::remove_resp));
	EXPECT_EQ(0, leave(b, group(7))->header.status);
	EXPECT_EQ(ib::sa_status_insufficient_components,
		  join(a, group(7), kJoinMask)->header.status);
	// The broadcast group stays.
	EXPECT_EQ(0, join(a, ib::ipoib_broadcast_gid(0xffff), kJoinMask)->header.status);
	EXPECT_EQ(0, leave(a, ib::ipoib_broadcast_gid(0xffff))->header.status);
	EXPECT_EQ(0, join(b, ib::ipoib_broadcast_gid(0xffff), kJoinMask)->header.status);
	// The requests name a port that does not exist and a P_Key that no port has.
	ib::SaMad bad = a.request(MadMethod::set, ib::attr_mc_member_record, kJoinMask);
	Host::record<Mc>(bad).mgid = ib::ipoib_broadcast_gid(0xffff);
	Host::record<Mc>(bad).port_gid = ib::Gid::from_parts(ib::gid_prefix_link_local, 0xdead);
	Host::record<Mc>(bad).set_scope_join_state(2, 1);
	EXPECT_EQ(ib::sa_status_invalid_gid, a.ask_sa(bad)->header.status);
}

// RFC 4391 sections 4 to 6: members of such a group would be refused, or could not communicate.
TEST_F(SaTest, IpoibGroupWhoseParametersDifferFromTheBroadcastGroupCannotBeCreated)
{
	const auto create = [&](const ib::Gid &mgid, auto change) {
		ib::SaMad mad = membership(c, MadMethod::set, c, mgid, kCreateMask);
		change(Host::record<Mc>(mad));
		return c.ask_sa(mad)->header.status.value();
	};
	const ib::Gid by_ipv6 = ib::Gid::from_parts(0xff15601bffff0000, 7);
	const ib::Gid of_nobody = ib::Gid::from_parts(0xff12401b80100000, 7);
	const ib::Gid of_no_network = ib::Gid::from_parts(0xff1240ff80100000, 7);
	const auto as_it_is = [](Mc &) {};
	EXPECT_EQ(ib::sa_status_req_invalid, create(of_nobody, as_it_is));
	for (const ib::Gid &mgid : {group(7), by_ipv6}) {
		EXPECT_EQ(ib::sa_status_req_invalid,
			  create(mgid, [](Mc &record) { record.qkey = 5u; }));
		EXPECT_EQ(ib::sa_status_req_invalid, create(mgid, [](Mc &record) {
				  record.mtu_selector = ib::make_selected(ib::Selector::exactly, 1);
			  }));
		EXPECT_EQ(ib::sa_status_req_invalid, create(mgid, [](Mc &record) {
				  record.rate_selector =
					  ib::make_selected(ib::Selector::exactly, 2);
			  }));
		EXPECT_EQ(ib::sa_status_req_invalid,
			  create(mgid, [](Mc &record) { record.set_sl_flow_hop(1, 0, 0); }));
		EXPECT_EQ(ib::sa_status_req_invalid,
			  create(mgid, [](Mc &record) { record.set_sl_flow_hop(0, 1, 0); }));
		EXPECT_EQ(ib::sa_status_req_invalid,
			  create(mgid, [](Mc &record) { record.set_sl_flow_hop(0, 0, 1); }));
		EXPECT_EQ(0, create(mgid, as_it_is));
		EXPECT_EQ(0, join(b, mgid, kJoinMask)->header.status);
	}
	EXPECT_EQ(0, create(of_no_network, [](Mc &record) { record.qkey = 5u; }));
}

// IBA 15.2.5.17: the PortGID identifies the member, and the packet identifies the requester.
TEST_F(SaTest, HostsCannotJoinOrLeaveGroupsOnBehalfOfOtherPorts)
{
	auto request = [&](MadMethod method, Host &member, const ib::Gid &mgid) {
		return membership(c, method, member, mgid, kCreateMask);
	};
	auto by_c = [&](ib::SaMad mad, std::uint64_t key = 0) {
		mad.sm_key = key;
		return c.ask_sa(mad)->header.status.value();
	};
	ASSERT_EQ(0, join(b, group(7), kCreateMask)->header.status);
	EXPECT_EQ(ib::sa_status_denied, by_c(request(MadMethod::remove, b, group(7))));
	EXPECT_EQ(ib::sa_status_denied, by_c(request(MadMethod::set, a, group(7))));
	EXPECT_EQ(ib::sa_status_denied, by_c(request(MadMethod::set, a, group(8)))) << "a new one";
	EXPECT_EQ(ib::sa_status_denied, by_c(request(MadMethod::set, a, group(7)), 0xbad));
	EXPECT_EQ(ib::sa_status_req_invalid, leave(a, group(7))->header.status) << "never joined";

	// A requester with the SM_Key acts as a proxy. It can remove only members that it has
	// added.
	auto joined = request(MadMethod::set, a, group(7));
	joined.sm_key = kSaKey;
	auto answer = c.ask_sa(joined);
	ASSERT_EQ(0, answer->header.status);
	EXPECT_EQ(Mc::proxy_join_bit, record_of<Mc>(*answer).proxy_join);
	EXPECT_EQ(ib::sa_status_denied, by_c(request(MadMethod::remove, a, group(7))));
	EXPECT_EQ(ib::sa_status_denied, by_c(request(MadMethod::remove, b, group(7)), kSaKey));
	EXPECT_EQ(0, by_c(request(MadMethod::remove, a, group(7)), kSaKey));
	// A port that joins itself no longer belongs to the proxy.
	ASSERT_EQ(0, c.ask_sa(joined)->header.status);
	answer = join(a, group(7), kJoinMask);
	ASSERT_EQ(0, answer->header.status);
	EXPECT_EQ(0, record_of<Mc>(*answer).proxy_join);
	EXPECT_EQ(ib::sa_status_denied, by_c(request(MadMethod::remove, a, group(7)), kSaKey));
	EXPECT_EQ(0, leave(a, group(7))->header.status);
	EXPECT_EQ(0, leave(b, group(7))->header.status) << "a member all the time";
}

// IBA 15.4.1.2: memberships are visible to their owner and to trusted ports.
TEST_F(SaTest, GroupMembershipsOfAPortAreHiddenFromOtherHosts)
{
	ASSERT_EQ(0, join(b, group(7), kCreateMask)->header.status);
	ib::SaMad mad = a.request(MadMethod::get, ib::attr_mc_member_record,
				  component(Mc::c_mgid) | component(Mc::c_port_gid));
	Host::record<Mc>(mad).mgid = group(7);
	Host::record<Mc>(mad).port_gid = b.gid();
	EXPECT_EQ(ib::sa_status_no_records, a.ask_sa(mad)->header.status);
	EXPECT_EQ(0, b.ask_sa(mad)->header.status);
	mad.sm_key = kSaKey;
	EXPECT_EQ(0, a.ask_sa(mad)->header.status);
}

TEST_F(SaTest, PathRecordHasBothLidsAndTheSmallestMtuOnThePath)
{
	auto answer = path(a, b);
	ASSERT_TRUE(answer);
	ASSERT_EQ(0, answer->header.status);
	const auto &record = record_of<Path>(*answer);
	EXPECT_EQ(a.lid(), record.slid);
	EXPECT_EQ(b.lid(), record.dlid);
	EXPECT_EQ(5, ib::selected_value(record.mtu_selector));
	EXPECT_EQ(7, ib::selected_value(record.rate_selector));
	EXPECT_EQ(0xffff, record.pkey);
	EXPECT_TRUE(record.reversible());

	auto before = sm.status().sweeps;
	trunk.set_rate({ib::width_1x, ib::speed_ddr, 0}, ib::Mtu::mtu_1024);
	ASSERT_TRUE(Lab::settled(sm, before));
	answer = path(a, b);
	ASSERT_TRUE(answer);
	EXPECT_EQ(3, ib::selected_value(record_of<Path>(*answer).mtu_selector));
	EXPECT_EQ(5, ib::selected_value(record_of<Path>(*answer).rate_selector));
	answer = path(b, c);
	EXPECT_EQ(5, ib::selected_value(record_of<Path>(*answer).mtu_selector));
	// The path leads to the requester itself.
	answer = path(a, a);
	ASSERT_TRUE(answer);
	EXPECT_EQ(0, answer->header.status);
	EXPECT_EQ(a.lid(), record_of<Path>(*answer).dlid);

	ib::SaMad nobody = a.request(MadMethod::get, ib::attr_path_record, component(Path::c_dgid));
	Host::record<Path>(nobody).dgid = ib::Gid::from_parts(ib::gid_prefix_link_local, 0xdead);
	EXPECT_EQ(ib::sa_status_no_records, a.ask_sa(nobody)->header.status);
	Host::record<Path>(nobody).dgid = ib::Gid::from_parts(0x1234, 0xdead);
	EXPECT_EQ(ib::sa_status_invalid_gid, a.ask_sa(nobody)->header.status);
}

TEST_F(SaTest, LargeSaTablesAreSentByRmpp)
{
	ib::SaMad nodes = a.request(MadMethod::get_table, ib::attr_node_record, 0);
	auto table = a.ask_table(nodes);
	ASSERT_TRUE(table);
	EXPECT_EQ(112u, table->stride);
	EXPECT_EQ(6u, table->count());
	EXPECT_EQ(4u, table->segments);
	// Select by component: the switches.
	ib::SaMad switches = a.request(MadMethod::get_table, ib::attr_node_record,
				       component(ib::NodeRecord::c_node_type));
	Host::record<ib::NodeRecord>(switches).info.node_type = 2;
	table = a.ask_table(switches);
	ASSERT_TRUE(table);
	EXPECT_EQ(2u, table->count());
	// Select by LID: one node, with its name.
	ib::SaMad own = a.request(MadMethod::get_table, ib::attr_node_record,
				  component(ib::NodeRecord::c_lid));
	Host::record<ib::NodeRecord>(own).lid = right.lid();
	table = a.ask_table(own);
	ASSERT_TRUE(table);
	ASSERT_EQ(1u, table->count());
	const auto &record = *reinterpret_cast<const ib::NodeRecord *>(table->bytes.data());
	EXPECT_STREQ("right", record.description.text);
	EXPECT_EQ(right.guid(), record.info.node_guid);
	// Nothing matches, so the result is an empty table and not an error.
	Host::record<ib::NodeRecord>(own).lid = std::uint16_t{999};
	table = a.ask_table(own);
	ASSERT_TRUE(table);
	EXPECT_EQ(0u, table->count());

	table = a.ask_table(a.request(MadMethod::get_table, ib::attr_port_info_record, 0));
	ASSERT_TRUE(table);
	EXPECT_EQ(2u * 9 + 4, table->count());
	table = a.ask_table(a.request(MadMethod::get_table, ib::attr_link_record, 0));
	ASSERT_TRUE(table);
	EXPECT_EQ(2u * 5, table->count());
	table = a.ask_table(a.request(MadMethod::get_table, ib::attr_path_record, 0));
	ASSERT_TRUE(table);
	EXPECT_EQ(6u * 6, table->count());
	for (auto attribute : {ib::attr_switch_info_record, ib::attr_linear_forwarding_record}) {
		table = a.ask_table(a.request(MadMethod::get_table, attribute, 0));
		ASSERT_TRUE(table);
		EXPECT_EQ(2u, table->count());
	}
	// Several records match this Get.
	ib::SaMad several = a.request(MadMethod::get, ib::attr_node_record, 0);
	EXPECT_EQ(ib::sa_status_too_many_records, a.ask_sa(several)->header.status);
}

// Requests @asked tables and acknowledges none of them. Returns how many transfers were started.
// @send passes a request to the fabric.
template<class Send>
std::size_t tables_begun(Host &host, std::size_t asked, Send send)
{
	for (std::size_t i = 0; i < asked; i++)
		send(host.request(MadMethod::get_table, ib::attr_node_record, 0));
	/* This request is answered after the other ones. */
	const std::uint64_t last = send(host.request(MadMethod::get, ib::attr_class_port_info, 0));
	std::set<std::uint64_t> begun;
	for (auto got = host.next_sa(); got && got->header.tid != last; got = host.next_sa())
		begun.insert(got->header.tid);
	return begun.size();
}

TEST_F(SaTest, NumberOfRmppTransfersPerRequesterIsLimited)
{
	EXPECT_EQ(sm::RmppSender::kTransfersOfOne,
		  tables_begun(a, sm::RmppSender::kTransfersOfOne + 5, [this](ib::SaMad mad) {
			  a.send_sa(mad);
			  return std::uint64_t{mad.header.tid};
		  }));
	// Other hosts are still served.
	ASSERT_TRUE(b.ask_table(b.request(MadMethod::get_table, ib::attr_node_record, 0)));
}

// A port that sends requests from each of its LIDs counts as one requester.
TEST(SaLimits, RmppTransferLimitIsPerPortNotPerLid)
{
	Lab lab;
	auto &sw = lab.fabric.add_switch({.name = "sw", .ports = 8});
	Host &host = lab.add_host(sw, 1);
	Config config;
	config.lmc = 1;
	ASSERT_TRUE(Lab::settled(lab.start(sw, 8, config)));
	unsigned sent = 0;
	EXPECT_EQ(sm::RmppSender::kTransfersOfOne,
		  tables_begun(host, sm::RmppSender::kTransfersOfOne + 5, [&](ib::SaMad mad) {
			  mad.header.tid = ++host.tid;
			  fabric::MadAddress to = host.sa_address();
			  to.slid = static_cast<ib::Lid>(host.lid() + sent++ % 2);
			  to.vl = 0;
			  fabric::Packet packet = fabric::make_mad_packet(
				  to, reinterpret_cast<const ib::Mad &>(mad));
			  EXPECT_EQ(fabric::Sent::done, lab.links[0]->end(0).send(packet));
			  return std::uint64_t{mad.header.tid};
		  }));
}

TEST_F(SaTest, RmppTransferCompletesDespiteLossInBothDirections)
{
	fabric::Faults faults;
	faults.loss = 0.2;
	lab.links[0]->set_faults(faults);
	auto table = a.ask_table(a.request(MadMethod::get_table, ib::attr_port_info_record, 0), 1);
	lab.links[0]->set_faults({});
	// The first request itself may have been lost; then the client asks again.
	if (!table)
		table = a.ask_table(a.request(MadMethod::get_table, ib::attr_port_info_record, 0));
	ASSERT_TRUE(table);
	EXPECT_EQ(22u, table->count());
}

TEST_F(SaTest, ServiceRecordsAreReturnedUntilTheirLeaseExpires)
{
	using Service = ib::ServiceRecord;
	constexpr std::uint64_t mask = component(Service::c_id) | component(Service::c_gid) |
				       component(Service::c_pkey) | component(Service::c_lease) |
				       component(Service::c_name);
	auto service = [&](MadMethod method, std::uint64_t components) {
		ib::SaMad mad = a.request(method, ib::attr_service_record, components);
		auto &record = Host::record<Service>(mad);
		record.id = std::uint64_t{0x42};
		record.gid = a.gid();
		record.pkey = ib::pkey_default_full;
		record.lease = Service::lease_forever;
		std::strcpy(record.name, "storage");
		return mad;
	};
	EXPECT_EQ(ib::sa_status_insufficient_components,
		  a.ask_sa(service(MadMethod::set, component(Service::c_id)))->header.status);
	EXPECT_EQ(ib::sa_status_denied, b.ask_sa(service(MadMethod::set, mask))->header.status)
		<< "for another";
	EXPECT_EQ(0, a.ask_sa(service(MadMethod::set, mask))->header.status);
	EXPECT_EQ(ib::sa_status_denied, b.ask_sa(service(MadMethod::remove, mask))->header.status);
	auto found = a.ask_sa(service(MadMethod::get, component(Service::c_name)));
	ASSERT_EQ(0, found->header.status);
	EXPECT_EQ(0x42u, record_of<Service>(*found).id);
	EXPECT_EQ(0, a.ask_sa(service(MadMethod::remove, mask))->header.status);
	EXPECT_EQ(ib::sa_status_no_records,
		  a.ask_sa(service(MadMethod::get, component(Service::c_name)))->header.status);
}

TEST_F(SaTest, TrapIsRepressedAndForwardedToSubscribers)
{
	ib::SaMad mad = a.request(MadMethod::set, ib::attr_inform_info, 0);
	auto &info = Host::record<ib::InformInfo>(mad);
	info.lid_begin = ib::InformInfo::any;
	info.is_generic = 1;
	info.subscribe = 1;
	info.type = static_cast<std::uint16_t>(ib::NoticeType::security);
	info.trap_number = ib::InformInfo::any;
	info.producer = static_cast<std::uint32_t>(ib::NodeType::channel_adapter);
	ASSERT_EQ(0, a.ask_sa(mad)->header.status);

	ib::Mad trap{};
	auto &smp = reinterpret_cast<ib::Smp &>(trap);
	trap.header.base_version = ib::mad_base_version;
	trap.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
	trap.header.class_version = 1;
	trap.header.method = static_cast<std::uint8_t>(MadMethod::trap);
	trap.header.attr_id = std::uint16_t{ib::attr_sm_notice};
	fabric::MadAddress manager;
	manager.dlid = b.mads.port_info().sm_lid;
	const auto raise = [&](ib::TrapNumber number, ib::NoticeType type, ib::Lid issuer = 0) {
		ib::Notice notice{};
		notice.generic_type = static_cast<std::uint8_t>(ib::Notice::generic_bit |
								static_cast<unsigned>(type));
		notice.producer = static_cast<std::uint32_t>(ib::NodeType::channel_adapter);
		notice.trap_number = std::uint16_t{number};
		notice.issuer_lid = issuer != 0 ? issuer : b.lid();
		notice.details[7] = 0x5a;
		std::memcpy(smp.data, &notice, ib::notice_smp_bytes);
		trap.header.tid = 0x7000u + number;
		ASSERT_TRUE(b.mads.send(manager, trap));
		const auto repress = b.received.next();
		ASSERT_TRUE(repress);
		EXPECT_TRUE(repress->mad.header.is_method(MadMethod::trap_repress));
		EXPECT_EQ(trap.header.tid, repress->mad.header.tid);
	};
	// These are a trap in another port's name, a trap that only the SM may send, a trap of a
	// type without subscribers, and one with a subscriber. Only the last is reported.
	raise(ib::trap_bad_qkey, ib::NoticeType::security, c.lid());
	raise(ib::trap_mcast_group_deleted, ib::NoticeType::security);
	raise(ib::trap_local_link_integrity, ib::NoticeType::urgent);
	raise(ib::trap_bad_pkey, ib::NoticeType::security);
	const auto report = a.next_sa();
	ASSERT_TRUE(report);
	EXPECT_TRUE(report->header.is_method(MadMethod::report));
	const auto &notice = record_of<ib::Notice>(*report);
	EXPECT_EQ(unsigned{ib::trap_bad_pkey}, notice.trap_number);
	EXPECT_EQ(b.lid(), notice.issuer_lid);
	EXPECT_EQ(b.gid(), notice.issuer_gid);
	EXPECT_EQ(0x5a, notice.details[7]);
}

TEST_F(SaTest, PortRemovalIsReportedToSubscribers)
{
	ib::SaMad mad = a.request(MadMethod::set, ib::attr_inform_info, 0);
	auto &info = Host::record<ib::InformInfo>(mad);
	info.lid_begin = ib::InformInfo::any;
	info.is_generic = 1;
	info.subscribe = 1;
	info.type = ib::InformInfo::any;
	info.trap_number = std::uint16_t{ib::trap_gid_out_of_service};
	info.producer = ib::InformInfo::any_producer;
	ASSERT_EQ(0, a.ask_sa(mad)->header.status);
	EXPECT_EQ(1u, a.ask_table(a.request(MadMethod::get_table, ib::attr_inform_info_record, 0))
			      ->count());

	ib::Gid gone = c.gid();
	lab.links[2]->set_plugged(false);
	auto report = a.next_sa();
	ASSERT_TRUE(report);
	EXPECT_TRUE(report->header.is_method(MadMethod::report));
	const auto &notice = record_of<ib::Notice>(*report);
	EXPECT_EQ(unsigned{ib::trap_gid_out_of_service}, notice.trap_number);
	EXPECT_EQ(gone, reinterpret_cast<const ib::GidDetails *>(notice.details)->gid);
	// A report is repeated until the subscriber responds; responses of other nodes are ignored.
	ib::SaMad forged = *report;
	forged.header.method = static_cast<std::uint8_t>(MadMethod::report_resp);
	b.mads.send(b.sa_address(), reinterpret_cast<ib::Mad &>(forged));
	auto again = a.next_sa();
	ASSERT_TRUE(again);
	EXPECT_EQ(report->header.tid, again->header.tid);
	info.subscribe = 0;
	EXPECT_EQ(0, a.ask_sa(mad)->header.status);
	EXPECT_EQ(ib::sa_status_req_invalid, a.ask_sa(mad)->header.status);
}

TEST_F(SaTest, AnswersClassPortInfoAndRejectsUnknownAttributes)
{
	auto answer = a.ask_sa(a.request(MadMethod::get, ib::attr_class_port_info, 0));
	ASSERT_TRUE(answer);
	EXPECT_EQ(0, answer->header.status);
	EXPECT_EQ(2, record_of<ib::ClassPortInfo>(*answer).class_version);
	EXPECT_EQ(unsigned{ib::mad_status_unsupported_method_attribute},
		  a.ask_sa(a.request(MadMethod::get, 0x7777, 0))->header.status);
	ib::SaMad version = a.request(MadMethod::get, ib::attr_class_port_info, 0);
	version.header.class_version = 1;
	EXPECT_EQ(unsigned{ib::mad_status_bad_version}, a.ask_sa(version)->header.status);
}

// Without a configured rate, the groups of a partition have a rate that the link of every member
// supports.
TEST_F(SaTest, PortWithASlowLinkCanJoinTheBroadcastGroup)
{
	const auto before = sm.status().sweeps;
	lab.links[1]->set_rate({ib::width_1x, ib::speed_ddr, 0}, ib::Mtu::mtu_2048);
	ASSERT_TRUE(sm.wait_for(
		[&](const auto &status) {
			return status.sweeps > before && status.complete && b.active();
		},
		kTimeLimit));
	auto answer = join(b, ib::ipoib_broadcast_gid(0xffff), kJoinMask);
	ASSERT_TRUE(answer);
	ASSERT_EQ(0, answer->header.status);
	EXPECT_EQ(static_cast<unsigned>(ib::Rate::gbps_5),
		  ib::selected_value(record_of<Mc>(*answer).rate_selector));
	// The same applies to an IPoIB group that a host creates.
	ASSERT_EQ(0, join(a, group(7),
			  kJoinMask | component(Mc::c_qkey) | component(Mc::c_traffic_class) |
				  component(Mc::c_sl) | component(Mc::c_flow_label))
			     ->header.status);
	EXPECT_EQ(0, join(b, group(7), kJoinMask)->header.status);
}

// A port that joined before does not know the new rate, and requests the rate it joined with.
TEST_F(SaTest, MembersCanRejoinWithTheOldRateAfterALinkRateDecrease)
{
	const auto broadcast = ib::ipoib_broadcast_gid(0xffff);
	const auto change = [&](fabric::LinkRate rate) {
		const auto before = sm.status().sweeps;
		lab.links[1]->set_rate(rate, ib::Mtu::mtu_2048);
		return sm.wait_for(
			[&](const auto &status) {
				return status.sweeps > before && status.complete && b.active();
			},
			kTimeLimit);
	};
	const auto create = [&](std::uint32_t low, std::uint64_t without, ib::Rate rate) {
		ib::SaMad mad =
			membership(a, MadMethod::set, a, group(low), kCreateMask & ~without);
		Host::record<Mc>(mad).rate_selector =
			ib::make_selected(ib::Selector::exactly, static_cast<unsigned>(rate));
		return a.ask_sa(mad);
	};
	constexpr std::uint64_t the_rate = component(Mc::c_rate) | component(Mc::c_rate_selector);
	const auto fast = lab.links[1]->rate();
	ASSERT_EQ(0, join(a, broadcast, kJoinMask)->header.status);
	ASSERT_TRUE(change({ib::width_1x, ib::speed_ddr, 0}));
	EXPECT_EQ(0, create(1, 0, ib::Rate::gbps_10)->header.status);
	EXPECT_EQ(0, create(2, 0, ib::Rate::gbps_5)->header.status);
	EXPECT_EQ(ib::sa_status_req_invalid, create(3, 0, ib::Rate::gbps_2_5)->header.status);
	EXPECT_EQ(ib::sa_status_req_invalid, create(3, 0, ib::Rate::gbps_20)->header.status);
	// The group keeps its low rate, and so does a new group whose rate is not specified.
	ASSERT_TRUE(change(fast));
	const auto answer = create(3, the_rate, {});
	ASSERT_EQ(0, answer->header.status);
	EXPECT_EQ(static_cast<unsigned>(ib::Rate::gbps_5),
		  ib::selected_value(record_of<Mc>(*answer).rate_selector));
}

// IBA 13.4.9: a trap is repeated until it is repressed, so dropping some in a flood does no harm.
TEST_F(SaTest, TrapFloodIsRateLimited)
{
	constexpr unsigned flood = 500;
	const auto sweeps = sm.status().sweeps;
	ib::Mad trap{};
	auto &smp = reinterpret_cast<ib::Smp &>(trap);
	trap.header.base_version = ib::mad_base_version;
	trap.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
	trap.header.class_version = 1;
	trap.header.method = static_cast<std::uint8_t>(MadMethod::trap);
	trap.header.attr_id = std::uint16_t{ib::attr_sm_notice};
	ib::Notice notice{};
	notice.generic_type = ib::Notice::generic_bit;
	notice.trap_number = std::uint16_t{ib::trap_capability_change};
	notice.issuer_lid = b.lid();
	std::memcpy(smp.data, &notice, ib::notice_smp_bytes);
	fabric::MadAddress manager;
	manager.dlid = b.mads.port_info().sm_lid;
	const auto begin = lab.loop.now();
	for (unsigned i = 0; i < flood; i++) {
		trap.header.tid = 0x7000u + i;
		ASSERT_TRUE(b.mads.send(manager, trap));
	}
	// This request is answered after all of the traps.
	ASSERT_TRUE(a.ask_sa(a.request(MadMethod::get, ib::attr_class_port_info, 0)));
	const auto seconds = static_cast<std::size_t>((lab.loop.now() - begin) / 1s) + 1;
	EXPECT_LE(TrapBudget::kBurst, b.received.size());
	EXPECT_GE(TrapBudget::kBurst + seconds, b.received.size());
	EXPECT_GE(TrapBudget::kBurst + seconds, sm.status().sweeps - sweeps);
}

TEST(TrapBudget, TrapsAreRateLimitedPerSender)
{
	using Verdict = TrapBudget::Verdict;
	TrapBudget budget;
	TrapBudget::TimePoint now{};
	for (unsigned i = 1; i < TrapBudget::kBurst; i++)
		EXPECT_EQ(Verdict::handle, budget.take(5, now)) << i;
	EXPECT_EQ(Verdict::handle_last, budget.take(5, now));
	EXPECT_EQ(Verdict::ignore, budget.take(5, now));
	EXPECT_EQ(Verdict::handle, budget.take(6, now)) << "another's";
	now += TrapBudget::kInterval - 1ms;
	EXPECT_EQ(Verdict::ignore, budget.take(5, now));
	now += 1ms;
	EXPECT_EQ(Verdict::handle_last, budget.take(5, now));
	now += 1000 * TrapBudget::kInterval;
	for (unsigned i = 1; i < TrapBudget::kBurst; i++)
		EXPECT_EQ(Verdict::handle, budget.take(5, now)) << i;
	EXPECT_EQ(Verdict::handle_last, budget.take(5, now)) << "no more than at first";
}

TEST_F(SaTest, UnreachableMembersAreRemovedFromTheirMulticastGroups)
{
	ASSERT_EQ(0, join(c, group(9), kCreateMask)->header.status);
	auto before = sm.status().sweeps;
	lab.links[2]->set_plugged(false);
	ASSERT_TRUE(Lab::settled(sm, before));
	ib::SaMad mad = a.request(MadMethod::get, ib::attr_mc_member_record, component(Mc::c_mgid));
	Host::record<Mc>(mad).mgid = group(9);
	EXPECT_EQ(ib::sa_status_no_records, a.ask_sa(mad)->header.status);
}

} // namespace
} // namespace weft::sm
