// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests enhanced IPoIB: commands for queues, interfaces and counters, and data transfer
// (Documentation/mlx5.rst, "Enhanced IPoIB").
#include <stdexcept>

#include <hw/mlx5/raw_queues.hpp>
#include <hw/mlx5/steering.hpp>

#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/raw_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::AccessRegister;
using hw::mlx5::CounterSet;
using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;
using hw::mlx5::HashFunction;
using hw::mlx5::HcaCap;
using hw::mlx5::RawState;
using hw::mlx5::RqContext;
using hw::mlx5::SqContext;
using hw::mlx5::VportCounter;
namespace raw_command = hw::mlx5::raw_command;

namespace
{

std::uint32_t opcode_code(CqeOpcode opcode)
{
	return static_cast<std::uint32_t>(opcode);
}

} // namespace

class Mlx5EnhancedIpoib : public ::testing::Test
{
public:
	void SetUp() override
	{
		driver.bring_up();
		driver.set_port_active();
	}
	std::uint32_t state_of_rq(std::uint32_t number)
	{
		const Answer answer = driver.command(Opcode::query_rq, number, raw_command::size);
		return RqContext::state.get(answer.out.data() + raw_command::context);
	}
	std::uint32_t state_of_sq(std::uint32_t number)
	{
		const Answer answer = driver.command(Opcode::query_sq, number, raw_command::size);
		return SqContext::state.get(answer.out.data() + raw_command::context);
	}

	RawDriver driver;
};

TEST(Mlx5, EnhancedIpoibIsReportedOnlyIfEnabled)
{
	TinyDriver driver;
	driver.bring_up();
	EXPECT_EQ(driver.command(Opcode::create_rq, Bytes(0x200)).status, Status::bad_opcode);
	EXPECT_EQ(driver.command(Opcode::alloc_transport_domain).status, Status::bad_opcode);
	const auto capabilities = [&](std::uint32_t kind) {
		return driver.command(Opcode::query_hca_cap, Bytes(16), 0x1010, kind << 1);
	};
	EXPECT_EQ(capabilities(HcaCap::kind_enhanced_ipoib).status, Status::bad_parameter);
	EXPECT_EQ(capabilities(HcaCap::kind_flow_tables).status, Status::bad_parameter);
	EXPECT_EQ(capabilities(HcaCap::kind_general).out[0x10 + 0x40] & 0x10, 0);
	const auto cq = driver.make_cq(4);
	TinyDriver::Qp qp;
	EXPECT_EQ(driver.try_qp(QpService::ud, cq, qp, true, 2).status, Status::bad_parameter);
}

TEST(Mlx5, EnhancedIpoibRequiresASinglePort)
{
	fabric::Fabric fabric;
	EXPECT_THROW(Card({"test",
			   TinyDriver::kGuid,
			   {&fabric.add_port("1"), &fabric.add_port("2")},
			   true,
			   true}),
		     std::invalid_argument);
}

TEST_F(Mlx5EnhancedIpoib, CapabilitiesReportTheMaximumNumbersOfQueuesAndFlowEntries)
{
	const auto page = [&](std::uint32_t kind) {
		return driver.command(Opcode::query_hca_cap, Bytes(16), 0x1010, kind << 1 | 1).out;
	};
	const Bytes general = page(HcaCap::kind_general);
	EXPECT_EQ(general[0x10 + 0x40] & 0x10, 0x10);
	EXPECT_EQ(general[0x10 + 0x6c] & 0x1f, int{limits::kLogRawQueues});
	const Bytes tables = page(HcaCap::kind_flow_tables);
	EXPECT_EQ(tables[0x10 + 0x40] >> 7, 1);
	EXPECT_EQ(tables[0x10 + 0x47], limits::kMostFlowLevel);
	EXPECT_EQ(tables[0x10 + 0x57], limits::kLogFlowEntries);
}

TEST_F(Mlx5EnhancedIpoib, InvalidReceiveQueuesAreRefused)
{
	const auto cq = driver.make_cq(4);
	RawDriver::Queue queue;
	EXPECT_EQ(driver.try_rq(cq.number, queue).status, Status::ok);
	EXPECT_EQ(driver.try_rq(9999, queue).status, Status::bad_resource);
	const auto refused = [&](const hw::mlx5::Field &field, std::uint32_t value,
				 bool of_work_queue) {
		Bytes in = driver.rq_input(cq.number, queue);
		field.set(in.data() + raw_command::context +
				  (of_work_queue ? RqContext::work_queue : 0),
			  value);
		return driver.command(Opcode::create_rq, std::move(in)).status;
	};
	using hw::mlx5::WqContext;
	EXPECT_EQ(refused(WqContext::log_size, 16, true), Status::bad_parameter);
	EXPECT_EQ(refused(WqContext::log_stride, 3, true), Status::bad_parameter);
	EXPECT_EQ(refused(WqContext::log_stride, 10, true), Status::bad_parameter);
	EXPECT_EQ(refused(WqContext::type, WqContext::linked_list, true), Status::bad_parameter);
	EXPECT_EQ(refused(WqContext::log_size, 15, true), Status::bad_input_length);
	EXPECT_EQ(refused(RqContext::state, 1, false), Status::bad_parameter);
	EXPECT_EQ(refused(RqContext::flush_in_error, 1, false), Status::bad_parameter);
	EXPECT_EQ(refused(RqContext::memory_type, 1, false), Status::bad_parameter);
	EXPECT_EQ(refused(RqContext::hairpin, 1, false), Status::bad_parameter);
	EXPECT_EQ(driver.command(Opcode::create_rq, Bytes(0x100)).status, Status::bad_input_length);
}

TEST_F(Mlx5EnhancedIpoib, InvalidRqStateTransitionsAreRefused)
{
	const auto cq = driver.make_cq(4);
	const auto queue = driver.make_rq(cq.number);
	const auto modify = [&](RawState from, RawState to) {
		return driver.modify(Opcode::modify_rq, queue.number, from, to);
	};
	EXPECT_EQ(state_of_rq(queue.number), 0u);
	EXPECT_EQ(modify(RawState::ready, RawState::error), Status::bad_resource_state);
	EXPECT_EQ(modify(RawState::reset, static_cast<RawState>(2)), Status::bad_parameter);
	EXPECT_EQ(modify(RawState::reset, RawState::ready), Status::ok);
	EXPECT_EQ(state_of_rq(queue.number), 1u);
	EXPECT_EQ(modify(RawState::ready, RawState::error), Status::ok);
	EXPECT_EQ(state_of_rq(queue.number), 3u);
	EXPECT_EQ(modify(RawState::error, RawState::ready), Status::bad_resource_state);
	EXPECT_EQ(modify(RawState::error, RawState::reset), Status::ok);
	EXPECT_EQ(modify(RawState::reset, RawState::ready), Status::ok);
	EXPECT_EQ(driver.command(Opcode::destroy_rq, queue.number).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::destroy_rq, queue.number).status, Status::bad_resource);
	EXPECT_EQ(modify(RawState::reset, RawState::ready), Status::bad_resource);
}

TEST_F(Mlx5EnhancedIpoib, InvalidSendQueuesAreRefused)
{
	const auto cq = driver.make_cq(4);
	RawDriver::Queue queue;
	EXPECT_EQ(driver.try_sq(cq.number, 0, queue).status, Status::ok);
	EXPECT_EQ(driver.try_sq(9999, 0, queue).status, Status::bad_resource);
	EXPECT_EQ(driver.try_sq(cq.number, 9999, queue).status, Status::bad_resource);
	using hw::mlx5::WqContext;
	const auto refused = [&](const hw::mlx5::Field &field, std::uint32_t value,
				 bool of_work_queue) {
		Bytes in = driver.sq_input(cq.number, 0, queue);
		field.set(in.data() + raw_command::context +
				  (of_work_queue ? SqContext::work_queue : 0),
			  value);
		return driver.command(Opcode::create_sq, std::move(in)).status;
	};
	EXPECT_EQ(refused(WqContext::log_size, 16, true), Status::bad_parameter);
	EXPECT_EQ(refused(WqContext::log_stride, 5, true), Status::bad_parameter);
	EXPECT_EQ(refused(WqContext::type, WqContext::linked_list, true), Status::bad_parameter);
	EXPECT_EQ(refused(SqContext::tis_count, 2, false), Status::bad_parameter);
	EXPECT_EQ(refused(SqContext::hairpin, 1, false), Status::bad_parameter);
	EXPECT_EQ(refused(SqContext::state, 1, false), Status::bad_parameter);
}

// A send queue has a number like a queue pair, but commands for queue pairs refuse it.
TEST_F(Mlx5EnhancedIpoib, InvalidSqStateTransitionsAreRefusedAndQpCommandsRefuseSqNumbers)
{
	const auto cq = driver.make_cq(4);
	const auto queue = driver.make_sq(cq.number, 0);
	const auto modify = [&](RawState from, RawState to) {
		return driver.modify(Opcode::modify_sq, queue.number, from, to);
	};
	for (const Opcode opcode : {Opcode::destroy_qp, Opcode::to_err_qp, Opcode::to_rst_qp})
		EXPECT_EQ(driver.command(opcode, queue.number).status, Status::bad_resource);
	EXPECT_EQ(driver.transition(Opcode::rst2init_qp, {.number = queue.number}, 0),
		  Status::bad_resource);
	EXPECT_EQ(state_of_sq(queue.number), 0u);
	EXPECT_EQ(modify(RawState::reset, RawState::ready), Status::ok);
	EXPECT_EQ(state_of_sq(queue.number), 1u);
	EXPECT_EQ(modify(RawState::reset, RawState::ready), Status::bad_resource_state);
	EXPECT_EQ(modify(RawState::ready, RawState::error), Status::ok);
	EXPECT_EQ(state_of_sq(queue.number), 3u);
	EXPECT_EQ(modify(RawState::error, RawState::ready), Status::bad_resource_state);
	EXPECT_EQ(modify(RawState::error, RawState::reset), Status::ok);
	EXPECT_EQ(state_of_sq(queue.number), 0u);
	EXPECT_EQ(driver.command(Opcode::destroy_sq, queue.number).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::destroy_sq, queue.number).status, Status::bad_resource);
	// Commands for send queues refuse a queue pair.
	const auto qp = driver.make_qp(QpService::ud, cq);
	EXPECT_EQ(driver.command(Opcode::destroy_sq, qp.number).status, Status::bad_resource);
}

// It executes requests that send nothing. A datagram fails, and the requests after it are flushed.
TEST_F(Mlx5EnhancedIpoib, SendQueueWithoutATransportInterfaceSendsNoDatagram)
{
	const auto cq = driver.make_cq(4);
	const auto queue = driver.make_sq(cq.number, 0);
	driver.ready(Opcode::modify_sq, queue.number);
	std::uint32_t index = driver.send(queue.as_qp(), 0, TinyDriver::control(0));
	ASSERT_TRUE(driver.run_until_entry(cq, 0));
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cq, 0).bytes), opcode_code(CqeOpcode::requester));
	EXPECT_EQ(Cqe::qpn.get(driver.entry(cq, 0).bytes), queue.number);
	index = driver.send(queue.as_qp(), index, driver.datagram(queue.number, {}, 64));
	ASSERT_TRUE(driver.run_until_entry(cq, 1));
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cq, 1).bytes),
		  opcode_code(CqeOpcode::requester_error));
	EXPECT_EQ(state_of_sq(queue.number), 3u);
	driver.send(queue.as_qp(), index, TinyDriver::control(0));
	ASSERT_TRUE(driver.run_until_entry(cq, 2));
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cq, 2).bytes),
		  opcode_code(CqeOpcode::requester_error));
	// The driver resets the queue.
	EXPECT_EQ(driver.modify(Opcode::modify_sq, queue.number, RawState::error, RawState::reset),
		  Status::ok);
	driver.store(queue.record + 4, 0);
	driver.ready(Opcode::modify_sq, queue.number);
	driver.send(queue.as_qp(), 0, TinyDriver::control(0));
	ASSERT_TRUE(driver.run_until_entry(cq, 3));
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cq, 3).bytes), opcode_code(CqeOpcode::requester));
}

TEST_F(Mlx5EnhancedIpoib, CommandsThatReferToMissingObjectsAreRefused)
{
	const auto cq = driver.make_cq(4);
	const auto queue = driver.make_rq(cq.number);
	const auto underlay = driver.make_underlay();
	const std::uint32_t domain = driver.command(Opcode::alloc_transport_domain).number();
	EXPECT_EQ(driver.try_tis(domain, 9999).status, Status::bad_resource);
	EXPECT_EQ(driver.try_tis(domain + 1, underlay.number).status, Status::bad_resource);
	const auto plain = driver.make_qp(QpService::ud, cq);
	EXPECT_EQ(driver.try_tis(domain, plain.number).status, Status::bad_resource);
	EXPECT_EQ(driver.try_tis(domain, underlay.number).status, Status::ok);

	const std::uint32_t rq = queue.number;
	EXPECT_EQ(driver.try_rqt(4, {rq, rq}).status, Status::ok);
	EXPECT_EQ(driver.try_rqt(4, {rq, 9999}).status, Status::bad_resource);
	EXPECT_EQ(driver.try_rqt(1, {rq, rq}).status, Status::bad_parameter);
	EXPECT_EQ(driver.try_rqt(1, {}).status, Status::bad_parameter);
	EXPECT_EQ(driver.try_rqt(1 + (1u << limits::kLogQueueTableSize), {rq}).status,
		  Status::bad_parameter);
	EXPECT_EQ(driver.try_rqt(4, {rq, rq}, 3).status, Status::bad_input_length);

	const std::uint32_t table = driver.try_rqt(4, {rq}).number();
	EXPECT_EQ(driver.modify_rqt(table, {rq, rq, rq, rq}), Status::ok);
	EXPECT_EQ(driver.modify_rqt(table, {rq, rq, rq, rq, rq}), Status::bad_parameter);
	EXPECT_EQ(driver.modify_rqt(table, {9999}), Status::bad_resource);
	EXPECT_EQ(driver.modify_rqt(9999, {rq}), Status::bad_resource);
	EXPECT_EQ(driver.modify_rqt(table, {rq}, 2), Status::bad_parameter);

	EXPECT_EQ(driver.try_tir({.domain = domain, .rqn = rq}).status, Status::ok);
	EXPECT_EQ(driver.try_tir({.domain = domain, .rqn = 9999}).status, Status::bad_resource);
	EXPECT_EQ(driver.try_tir({.domain = domain, .rqt = 9999}).status, Status::bad_resource);
	EXPECT_EQ(driver.try_tir({.domain = 9999, .rqn = rq}).status, Status::bad_resource);
	EXPECT_EQ(driver.try_tir({.domain = domain, .rqn = rq, .hash = 3}).status,
		  Status::bad_parameter);
	const std::uint32_t tir = driver.try_tir({.domain = domain, .rqt = table}).number();
	EXPECT_EQ(driver.modify_tir(tir, raw_command::tir_set_loopback), Status::ok);
	EXPECT_EQ(driver.modify_tir(tir, raw_command::tir_set_hash), Status::ok);
	EXPECT_EQ(driver.modify_tir(tir, 1u << 5), Status::bad_parameter);
	EXPECT_EQ(driver.modify_tir(9999, raw_command::tir_set_hash), Status::bad_resource);
	for (const auto &[opcode, number] :
	     {std::pair{Opcode::destroy_tir, tir}, std::pair{Opcode::destroy_rqt, table}}) {
		EXPECT_EQ(driver.command(opcode, number).status, Status::ok);
		EXPECT_EQ(driver.command(opcode, number).status, Status::bad_resource);
	}
	EXPECT_EQ(driver.command(Opcode::destroy_tis, 9999).status, Status::bad_resource);
}

TEST_F(Mlx5EnhancedIpoib, NumberOfObjectsOfEachKindIsLimited)
{
	const auto cq = driver.make_cq(4);
	const auto underlay = driver.make_underlay();
	const auto count = [](auto &&make) {
		unsigned made = 0;
		Status status = make();
		for (; status == Status::ok && made < 5000; ++made)
			status = make();
		EXPECT_TRUE(status == Status::exceeds_limit || status == Status::no_resources);
		return made;
	};
	const std::uint32_t domain = driver.command(Opcode::alloc_transport_domain).number();
	const auto queue = driver.make_rq(cq.number);
	EXPECT_EQ(count([&] { return driver.command(Opcode::alloc_transport_domain).status; }),
		  (1u << limits::kLogTransportDomains) - 1);
	EXPECT_EQ(count([&] { return driver.try_tis(domain, underlay.number).status; }),
		  1u << limits::kLogSendInterfaces);
	EXPECT_EQ(count([&] { return driver.try_rqt(1, {queue.number}).status; }),
		  1u << limits::kLogQueueTables);
	EXPECT_EQ(count([&] {
			  return driver.try_tir({.domain = domain, .rqn = queue.number}).status;
		  }),
		  1u << limits::kLogReceiveInterfaces);
	EXPECT_EQ(count([&] { return driver.command(Opcode::alloc_q_counter).status; }),
		  limits::kCounterSets);
	RawDriver::Queue again = queue;
	EXPECT_EQ(count([&] {
			  return driver
				  .command(Opcode::create_rq, driver.rq_input(cq.number, again))
				  .status;
		  }),
		  (1u << limits::kLogRawQueues) - 1);
	EXPECT_EQ(count([&] {
			  return driver
				  .command(Opcode::create_sq, driver.sq_input(cq.number, 0, again))
				  .status;
		  }),
		  1u << limits::kLogRawQueues);
}

TEST_F(Mlx5EnhancedIpoib, RegistersReportThePortsMtuAndSpeed)
{
	const auto read = [&](std::uint32_t number, std::size_t out, std::uint32_t port = 1) {
		return driver.command(Opcode::access_register,
				      RawDriver::register_read(number, port), out, 1);
	};
	const Answer mtu = read(AccessRegister::port_mtu, 0x20);
	ASSERT_EQ(mtu.status, Status::ok);
	EXPECT_EQ(AccessRegister::mtu_most.get(mtu.out.data() + AccessRegister::data), 4096u);
	EXPECT_EQ(read(AccessRegister::port_mtu, 0x1c).status, Status::bad_output_length);
	EXPECT_EQ(read(AccessRegister::port_mtu, 0x20, 2).status, Status::bad_index);
	EXPECT_EQ(read(AccessRegister::port_speed, 0x50).status, Status::ok);
	EXPECT_EQ(read(AccessRegister::port_counters, 0x110).status, Status::ok);
	Bytes in(16);
	AccessRegister::number.set(in.data(), AccessRegister::port_mtu);
	EXPECT_EQ(driver.command(Opcode::access_register, in, 0x20, 1).status,
		  Status::bad_input_length);
	// A Set(PortCounters) may leave the total below its part.
	driver.port.counters().rcv_packets = 2;
	driver.port.counters().multicast_rcv_packets = 3;
	const Answer counted = driver.command(Opcode::query_vport_counter,
					      Bytes(VportCounter::in_size), VportCounter::size);
	ASSERT_EQ(counted.status, Status::ok);
	EXPECT_EQ(hw::mlx5::load_be64(counted.out.data(), VportCounter::unicast_received), 0u);
	EXPECT_EQ(hw::mlx5::load_be64(counted.out.data(), VportCounter::multicast_received), 3u);
}

// Datagrams from a send queue to the receive queues of the same underlay queue pair.
class Mlx5EnhancedTraffic : public Mlx5EnhancedIpoib
{
public:
	void SetUp() override
	{
		Mlx5EnhancedIpoib::SetUp();
		send_cq = driver.make_cq(4);
		for (unsigned i = 0; i < 2; ++i) {
			cqs[i] = driver.make_cq(4);
			counters[i] = CounterSet::number.get(
				driver.command(Opcode::alloc_q_counter).out.data());
			queues[i] = driver.make_rq(cqs[i].number, counters[i]);
			driver.ready(Opcode::modify_rq, queues[i].number);
		}
		domain = driver.command(Opcode::alloc_transport_domain).number();
		underlay = driver.make_underlay();
		driver.to_rts(underlay, 0);
		const std::uint32_t tis = driver.try_tis(domain, underlay.number).number();
		queue = driver.make_sq(send_cq.number, tis);
		driver.ready(Opcode::modify_sq, queue.number);
	}
	// Forwards all packets to @tir.
	void steer_to(std::uint32_t tir)
	{
		const std::uint32_t table = driver.try_table(1, 2).number();
		const std::uint32_t group = driver.try_group(table, 0, 3, {}).number();
		ASSERT_EQ(driver.set_entry(table, 0, group, {}, tir), Status::ok);
		ASSERT_EQ(driver.set_root(table, underlay.number), Status::ok);
	}
	std::uint32_t direct(unsigned which)
	{
		return driver.try_tir({.domain = domain, .rqn = queues[which].number}).number();
	}
	void send(const Bytes &header, std::uint32_t size)
	{
		index = driver.send(queue.as_qp(), index,
				    driver.datagram(underlay.number, header, size));
	}
	Cqe received(unsigned which, std::uint32_t number = 0)
	{
		EXPECT_TRUE(driver.run_until_entry(cqs[which], number));
		return driver.entry(cqs[which], number);
	}
	std::uint32_t drops(unsigned which)
	{
		Bytes in(CounterSet::query_size);
		CounterSet::queried.set(in.data(), counters[which]);
		return CounterSet::out_of_buffer.get(
			driver.command(Opcode::query_q_counter, in, CounterSet::size).out.data());
	}

	TinyDriver::Cq send_cq, cqs[2];
	RawDriver::Queue queues[2], queue;
	std::uint32_t counters[2]{};
	TinyDriver::Qp underlay;
	std::uint32_t domain = 0, index = 0;
};

// The packet is the header bytes of the request and then its data, after the space for a GRH.
TEST_F(Mlx5EnhancedTraffic, DatagramIsSteeredToTheReceiveQueue)
{
	steer_to(direct(1));
	const std::uint64_t buffer = driver.allocate(4096);
	driver.post_receive(queues[1], 0, buffer, 4096);
	const Bytes header = RawDriver::ipv4(6, 0x0a000001, 0x0a000002, 1000, 80);
	driver.fill(64);
	send(header, 64);
	const Cqe done = received(1);
	EXPECT_EQ(Cqe::opcode.get(done.bytes), opcode_code(CqeOpcode::responder_send));
	EXPECT_EQ(Cqe::qpn.get(done.bytes), underlay.number);
	EXPECT_EQ(Cqe::source_qpn.get(done.bytes), underlay.number);
	EXPECT_EQ(Cqe::byte_count.get(done.bytes), 40 + header.size() + 64);
	EXPECT_EQ(Cqe::wqe_counter.get(done.bytes), 0u);
	const std::uint8_t *const data = driver.bytes(buffer + 40, header.size() + 64);
	EXPECT_TRUE(std::equal(header.begin(), header.end(), data));
	EXPECT_TRUE(std::equal(data + header.size(), data + header.size() + 64,
			       driver.bytes(driver.data, 64)));
	std::uint32_t sum = 0;
	for (std::size_t at = 4; at < header.size() + 64; at += 2)
		sum += static_cast<std::uint32_t>(data[at] << 8 | data[at + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	EXPECT_EQ(Cqe::checksum.get(done.bytes), (sum & 0xffff) + (sum >> 16));
	ASSERT_TRUE(driver.run_until_entry(send_cq, 0));
	EXPECT_EQ(Cqe::qpn.get(driver.entry(send_cq, 0).bytes), queue.number);
	EXPECT_EQ(drops(1), 0u);
}

TEST_F(Mlx5EnhancedTraffic, DatagramThatFitsNoPostedReceiveIsDroppedAndCounted)
{
	steer_to(direct(0));
	send(RawDriver::ipv4(6, 1, 2, 3, 4), 64);
	EXPECT_EQ(drops(0), 1u);
	const std::uint64_t buffer = driver.allocate(4096);
	driver.post_receive(queues[0], 0, buffer, 40 + 44 + 63);
	send(RawDriver::ipv4(6, 1, 2, 3, 4), 64);
	EXPECT_EQ(drops(0), 2u);
	// The receive request remains posted.
	send(RawDriver::ipv4(6, 1, 2, 3, 4), 63);
	EXPECT_EQ(Cqe::wqe_counter.get(received(0).bytes), 0u);
	EXPECT_EQ(drops(0), 2u);
	// A record that claims more entries than the queue has is ignored.
	driver.post_receive(queues[0], 1, buffer, 4096);
	driver.store(queues[0].record, 2 + (1u << RawDriver::kLogEntries));
	send(RawDriver::ipv4(6, 1, 2, 3, 4), 32);
	EXPECT_EQ(drops(0), 3u);
	Bytes in(CounterSet::query_size);
	CounterSet::queried.set(in.data(), counters[0]);
	CounterSet::clear.set(in.data(), 1);
	driver.command(Opcode::query_q_counter, in, CounterSet::size);
	EXPECT_EQ(drops(0), 0u);
	EXPECT_EQ(driver.command(Opcode::dealloc_q_counter, counters[0]).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::dealloc_q_counter, counters[0]).status,
		  Status::bad_resource);
	EXPECT_EQ(driver.command(Opcode::query_q_counter, in, CounterSet::size).status,
		  Status::bad_resource);
}

// The queue pair and its other queues continue to work.
TEST_F(Mlx5EnhancedTraffic, InaccessibleReceiveBufferFailsOnlyTheReceiveQueueItWasPostedTo)
{
	steer_to(direct(0));
	driver.post_receive(queues[0], 0, TinyDriver::kMemorySize + 4096, 4096);
	send(RawDriver::ipv4(6, 1, 2, 3, 4), 64);
	EXPECT_EQ(Cqe::opcode.get(received(0).bytes), opcode_code(CqeOpcode::responder_error));
	EXPECT_EQ(state_of_rq(queues[0].number), 3u);
	send(RawDriver::ipv4(6, 1, 2, 3, 4), 64);
	EXPECT_EQ(drops(0), 1u);
	EXPECT_EQ(state_of_sq(queue.number), 1u);
	EXPECT_EQ(driver.modify(Opcode::modify_rq, queues[0].number, RawState::error,
				RawState::reset),
		  Status::ok);
	driver.store(queues[0].record, 0);
	driver.ready(Opcode::modify_rq, queues[0].number);
	driver.post_receive(queues[0], 0, driver.allocate(4096), 4096);
	send(RawDriver::ipv4(6, 1, 2, 3, 4), 64);
	EXPECT_EQ(Cqe::opcode.get(received(0, 1).bytes), opcode_code(CqeOpcode::responder_send));
}

// The driver may destroy objects in any order.
TEST_F(Mlx5EnhancedTraffic, DatagramIsDroppedIfAnObjectOnItsSteeringPathWasDestroyed)
{
	const std::uint32_t table =
		driver.try_rqt(2, {queues[0].number, queues[1].number}).number();
	const std::uint32_t tir = driver.try_tir({.domain = domain, .rqt = table}).number();
	const Bytes header = RawDriver::ipv4(6, 1, 2, 3, 4);
	send(header, 32); // no root yet
	steer_to(tir);
	EXPECT_EQ(driver.command(Opcode::destroy_rqt, table).status, Status::ok);
	send(header, 32);
	EXPECT_EQ(driver.command(Opcode::destroy_tir, tir).status, Status::ok);
	send(header, 32);
	steer_to(direct(0));
	EXPECT_EQ(driver.command(Opcode::destroy_rq, queues[0].number).status, Status::ok);
	send(header, 32);
	EXPECT_EQ(driver.command(Opcode::destroy_qp, underlay.number).status, Status::ok);
	send(header, 32);
	ASSERT_TRUE(driver.run_until_entry(send_cq, 4));
	EXPECT_EQ(Cqe::opcode.get(driver.entry(send_cq, 4).bytes),
		  opcode_code(CqeOpcode::requester_error));
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cqs[0], 0).bytes), 0xfu);
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cqs[1], 0).bytes), 0xfu);
}

// A symmetric hash selects the same queue for both directions of a connection.
TEST_F(Mlx5EnhancedTraffic, RssHashSelectsTheReceiveQueue)
{
	const std::uint32_t table =
		driver.try_rqt(2, {queues[0].number, queues[1].number}).number();
	steer_to(driver.try_tir({.domain = domain,
				 .rqt = table,
				 .hash = static_cast<std::uint32_t>(HashFunction::toeplitz),
				 .symmetric = true})
			 .number());
	for (const auto &each : queues)
		for (std::uint32_t i = 0; i < 1u << RawDriver::kLogEntries; ++i)
			driver.post_receive(each, i, driver.allocate(4096), 4096);
	std::uint32_t taken[2]{};
	for (std::uint32_t port = 0; port < 8; ++port) {
		send(RawDriver::ipv4(6, 1, 2, 1000 + port, 80), 32);
		const unsigned which = Cqe::opcode.get(driver.entry(cqs[0], taken[0]).bytes) == 0xf;
		const Cqe one = received(which, taken[which]++);
		EXPECT_NE(Cqe::hash.get(one.bytes), 0u);
		EXPECT_EQ(Cqe::hash.get(one.bytes) % 2, which);
		EXPECT_EQ(Cqe::hash_kind.get(one.bytes), Cqe::hash_ipv4 | Cqe::hash_tcp);
		if (port > 3)
			continue;
		send(RawDriver::ipv4(6, 2, 1, 80, 1000 + port), 32);
		const Cqe back = received(which, taken[which]++);
		EXPECT_EQ(Cqe::hash.get(back.bytes), Cqe::hash.get(one.bytes));
	}
	EXPECT_GT(taken[0], 0u);
	EXPECT_GT(taken[1], 0u);
}

} // namespace weft::mlx5::testing
