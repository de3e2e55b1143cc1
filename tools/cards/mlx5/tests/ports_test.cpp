// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests a card with two ports: commands and events for each port, and resources that each port has.
#include <stdexcept>

#include <ib/smp.hpp>

#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::Eqe;
using hw::mlx5::EventType;
using hw::mlx5::HcaCap;
using hw::mlx5::VportContext;

class Mlx5Ports : public ::testing::Test
{
public:
	void SetUp() override { driver.bring_up(); }

	// QUERY_HCA_VPORT_CONTEXT of port @number, as Linux asks for it.
	Answer query(unsigned number)
	{
		Bytes in(16);
		VportContext::port_in.set(in.data(), number);
		return driver.command(Opcode::query_hca_vport_context, std::move(in),
				      VportContext::size);
	}

	// Sends @smp to the agent of port 2, and puts its answer there.
	void ask(ib::Smp &smp, ib::MadMethod method, std::uint16_t attribute)
	{
		using hw::mlx5::MadIfc;
		smp.header.base_version = ib::mad_base_version;
		smp.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
		smp.header.class_version = 1;
		smp.header.method = static_cast<std::uint8_t>(method);
		smp.header.status = 0;
		smp.header.attr_id = attribute;
		smp.header.attr_mod = 2;
		Bytes in(MadIfc::size);
		MadIfc::port.set(in.data(), 2);
		std::memcpy(in.data() + MadIfc::mad, &smp, sizeof(smp));
		const Answer answer = driver.command(Opcode::mad_ifc, std::move(in), MadIfc::size);
		ASSERT_EQ(answer.status, Status::ok);
		std::memcpy(&smp, answer.out.data() + MadIfc::mad, sizeof(smp));
		EXPECT_EQ(smp.header.status, 0u);
	}

	TinyDriver driver{true, 2};
};

TEST_F(Mlx5Ports, HcaCapReportsTheNumberOfPorts)
{
	const auto ports = [](TinyDriver &asked) {
		const Answer answer =
			asked.command(Opcode::query_hca_cap, Bytes(16),
				      HcaCap::offset + HcaCap::size, HcaCap::kind_general << 1);
		return hw::mlx5::load_be32(answer.out.data(), HcaCap::offset + 0x34) & 0xff;
	};
	EXPECT_EQ(ports(driver), 2u);
	TinyDriver one;
	one.enable();
	EXPECT_EQ(ports(one), 1u);
}

TEST_F(Mlx5Ports, QueryHcaVportContextReturnsAttributesOfTheRequestedPort)
{
	driver.card.context()->port(2)->info().lid = 7;
	const Answer second = query(2);
	ASSERT_EQ(second.status, Status::ok);
	EXPECT_EQ(VportContext::port_guid.get(second.out.data()), TinyDriver::kGuid + 2);
	EXPECT_EQ(VportContext::lid.get(second.out.data()), 7u);
	const Answer unnamed = query(0);
	ASSERT_EQ(unnamed.status, Status::ok);
	EXPECT_EQ(VportContext::port_guid.get(unnamed.out.data()), TinyDriver::kGuid + 1);
	for (const Opcode opcode : {Opcode::query_hca_vport_context, Opcode::query_hca_vport_gid,
				    Opcode::query_hca_vport_pkey}) {
		Bytes in(16);
		VportContext::port_in.set(in.data(), 3);
		EXPECT_EQ(driver.command(opcode, in, 0x400).status, Status::bad_index);
	}
}

// Each port has its own QP0 and QP1.
TEST_F(Mlx5Ports, EachPortHasItsOwnQp0AndQp1)
{
	const auto cq = driver.make_cq(4);
	for (const QpService kind : {QpService::qp0, QpService::qp1}) {
		const auto first = driver.make_qp(kind, cq), second = driver.make_qp(kind, cq);
		EXPECT_EQ(driver.transition(Opcode::rst2init_qp, first, 0, 1), Status::ok);
		EXPECT_EQ(driver.transition(Opcode::rst2init_qp, second, 0, 1),
			  Status::resource_busy);
		EXPECT_EQ(driver.transition(Opcode::rst2init_qp, second, 0, 3),
			  Status::bad_parameter);
		EXPECT_EQ(driver.transition(Opcode::rst2init_qp, second, 0, 2), Status::ok);
		EXPECT_EQ(driver.transition(Opcode::init2rtr_qp, second, 0, 1,
					    hw::mlx5::qp_opt::port),
			  Status::bad_parameter);
		EXPECT_EQ(driver.transition(Opcode::init2rtr_qp, second, 0, 2,
					    hw::mlx5::qp_opt::port),
			  Status::ok);
	}
}

TEST_F(Mlx5Ports, BothPortsAreEnabledTogetherAfterInitHcaAndDisabledByTeardownHca)
{
	EXPECT_FALSE(driver.port.enabled() || driver.port2->enabled());
	ASSERT_TRUE(driver.host.loop().run_until([&] { return driver.port.enabled(); }));
	EXPECT_TRUE(driver.port2->enabled());
	EXPECT_EQ(driver.command(Opcode::teardown_hca).status, Status::ok);
	EXPECT_FALSE(driver.port.enabled() || driver.port2->enabled());
}

// A change of one port's LID is an event that names that port.
TEST_F(Mlx5Ports, LidChangeEventReportsThePortNumber)
{
	ib::Smp smp{};
	ask(smp, ib::MadMethod::get, ib::attr_port_info);
	auto &info = ib::smp_attribute<ib::PortInfo>(smp);
	info.set_state(ib::PortState::nop);
	info.set_phys_state(ib::PhysState::nop);
	info.lid = 9;
	info.sm_lid = 1;
	ask(smp, ib::MadMethod::set, ib::attr_port_info);
	const auto event = driver.host.object<Eqe>(driver.async_entries);
	EXPECT_EQ(Eqe::owner.get(event.bytes), 0u);
	EXPECT_EQ(Eqe::type.get(event.bytes), static_cast<unsigned>(EventType::port_change));
	EXPECT_EQ(Eqe::port.get(event.bytes), 2u);
	EXPECT_EQ(VportContext::lid.get(query(2).out.data()), 9u);
	EXPECT_EQ(VportContext::lid.get(query(1).out.data()), 0u);
}

// OpenSM logs an error if a ConnectX-5 does not have this attribute.
TEST_F(Mlx5Ports, SmaSupportsMlnxExtendedPortInfo)
{
	ib::Smp smp{};
	ask(smp, ib::MadMethod::get, ib::attr_mlnx_extended_port_info);
	EXPECT_EQ(smp.data[15], 0u) << "no FDR-10";
}

TEST(Mlx5Card, CardWithoutPortsOrWithMoreThanTwoPortsIsRefused)
{
	fabric::Fabric fabric;
	fabric::Port &port = fabric.add_port("test");
	EXPECT_THROW(Card({"test", 1, {}}), std::invalid_argument);
	EXPECT_THROW(Card({"test", 1, {&port, nullptr}}), std::invalid_argument);
	EXPECT_THROW(Card({"test", 1, {&port, &port, &port}}), std::invalid_argument);
}

} // namespace weft::mlx5::testing
