// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests ports and their management agents: the attributes that SMPs and performance MADs read and
// set, through MAD_IFC and from the fabric, and the resulting events to the driver.
#include <gtest/gtest.h>

#include "cards/mlx4/tests/tiny_driver.hpp"
#include <ib/pma.hpp>
#include <ib/smp.hpp>

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::Eqe;
using hw::mlx4::SetPort;
namespace changed = hw::mlx4::port_info_changed;

constexpr auto kGet = ib::MadMethod::get;
constexpr auto kSet = ib::MadMethod::set;
constexpr auto kLidRouted = ib::MgmtClass::subn_lid_routed;

// The other end of a link, which drops all packets.
class DeafSink final : public fabric::PortSink
{
	void receive(fabric::Packet &&) override {}
	void link_changed(bool) override {}
};

class ManagementTest : public ::testing::Test
{
public:
	ManagementTest()
	{
		driver.bring_up_events();
		driver.peers[0]->attach(sink);
		driver.peers[0]->enable();
	}
	~ManagementTest() override { driver.peers[0]->detach(); }

	ib::Smp smp(ib::MadMethod method, std::uint16_t attribute, std::uint32_t modifier = 0)
	{
		const ib::Mad mad = driver.mad(kLidRouted, method, attribute, modifier);
		return reinterpret_cast<const ib::Smp &>(mad);
	}
	ib::Smp ask(const ib::Smp &request, std::uint32_t op_modifier = 3, unsigned port = 1)
	{
		const ib::Mad answer =
			driver.ask(port, reinterpret_cast<const ib::Mad &>(request), op_modifier);
		return reinterpret_cast<const ib::Smp &>(answer);
	}
	ib::PortInfo port_info()
	{
		return ib::smp_attribute<ib::PortInfo>(ask(smp(kGet, ib::attr_port_info, 1)));
	}
	// Sends Set(PortInfo) with the current values and one change. Returns the status of the
	// response.
	template<typename F>
	std::uint16_t set_port_info(F &&change)
	{
		ib::Smp request = smp(kSet, ib::attr_port_info, 1);
		auto &info = ib::smp_attribute<ib::PortInfo>(request);
		info = port_info();
		info.set_state(ib::PortState::nop);
		info.set_phys_state(ib::PhysState::nop);
		change(info);
		const ib::Smp answer = ask(request);
		EXPECT_EQ(answer.header.method, 0x81) << "the answer to Set, too, is GetResp";
		return answer.header.status;
	}
	void open()
	{
		ASSERT_EQ(driver.command(Opcode::init_port, 1).status, Status::ok);
		driver.host.loop().poll();
		ASSERT_EQ(port_info().state(), ib::PortState::init);
	}
	void activate()
	{
		open();
		set_port_info([](ib::PortInfo &info) { info.lid = std::uint16_t{5}; });
		set_port_info([](ib::PortInfo &info) { info.set_state(ib::PortState::armed); });
		set_port_info([](ib::PortInfo &info) { info.set_state(ib::PortState::active); });
		ASSERT_EQ(port_info().state(), ib::PortState::active);
		while (driver.poll(driver.async)) {
		}
	}

	TinyDriver driver;
	DeafSink sink;
};

TEST_F(ManagementTest, NodeInfoHasTheCardsGuidsAndDeviceId)
{
	const ib::Smp answer = ask(smp(kGet, ib::attr_node_info));
	EXPECT_EQ(answer.header.status, 0);
	EXPECT_EQ(answer.header.tid, 0x1122334455667788u);
	const auto &info = ib::smp_attribute<ib::NodeInfo>(answer);
	EXPECT_EQ(info.node_guid, 0x0002c90300000100u);
	EXPECT_EQ(info.port_guid, 0x0002c90300000101u);
	EXPECT_EQ(info.num_ports, 1);
	EXPECT_EQ(info.device_id, hw::mlx4::pci_device_id);
	EXPECT_NE(info.revision, 0xa0u);
}

TEST_F(ManagementTest, DriverCanSetTheNodeDescription)
{
	Mailbox text(64, 0);
	const std::string_view name = "node1 HCA-1";
	std::ranges::copy(name, text.begin());
	ASSERT_EQ(driver.command(Opcode::set_node, 1, 0, text).status, Status::ok);
	const ib::Smp answer = ask(smp(kGet, ib::attr_node_description));
	EXPECT_STREQ(ib::smp_attribute<ib::NodeDescription>(answer).text, "node1 HCA-1");
}

TEST_F(ManagementTest, UnknownAttributesReturnAMadStatusNotACommandError)
{
	EXPECT_EQ(ask(smp(kGet, 0x0099)).header.status,
		  ib::mad_status_unsupported_method_attribute);
	EXPECT_EQ(ask(smp(kSet, ib::attr_node_info)).header.status,
		  ib::mad_status_unsupported_method_attribute);
	EXPECT_EQ(ask(smp(kGet, ib::attr_port_info, 2)).header.status,
		  ib::mad_status_invalid_value);
	EXPECT_EQ(ask(smp(kGet, ib::attr_pkey_table, 4)).header.status,
		  ib::mad_status_invalid_value);
	EXPECT_EQ(ask(smp(kGet, ib::attr_mlnx_extended_port_info, 1)).header.status, 0)
		<< "asked for by drivers of a QDR port";
	ib::Smp old = smp(kGet, ib::attr_node_info);
	old.header.class_version = 9;
	EXPECT_EQ(ask(old).header.status, ib::mad_status_bad_version);
	EXPECT_EQ(driver.command(Opcode::mad_ifc, 2, 3, Mailbox(256), 256).status,
		  Status::bad_index)
		<< "there is no port 2";
}

TEST_F(ManagementTest, InitPortMovesThePortToInitAndClosePortToDown)
{
	EXPECT_EQ(port_info().state(), ib::PortState::down);
	open();
	EXPECT_EQ(port_info().phys_state(), ib::PhysState::link_up);
	EXPECT_EQ(driver.command(Opcode::init_port, 1).status, Status::ok) << "twice is no error";
	ASSERT_EQ(driver.command(Opcode::close_port, 1).status, Status::ok);
	EXPECT_EQ(port_info().state(), ib::PortState::down);
	EXPECT_EQ(driver.command(Opcode::close_port, 1).status, Status::ok);
	EXPECT_FALSE(driver.poll(driver.async)) << "events are for ACTIVE only";
}

TEST_F(ManagementTest, UnconnectedPortHasNoLink)
{
	driver.peers[0]->disable();
	driver.command(Opcode::init_port, 1);
	driver.host.loop().poll();
	EXPECT_EQ(port_info().state(), ib::PortState::down);
	driver.peers[0]->enable();
	driver.host.loop().poll();
	EXPECT_EQ(port_info().state(), ib::PortState::init);
}

TEST_F(ManagementTest, LidAndSmLidChangesRaiseAnEvent)
{
	open();
	EXPECT_EQ(set_port_info([](ib::PortInfo &info) {
			  info.lid = std::uint16_t{17};
			  info.sm_lid = std::uint16_t{1};
			  info.set_client_reregister(true);
		  }),
		  0);
	const auto event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::type.get(event->bytes), 0x1du);
	EXPECT_EQ(Eqe::subtype.get(event->bytes), 0x15u);
	EXPECT_EQ(Eqe::management_port.get(event->bytes), 1u);
	EXPECT_EQ(Eqe::management_lid.get(event->bytes), 17u);
	EXPECT_EQ(Eqe::management_sm_lid.get(event->bytes), 1u);
	EXPECT_EQ(Eqe::management_changed.get(event->bytes),
		  changed::lid | changed::sm_lid | changed::client_reregister);
	EXPECT_EQ(port_info().lid, 17u);
	EXPECT_EQ(set_port_info([](ib::PortInfo &) {}), 0);
	EXPECT_FALSE(driver.poll(driver.async)) << "nothing changed";
}

TEST_F(ManagementTest, PortBecomesActiveThroughArmedAndRaisesAnEvent)
{
	open();
	EXPECT_EQ(set_port_info([](ib::PortInfo &i) { i.set_state(ib::PortState::active); }),
		  ib::mad_status_invalid_value);
	EXPECT_EQ(set_port_info([](ib::PortInfo &i) { i.set_state(ib::PortState::armed); }), 0);
	EXPECT_FALSE(driver.poll(driver.async));
	EXPECT_EQ(set_port_info([](ib::PortInfo &i) { i.set_state(ib::PortState::active); }), 0);
	const auto event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::type.get(event->bytes), 0x09u);
	EXPECT_EQ(Eqe::subtype.get(event->bytes), hw::mlx4::port_change_subtype::active);
	EXPECT_EQ(Eqe::port.get(event->bytes), 1u);
}

TEST_F(ManagementTest, LinkLossMovesAnActivePortToDown)
{
	activate();
	driver.peers[0]->disable();
	driver.host.loop().poll();
	EXPECT_EQ(port_info().state(), ib::PortState::down);
	const auto event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::type.get(event->bytes), 0x09u);
	EXPECT_EQ(Eqe::subtype.get(event->bytes), hw::mlx4::port_change_subtype::down);
	EXPECT_EQ(port_info().lid, 5u);
}

TEST_F(ManagementTest, SettingThePortStateToDownMovesThePortToInit)
{
	open();
	ib::Smp request = smp(kSet, ib::attr_port_info, 1);
	auto &wanted = ib::smp_attribute<ib::PortInfo>(request);
	wanted = port_info();
	wanted.set_phys_state(ib::PhysState::nop);
	wanted.set_state(ib::PortState::down);
	wanted.lid = std::uint16_t{9};
	const auto answer = ib::smp_attribute<ib::PortInfo>(ask(request));
	EXPECT_EQ(answer.lid, 9u);
	EXPECT_EQ(answer.state(), ib::PortState::init)
		<< "managers ignore an answer that says DOWN";

	while (driver.poll(driver.async)) {
	}
	activate();
	set_port_info([](ib::PortInfo &i) { i.set_state(ib::PortState::down); });
	driver.host.loop().poll();
	EXPECT_EQ(port_info().state(), ib::PortState::init);
	const auto event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::subtype.get(event->bytes), hw::mlx4::port_change_subtype::down);
	EXPECT_FALSE(driver.poll(driver.async)) << "once";
}

TEST_F(ManagementTest, SetOfAnInvalidPortInfoIsRefusedAndChangesNothing)
{
	open();
	const auto refused = [&](auto &&change) {
		const bool bad = set_port_info(change) == ib::mad_status_invalid_value;
		return bad && port_info().lid == 0u && !driver.poll(driver.async);
	};
	EXPECT_TRUE(refused([](ib::PortInfo &i) { i.lid = std::uint16_t{0xc000}; }));
	EXPECT_TRUE(refused([](ib::PortInfo &i) { i.sm_lid = std::uint16_t{0xffff}; }));
	EXPECT_TRUE(refused([](ib::PortInfo &i) {
		i.lid = std::uint16_t{5};
		i.set_lmc(1);
	})) << "not a multiple";
	EXPECT_TRUE(refused([](ib::PortInfo &i) { i.set_neighbor_mtu(static_cast<ib::Mtu>(6)); }));
	EXPECT_TRUE(refused([](ib::PortInfo &i) { i.set_operational_vls(5); }));
	EXPECT_TRUE(refused([](ib::PortInfo &i) { i.set_state(static_cast<ib::PortState>(7)); }));
}

TEST_F(ManagementTest, SettingPkeyTableRaisesAnEvent)
{
	ib::Smp request = smp(kSet, ib::attr_pkey_table, 1);
	auto &table = ib::smp_attribute<ib::PkeyTable>(request);
	table.pkey[2] = std::uint16_t{0x8001};
	EXPECT_EQ(ask(request).header.status, 0);
	EXPECT_EQ(driver.context().port(1)->pkey(34), 0x8001);
	EXPECT_EQ(driver.context().port(1)->find_pkey(0x0001), 34);
	EXPECT_EQ(driver.context().port(1)->find_pkey(0x8002), -1);
	const auto event = driver.poll(driver.async);
	ASSERT_TRUE(event);
	EXPECT_EQ(Eqe::subtype.get(event->bytes), 0x16u);
	EXPECT_EQ(Eqe::management_block.get(event->bytes), 1u);
	EXPECT_EQ(Eqe::management_entries.get(event->bytes), 4u);
}

TEST_F(ManagementTest, FirstEntryOfTheGuidTableIsReadOnly)
{
	ib::Smp request = smp(kSet, ib::attr_guid_info, 0);
	auto &guids = ib::smp_attribute<ib::GuidInfo>(request);
	guids.guid[0] = std::uint64_t{0xbad};
	guids.guid[1] = std::uint64_t{0x1234};
	EXPECT_EQ(ask(request).header.status, 0);
	const auto &port = *driver.context().port(1);
	EXPECT_EQ(port.guid(), 0x0002c90300000101u);
	EXPECT_TRUE(port.owns_gid(ib::Gid::from_parts(ib::gid_prefix_link_local, 0x1234)));
	EXPECT_FALSE(port.owns_gid(ib::Gid::from_parts(ib::gid_prefix_link_local, 0)));
	EXPECT_FALSE(port.owns_gid(ib::Gid::from_parts(0xfec0000000000000, 0x1234)));
}

TEST_F(ManagementTest, SmpWithAWrongMkeyIsNotAnswered)
{
	set_port_info([](ib::PortInfo &info) {
		info.mkey = std::uint64_t{0x77};
		info.set_mkey_protect(2);
	});
	const ib::Smp request = smp(kGet, ib::attr_node_info);
	const auto *bytes = reinterpret_cast<const std::uint8_t *>(&request);
	EXPECT_EQ(driver.command(Opcode::mad_ifc, 1, 0, {bytes, 256}, 256).status,
		  Status::bad_packet);
	ib::Smp keyed = request;
	keyed.mkey = std::uint64_t{0x77};
	EXPECT_EQ(ask(keyed, 0).header.status, 0);
	EXPECT_EQ(ask(request, 1).header.status, 0) << "the driver may ignore the key";
	EXPECT_EQ(port_info().mkey_violations, 1u);
	EXPECT_EQ(port_info().mkey, 0u) << "but does not see it";
	ib::Smp write = smp(kSet, ib::attr_pkey_table);
	const auto *written = reinterpret_cast<const std::uint8_t *>(&write);
	EXPECT_EQ(driver.command(Opcode::mad_ifc, 1, 3, {written, 256}, 256).status,
		  Status::bad_packet)
		<< "to write takes the key";
	write.mkey = std::uint64_t{0x77};
	EXPECT_EQ(ask(write).header.status, 0);
}

TEST_F(ManagementTest, SetPortSetsTheCapabilityMaskAndRefusesTooManyVls)
{
	Mailbox mailbox(0x100);
	SetPort::capability_mask.set(mailbox.data(), 0x02010842);
	ASSERT_EQ(driver.command(Opcode::set_port, 1, 0, mailbox).status, Status::ok);
	EXPECT_EQ(port_info().capability_mask, 0x02010842u);
	SetPort::vl_valid.set(mailbox.data(), 1);
	SetPort::vls.set(mailbox.data(), 15);
	EXPECT_EQ(driver.command(Opcode::set_port, 1, 0, mailbox).status, Status::bad_size)
		<< "so that drivers try fewer";
	SetPort::vls.set(mailbox.data(), 4);
	EXPECT_EQ(driver.command(Opcode::set_port, 1, 0, mailbox).status, Status::ok);
	EXPECT_EQ(port_info().vl_cap(), 3);
	EXPECT_EQ(driver.command(Opcode::set_port, 2, 0, mailbox).status, Status::bad_index);
	EXPECT_EQ(driver.command(Opcode::set_port, 1, 1, mailbox).status, Status::bad_opcode);
}

TEST_F(ManagementTest, CardAnswersADirectedRouteSmpOnlyIfTheRouteEndsAtTheCard)
{
	bool handled = false;
	ib::Smp request = smp(kGet, ib::attr_node_info);
	request.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
	request.dr_slid = ib::lid_permissive;
	request.dr_dlid = ib::lid_permissive;
	request.header.hop_cnt = 2;
	request.header.hop_ptr = 2;
	auto &agent = driver.context().management;
	const auto answer = agent.wire_smp(1, request, ib::lid_permissive, handled);
	ASSERT_TRUE(answer);
	EXPECT_TRUE(answer->returning());
	EXPECT_EQ(answer->header.hop_ptr, 2);
	EXPECT_EQ(answer->return_path[2], 1);

	request.header.hop_ptr = 1; // to be forwarded
	EXPECT_FALSE(agent.wire_smp(1, request, ib::lid_permissive, handled));
	EXPECT_TRUE(handled);
	request.header.hop_cnt = 255;
	request.header.hop_ptr = 255;
	EXPECT_FALSE(agent.wire_smp(1, request, ib::lid_permissive, handled));
	EXPECT_TRUE(handled) << "beyond the path";
}

// The driver of an untrusted guest may read its own node, but not change the node description or
// become a subnet manager.
TEST(UntrustedCard, DriverOfAnUntrustedGuestCannotSetPortInfoPkeysNodeDescriptionGuidOrIsSmBit)
{
	TinyDriver driver(1, {}, false);
	driver.bring_up_events();
	const auto command = [&](ib::MadMethod method, std::uint16_t attribute) {
		const ib::Mad mad = driver.mad(kLidRouted, method, attribute);
		const auto *bytes = reinterpret_cast<const std::uint8_t *>(&mad);
		return driver.command(Opcode::mad_ifc, 1, 3, {bytes, 256}, 256).status;
	};
	EXPECT_EQ(command(kGet, ib::attr_port_info), Status::ok);
	EXPECT_EQ(command(kSet, ib::attr_port_info), Status::bad_packet);
	EXPECT_EQ(command(kSet, ib::attr_pkey_table), Status::bad_packet);

	const auto description = [&] {
		const ib::Mad answer =
			driver.ask(1, driver.mad(kLidRouted, kGet, ib::attr_node_description), 3);
		return std::string(ib::smp_attribute<ib::NodeDescription>(
					   reinterpret_cast<const ib::Smp &>(answer))
					   .text);
	};
	const std::string given = description();
	EXPECT_EQ(driver.command(Opcode::set_node, 1, 0, Mailbox(64, 'x')).status, Status::ok);
	EXPECT_EQ(description(), given);

	Mailbox mailbox(0x100);
	SetPort::capability_mask.set(mailbox.data(), ib::port_cap_is_sm | ib::port_cap_trap);
	ASSERT_EQ(driver.command(Opcode::set_port, 1, 0, mailbox).status, Status::ok);
	EXPECT_EQ(driver.context().port(1)->info().capability_mask,
		  std::uint32_t{ib::port_cap_trap});
	SetPort::guid0_valid.set(mailbox.data(), 1);
	SetPort::guid0.set(mailbox.data(), 0x1234);
	EXPECT_EQ(driver.command(Opcode::set_port, 1, 0, mailbox).status, Status::bad_parameter);
	EXPECT_EQ(driver.context().port(1)->guid(), 0x0002c90300000101u);

	const auto to_driver = [&](ib::MadMethod method, std::uint16_t attribute) {
		const ib::Mad mad = driver.mad(kLidRouted, method, attribute);
		bool handled = false;
		auto &agent = driver.context().management;
		return !agent.wire_smp(1, reinterpret_cast<const ib::Smp &>(mad), 1, handled) &&
		       !handled;
	};
	EXPECT_FALSE(to_driver(kGet, ib::attr_sm_info));
	EXPECT_FALSE(to_driver(ib::MadMethod::trap_repress, ib::attr_sm_notice));
}

TEST_F(ManagementTest, TrapsSmpResponsesAndSmInfoRequestsAreDeliveredToTheDriver)
{
	auto &agent = driver.context().management;
	bool handled = true;
	EXPECT_FALSE(agent.wire_smp(1, smp(kGet, ib::attr_sm_info), 1, handled));
	EXPECT_FALSE(handled);
	handled = true;
	EXPECT_FALSE(
		agent.wire_smp(1, smp(ib::MadMethod::get_resp, ib::attr_node_info), 1, handled));
	EXPECT_FALSE(handled);
	handled = true;
	EXPECT_FALSE(agent.wire_smp(1, smp(ib::MadMethod::trap, ib::attr_notice), 1, handled));
	EXPECT_FALSE(handled);
}

TEST_F(ManagementTest, PerformanceCountersCanBeReadAndCleared)
{
	auto &counters = driver.context().port(1)->fabric_port().counters();
	fabric::Counters::add(counters.xmit_packets, 70000);
	fabric::Counters::add(counters.symbol_errors, 70000);
	ib::Mad request = driver.mad(ib::MgmtClass::perf, kGet, ib::attr_port_counters);
	auto &select = *reinterpret_cast<ib::PortCounters *>(
		reinterpret_cast<ib::PerfMad &>(request).data);
	select.port_select = 1;
	ib::Mad answer = driver.ask(1, request, 4 | 3);
	const auto &read = *reinterpret_cast<const ib::PortCounters *>(
		reinterpret_cast<ib::PerfMad &>(answer).data);
	EXPECT_EQ(answer.header.status, 0);
	EXPECT_EQ(read.xmit_packets, 70000u);
	EXPECT_EQ(read.symbol_errors, 0xffffu) << "sticks at its maximum";
	request.header.method = static_cast<std::uint8_t>(kSet);
	select.counter_select = std::uint16_t{0xffff};
	driver.ask(1, request);
	request.header.method = static_cast<std::uint8_t>(kGet);
	answer = driver.ask(1, request);
	EXPECT_EQ(read.xmit_packets, 0u);
}

} // namespace
} // namespace weft::mlx4::testing
